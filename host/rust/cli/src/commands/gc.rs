//! `gc`: removes what has expired.

use crate::args::StoreArgs;
use crate::exit::{Failure, Status};
use crate::output::{Collected, json_to_output};
use std::io::Write;

/// Remove expired records, a small batch at a time
///
/// For PostgreSQL and SQLite, from time to time; no consumer waits for it.
/// Redis lets records expire by itself.
#[derive(clap::Args)]
pub struct Args {
    /// Records to remove at a time
    #[arg(long, value_name = "COUNT", default_value_t = 1_000,
          value_parser = clap::value_parser!(u32).range(1..=100_000))]
    batch: u32,
    /// Print {"removed"}
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    store: StoreArgs,
}

impl Args {
    pub async fn run(self) -> Result<Status, Failure> {
        let store = self.store.open_existing().await?;
        let mut removed = 0;
        loop {
            let batch = store.collect(self.batch).await?;
            removed += batch;
            if batch < u64::from(self.batch) {
                break;
            }
        }
        let mut out = anstream::stdout();
        if self.json {
            json_to_output(&Collected { removed })?;
        } else {
            writeln!(out, "removed {removed} expired records")?;
        }
        Ok(Status::Success)
    }
}
