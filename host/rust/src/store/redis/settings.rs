//! Settings of a [`RedisStore`](super::RedisStore).

use crate::settings::{Consumer, LeaseLength, Millis, Retention, SettingError};
use redis::AsyncConnectionConfig;
use std::time::Duration;

/// What a [`RedisStore`](super::RedisStore) writes, and how long it waits.
///
/// ```
/// use babelqueue_guard::settings::Consumer;
/// use babelqueue_guard::store::redis::RedisSettings;
///
/// let mut settings = RedisSettings::default();
/// settings.consumer = Some(Consumer::named("mail")?);
/// # Ok::<_, babelqueue_guard::settings::SettingError>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RedisSettings {
    /// What every key begins with. A prefix must not be the beginning of
    /// another one on the same server.
    pub prefix: String,
    /// The consumer's name, if several share the server.
    pub consumer: Option<Consumer>,
    /// How long marks and steps are kept.
    pub retention: Retention,
    /// How long a lease lasts.
    pub lease: LeaseLength,
    /// How long connecting may take, the handshake included.
    pub connect_timeout: Duration,
    /// How long the server may take to answer. What was sent and not answered
    /// may have been done or not.
    pub response_timeout: Duration,
}

/// `bq:`, no consumer's name, fourteen days, sixty seconds; two seconds to
/// connect and five to answer.
impl Default for RedisSettings {
    fn default() -> Self {
        Self {
            prefix: "bq:".into(),
            consumer: None,
            retention: Retention::default(),
            lease: LeaseLength::default(),
            connect_timeout: Duration::from_secs(2),
            response_timeout: Duration::from_secs(5),
        }
    }
}

/// How long to wait.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timeouts {
    pub(super) connect: Duration,
    pub(super) response: Duration,
}

impl Timeouts {
    pub(super) fn new(settings: &RedisSettings) -> Result<Self, SettingError> {
        let checked = |name, duration| Millis::new(name, duration).map(Millis::duration);
        Ok(Self {
            connect: checked("connect_timeout", settings.connect_timeout)?,
            response: checked("response_timeout", settings.response_timeout)?,
        })
    }

    /// The same for a connection to one server.
    pub(super) fn config(self) -> AsyncConnectionConfig {
        AsyncConnectionConfig::new()
            .set_connection_timeout(Some(self.connect))
            .set_response_timeout(Some(self.response))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timeouts_that_cannot_be_waited_for_are_refused_by_name() {
        for bad in [Duration::ZERO, Duration::from_micros(1), Duration::MAX] {
            let connect = RedisSettings {
                connect_timeout: bad,
                ..RedisSettings::default()
            };
            let error = Timeouts::new(&connect).unwrap_err().to_string();
            assert!(error.starts_with("connect_timeout: "), "{error}");
            let response = RedisSettings {
                response_timeout: bad,
                ..RedisSettings::default()
            };
            let error = Timeouts::new(&response).unwrap_err().to_string();
            assert!(error.starts_with("response_timeout: "), "{error}");
        }
    }
}
