//! What went wrong with a question, and what it means (contract, section 7).
//! The server's texts are for people, and may be in any language: only its
//! SQLSTATE is looked at.

use crate::error::StoreError;
use sqlx::error::DatabaseError;
use sqlx::postgres::{PgDatabaseError, PgSeverity};
use sqlx::{Error, PgPool};
use std::io::ErrorKind;
use std::time::Duration;

/// Why a question has no answer.
#[derive(Debug)]
pub(super) enum Failure {
    /// There was no connection to ask on: nothing was sent.
    NotConnected(Error),
    /// No connection became free for this long: nothing was sent.
    NoneFree(Duration),
    /// The server answered with an error: nothing was done.
    Refused(Error),
    /// It was sent, and the answer is lost: it may have been done or not.
    Lost(Error),
    /// It was sent, and there was no answer for this long: the same.
    Unanswered(Duration),
}

impl Failure {
    /// Sorts an error that came back while a question was asked.
    pub(super) fn of(error: Error) -> Self {
        match &error {
            Error::Database(database) if !is_fatal(&**database) => Self::Refused(error),
            Error::Database(_) | Error::Io(_) | Error::Protocol(_) | Error::Tls(_) => {
                Self::Lost(error)
            }
            _ => Self::Refused(error),
        }
    }

    /// Whether the question may have been done.
    pub(super) fn is_unknown(&self) -> bool {
        matches!(self, Self::Lost(_) | Self::Unanswered(_))
    }

    /// Whether the server has undone the question for the sake of another,
    /// and wants it to be asked again.
    pub(super) fn is_conflict(&self) -> bool {
        matches!(self, Self::Refused(error) if is_conflict(error))
    }
}

/// Serialization failure, and deadlock.
pub(super) fn is_conflict(error: &Error) -> bool {
    error
        .as_database_error()
        .and_then(DatabaseError::code)
        .is_some_and(|code| matches!(&*code, "40001" | "40P01"))
}

/// What was tried where.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tried<'a> {
    /// `PostgreSQL at host:port/database`.
    pub(super) place: &'a str,
    /// Completes "could not …".
    pub(super) to: &'a str,
}

impl Tried<'_> {
    pub(super) fn failed(self, failure: &Failure, pool: &PgPool) -> StoreError {
        let Self { place, to } = self;
        match failure {
            Failure::NotConnected(error) => self.meaning(error, &format!("{place}: not connected")),
            Failure::NoneFree(waited) => {
                let connections = pool.options().get_max_connections();
                StoreError::Unavailable(if pool.size() < connections {
                    format!("{place}: not connected: no connection could be made in {waited:.1?}")
                } else {
                    format!(
                        "{place}: could not {to}: all {connections} connections of the pool were \
                         in use for {waited:.1?}; a handler that keeps one while it asks the store \
                         needs a second"
                    )
                })
            }
            Failure::Refused(error) => self.meaning(error, &format!("{place}: could not {to}")),
            Failure::Lost(error) => StoreError::Unavailable(format!(
                "{place}: could not {to}: the connection broke: {}",
                text(error)
            )),
            Failure::Unanswered(waited) => StoreError::Unavailable(format!(
                "{place}: could not {to}: no answer in {waited:.1?}"
            )),
        }
    }

    pub(super) fn meaning(self, error: &Error, what: &str) -> StoreError {
        let why = text(error);
        let code = error.as_database_error().and_then(DatabaseError::code);
        if let Some(code) = &code {
            if is_passing(code) {
                return StoreError::Unavailable(format!("{what}: {why}"));
            }
            let advice = match &**code {
                "42P01" => {
                    ": create the tables with `bq-guard migrate`, with `migrate` of the store, \
                     or with the project's stores/sql/postgres.sql"
                }
                "42501" => {
                    ": the role needs SELECT, INSERT, UPDATE and DELETE on the guard's tables, \
                     and CREATE on the schema to create them"
                }
                _ => "",
            };
            return StoreError::Rejected(format!("{what}: {why}{advice}"));
        }
        match error {
            // What rustls says of a certificate comes as an error of this
            // kind.
            Error::Io(io) if io.kind() == ErrorKind::InvalidData => {
                StoreError::Rejected(format!("{what}: {why}"))
            }
            Error::Io(_) | Error::Protocol(_) | Error::PoolTimedOut | Error::PoolClosed => {
                StoreError::Unavailable(format!("{what}: {why}"))
            }
            _ => StoreError::Rejected(format!("{what}: {why}")),
        }
    }
}

/// Whether a condition passes without anybody acting: connections, resources,
/// an operator's interventions, the system around the server; a lost race, a
/// lock held for too long, a server or transaction that takes no writes.
fn is_passing(code: &str) -> bool {
    let class = code.get(..2).unwrap_or_default();
    matches!(class, "08" | "40" | "53" | "57" | "58")
        || matches!(code, "25006" | "25P03" | "25P04" | "55006" | "55P03")
}

/// Whether the server has closed the connection with this.
fn is_fatal(error: &dyn DatabaseError) -> bool {
    error
        .try_downcast_ref::<PgDatabaseError>()
        .is_some_and(|error| matches!(error.severity(), PgSeverity::Fatal | PgSeverity::Panic))
}

fn text(error: &Error) -> String {
    match error.as_database_error() {
        Some(database) => format!(
            "{} (SQLSTATE {})",
            database.message(),
            database.code().unwrap_or_default()
        ),
        None => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_class_follows_from_the_sqlstate() {
        for passing in [
            "08000", "08001", "08006", "08P01", "40001", "40P01", "53100", "53200", "53300",
            "57014", "57P01", "57P03", "58030", "25006", "55P03",
        ] {
            assert!(is_passing(passing), "{passing}");
        }
        for lasting in [
            "28P01", "28000", "3D000", "42P01", "42501", "42703", "22P05", "22021", "23505",
            "P0001", "XX001", "25P02", "0A000", "",
        ] {
            assert!(!is_passing(lasting), "{lasting}");
        }
    }
}
