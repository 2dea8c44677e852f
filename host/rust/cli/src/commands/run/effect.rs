//! What happens to a line that is to run: it is given to a command, or passed
//! on.

use super::lines::Line;
use crate::exit::Failure;
use babelqueue_guard::Context;
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process_group};
use std::ffi::OsString;
use std::io::{self, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitStatus, Stdio};
use tokio::io::AsyncWriteExt;
use tokio::process::{Child, Command};
use tokio::sync::watch;

/// The handler of every line.
pub enum Effect {
    /// A command, started once for each line.
    Exec(Exec),
    /// Standard output.
    PassOn,
}

/// Why a handler did not succeed.
#[derive(Debug)]
pub enum Unsuccessful {
    /// It failed; others may still succeed.
    Failed(String),
    /// It cannot be started, and would not be for any other line.
    CannotStart(Failure),
    /// Standard output has no reader any more.
    ReaderGone,
    /// Standard output cannot be written.
    CannotWrite(io::Error),
}

impl Effect {
    pub async fn happen(&self, line: &Line, context: &Context) -> Result<(), Unsuccessful> {
        match self {
            Self::Exec(exec) => exec.run(line, context).await,
            Self::PassOn => tokio::task::block_in_place(|| pass_on(line)),
        }
    }
}

/// Writes the line as it is; it counts as passed on once it is flushed.
fn pass_on(line: &Line) -> Result<(), Unsuccessful> {
    let mut out = io::stdout().lock();
    out.write_all(line.whole())
        .and_then(|()| out.flush())
        .map_err(|error| match error.kind() {
            io::ErrorKind::BrokenPipe => Unsuccessful::ReaderGone,
            _ => Unsuccessful::CannotWrite(error),
        })
}

pub struct Exec {
    program: OsString,
    arguments: Vec<OsString>,
    /// Whether standard output is for reports, so that the command's goes to
    /// standard error.
    output_is_taken: bool,
    /// The latest signal that is to be passed on to commands.
    signals: watch::Receiver<Option<Signal>>,
}

impl Exec {
    pub fn new(
        program: OsString,
        arguments: Vec<OsString>,
        output_is_taken: bool,
        signals: watch::Receiver<Option<Signal>>,
    ) -> Self {
        Self {
            program,
            arguments,
            output_is_taken,
            signals,
        }
    }

    async fn run(&self, line: &Line, context: &Context) -> Result<(), Unsuccessful> {
        let mut child = self.start(context.id())?;
        let status = self
            .feed_and_wait(&mut child, line, context)
            .await
            .map_err(|error| Unsuccessful::Failed(format!("its end is unknown: {error}")))?;
        if status.success() {
            Ok(())
        } else {
            Err(Unsuccessful::Failed(ending(status)))
        }
    }

    fn start(&self, id: Option<&str>) -> Result<Child, Unsuccessful> {
        let mut command = Command::new(&self.program);
        command
            .args(&self.arguments)
            .stdin(Stdio::piped())
            // A terminal sends Ctrl-C to a whole process group: the command is
            // to finish, so it gets one of its own.
            .process_group(0);
        match id {
            Some(id) => command.env("BQ_MESSAGE_ID", id),
            None => command.env_remove("BQ_MESSAGE_ID"),
        };
        if self.output_is_taken {
            command.stdout(io::stderr());
        }
        command.spawn().map_err(|error| {
            let program = self.program.to_string_lossy();
            let advice = match error.kind() {
                io::ErrorKind::NotFound => {
                    "no such command (of a script, the program in its first line)"
                }
                io::ErrorKind::PermissionDenied => "it is not executable (chmod +x)",
                _ if error.raw_os_error() == Some(Errno::NOEXEC.raw_os_error()) => {
                    "it is no program (a script needs a first line such as #!/bin/sh)"
                }
                // Out of processes or memory: the command is right.
                _ => {
                    let text = format!("cannot start {program}: {error}");
                    return Unsuccessful::CannotStart(Failure::stopped(text));
                }
            };
            Unsuccessful::CannotStart(Failure::usage(format!("cannot start {program}: {advice}")))
        })
    }

    /// Gives the command its input while it runs, however little of it it
    /// reads.
    async fn feed_and_wait(
        &self,
        child: &mut Child,
        line: &Line,
        context: &Context,
    ) -> io::Result<ExitStatus> {
        let group = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
        let stdin = child.stdin.take();
        let feed = async {
            if let Some(mut stdin) = stdin {
                // A command need not read its input: what it makes of the
                // message is told by its exit status alone.
                let _ = stdin.write_all(line.whole()).await;
            }
        };
        tokio::pin!(feed);
        let mut signals = self.signals.clone();
        let (mut fed, mut warned) = (false, false);
        loop {
            tokio::select! {
                // What it has started may hold its input open and not read it:
                // once the command has ended, nobody is fed any more.
                status = child.wait() => return status,
                () = &mut feed, if !fed => fed = true,
                Ok(()) = signals.changed() => {
                    let signal = *signals.borrow_and_update();
                    if let (Some(group), Some(signal)) = (group, signal) {
                        // It may have ended meanwhile.
                        let _ = kill_process_group(group, signal);
                    }
                }
                () = context.lease_lost().cancelled(), if !warned => {
                    warned = true;
                    tracing::warn!(
                        line = line.n,
                        "the lease is lost while the command runs: another worker may run it too"
                    );
                }
            }
        }
    }
}

fn ending(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit status {code}"),
        (None, Some(signal)) => format!("killed by signal {signal}"),
        (None, None) => status.to_string(),
    }
}
