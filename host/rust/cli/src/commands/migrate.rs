//! `migrate`: creates what a store needs.

use crate::args::StoreArgs;
use crate::exit::{Failure, Status};
use std::io::Write;

/// Create the tables that a store needs, and leave those that are there
///
/// Needed once for PostgreSQL, and once more for each --consumer or --prefix.
/// SQLite makes its tables by itself, and Redis has none.
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    store: StoreArgs,
}

impl Args {
    pub async fn run(self) -> Result<Status, Failure> {
        let done = self.store.open_existing().await?.migrate().await?;
        writeln!(anstream::stdout(), "{done}")?;
        Ok(Status::Success)
    }
}
