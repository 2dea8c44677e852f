//! Redis and Valkey.

use crate::process::Process;
use crate::{free_port, program};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How long a server may take until it is ready, on a busy machine.
const READY: Duration = Duration::from_secs(60);

/// A server that keeps nothing on disk and wants no password.
///
/// # Panics
///
/// If it is installed and does not start, or with `CI=true` is not installed.
#[must_use]
pub fn redis() -> Option<Redis> {
    Redis::start(&[])
}

/// The same, but Valkey in any case.
///
/// # Panics
///
/// If it is installed and does not start, or with `CI=true` is not installed.
#[must_use]
pub fn valkey() -> Option<Redis> {
    let program = program("BQ_GUARD_VALKEY_SERVER", &["valkey-server"])?;
    Some(Redis::start_program(&program, &[]))
}

/// A running Redis server.
#[derive(Debug)]
pub struct Redis {
    program: PathBuf,
    port: u16,
    /// Beyond what every server here gets: `--name`, `value`, …
    arguments: Vec<String>,
    folder: tempfile::TempDir,
    process: Option<Process>,
}

impl Redis {
    /// A server with these arguments of `redis-server` (`["--appendonly",
    /// "yes"]`) beside the usual ones.
    ///
    /// # Panics
    ///
    /// If it is installed and does not start, or with `CI=true` is not
    /// installed.
    #[must_use]
    pub fn start(arguments: &[&str]) -> Option<Self> {
        let program = program("BQ_GUARD_REDIS_SERVER", &["redis-server", "valkey-server"])?;
        Some(Self::start_program(&program, arguments))
    }

    /// The same with a program of the caller's choice.
    ///
    /// # Panics
    ///
    /// If it does not start.
    #[must_use]
    pub fn start_program(program: &Path, arguments: &[&str]) -> Self {
        let arguments: Vec<String> = arguments.iter().map(|&text| text.into()).collect();
        // Somebody else may take the port between the look and the start.
        for _ in 0..5 {
            let mut server = Self {
                program: program.to_owned(),
                port: free_port(),
                arguments: arguments.clone(),
                folder: tempfile::tempdir().expect("a temporary folder"),
                process: None,
            };
            server.launch();
            if server.wait_until_ready() {
                return server;
            }
            eprintln!("{} did not start: {}", program.display(), server.log());
        }
        panic!("{} does not start", program.display());
    }

    /// The port on 127.0.0.1; with `--tls-port` among the arguments this one
    /// is the plain port still.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// `127.0.0.1:port`.
    #[must_use]
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// `redis://127.0.0.1:port`, without a password.
    #[must_use]
    pub fn url(&self) -> String {
        format!("redis://{}", self.address())
    }

    /// The program that it runs.
    #[must_use]
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// Where it keeps its files.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// What it has logged since it was started last.
    #[must_use]
    pub fn log(&self) -> String {
        fs::read_to_string(self.log_path()).unwrap_or_default()
    }

    /// A plain connection of the `redis` crate, for a test's own commands.
    ///
    /// # Panics
    ///
    /// If it cannot be had.
    #[must_use]
    pub fn connection(&self) -> ::redis::Connection {
        let client = ::redis::Client::open(self.url()).expect("a URL");
        client.get_connection().expect("a connection")
    }

    /// Sends one command over a new connection.
    ///
    /// # Panics
    ///
    /// If it fails, or answers with another type.
    pub fn command<T: ::redis::FromRedisValue>(&self, words: &[&str]) -> T {
        let mut command = ::redis::cmd(words[0]);
        for word in &words[1..] {
            command.arg(*word);
        }
        command
            .query(&mut self.connection())
            .unwrap_or_else(|error| panic!("{words:?}: {error}"))
    }

    /// Stops it where it stands: connections stay open and get no answer.
    pub fn pause(&self) {
        self.running().pause();
    }

    /// Lets it go on after [`pause`](Self::pause).
    pub fn resume(&self) {
        self.running().resume();
    }

    /// Kills it as a crash would.
    pub fn kill(&mut self) {
        self.process = None;
    }

    /// Ends it in good order, with whatever it saves then.
    pub fn terminate(&mut self) {
        if let Some(process) = &mut self.process {
            process.terminate();
        }
        self.process = None;
    }

    /// Starts it on the same port and folder, after ending it if it runs, and
    /// waits until it is ready.
    ///
    /// # Panics
    ///
    /// If it does not start.
    pub fn restart(&mut self) {
        self.restart_without_waiting();
        assert!(
            self.wait_until_ready(),
            "it does not start again: {}",
            self.log()
        );
    }

    /// The same, without waiting until it has read its data.
    pub fn restart_without_waiting(&mut self) {
        self.terminate();
        self.launch();
    }

    fn running(&self) -> &Process {
        self.process.as_ref().expect("the server has been stopped")
    }

    fn launch(&mut self) {
        let log = fs::File::create(self.log_path()).expect("a log");
        let process = Process::start(
            Command::new(&self.program)
                .args(["--bind", "127.0.0.1", "--port", &self.port.to_string()])
                .args(["--save", "", "--appendonly", "no", "--daemonize", "no"])
                .arg("--dir")
                .arg(self.folder.path())
                .args(&self.arguments)
                .stdout(log)
                .stderr(Stdio::null()),
        );
        self.process = Some(process);
    }

    fn wait_until_ready(&mut self) -> bool {
        let until = Instant::now() + READY;
        while Instant::now() < until {
            if self.log().contains("Ready to accept connections") {
                return true;
            }
            if !self.process.as_mut().is_some_and(Process::is_running) {
                return false;
            }
            sleep(Duration::from_millis(10));
        }
        false
    }

    fn log_path(&self) -> PathBuf {
        self.folder.path().join("server.log")
    }
}

/// Waits until something is so.
///
/// # Panics
///
/// If it takes longer than a server may take to start.
pub(crate) fn wait_for(what: &str, mut is_so: impl FnMut() -> bool) {
    let until = Instant::now() + READY;
    while !is_so() {
        assert!(Instant::now() < until, "{what} is not ready in time");
        sleep(Duration::from_millis(20));
    }
}
