//! What SQLite's result codes mean (contract, section 7). Its texts are never
//! looked at.

use crate::error::StoreError;
use sqlx::Error;
use sqlx::error::DatabaseError;

/// Primary result codes.
const ERROR: i32 = 1;
const BUSY: i32 = 5;
const LOCKED: i32 = 6;
const NOMEM: i32 = 7;
const READONLY: i32 = 8;
const INTERRUPT: i32 = 9;
const IOERR: i32 = 10;
const FULL: i32 = 13;
const PROTOCOL: i32 = 15;

/// What was tried on which file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tried<'a> {
    /// `SQLite at path`.
    pub(super) place: &'a str,
    /// Completes "could not …".
    pub(super) to: &'a str,
}

impl Tried<'_> {
    pub(super) fn failed(self, error: &Error) -> StoreError {
        let Self { place, to } = self;
        let text = format!("{place}: could not {to}");
        match error {
            Error::Database(database) => match primary(&**database) {
                Some(BUSY | LOCKED) => StoreError::Unavailable(format!(
                    "{text}: other writers held it for longer than the time allowed: {database}"
                )),
                Some(NOMEM | INTERRUPT | IOERR | FULL | PROTOCOL) => {
                    StoreError::Unavailable(format!("{text}: {database}"))
                }
                Some(READONLY) => StoreError::Rejected(format!(
                    "{text}: the file, or its folder, may not be written by this user: {database}"
                )),
                _ => StoreError::Rejected(format!("{text}: {database}")),
            },
            Error::PoolTimedOut => StoreError::Unavailable(format!(
                "{text}: no connection of the pool became free in time; a handler that keeps one \
                 while it asks the store needs a second"
            )),
            Error::PoolClosed | Error::WorkerCrashed | Error::Io(_) => {
                StoreError::Unavailable(format!("{text}: {error}"))
            }
            _ => StoreError::Rejected(format!("{text}: {error}")),
        }
    }

    pub(super) fn missing_tables(self, missing: &[&str]) -> StoreError {
        let Self { place, to } = self;
        StoreError::Rejected(format!(
            "{place}: could not {to}: there is no table {}: create what is missing with \
             `bq-guard migrate`, with `migrate` of the store, or with the project's \
             stores/sql/sqlite.sql",
            missing.join(", ")
        ))
    }
}

/// Whether a statement could not be prepared: its table may be missing.
pub(super) fn is_unprepared(error: &Error) -> bool {
    has_code(error, ERROR)
}

pub(super) fn is_busy(error: &Error) -> bool {
    has_code(error, BUSY) || has_code(error, LOCKED)
}

pub(super) fn is_read_only(error: &Error) -> bool {
    has_code(error, READONLY)
}

fn has_code(error: &Error, code: i32) -> bool {
    error
        .as_database_error()
        .is_some_and(|error| primary(error) == Some(code))
}

fn primary(error: &dyn DatabaseError) -> Option<i32> {
    let extended: i32 = error.code()?.parse().ok()?;
    Some(extended & 0xff)
}
