//! A store on Redis or Valkey: a single server, one that Sentinel watches, or
//! a cluster.
//!
//! The keys and values are those that every language's store uses (contract,
//! section 8), the times are the server's own. It needs Redis 6.2 or any
//! Valkey, and of an ACL user: `get`, `set`, `getdel` and `pttl` on its keys,
//! for claims also `eval`, `del` and `pexpire`, and `scan` to list what is
//! there.
//!
//! What a failover or an unsynced disk forgets is forgotten here too: a mark
//! that a replica had not received, or that was not yet on disk, is gone, and
//! its message would run again.

mod check;
mod claims;
mod client;
mod inventory;
mod keys;
mod link;
mod reply;
mod settings;
mod step;
#[cfg(feature = "redis-tls")]
mod tls;
mod url;

pub use client::RedisClient;
pub use settings::RedisSettings;
pub(crate) use url::is_redis;

use crate::error::StoreError;
use crate::settings::{Millis, Retention, SettingError};
use crate::store::Store;
use crate::store::url::ConnectError;
use async_trait::async_trait;
use client::Target;
use keys::Keys;
use link::{Link, Repeat};
use redis::{Cmd, Value, cmd};
use reply::Asked;
use settings::Timeouts;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Marks, leases and steps on Redis or Valkey. Clones share the connection.
///
/// The connection is opened when it is first needed and again after it was
/// lost, in a task of the tokio runtime; nothing waits longer than the timeouts
/// of [`RedisSettings`]. What may be done twice without harm is sent again
/// where the connection turns out to be closed.
#[derive(Clone)]
pub struct RedisStore {
    link: Arc<Link>,
    keys: Keys,
    retention: Retention,
    lease: Millis,
    /// Whether the scripts have been seen to work.
    scripts: Arc<AtomicBool>,
}

impl fmt::Debug for RedisStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisStore")
            .field("server", &self.link.name())
            .field("keys", &self.keys)
            .field("retention", &self.retention)
            .field("lease", &self.lease)
            .finish_non_exhaustive()
    }
}

impl RedisStore {
    /// A store over a client of one's own. Does not connect yet; see
    /// [`check`](Self::check).
    ///
    /// With the feature `redis-tls`, a client that may use TLS makes rustls
    /// take its cryptography from `ring`, unless the program has installed
    /// another provider.
    ///
    /// # Errors
    ///
    /// A timeout of zero, of a fraction of a millisecond, or over ten thousand
    /// years.
    pub fn new(
        client: impl Into<RedisClient>,
        settings: &RedisSettings,
    ) -> Result<Self, SettingError> {
        let client = client.into();
        #[cfg(feature = "redis-tls")]
        if client.may_use_tls() {
            tls::provide();
        }
        Ok(Self {
            link: Link::new(client, Timeouts::new(settings)?),
            keys: Keys::new(settings),
            retention: settings.retention,
            lease: settings.lease.millis(),
            scripts: Arc::default(),
        })
    }

    /// Opens the store at a URL, and [checks](Self::check) the server.
    ///
    /// | URL | |
    /// |---|---|
    /// | `redis://[user[:password]@]host[:port][/db]` | one server; also `valkey://` |
    /// | `redis+unix:///path[?db=1]` | one server, by its socket |
    /// | `redis+sentinel://[user[:password]@]sentinel[:port],…/master[/db]` | the one that Sentinel names; user and password are the server's |
    /// | `redis+cluster://[user[:password]@]node[:port],…` | a cluster, by any of its nodes |
    ///
    /// With the feature `redis-tls`, `rediss` or `valkeys` in the place of
    /// `redis` or `valkey` mean TLS. The system's certificate authorities are
    /// trusted, or with `?ca=FILE` those in a PEM file instead;
    /// `cert=FILE&key=FILE` name a client certificate and its key.
    ///
    /// # Errors
    ///
    /// A setting or a URL that cannot be used, or a server that does not
    /// answer or refuses.
    pub async fn connect(url: &str, settings: &RedisSettings) -> Result<Self, ConnectError> {
        let store = Self::new(url::client(url)?, settings)?;
        store.check().await?;
        Ok(store)
    }

    fn asked<'a>(&'a self, to: &'a str, key: Option<&'a str>) -> Asked<'a> {
        Asked {
            server: self.link.name(),
            to,
            key,
        }
    }

    /// Sends one command about one key.
    async fn ask(
        &self,
        to: &str,
        key: &str,
        command: Cmd,
        repeat: Repeat,
    ) -> Result<Value, StoreError> {
        let asked = self.asked(to, Some(key));
        let [reply] = self.send(asked, key, [command], repeat).await?;
        asked.answer(reply)
    }

    /// Sends commands about one key, in one round trip.
    async fn send<const N: usize>(
        &self,
        asked: Asked<'_>,
        key: &str,
        commands: [Cmd; N],
        repeat: Repeat,
    ) -> Result<[Value; N], StoreError> {
        let sent = self.link.send(Target::Key(key), commands, repeat).await;
        sent.map_err(|failure| asked.failed(&failure))
    }

    fn set_mark(&self, key: &str) -> Cmd {
        let mut command = cmd("SET");
        command.arg(key).arg(1);
        if let Retention::For(retention) = self.retention {
            command.arg("PX").arg(retention.get());
        }
        // With it, a value of another type is an error and is not overwritten.
        command.arg("GET");
        command
    }
}

#[async_trait]
impl Store for RedisStore {
    async fn seen(&self, id: &str) -> Result<bool, StoreError> {
        let key = self.keys.mark(id);
        let to = "look for the mark";
        let reply = self.ask(to, &key, get(&key), Repeat::Once).await?;
        // Whatever the text: this is how other languages' marks are read too.
        Ok(reply != Value::Nil)
    }

    async fn remember(&self, id: &str) -> Result<(), StoreError> {
        let key = self.keys.mark(id);
        let command = self.set_mark(&key);
        self.ask("set the mark", &key, command, Repeat::Once)
            .await?;
        Ok(())
    }

    async fn forget(&self, id: &str) -> Result<(), StoreError> {
        let key = self.keys.mark(id);
        let mut command = cmd("GETDEL");
        command.arg(&key);
        self.ask("remove the mark", &key, command, Repeat::Once)
            .await?;
        Ok(())
    }
}

fn get(key: &str) -> Cmd {
    let mut command = cmd("GET");
    command.arg(key);
    command
}

fn pttl(key: &str) -> Cmd {
    let mut command = cmd("PTTL");
    command.arg(key);
    command
}
