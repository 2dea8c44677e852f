//! `bq-guard`: the guard on the command line.
//!
//! Each command has a file of its own in `commands`; what they share is the
//! exit statuses in `exit`, the output formats in `output`, and the arguments
//! that name a store in `args`.

#![allow(unreachable_pub, reason = "a program has no public interface")]

mod args;
mod commands;
mod exit;
mod output;

use clap::{Parser, Subcommand};
use exit::{Failure, Status};
use std::io::{IsTerminal, Write};
use std::process::ExitCode;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::{Layer, SubscriberExt};

#[cfg(not(unix))]
compile_error!("bq-guard needs the processes and signals of Unix");

const ENVIRONMENT: &str = "\
Environment:
  BQ_GUARD_STORE   the store's URL, unless --store names one
  BQ_GUARD_LOG     what is logged to standard error: warn, debug, off, or
                   TARGET=LEVEL with commas between
  NO_COLOR         no colours on a terminal";

/// Makes the effect of a message happen once when its queue delivers it
/// twice.
#[derive(Parser)]
#[command(
    version,
    propagate_version = true,
    arg_required_else_help = true,
    after_help = format!("{}\n\n{ENVIRONMENT}", exit::HELP),
    long_about = "Makes the effect of a message happen once when its queue delivers it twice.\n\n\
        Every queue delivers at least once. The guard reads a message's id (meta.id of its JSON \
        envelope), asks a store whether that id has been processed, and runs the handler or skips \
        it; after a success, and only then, the id is marked. The decision is made by a \
        WebAssembly component, the same one in every language.\n\n\
        Begin with `bq-guard demo`."
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Demo(commands::demo::Args),
    Run(commands::run::Args),
    Id(commands::id::Args),
    Seen(commands::seen::Args),
    Remember(commands::remember::Args),
    Forget(commands::forget::Args),
    Inspect(commands::inspect::Args),
    List(commands::list::Args),
    Stats(commands::stats::Args),
    Gc(commands::gc::Args),
    Migrate(commands::migrate::Args),
    Conformance(commands::conformance::Args),
    Component(commands::component::Args),
    Completions(commands::completions::Args),
}

impl Command {
    async fn run(self) -> Result<Status, Failure> {
        match self {
            Self::Demo(args) => args.run().await,
            Self::Run(args) => args.run().await,
            Self::Id(args) => args.run(),
            Self::Seen(args) => args.run().await,
            Self::Remember(args) => args.run().await,
            Self::Forget(args) => args.run().await,
            Self::Inspect(args) => args.run().await,
            Self::List(args) => args.run().await,
            Self::Stats(args) => args.run().await,
            Self::Gc(args) => args.run().await,
            Self::Migrate(args) => args.run().await,
            Self::Conformance(args) => args.run().await,
            Self::Component(args) => args.run(),
            Self::Completions(args) => args.run(),
        }
    }
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    if let Err(failure) = log_to_stderr(matches!(&cli.command, Command::Run(run) if run.json)) {
        return end(Err(failure));
    }
    let runtime = match tokio::runtime::Runtime::new() {
        Ok(runtime) => runtime,
        Err(error) => return end(Err(Failure::stopped(format!("no runtime: {error}")))),
    };
    let result = runtime.block_on(cli.command.run());
    // A thread may be reading an input that never ends.
    runtime.shutdown_background();
    end(result)
}

fn end(result: Result<Status, Failure>) -> ExitCode {
    result
        .unwrap_or_else(|failure| {
            if !failure.text.is_empty() {
                // Nobody is left to be told if this fails.
                let _ = writeln!(anstream::stderr(), "bq-guard: {failure}");
            }
            failure.status
        })
        .into()
}

/// Warnings, unless `BQ_GUARD_LOG` asks for something else.
fn log_to_stderr(as_objects: bool) -> Result<(), Failure> {
    let wanted = std::env::var("BQ_GUARD_LOG").unwrap_or_default();
    let filter = if wanted.is_empty() {
        // What becomes of a delivery in flight is in the reports already.
        Targets::new()
            .with_default(LevelFilter::WARN)
            .with_target("babelqueue_guard::in_flight", LevelFilter::OFF)
            // It warns of parameters it does not know with their values, and
            // a misspelt `password` is one.
            .with_target("sqlx", LevelFilter::ERROR)
    } else {
        wanted
            .parse()
            .map_err(|error| Failure::usage(format!("BQ_GUARD_LOG: {error}; try warn or debug")))?
    };
    let format = tracing_subscriber::fmt::layer()
        .without_time()
        .with_target(false)
        .with_ansi(std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none())
        .with_writer(std::io::stderr);
    let format = if as_objects {
        format.json().flatten_event(true).boxed()
    } else {
        format.boxed()
    };
    let subscriber = tracing_subscriber::registry().with(filter).with(format);
    // Fails only if there is one already.
    let _ = tracing::subscriber::set_global_default(subscriber);
    Ok(())
}
