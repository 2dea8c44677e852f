//! `list`: the marks and live leases of a store.

use crate::args::StoreArgs;
use crate::exit::{Failure, Status};
use crate::output::{self, json_to_output, shown, times};
use std::io::Write;

/// List marks and live leases with their ages
///
/// They come page by page, in the store's own order, and nobody has to wait
/// meanwhile. What is written while the list is made may be missing, and a
/// record may be listed twice; what was there all along is listed.
#[derive(clap::Args)]
pub struct Args {
    /// End after about this many, and say how to go on
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..))]
    limit: Option<u32>,
    /// Go on where an earlier list ended
    #[arg(long, value_name = "PLACE")]
    from: Option<String>,
    /// Print {"id", "kind", "age_ms", "left_ms"} a line
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    store: StoreArgs,
}

/// Records asked for at a time.
const PAGE: u32 = 500;

impl Args {
    pub async fn run(self) -> Result<Status, Failure> {
        let store = self.store.open_existing().await?;
        let mut out = anstream::stdout();
        let mut left = self.limit;
        let mut from = self.from;
        loop {
            let wanted = left.map_or(PAGE, |left| left.min(PAGE));
            let page = store.list(from.as_deref(), wanted).await?;
            for entry in &page.entries {
                let (id, kind) = (&*entry.id, output::kind(entry.kind));
                if self.json {
                    let times = entry.into();
                    json_to_output(&output::Listed { id, kind, times })?;
                } else {
                    writeln!(out, "{kind:5}  {}  ({})", shown(id), times(entry))?;
                }
            }
            let Some(next) = page.next else {
                return Ok(Status::Success);
            };
            if let Some(left) = &mut left {
                let listed = u32::try_from(page.entries.len()).unwrap_or(u32::MAX);
                *left = left.saturating_sub(listed);
                if *left == 0 {
                    let _ = writeln!(anstream::stderr(), "there may be more: --from {next}");
                    return Ok(Status::Success);
                }
            }
            from = Some(next);
        }
    }
}
