//! `stats`: how much a store holds.

use crate::args::StoreArgs;
use crate::exit::{Failure, Status};
use crate::output::{Counted, json_to_output};
use std::io::Write;

/// Count the marks, live leases and steps of a store
///
/// May take time in proportion to their number; nobody has to wait meanwhile.
#[derive(clap::Args)]
pub struct Args {
    /// Print {"marks", "leases", "steps", "expired"}
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    store: StoreArgs,
}

impl Args {
    pub async fn run(self) -> Result<Status, Failure> {
        let stats = self.store.open_existing().await?.stats().await?;
        let mut out = anstream::stdout();
        if self.json {
            json_to_output(&Counted::from(stats))?;
            return Ok(Status::Success);
        }
        writeln!(out, "marks    {:>10}  ids that were processed", stats.marks)?;
        writeln!(out, "leases   {:>10}  ids being handled now", stats.leases)?;
        writeln!(
            out,
            "steps    {:>10}  single steps that were run",
            stats.steps
        )?;
        writeln!(
            out,
            "expired  {:>10}  for `bq-guard gc` to remove",
            stats.expired
        )?;
        Ok(Status::Success)
    }
}
