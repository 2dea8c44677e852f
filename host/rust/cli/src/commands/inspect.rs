//! `inspect`: what is recorded of one id.

use crate::args::StoreArgs;
use crate::commands::usable;
use crate::exit::{Failure, Status};
use crate::output::{self, json_to_output, of_kind, shown, times};
use babelqueue_guard::store::inventory::Kind;
use std::io::Write;

/// Show what is recorded of an id: a mark, a lease, both or nothing
#[derive(clap::Args)]
pub struct Args {
    /// The id, as it stands in the envelope
    id: String,
    /// Print {"id", "mark", "lease"}, each null or {"age_ms", "left_ms"}
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    store: StoreArgs,
}

impl Args {
    pub async fn run(self) -> Result<Status, Failure> {
        let id = usable(&self.id)?;
        let found = self.store.open_existing().await?.inspect(id).await?;
        let (mark, lease) = (of_kind(&found, Kind::Mark), of_kind(&found, Kind::Lease));
        let mut out = anstream::stdout();
        if self.json {
            let inspected = output::Inspected {
                id,
                mark: mark.map(Into::into),
                lease: lease.map(Into::into),
            };
            json_to_output(&inspected)?;
            return Ok(Status::Success);
        }
        let verdict = match (mark, lease) {
            (Some(_), _) => "processed: a delivery of it is skipped",
            (None, Some(_)) => "in progress: a delivery that claims it is parked",
            (None, None) => "nothing recorded: a delivery of it runs",
        };
        writeln!(out, "{}: {verdict}", shown(id))?;
        for entry in [mark, lease].into_iter().flatten() {
            writeln!(out, "  {:5}  {}", output::kind(entry.kind), times(entry))?;
        }
        Ok(Status::Success)
    }
}
