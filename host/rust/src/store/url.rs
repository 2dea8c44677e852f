//! A store chosen by a URL, as programs do.

use crate::error::StoreError;
use crate::settings::{Consumer, LeaseLength, Retention, SettingError};
use crate::store::Inventory;
use crate::store::memory::{MemorySettings, MemoryStore};
#[cfg(feature = "postgres")]
use crate::store::postgres::{PostgresSettings, PostgresStore};
#[cfg(feature = "redis")]
use crate::store::redis::{RedisSettings, RedisStore, is_redis};
#[cfg(feature = "sqlite")]
use crate::store::sqlite::{SqliteSettings, SqliteStore};
use std::sync::Arc;

/// Settings that mean the same for every store; see each store's own settings
/// for more.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct UrlSettings {
    /// The consumer's name, if several share the store.
    pub consumer: Option<Consumer>,
    /// How long marks and steps are kept.
    pub retention: Retention,
    /// How long a lease lasts.
    pub lease: LeaseLength,
    /// What the store's keys begin with instead of `bq:`, or its tables with
    /// instead of `babelqueue_`.
    pub prefix: Option<String>,
}

/// Why there is no store at a URL. Never contains a password.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// No store has URLs of this kind.
    #[error(
        "no store for {scheme:?}: use memory:, sqlite:PATH, postgres://, redis://, rediss://, \
         redis+cluster:// or valkey:// (a library can be built without some of them)"
    )]
    Scheme {
        /// What stands before the colon.
        scheme: String,
    },
    /// A setting cannot be used.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// The store could not be reached, or refused.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Opens the store at a URL.
///
/// # Errors
///
/// Those of [`ConnectError`].
pub async fn connect(
    url: &str,
    settings: &UrlSettings,
) -> Result<Arc<dyn Inventory>, ConnectError> {
    let scheme = url.split_once(':').map_or(url, |(scheme, _)| scheme);
    match scheme {
        "memory" => Ok(Arc::new(MemoryStore::new(MemorySettings {
            retention: settings.retention,
            lease: settings.lease,
            ..MemorySettings::default()
        })?)),
        #[cfg(feature = "redis")]
        _ if is_redis(scheme) => {
            let mut redis = RedisSettings::default();
            redis.consumer.clone_from(&settings.consumer);
            redis.retention = settings.retention;
            redis.lease = settings.lease;
            if let Some(prefix) = &settings.prefix {
                redis.prefix.clone_from(prefix);
            }
            Ok(Arc::new(RedisStore::connect(url, &redis).await?))
        }
        #[cfg(feature = "postgres")]
        "postgres" | "postgresql" => {
            let mut postgres = PostgresSettings::default();
            postgres.consumer.clone_from(&settings.consumer);
            postgres.retention = settings.retention;
            postgres.lease = settings.lease;
            if let Some(prefix) = &settings.prefix {
                postgres.prefix.clone_from(prefix);
            }
            Ok(Arc::new(PostgresStore::connect(url, &postgres).await?))
        }
        #[cfg(feature = "sqlite")]
        "sqlite" => {
            let mut sqlite = SqliteSettings::default();
            sqlite.consumer.clone_from(&settings.consumer);
            sqlite.retention = settings.retention;
            sqlite.lease = settings.lease;
            if let Some(prefix) = &settings.prefix {
                sqlite.prefix.clone_from(prefix);
            }
            Ok(Arc::new(SqliteStore::connect(url, &sqlite).await?))
        }
        _ => Err(ConnectError::Scheme {
            // What is no scheme may be a password that somebody has mistyped.
            scheme: if is_scheme(scheme) {
                scheme.to_owned()
            } else {
                String::new()
            },
        }),
    }
}

/// Of RFC 3986, section 3.1.
fn is_scheme(text: &str) -> bool {
    text.bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || b"+.-".contains(&byte))
}
