//! `run`: each message of an input once.
//!
//! [`lines`] reads the input, [`delivery`] puts one line through the guard,
//! [`effect`] is what happens to it, [`jobs`] does so for all lines, several
//! at a time, [`parked`] keeps those that have to wait, [`report`] tells.

mod delivery;
mod effect;
mod jobs;
mod lines;
mod parked;
mod report;
mod signals;
mod stop;

use crate::args::{self, StoreArgs};
use crate::exit::{self, Failure, Status};
use babelqueue_guard::component::{Component, Limits, artifacts};
use babelqueue_guard::settings::LeaseLength;
use babelqueue_guard::store::Inventory;
use babelqueue_guard::{Guard, GuardError};
use effect::{Effect, Exec};
use jobs::Jobs;
use report::{Form, Reports};
use signals::Signals;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read};
use std::num::NonZeroU16;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::sync::watch;

/// Run a command once for each message of an input, or pass it on once
///
/// The input has one envelope a line. A line whose id is marked in the store
/// is skipped. Any other is given to the command of --exec: on its standard
/// input, byte for byte and with its line ending, and its id in the
/// environment variable BQ_MESSAGE_ID. Exit status 0 is success, and marks the
/// id. Anything else is a failure, also the death by a signal: the id is not
/// marked, and runs again next time.
///
/// Without a command this is a filter: what is not marked is passed on to
/// standard output, byte for byte, and is marked once it is flushed. From then
/// on it is its reader's to lose: a message that must not be lost is for --exec.
///
/// What becomes of special lines: one without a usable id runs each time;
/// blank ones are counted and not handled; "\r\n" ends a line like "\n"; the
/// last line need not have an ending, and gets none; one over the limit is
/// reported as an error of the guard, and the others are handled all the same.
///
/// A store that gives no answer stops the run, and so does a command that
/// cannot be started; a command that fails does not. When this ends before its
/// input, the summary says which line was the first that was not handled.
/// SIGINT and SIGTERM stop it after the lines in hand, which are finished and
/// marked; a second signal is passed on to their commands.
#[derive(clap::Args)]
#[command(after_help = format!("{EXAMPLES}\n\n{}", exit::HELP))]
pub struct Args {
    /// The input; "-" or nothing for standard input
    #[arg(value_name = "FILE")]
    input: Option<PathBuf>,

    /// The command, with its arguments: everything that follows
    #[arg(long, value_name = "CMD", num_args = 1.., allow_hyphen_values = true)]
    exec: Vec<OsString>,

    /// Claim each id first, so that of copies in flight at the same time, in
    /// any process, only one runs
    ///
    /// The others are parked: they are tried again until they can be run or
    /// skipped, at the latest when the lease has ended.
    #[arg(long)]
    claim: bool,

    /// How long a claim lasts unless it is renewed, which happens while the
    /// command runs
    #[arg(long, value_name = "TIME", requires = "claim", default_value = "60s", value_parser = args::lease)]
    lease: LeaseLength,

    /// How many lines are handled at a time; with more than one they are not
    /// handled in order, and copies among them need --claim
    #[arg(long, value_name = "COUNT", default_value = "1")]
    jobs: NonZeroU16,

    /// The longest envelope, in bytes or with KiB, MiB
    #[arg(long, value_name = "SIZE", default_value = "16MiB", value_parser = args::size)]
    max_body: usize,

    /// Report one JSON object a line
    ///
    /// On standard output if there is a command, whose own output then goes to
    /// standard error; otherwise on standard error. Members: "n", the line's
    /// number; "id", or null; "decision": "run", "skip", "park" or "error";
    /// "reason" of a missing id: "malformed", "absent" or "unusable";
    /// "outcome": "succeeded" or "failed"; "marked": whether this set the mark;
    /// "error": null or "CLASS: text", the class one of "unavailable",
    /// "rejected", "guard", "command", "output" and "late". A parked line is
    /// reported again when it is run or skipped. Standard error also gets
    /// warnings, {"level", "message", …}, and {"summary": {…}} at the end.
    #[arg(long)]
    pub json: bool,

    /// Report only what went wrong, and the summary
    #[arg(short, long, conflicts_with = "json")]
    quiet: bool,

    #[command(flatten)]
    store: StoreArgs,
}

const EXAMPLES: &str = "\
Examples:
  bq-guard run orders.ndjson --store redis://localhost:6379 --exec ./charge
  bq-guard run --store sqlite:marks.db < orders.ndjson > new-orders.ndjson
  bq-guard run --claim --jobs 8 orders.ndjson --exec sh -c 'jq .data | ./charge'";

impl Args {
    pub async fn run(self) -> Result<Status, Failure> {
        let input = open(self.input.as_deref())?;
        let signals = Signals::catch().map_err(|error| system(&error))?;
        let store = self.store.open_with(self.lease).await?;
        let guard = self.guard(store)?;
        let form = match (self.json, self.exec.is_empty()) {
            (true, true) => Form::JsonToError,
            (true, false) => Form::JsonToOutput,
            (false, _) if self.quiet => Form::Quiet,
            (false, _) => Form::Text,
        };
        let reports = Reports::new(form, !self.exec.is_empty());
        let (to_commands, from_signals) = watch::channel(None);
        let mut words = self.exec.into_iter();
        let effect = match words.next() {
            Some(program) => {
                let output_is_taken = form == Form::JsonToOutput;
                let arguments = words.collect();
                Effect::Exec(Exec::new(program, arguments, output_is_taken, from_signals))
            }
            None => Effect::PassOn,
        };
        let maximum = usize::from(self.jobs.get());
        let jobs = Jobs {
            guard,
            effect: Arc::new(effect),
            input: lines::read_ahead(input, self.max_body, maximum)
                .map_err(|error| system(&error))?,
            maximum,
            limit: self.max_body,
            signals,
            to_commands,
            reports,
        };
        Ok(jobs.run().await.end(self.store.is_named()))
    }

    fn guard(&self, store: Arc<dyn Inventory>) -> Result<Guard, GuardError> {
        let (guard, component) = if self.claim {
            (Guard::claiming(store)?, artifacts::CLAIMING_COMPONENT)
        } else {
            (Guard::new(store)?, artifacts::PLAIN_COMPONENT)
        };
        let mut limits = Limits::TRUSTED;
        if self.max_body == limits.body {
            return Ok(guard);
        }
        limits.body = self.max_body;
        Ok(guard.over(Component::from_bytes(component, limits)?))
    }
}

fn open(input: Option<&Path>) -> Result<Box<dyn Read + Send>, Failure> {
    let Some(path) = input.filter(|path| path.as_os_str() != "-") else {
        return Ok(Box::new(io::stdin()));
    };
    let unusable =
        |error: &dyn std::fmt::Display| Failure::usage(format!("{}: {error}", path.display()));
    let file = File::open(path).map_err(|error| unusable(&error))?;
    if file.metadata().map_err(|error| unusable(&error))?.is_dir() {
        return Err(unusable(
            &"is a folder: name a file with one envelope a line",
        ));
    }
    Ok(Box::new(file))
}

fn system(error: &io::Error) -> Failure {
    Failure::stopped(format!("the system refuses what this needs: {error}"))
}
