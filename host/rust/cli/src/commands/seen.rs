//! `seen`: whether an id is marked.

use crate::args::StoreArgs;
use crate::commands::usable;
use crate::exit::{Failure, Status};
use crate::output::{self, json_to_output, shown};
use std::io::Write;

/// Say whether an id is marked as processed
///
/// Exit status 0 if it is, 1 if it is not. An id that is only leased, since a
/// worker is handling its message, is not seen: see `inspect`.
#[derive(clap::Args)]
pub struct Args {
    /// The id, as it stands in the envelope
    id: String,
    /// Print {"id", "seen"}
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    store: StoreArgs,
}

impl Args {
    pub async fn run(self) -> Result<Status, Failure> {
        let id = usable(&self.id)?;
        let seen = self.store.open_existing().await?.seen(id).await?;
        let mut out = anstream::stdout();
        if self.json {
            json_to_output(&output::Seen { id, seen })?;
        } else {
            let answer = if seen { "seen" } else { "not seen" };
            writeln!(out, "{}: {answer}", shown(id))?;
        }
        Ok(if seen { Status::Success } else { Status::No })
    }
}
