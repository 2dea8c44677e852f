//! The store's server, and what is done to it.

use crate::clock;
use crate::settings::StoreKind;
use std::time::Duration;
use test_servers::{Postgres, Redis};

/// A fault of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Killed, and started again a while later.
    Kill(Duration),
    /// Ended in good order, and started again a while later.
    End(Duration),
    /// Stopped where it stands, and let go on a while later.
    Pause(Duration),
}

/// When the store could not be reached.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outage {
    pub(crate) from: Duration,
    pub(crate) to: Duration,
    /// Whether it was started anew.
    pub(crate) restart: bool,
}

/// None of them forgets what it has acknowledged when it is killed.
pub(crate) enum Server {
    Redis(Redis),
    Postgres {
        server: Postgres,
        database: String,
    },
    /// A file, which nobody serves.
    Sqlite(tempfile::TempDir),
}

impl Server {
    /// `None` if it is not installed.
    pub(crate) fn start(kind: StoreKind) -> std::io::Result<Option<Self>> {
        Ok(match kind {
            StoreKind::Redis => {
                let arguments = ["--appendonly", "yes", "--appendfsync", "always"];
                Redis::start(&arguments).map(Self::Redis)
            }
            StoreKind::Postgres => Postgres::start(&["fsync=on"]).map(|server| {
                let database = server.create_database("");
                Self::Postgres { server, database }
            }),
            StoreKind::Sqlite => Some(Self::Sqlite(tempfile::tempdir()?)),
        })
    }

    pub(crate) fn url(&self) -> String {
        match self {
            Self::Redis(server) => server.url(),
            Self::Postgres { server, database } => server.url(database),
            Self::Sqlite(folder) => format!("sqlite://{}", folder.path().join("db").display()),
        }
    }

    /// Whether there is a server that a fault can befall.
    pub(crate) fn can_fail(&self) -> bool {
        !matches!(self, Self::Sqlite(_))
    }

    /// Does it, and says from when to when nobody was served.
    pub(crate) fn suffer(&mut self, fault: Fault) -> Outage {
        let from = clock::now();
        match fault {
            Fault::Kill(down) => {
                match self {
                    Self::Redis(server) => server.kill(),
                    Self::Postgres { server, .. } => server.kill(),
                    Self::Sqlite(_) => {}
                }
                self.start_again(down);
            }
            Fault::End(down) => {
                match self {
                    Self::Redis(server) => server.terminate(),
                    Self::Postgres { server, .. } => server.terminate(),
                    Self::Sqlite(_) => {}
                }
                self.start_again(down);
            }
            Fault::Pause(stopped) => {
                match self {
                    Self::Redis(server) => server.pause(),
                    Self::Postgres { server, .. } => server.pause(),
                    Self::Sqlite(_) => {}
                }
                std::thread::sleep(stopped);
                match self {
                    Self::Redis(server) => server.resume(),
                    Self::Postgres { server, .. } => server.resume(),
                    Self::Sqlite(_) => {}
                }
            }
        }
        let to = clock::now();
        let restart = !matches!(fault, Fault::Pause(_));
        Outage { from, to, restart }
    }

    fn start_again(&mut self, down: Duration) {
        std::thread::sleep(down);
        match self {
            Self::Redis(server) => server.restart(),
            Self::Postgres { server, .. } => server.restart(),
            Self::Sqlite(_) => {}
        }
    }
}
