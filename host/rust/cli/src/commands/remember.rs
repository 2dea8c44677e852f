//! `remember`: marks an id by hand.

use crate::args::StoreArgs;
use crate::commands::usable;
use crate::exit::{Failure, Status};
use crate::output::{self, json_to_output, shown};
use std::io::Write;

/// Mark an id as processed
///
/// Its next delivery is skipped. Marking it again restarts the retention.
#[derive(clap::Args)]
pub struct Args {
    /// The id, as it stands in the envelope
    id: String,
    /// Print {"id", "remembered"}
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    store: StoreArgs,
}

impl Args {
    pub async fn run(self) -> Result<Status, Failure> {
        let id = usable(&self.id)?;
        self.store.open_existing().await?.remember(id).await?;
        let mut out = anstream::stdout();
        if self.json {
            let remembered = true;
            json_to_output(&output::Remembered { id, remembered })?;
        } else {
            writeln!(out, "{}: remembered", shown(id))?;
        }
        Ok(Status::Success)
    }
}
