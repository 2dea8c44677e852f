//! Why a run ended before its input.

use crate::exit::{Failure, Status};
use rustix::process::Signal;
use std::fmt;

#[derive(Debug)]
pub enum Stop {
    /// The store gave no answer.
    Store(String),
    /// The component decides nothing at all.
    Guard(String),
    /// The command cannot be started.
    CannotStart(Failure),
    /// Standard output has no reader any more, which is how `head` says that
    /// it has enough.
    ReaderGone,
    CannotWrite(String),
    CannotRead(String),
    Signal(Signal),
}

impl Stop {
    pub fn status(&self) -> Status {
        match self {
            Self::ReaderGone => Status::Success,
            Self::CannotStart(failure) => failure.status,
            Self::Store(_) | Self::Guard(_) | Self::CannotWrite(_) | Self::CannotRead(_) => {
                Status::Stopped
            }
            Self::Signal(signal) => {
                Status::Signalled(u8::try_from(signal.as_raw()).unwrap_or_default())
            }
        }
    }
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Store(text) | Self::Guard(text) => f.write_str(text),
            Self::CannotStart(failure) => failure.fmt(f),
            Self::ReaderGone => f.write_str("nobody reads standard output any more"),
            Self::CannotWrite(text) => write!(f, "standard output cannot be written: {text}"),
            Self::CannotRead(text) => write!(f, "the input cannot be read: {text}"),
            Self::Signal(signal) if *signal == Signal::INT => f.write_str("SIGINT"),
            Self::Signal(_) => f.write_str("SIGTERM"),
        }
    }
}
