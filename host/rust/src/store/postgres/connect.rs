//! Reaching the database, and what is looked at first.

use super::errors::Tried;
use super::session::Repeat;
use super::statements::Statements;
use super::{Inner, PostgresSettings, PostgresStore};
use crate::error::StoreError;
use crate::settings::{Millis, SettingError};
use crate::store::tables::Tables;
use crate::store::url::ConnectError;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{ConnectOptions, Connection, PgPool, Row};
use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// A connection that nobody has used for this long is tested first.
const IDLE: Duration = Duration::from_secs(10);

/// The longest that the server's setting can be, in milliseconds.
const MAX_LOCK_TIMEOUT: u64 = i32::MAX.unsigned_abs() as u64;

impl PostgresStore {
    /// Connects to `postgres://user:password@host:port/database`, with
    /// `sslmode`, `sslrootcert`, `sslcert`, `sslkey`, `application_name` or
    /// `options` as parameters; what is not said is taken from `PGHOST`,
    /// `PGPASSWORD` and the like, and from the password file. A socket is
    /// `postgres:///database?host=/folder`.
    ///
    /// # Errors
    ///
    /// A setting or the URL cannot be used; the server cannot be reached or
    /// refuses; or the database's encoding is not UTF8, in which some ids
    /// could not be kept.
    pub async fn connect(url: &str, settings: &PostgresSettings) -> Result<Self, ConnectError> {
        // The text of the error does not repeat the URL.
        let options: PgConnectOptions = url
            .parse()
            .map_err(|error: sqlx::Error| SettingError::new("store", error.to_string()))?;
        if settings.connections == 0 {
            return Err(SettingError::new("connections", "must be at least 1, is 0").into());
        }
        let mut options = options
            // Poolers refuse to set it for a session.
            .extra_float_digits(None)
            .disable_statement_logging();
        if options.get_application_name().is_none() {
            options = options.application_name("babelqueue-guard");
        }
        let inner = Inner::new(&options, settings)?;
        reach(&options, inner.timeout).await?;
        let pool = PgPoolOptions::new()
            .max_connections(settings.connections)
            .acquire_timeout(inner.timeout)
            // A question that meets a broken connection is asked again; to
            // test each one would double the round trips.
            .test_before_acquire(false)
            .before_acquire(|connection, meta| {
                Box::pin(async move {
                    if meta.idle_for > IDLE {
                        connection.ping().await?;
                    }
                    Ok(true)
                })
            })
            .connect_lazy_with(options);
        Self::over(pool, inner).await
    }

    /// A store over the caller's own pool.
    ///
    /// # Errors
    ///
    /// As for [`connect`](Self::connect).
    pub async fn with_pool(
        pool: PgPool,
        settings: &PostgresSettings,
    ) -> Result<Self, ConnectError> {
        let inner = Inner::new(&pool.connect_options(), settings)?;
        Self::over(pool, inner).await
    }

    async fn over(pool: PgPool, inner: Inner) -> Result<Self, ConnectError> {
        let inner = Arc::new(inner);
        let store = Self { pool, inner };
        store.check_server().await?;
        Ok(store)
    }

    async fn check_server(&self) -> Result<(), StoreError> {
        let to = "look at its settings";
        let question = "SELECT current_setting('server_encoding'), \
                        current_setting('server_version_num')::integer";
        let rows = self
            .ask(question, Repeat::Safe)
            .await
            .map_err(|failure| self.failed(to, &failure))?;
        let (encoding, version): (String, i32) =
            self.read(to, &rows, |row| Ok((row.try_get(0)?, row.try_get(1)?)))?;
        let place = &self.inner.place;
        if encoding != "UTF8" {
            return Err(StoreError::Rejected(format!(
                "{place}: the database's encoding is {encoding}, which cannot hold every id: \
                 create one with `ENCODING 'UTF8' TEMPLATE template0`"
            )));
        }
        if version < 120_000 {
            return Err(StoreError::Rejected(format!(
                "{place}: server_version_num is {version}, and the guard needs PostgreSQL 12"
            )));
        }
        Ok(())
    }
}

impl Inner {
    fn new(options: &PgConnectOptions, settings: &PostgresSettings) -> Result<Self, SettingError> {
        let timeout = Millis::new("timeout", settings.timeout)?.duration();
        let half = u64::try_from(timeout.as_millis() / 2).unwrap_or(u64::MAX);
        Ok(Self {
            place: place(options),
            statements: Statements::new(
                Tables::new(&settings.prefix, settings.consumer.as_ref())?,
                settings.retention,
                settings.lease,
                half.clamp(1, MAX_LOCK_TIMEOUT),
            ),
            retention: settings.retention,
            lease: settings.lease,
            timeout,
        })
    }
}

/// Makes one connection, for the error if it cannot be made: a pool tries
/// until its time is over, and does not say why.
async fn reach(options: &PgConnectOptions, limit: Duration) -> Result<(), StoreError> {
    let place = &place(options);
    let made = async {
        let connection = options.connect().await?;
        connection.close().await
    };
    match timeout(limit, made).await {
        Ok(Ok(())) => Ok(()),
        // Over TCP, these are the only files.
        Ok(Err(sqlx::Error::Io(error)))
            if options.get_socket().is_none()
                && matches!(
                    error.kind(),
                    ErrorKind::NotFound | ErrorKind::PermissionDenied
                ) =>
        {
            Err(StoreError::Rejected(format!(
                "{place}: not connected: {error}: do sslrootcert, sslcert and sslkey name files \
                 that can be read?"
            )))
        }
        Ok(Err(error)) => Err(Tried {
            place,
            to: "connect",
        }
        .meaning(&error, &format!("{place}: not connected"))),
        Err(_elapsed) => Err(StoreError::Unavailable(format!(
            "{place}: not connected: no answer in {limit:?}"
        ))),
    }
}

fn place(options: &PgConnectOptions) -> String {
    let database = options.get_database().unwrap_or(options.get_username());
    match options.get_socket() {
        Some(socket) => format!("PostgreSQL at {}/{database}", socket.display()),
        None => {
            let (host, port) = (options.get_host(), options.get_port());
            format!("PostgreSQL at {host}:{port}/{database}")
        }
    }
}
