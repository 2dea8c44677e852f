//! `forget`: removes a mark, so that a replay runs.

use crate::args::StoreArgs;
use crate::commands::usable;
use crate::exit::{Failure, Status};
use crate::output::{self, json_to_output, of_kind, shown, times};
use babelqueue_guard::store::inventory::{Entry, Kind};
use std::io::Write;

/// Remove the mark of an id, so that its next delivery runs once more
///
/// Says what was found and what was removed; nothing to remove is no error. A
/// live lease stays: whoever holds it finishes, and marks the id again.
#[derive(clap::Args)]
pub struct Args {
    /// The id, as it stands in the envelope
    id: String,
    /// Print {"id", "removed", "mark", "lease"}
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    store: StoreArgs,
}

impl Args {
    pub async fn run(self) -> Result<Status, Failure> {
        let id = &*self.id;
        let store = self.store.open_existing().await?;
        // What cannot be an id has nothing recorded, and is not refused.
        let found: Vec<Entry> = match usable(id) {
            Ok(id) => {
                let found = store.inspect(id).await?;
                store.forget(id).await?;
                found
            }
            Err(_) => Vec::new(),
        };
        let (mark, lease) = (of_kind(&found, Kind::Mark), of_kind(&found, Kind::Lease));
        let mut out = anstream::stdout();
        if self.json {
            let forgotten = output::Forgotten {
                id,
                removed: mark.is_some(),
                mark: mark.map(Into::into),
                lease: lease.map(Into::into),
            };
            json_to_output(&forgotten)?;
            return Ok(Status::Success);
        }
        match mark {
            Some(mark) => writeln!(out, "{}: mark removed ({})", shown(id), times(mark))?,
            None => writeln!(out, "{}: no mark to remove", shown(id))?,
        }
        if let Some(lease) = lease {
            let left = times(lease);
            writeln!(
                out,
                "  a worker is handling it ({left}) and will mark it again"
            )?;
        }
        Ok(Status::Success)
    }
}
