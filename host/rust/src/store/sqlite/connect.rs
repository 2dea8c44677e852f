//! Opening the file.

use super::errors::{self, Tried};
use super::statements::Statements;
use super::{Inner, SqliteSettings, SqliteStore};
use crate::settings::{Millis, SettingError};
use crate::store::inventory::Inventory;
use crate::store::tables::Tables;
use crate::store::url::ConnectError;
use sqlx::sqlite::{SqliteConnectOptions, SqlitePoolOptions};
use sqlx::{ConnectOptions, Row, SqlitePool};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep};

impl SqliteStore {
    /// Opens a file, and creates it if it is not there: `sqlite:path`,
    /// `sqlite:///absolute/path`, with `?mode=ro` to read only or `?mode=rw`
    /// not to create it. `sqlite::memory:` is lost with the store.
    ///
    /// In a database that holds nothing at all, the tables are created; any
    /// other is left as it is until it is told to
    /// [`migrate`](Inventory::migrate).
    ///
    /// # Errors
    ///
    /// A setting or the URL cannot be used, or the file cannot be opened.
    pub async fn connect(url: &str, settings: &SqliteSettings) -> Result<Self, ConnectError> {
        let path = url.strip_prefix("sqlite:").unwrap_or(url);
        let path = path.strip_prefix("//").unwrap_or(path);
        if path.is_empty() || path.starts_with('?') {
            return Err(SettingError::new("store", format!("{url:?} names no file")).into());
        }
        let mut options: SqliteConnectOptions = url
            .parse()
            .map_err(|error| SettingError::new("store", format!("{url:?}: {error}")))?;
        if !url.contains("mode=") {
            options = options.create_if_missing(true);
        }
        let busy_timeout = Millis::new("busy_timeout", settings.busy_timeout)?.duration();
        options = options
            .busy_timeout(busy_timeout)
            .disable_statement_logging();
        let place = format!("SQLite at {}", options.get_filename().display());
        // One connection: writers queue up for it in order, where they would
        // otherwise sleep and try again; and a database in memory is one.
        let pool = SqlitePoolOptions::new()
            .max_connections(1)
            .max_lifetime(None)
            .idle_timeout(None)
            .test_before_acquire(false)
            .connect_with(options)
            .await
            .map_err(|error| {
                Tried {
                    place: &place,
                    to: "open it",
                }
                .failed(&error)
            })?;
        let store = Self::over(pool, place, settings)?;
        store.write_ahead(busy_timeout).await?;
        if store.is_empty().await? {
            store.migrate().await?;
        }
        Ok(store)
    }

    /// A store over the caller's own pool, which should have a `busy_timeout`
    /// and a database in WAL mode.
    ///
    /// # Errors
    ///
    /// A setting cannot be used; the pool cannot be asked; or it has several
    /// connections to a database in memory, where each would have its own.
    pub async fn with_pool(
        pool: SqlitePool,
        settings: &SqliteSettings,
    ) -> Result<Self, ConnectError> {
        let options = pool.connect_options();
        let place = format!("SQLite at {}", options.get_filename().display());
        let connections = pool.options().get_max_connections();
        let store = Self::over(pool, place, settings)?;
        if connections > 1 && store.is_in_memory().await? {
            return Err(SettingError::new(
                "pool",
                format!(
                    "{connections} connections to a database in memory, which would not share \
                     it: set `max_connections(1)`, or use a file"
                ),
            )
            .into());
        }
        Ok(store)
    }

    fn over(
        pool: SqlitePool,
        place: String,
        settings: &SqliteSettings,
    ) -> Result<Self, SettingError> {
        let tables = Tables::new(&settings.prefix, settings.consumer.as_ref())?;
        Ok(Self {
            pool,
            inner: Arc::new(Inner {
                place,
                statements: Statements::new(&tables),
                tables,
                retention: settings.retention,
                lease: settings.lease,
            }),
        })
    }

    /// Writes ahead from now on, so that readers and the writer do not wait
    /// for one another.
    async fn write_ahead(&self, busy_timeout: Duration) -> Result<(), ConnectError> {
        let until = Instant::now() + busy_timeout;
        loop {
            // Which mode it is in is asked first: to change it needs a lock.
            let changed = match self.journal_mode("PRAGMA journal_mode").await {
                Ok(mode) if mode == "wal" || mode == "memory" => return Ok(()),
                Ok(_) => self.journal_mode("PRAGMA journal_mode = WAL").await,
                Err(error) => Err(error),
            };
            match changed {
                Ok(mode) if mode == "wal" => return Ok(()),
                Ok(mode) => {
                    tracing::warn!(
                        mode,
                        "{}: no write-ahead log here: slower, and no less safe",
                        self.inner.place
                    );
                    return Ok(());
                }
                // SQLite does not wait for this lock by itself.
                Err(error) if errors::is_busy(&error) && Instant::now() < until => {
                    sleep(Duration::from_millis(5)).await;
                }
                // Whoever only reads need not change it.
                Err(error) if errors::is_read_only(&error) => return Ok(()),
                Err(error) => return Err(self.failed("open it", error).await.into()),
            }
        }
    }

    async fn journal_mode(&self, pragma: &'static str) -> sqlx::Result<String> {
        sqlx::query_scalar(pragma).fetch_one(&self.pool).await
    }

    async fn is_empty(&self) -> Result<bool, ConnectError> {
        let objects: sqlx::Result<i64> = sqlx::query_scalar("SELECT count(*) FROM sqlite_schema")
            .fetch_one(&self.pool)
            .await;
        match objects {
            Ok(objects) => Ok(objects == 0),
            Err(error) => Err(self.failed("look at its tables", error).await.into()),
        }
    }

    async fn is_in_memory(&self) -> Result<bool, ConnectError> {
        let asked = async {
            let main = sqlx::query("PRAGMA database_list")
                .fetch_one(&self.pool)
                .await?;
            // The path of the file, or nothing.
            main.try_get::<Option<String>, _>(2)
        };
        match asked.await {
            Ok(path) => Ok(path.is_none_or(|path| path.is_empty())),
            Err(error) => Err(self.failed("look at its path", error).await.into()),
        }
    }
}
