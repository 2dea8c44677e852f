//! A child process that does not outlive the test program.

use rustix::process::{Pid, Signal, kill_process};
use std::process::{Child, Command, Stdio};

/// A running server.
///
/// A shell waits beside it for the end of its own standard input, which comes
/// with the end of this program, however it ends, and then kills the server:
/// those kept in a `static` are never dropped.
#[derive(Debug)]
pub struct Process {
    server: Child,
    watch: Child,
}

impl Process {
    /// Starts a program.
    ///
    /// # Panics
    ///
    /// If it cannot be started.
    #[must_use]
    pub fn start(command: &mut Command) -> Self {
        let server = command
            .stdin(Stdio::null())
            .spawn()
            .unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let watch = Command::new("sh")
            .args(["-c", "read -r _; kill -9 \"$1\" 2>/dev/null", "sh"])
            .arg(server.id().to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("a shell");
        Self { server, watch }
    }

    /// Its number.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.server.id()
    }

    /// Whether it has not ended yet.
    pub fn is_running(&mut self) -> bool {
        matches!(self.server.try_wait(), Ok(None))
    }

    /// Stops it where it stands (SIGSTOP): connections stay open and get no
    /// answer.
    pub fn pause(&self) {
        self.signal(Signal::STOP);
    }

    /// Lets it go on (SIGCONT).
    pub fn resume(&self) {
        self.signal(Signal::CONT);
    }

    /// Asks it to end (SIGTERM), and waits until it has.
    pub fn terminate(&mut self) {
        self.signal(Signal::TERM);
        // A paused process takes no other signal.
        self.signal(Signal::CONT);
        let _ = self.server.wait();
    }

    /// Kills it (SIGKILL), and waits until it has ended.
    pub fn kill(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }

    fn signal(&self, signal: Signal) {
        if let Some(pid) = i32::try_from(self.id()).ok().and_then(Pid::from_raw) {
            // It may have ended, and that is all that can be wrong.
            let _ = kill_process(pid, signal);
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // The watch first: it must not kill whoever gets the number next.
        let _ = self.watch.kill();
        let _ = self.watch.wait();
        self.kill();
    }
}
