//! PostgreSQL.

use crate::{Certificates, account, free_port, missing};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How long a server may take until it is ready, on a busy machine.
const READY: Duration = Duration::from_secs(60);

/// A server with a cluster of its own, which trusts everybody but the role
/// `locked`.
///
/// # Panics
///
/// If it is installed and does not start, or with `CI=true` is not installed.
#[must_use]
pub fn postgres() -> Option<Postgres> {
    Postgres::start(&[])
}

/// A running PostgreSQL server.
#[derive(Debug)]
pub struct Postgres {
    programs: PathBuf,
    port: u16,
    /// `name=value` each.
    settings: Vec<String>,
    environment: Vec<(String, String)>,
    folder: tempfile::TempDir,
    server: Option<Child>,
    watch: Option<Child>,
}

impl Postgres {
    /// A server with these settings (`["max_connections=5"]`) beside the
    /// usual ones. It does not wait for the disk unless `fsync=on`.
    /// `BQ_GUARD_POSTGRES_BIN` names the folder of its programs.
    ///
    /// # Panics
    ///
    /// If it is installed and does not start, or with `CI=true` is not
    /// installed.
    #[must_use]
    pub fn start(settings: &[&str]) -> Option<Self> {
        Self::start_with(settings, &[])
    }

    /// The same with variables in its environment.
    ///
    /// # Panics
    ///
    /// As above.
    #[must_use]
    pub fn start_with(settings: &[&str], environment: &[(&str, &str)]) -> Option<Self> {
        let mut server = Self::prepare(settings, environment)?;
        server.begin();
        Some(server)
    }

    /// The same with TLS, for those who want it, and for the role `certified`,
    /// who has to show a certificate.
    ///
    /// # Panics
    ///
    /// As above.
    #[must_use]
    pub fn start_tls(certificates: &Certificates) -> Option<Self> {
        let settings = [
            "ssl=on",
            "ssl_cert_file=server.pem",
            "ssl_key_file=server.key",
            "ssl_ca_file=ca.pem",
        ];
        let mut server = Self::prepare(&settings, &[])?;
        for name in ["server.pem", "server.key", "ca.pem"] {
            let copy = server.data().join(name);
            fs::copy(certificates.file(name), &copy).expect("a copy");
            // A key that others may read is refused.
            fs::set_permissions(&copy, fs::Permissions::from_mode(0o600)).expect("its owner's");
            account::give(&copy);
        }
        server.begin();
        Some(server)
    }

    fn prepare(settings: &[&str], environment: &[(&str, &str)]) -> Option<Self> {
        let programs = programs()?;
        let server = Self {
            programs,
            port: 0,
            settings: settings.iter().map(|&text| text.into()).collect(),
            environment: environment
                .iter()
                .map(|&(name, value)| (name.into(), value.into()))
                .collect(),
            folder: tempfile::tempdir().expect("a temporary folder"),
            server: None,
            watch: None,
        };
        server.create_cluster();
        Some(server)
    }

    fn begin(&mut self) {
        // Somebody else may take the port between the look and the start.
        for _ in 0..5 {
            self.port = free_port();
            self.launch();
            if self.wait_until_ready() {
                return;
            }
            eprintln!("postgres did not start: {}", self.log());
        }
        panic!("postgres does not start");
    }

    /// The port on 127.0.0.1.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The URL of a database, for the role that may do anything.
    #[must_use]
    pub fn url(&self, database: &str) -> String {
        self.url_as("postgres", database)
    }

    /// The URL of a database for a role, which may be `name:password`.
    #[must_use]
    pub fn url_as(&self, role: &str, database: &str) -> String {
        format!("postgres://{role}@127.0.0.1:{}/{database}", self.port)
    }

    /// Creates a database that is empty, with options of `CREATE DATABASE`,
    /// and gives its name.
    ///
    /// # Panics
    ///
    /// If it cannot be created.
    #[must_use]
    pub fn create_database(&self, options: &str) -> String {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("test_{}", COUNT.fetch_add(1, Ordering::Relaxed));
        self.sql(
            "postgres",
            &format!("CREATE DATABASE {name} TEMPLATE template0 {options}"),
        );
        name
    }

    /// Runs statements by `psql`, and gives the values they give, a line each
    /// row, with `|` between.
    ///
    /// # Panics
    ///
    /// If one fails.
    pub fn sql(&self, database: &str, statements: &str) -> String {
        let output = self
            .psql(database)
            .arg("-c")
            .arg(statements)
            .output()
            .expect("psql");
        assert!(
            output.status.success(),
            "{statements}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    /// A command that runs `psql` as a client that knows nothing of us.
    #[must_use]
    pub fn psql(&self, database: &str) -> Command {
        let mut command = Command::new(self.programs.join("psql"));
        command
            .args(["-X", "-A", "-t", "-q", "-v", "ON_ERROR_STOP=1"])
            .args(["-h", "127.0.0.1", "-U", "postgres", "-d", database])
            .args(["-p", &self.port.to_string()])
            .stdin(Stdio::null());
        command
    }

    /// The folder of its socket.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// What it has logged since it was started last.
    #[must_use]
    pub fn log(&self) -> String {
        fs::read_to_string(self.log_path()).unwrap_or_default()
    }

    /// Stops it where it stands, with all that serve its connections: they
    /// stay open and get no answer.
    pub fn pause(&self) {
        self.signal_all(Signal::STOP);
    }

    /// Lets it go on after [`pause`](Self::pause).
    pub fn resume(&self) {
        self.signal_all(Signal::CONT);
    }

    /// Kills it as a crash of the machine would, with all that serve its
    /// connections.
    pub fn kill(&mut self) {
        self.signal_all(Signal::KILL);
        self.reap();
    }

    /// Ends it in good order, and its connections with it.
    pub fn terminate(&mut self) {
        self.signal_all(Signal::CONT);
        if let Some(server) = &self.server {
            signal(server.id(), Signal::INT);
        }
        self.reap();
    }

    /// Starts it on the same port and cluster, after ending it if it runs, and
    /// waits until it is ready.
    ///
    /// # Panics
    ///
    /// If it does not start.
    pub fn restart(&mut self) {
        self.terminate();
        self.launch();
        assert!(
            self.wait_until_ready(),
            "it does not start again: {}",
            self.log()
        );
    }

    fn create_cluster(&self) {
        let mut initdb = account::command(&self.programs.join("initdb"), self.folder.path());
        let output = initdb
            .arg("-D")
            .arg(self.data())
            .args(["-U", "postgres", "--auth", "trust", "--no-sync"])
            .args(["--encoding", "UTF8", "--locale", "C"])
            .current_dir(self.folder.path())
            .output()
            .expect("initdb");
        assert!(
            output.status.success(),
            "initdb: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        fs::write(
            self.data().join("pg_hba.conf"),
            "host all locked 127.0.0.1/32 scram-sha-256\n\
             hostssl all certified 127.0.0.1/32 trust clientcert=verify-ca\n\
             host all certified 127.0.0.1/32 reject\n\
             host all all 127.0.0.1/32 trust\n\
             local all all trust\n",
        )
        .expect("who may come in");
    }

    fn launch(&mut self) {
        let log = fs::File::create(self.log_path()).expect("a log");
        let mut command = account::command(&self.programs.join("postgres"), self.folder.path());
        command
            .arg("-D")
            .arg(self.data())
            .args(["-p", &self.port.to_string()])
            .arg("-k")
            .arg(self.folder.path())
            .args(["-c", "listen_addresses=127.0.0.1", "-c", "fsync=off"])
            .args(["-c", "max_connections=200", "-c", "shared_buffers=32MB"]);
        for setting in &self.settings {
            command.args(["-c", setting]);
        }
        let server = command
            .envs(self.environment.iter().cloned())
            .current_dir(self.folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .expect("postgres");
        // As for every other server, but this one leaves shared memory behind
        // unless it is asked to end.
        let watch = Command::new("sh")
            .args([
                "-c",
                "read -r _; kill -INT \"$1\" 2>/dev/null; sleep 1; kill -9 \"$1\" 2>/dev/null; \
                 rm -rf \"$2\"",
                "sh",
            ])
            .arg(server.id().to_string())
            .arg(self.folder.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("a shell");
        self.server = Some(server);
        self.watch = Some(watch);
    }

    fn wait_until_ready(&mut self) -> bool {
        let until = Instant::now() + READY;
        while Instant::now() < until {
            let ready = self
                .psql("postgres")
                .args(["-c", "SELECT 1"])
                .output()
                .is_ok_and(|output| output.status.success());
            if ready {
                return true;
            }
            if !matches!(self.server.as_mut().map(Child::try_wait), Some(Ok(None))) {
                return false;
            }
            sleep(Duration::from_millis(20));
        }
        false
    }

    /// The server first, so that it starts nobody else meanwhile.
    fn signal_all(&self, kind: Signal) {
        let Some(server) = &self.server else { return };
        let server = server.id();
        let children = children(server);
        signal(server, kind);
        for child in children {
            signal(child, kind);
        }
    }

    fn reap(&mut self) {
        // The watch first: it must not kill whoever gets the number next.
        if let Some(mut watch) = self.watch.take() {
            let _ = watch.kill();
            let _ = watch.wait();
        }
        if let Some(mut server) = self.server.take() {
            let _ = server.wait();
        }
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    fn log_path(&self) -> PathBuf {
        self.folder.path().join("server.log")
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        self.terminate();
    }
}

/// The folder of the server's programs, some of which are seldom on the path.
fn programs() -> Option<PathBuf> {
    let is_one = |folder: &Path| folder.join("initdb").is_file();
    if let Some(chosen) = std::env::var_os("BQ_GUARD_POSTGRES_BIN").filter(|it| !it.is_empty()) {
        let chosen = PathBuf::from(chosen);
        return is_one(&chosen)
            .then_some(chosen)
            .or_else(|| missing("BQ_GUARD_POSTGRES_BIN names no folder with initdb"));
    }
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten();
    let packaged = versions
        .flatten()
        .map(|version| version.path().join("bin"))
        .filter(|folder| is_one(folder))
        .max();
    let path = std::env::var_os("PATH").unwrap_or_default();
    packaged
        .or_else(|| std::env::split_paths(&path).find(|folder| is_one(folder)))
        .or_else(|| missing("postgres is not installed"))
}

fn signal(process: u32, signal: Signal) {
    if let Some(pid) = i32::try_from(process).ok().and_then(Pid::from_raw) {
        // It may have ended, and that is all that can be wrong.
        let _ = kill_process(pid, signal);
    }
}

fn children(parent: u32) -> Vec<u32> {
    let of_parent = |process: u32| {
        let status = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
        // After the name, which is in parentheses: state, parent.
        let mut fields = status.rsplit_once(')')?.1.split_whitespace();
        (fields.nth(1)? == parent.to_string()).then_some(process)
    };
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    processes
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter_map(of_parent)
        .collect()
}
