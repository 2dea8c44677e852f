//! pgbouncer, which gives each transaction whichever connection is free.

use crate::process::Process;
use crate::{Postgres, account, free_port, program};
use std::fs;
use std::net::TcpStream;
use std::process::Stdio;
use std::thread::sleep;
use std::time::{Duration, Instant};

const READY: Duration = Duration::from_secs(60);

/// A running pooler in transaction mode.
#[derive(Debug)]
pub struct Pgbouncer {
    port: u16,
    process: Process,
    folder: tempfile::TempDir,
}

impl Pgbouncer {
    /// A pooler with this many connections to each database of a server, and
    /// more lines for its section `[pgbouncer]`. `BQ_GUARD_PGBOUNCER` names
    /// another binary.
    ///
    /// # Panics
    ///
    /// If it is installed and does not start, or with `CI=true` is not
    /// installed.
    #[must_use]
    pub fn start(server: &Postgres, connections: u32, settings: &str) -> Option<Self> {
        let names = ["pgbouncer", "/usr/sbin/pgbouncer"];
        let program = program("BQ_GUARD_PGBOUNCER", &names)?;
        let folder = tempfile::tempdir().expect("a temporary folder");
        let port = free_port();
        let configuration = folder.path().join("pgbouncer.ini");
        fs::write(
            &configuration,
            format!(
                "[databases]\n\
                 * = host=127.0.0.1 port={} user=postgres\n\
                 [pgbouncer]\n\
                 listen_addr = 127.0.0.1\n\
                 listen_port = {port}\n\
                 unix_socket_dir =\n\
                 auth_type = any\n\
                 pool_mode = transaction\n\
                 default_pool_size = {connections}\n\
                 {settings}\n",
                server.port()
            ),
        )
        .expect("a configuration");
        let log = fs::File::create(folder.path().join("pgbouncer.log")).expect("a log");
        let mut command = account::command(&program, folder.path());
        command
            .arg(&configuration)
            .stdout(Stdio::null())
            .stderr(log);
        let mut pooler = Self {
            port,
            process: Process::start(&mut command),
            folder,
        };
        let until = Instant::now() + READY;
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(
                pooler.process.is_running() && Instant::now() < until,
                "pgbouncer does not start: {}",
                pooler.log()
            );
            sleep(Duration::from_millis(10));
        }
        Some(pooler)
    }

    /// The URL of a database behind it.
    #[must_use]
    pub fn url(&self, database: &str) -> String {
        format!("postgres://anybody@127.0.0.1:{}/{database}", self.port)
    }

    /// What it has logged.
    #[must_use]
    pub fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("pgbouncer.log")).unwrap_or_default()
    }
}
