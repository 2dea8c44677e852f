//! The signals that ask the program to end.

use std::io;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// SIGINT and SIGTERM, caught from now on.
pub struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    pub fn catch() -> io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    /// The next one.
    pub async fn next(&mut self) -> rustix::process::Signal {
        tokio::select! {
            _ = self.interrupt.recv() => rustix::process::Signal::INT,
            _ = self.terminate.recv() => rustix::process::Signal::TERM,
        }
    }
}
