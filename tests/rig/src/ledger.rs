//! What happened, in a file that many processes append to.
//!
//! Each event is one write at the file's end, so what a process has done is
//! there when it is killed.

use crate::clock;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// One event.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Entry {
    /// Its number in the rig: a process's own may come again.
    pub(crate) worker: u32,
    pub(crate) id: String,
    /// By [`clock::now`].
    pub(crate) at: Duration,
    pub(crate) event: Event,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) enum Event {
    /// The store said that the id may run; with a claim, which token holds it.
    Free {
        token: Option<String>,
        asked: Duration,
    },
    /// The store is asked to extend the lease.
    Renewing { token: String },
    /// The store said that the lease is extended.
    Kept { token: String, asked: Duration },
    /// The store could not extend it, and said why, or that it is lost.
    NotKept { token: String, lost: bool },
    /// The handler of a delivery began.
    Begun { delivery: u64 },
    /// It ended, with its effect or by failing without one.
    Ended { delivery: u64, effect: bool },
    /// The store said that the mark is set.
    Marked,
}

/// The file's end.
#[derive(Clone, Debug)]
pub(crate) struct Ledger {
    file: Arc<File>,
    worker: u32,
}

impl Ledger {
    pub(crate) fn open(path: &Path, worker: u32) -> io::Result<Self> {
        let file = Arc::new(File::options().create(true).append(true).open(path)?);
        Ok(Self { file, worker })
    }

    /// Writes down an event of this worker, of now.
    pub(crate) fn write(&self, id: &str, event: Event) -> io::Result<()> {
        let entry = Entry {
            worker: self.worker,
            id: id.to_owned(),
            at: clock::now(),
            event,
        };
        // The line's end comes first: the line before it may have been cut
        // short by a kill.
        let mut line = b"\n".to_vec();
        serde_json::to_writer(&mut line, &entry)?;
        (&*self.file).write_all(&line)
    }
}

/// All entries in their order, and how many lines were cut short.
pub(crate) fn read(path: &Path) -> io::Result<(Vec<Entry>, usize)> {
    let text = std::fs::read_to_string(path)?;
    let lines = text.lines().filter(|line| !line.is_empty());
    let (mut entries, mut cut) = (Vec::new(), 0);
    for line in lines {
        match serde_json::from_str(line) {
            Ok(entry) => entries.push(entry),
            Err(_) => cut += 1,
        }
    }
    Ok((entries, cut))
}
