//! Starts worker processes over one store, delivers every message several
//! times, kills workers in the middle of their work, kills, restarts and stops
//! the store's server, and then holds what the workers wrote into a ledger
//! against the contract.
//!
//! Prints one line of figures. Ends with 1 if a promise was broken, after
//! saying by what.

mod clock;
mod effects;
mod fleet;
mod ledger;
mod messages;
mod queue;
mod recorded;
mod rig;
mod run;
mod server;
mod settings;
mod verdict;
mod worker;

use clap::{Parser, Subcommand};
use settings::Settings;
use std::error::Error;
use std::process::ExitCode;
use worker::Work;

#[derive(Parser)]
#[command(about = "Kills workers and servers in the middle of the work, and counts the effects")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run a rig
    Run(Settings),
    /// Be one of its workers
    #[command(hide = true)]
    Work(Work),
}

#[tokio::main]
async fn main() -> Result<ExitCode, Box<dyn Error>> {
    match Arguments::parse().command {
        Command::Run(settings) => run::run(&settings).await,
        Command::Work(work) => {
            worker::work(work).await?;
            // Without waiting for the thread that reads the input.
            std::process::exit(0);
        }
    }
}
