//! How the program ends: its exit statuses, and errors that carry one.

use babelqueue_guard::settings::SettingError;
use babelqueue_guard::store::url::ConnectError;
use babelqueue_guard::{Error, StoreError};
use std::fmt;
use std::io;
use std::process::ExitCode;

/// What `--help` says about exit statuses.
pub const HELP: &str = "\
Exit status:
  0    everything that was asked for has been done
  1    run: a handler failed, or a mark is missing after a success
       seen: the id is not marked; conformance: a result is not as listed
  2    the command line, a file or a command named on it cannot be used
  3    the store or the guard stopped it, or left something undone
  130, 143   run: ended by SIGINT or SIGTERM before everything was handled";

/// An exit status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Everything that was asked for has been done.
    Success,
    /// It has been done, and the answer is no: a handler failed, an id is not
    /// marked, a sequence did not go as listed.
    No,
    /// The command line, a file or a command named on it cannot be used.
    Usage,
    /// The store or the guard stopped it, or left something undone.
    Stopped,
    /// A signal of this number stopped it.
    Signalled(u8),
}

impl From<Status> for ExitCode {
    fn from(status: Status) -> Self {
        ExitCode::from(match status {
            Status::Success => 0,
            Status::No => 1,
            Status::Usage => 2,
            Status::Stopped => 3,
            Status::Signalled(number) => 128u8.saturating_add(number),
        })
    }
}

/// Why a command could not go on. The text says what to do about it.
#[derive(Debug)]
pub struct Failure {
    pub status: Status,
    pub text: String,
}

impl Failure {
    pub fn usage(text: impl Into<String>) -> Self {
        Self {
            status: Status::Usage,
            text: text.into(),
        }
    }

    pub fn stopped(text: impl Into<String>) -> Self {
        Self {
            status: Status::Stopped,
            text: text.into(),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl From<SettingError> for Failure {
    fn from(error: SettingError) -> Self {
        Self::usage(error.to_string())
    }
}

impl From<ConnectError> for Failure {
    fn from(error: ConnectError) -> Self {
        match error {
            ConnectError::Store(error) => error.into(),
            error => Self::usage(error.to_string()),
        }
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::stopped(error.to_string())
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::stopped(error.to_string())
    }
}

impl From<babelqueue_guard::GuardError> for Failure {
    fn from(error: babelqueue_guard::GuardError) -> Self {
        Error::from(error).into()
    }
}

/// Of writing standard output. A reader who has gone away wants no more of
/// it, which is no failure.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            Self {
                status: Status::Success,
                text: String::new(),
            }
        } else {
            Self::stopped(format!("standard output cannot be written: {error}"))
        }
    }
}
