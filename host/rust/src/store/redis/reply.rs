//! What the server's replies and the client's errors mean
//! (contract, section 7).

use super::client::is_bad_password;
use crate::error::StoreError;
use redis::{ErrorKind, RedisError, ServerError, Value};

/// Answers that time mends: the server is starting, failing over, full, or
/// busy.
const PASSING: [&str; 12] = [
    "LOADING",
    "READONLY",
    "MOVED",
    "ASK",
    "CLUSTERDOWN",
    "TRYAGAIN",
    "BUSY",
    "MASTERDOWN",
    "OOM",
    "NOREPLICAS",
    "MISCONF",
    "UNBLOCKED",
];

/// Answers after which the same connection will not do: the server is not, or
/// no longer, the one to write to.
const ELSEWHERE: [&str; 3] = ["READONLY", "MASTERDOWN", "CLUSTERDOWN"];

/// Why a request has no replies.
#[derive(Debug)]
pub(super) enum Failure {
    /// There is no connection, and nothing was sent.
    Unreachable(RedisError),
    /// It was sent and the replies are lost: it may have been done or not.
    Lost(RedisError),
}

impl Failure {
    /// The same where something has been sent before.
    pub(super) fn after_another(self) -> Self {
        match self {
            Self::Unreachable(error) | Self::Lost(error) => Self::Lost(error),
        }
    }

    pub(super) fn error(&self) -> &RedisError {
        match self {
            Self::Unreachable(error) | Self::Lost(error) => error,
        }
    }
}

/// Names what was asked of whom in the text of an error.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked<'a> {
    /// `redis host:port`.
    pub(super) server: &'a str,
    /// Completes "could not …".
    pub(super) to: &'a str,
    pub(super) key: Option<&'a str>,
}

impl Asked<'_> {
    pub(super) fn failed(&self, failure: &Failure) -> StoreError {
        let Self { server, to, .. } = self;
        let error = failure.error();
        if let Ok(refusal) = ServerError::try_from(error.clone()) {
            return self.refused(&refusal);
        }
        let text = match failure {
            Failure::Unreachable(_) => format!("{server}: not connected: {error}"),
            Failure::Lost(_) => format!("{server}: could not {to}: no reply: {error}"),
        };
        if is_lasting(error) {
            StoreError::Rejected(text)
        } else {
            StoreError::Unavailable(text)
        }
    }

    pub(super) fn refused(&self, refusal: &ServerError) -> StoreError {
        let Self { server, to, key } = self;
        let code = refusal.code();
        let details = refusal.details().unwrap_or_default();
        let mut text = format!("{server}: could not {to}: {code} {details}");
        if is_passing(code, details) {
            return StoreError::Unavailable(text);
        }
        match (key, code) {
            (Some(key), "NOPERM") => text.push_str(&format!(
                " (key {key:?}): the user's ACL must allow this command on this key"
            )),
            (Some(key), _) if is_wrong_type(code, details) => text.push_str(&format!(
                ": something else is stored under the key {key:?}; remove it, or use another prefix"
            )),
            (Some(key), _) => text.push_str(&format!(" (key {key:?})")),
            (None, _) => {}
        }
        StoreError::Rejected(text)
    }

    /// The reply, unless it is an error.
    pub(super) fn answer(&self, reply: Value) -> Result<Value, StoreError> {
        match reply {
            Value::ServerError(refusal) => Err(self.refused(&refusal)),
            reply => Ok(reply),
        }
    }

    pub(super) fn surprised(&self, reply: &Value) -> StoreError {
        let Self { server, to, .. } = self;
        StoreError::Rejected(format!(
            "{server}: could not {to}: the server is no Redis: it answered {reply:?}"
        ))
    }
}

/// Whether the connection must be dropped after this reply.
pub(super) fn is_elsewhere(refusal: &ServerError) -> bool {
    names(
        refusal.code(),
        refusal.details().unwrap_or_default(),
        &ELSEWHERE,
    )
}

fn is_wrong_type(code: &str, details: &str) -> bool {
    names(code, details, &["WRONGTYPE"])
}

fn is_passing(code: &str, details: &str) -> bool {
    names(code, details, &PASSING) || details.contains("max number of clients")
}

/// Whether a reply has one of these codes. Redis 6 reports what goes wrong
/// inside a script as `ERR`, with the code in the text.
fn names(code: &str, details: &str, codes: &[&str]) -> bool {
    codes.contains(&code)
        || code == "ERR"
            && details
                .split(|character: char| !character.is_ascii_uppercase())
                .any(|word| codes.contains(&word))
}

/// Whether an error of the client's own will be the same next time.
fn is_lasting(error: &RedisError) -> bool {
    #[cfg(feature = "redis-tls")]
    if super::tls::is_mistrust(error) {
        return true;
    }
    if is_bad_password(error) {
        return true;
    }
    match error.kind() {
        ErrorKind::InvalidClientConfig | ErrorKind::RESP3NotSupported | ErrorKind::Server(_) => {
            !is_passing("ERR", &error.to_string())
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class(reply: &str) -> &'static str {
        let parsed = redis::parse_redis_value(reply.as_bytes()).unwrap();
        let Value::ServerError(error) = parsed else {
            panic!("{reply:?} is no error");
        };
        let asked = Asked {
            server: "redis here:1",
            to: "look",
            key: Some("bq:idemp:i"),
        };
        match asked.refused(&error) {
            StoreError::Unavailable(text) => {
                assert!(text.starts_with("redis here:1: could not look: "), "{text}");
                "unavailable"
            }
            StoreError::Rejected(text) => {
                assert!(text.contains("bq:idemp:i"), "{text}");
                "rejected"
            }
        }
    }

    #[test]
    fn each_error_reply_has_its_class() {
        for reply in [
            "-LOADING Redis is loading the dataset in memory\r\n",
            "-READONLY You can't write against a read only replica.\r\n",
            "-MOVED 3999 127.0.0.1:6381\r\n",
            "-ASK 3999 127.0.0.1:6381\r\n",
            "-CLUSTERDOWN The cluster is down\r\n",
            "-TRYAGAIN Multiple keys request during rehashing of slot\r\n",
            "-BUSY Redis is busy running a script.\r\n",
            "-MASTERDOWN Link with MASTER is down\r\n",
            "-OOM command not allowed when used memory > 'maxmemory'.\r\n",
            "-NOREPLICAS Not enough good replicas to write.\r\n",
            "-MISCONF Redis is configured to save RDB snapshots\r\n",
            "-ERR max number of clients reached\r\n",
            "-ERR Error running script (call to f_1): @user_script:2: -READONLY You can't write\r\n",
        ] {
            assert_eq!(class(reply), "unavailable", "{reply}");
        }
        for reply in [
            "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n",
            "-NOAUTH Authentication required.\r\n",
            "-WRONGPASS invalid username-password pair\r\n",
            "-NOPERM this user has no permissions to run the 'get' command\r\n",
            "-ERR unknown command 'GETDEL'\r\n",
            "-ERR Error running script (call to f_1): @user_script:1: WRONGTYPE Operation\r\n",
        ] {
            assert_eq!(class(reply), "rejected", "{reply}");
        }
    }
}
