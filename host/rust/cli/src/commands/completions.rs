//! `completions`: what a shell needs to complete command lines.

use crate::exit::{Failure, Status};
use clap::CommandFactory;
use clap_complete::Shell;
use std::io::Write;

/// Print the completions for a shell
///
/// For bash, for instance:
///
///   bq-guard completions bash > ~/.local/share/bash-completion/completions/bq-guard
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Args {
    shell: Shell,
}

impl Args {
    pub fn run(self) -> Result<Status, Failure> {
        let mut script = Vec::new();
        let mut command = crate::Cli::command();
        clap_complete::generate(self.shell, &mut command, "bq-guard", &mut script);
        std::io::stdout().write_all(&script)?;
        Ok(Status::Success)
    }
}
