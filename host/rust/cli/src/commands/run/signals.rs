//! The signals that ask the program to end.

use std::io;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc::{self, Receiver};

/// SIGINT and SIGTERM, caught from now on.
pub struct Signals(Receiver<rustix::process::Signal>);

impl Signals {
    pub fn catch() -> io::Result<Self> {
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut terminate = signal(SignalKind::terminate())?;
        let (sender, receiver) = mpsc::channel(1);
        tokio::spawn(async move {
            loop {
                let caught = tokio::select! {
                    _ = interrupt.recv() => rustix::process::Signal::INT,
                    _ = terminate.recv() => rustix::process::Signal::TERM,
                };
                // The one before has not been taken: whoever should take it
                // waits for a reader of the reports who reads no more.
                if sender.try_send(caught).is_err() && !sender.is_closed() {
                    std::process::exit(128 + caught.as_raw());
                }
            }
        });
        Ok(Self(receiver))
    }

    /// The next one.
    pub async fn next(&mut self) -> rustix::process::Signal {
        match self.0.recv().await {
            Some(signal) => signal,
            // There is nobody left who would catch one.
            None => std::future::pending().await,
        }
    }
}
