//! A primary, a replica, and a Sentinel that watches them.

use crate::process::Process;
use crate::redis::wait_for;
use crate::{Redis, free_port};
use std::fs;
use std::process::{Command, Stdio};

/// What the Sentinel calls the primary.
pub const NAME: &str = "orders";

/// One Sentinel, which decides alone, after two seconds of silence.
#[derive(Debug)]
pub struct RedisSentinel {
    /// The primary at first, and its replica.
    pub servers: [Redis; 2],
    port: u16,
    _process: Process,
    _folder: tempfile::TempDir,
}

impl RedisSentinel {
    /// Starts all three, the servers with these arguments, and waits until the
    /// replica follows and the Sentinel knows it.
    ///
    /// # Panics
    ///
    /// If it is installed and does not start, or with `CI=true` is not
    /// installed.
    #[must_use]
    pub fn start(arguments: &[&str]) -> Option<Self> {
        let primary = Redis::start(arguments)?;
        let replica = Redis::start(arguments)?;
        let primary_port = primary.port().to_string();
        let () = replica.command(&["REPLICAOF", "127.0.0.1", &primary_port]);
        wait_for("the replica", || {
            let info: String = replica.command(&["INFO", "replication"]);
            info.contains("master_link_status:up")
        });

        let port = free_port();
        let folder = tempfile::tempdir().expect("a temporary folder");
        let config = folder.path().join("sentinel.conf");
        let text = format!(
            "bind 127.0.0.1\nport {port}\ndir {}\n\
             sentinel monitor {NAME} 127.0.0.1 {primary_port} 1\n\
             sentinel down-after-milliseconds {NAME} 2000\n\
             sentinel failover-timeout {NAME} 5000\n",
            folder.path().display()
        );
        fs::write(&config, text).expect("a written file");
        let process = Process::start(
            Command::new(primary.program())
                .arg(&config)
                .arg("--sentinel")
                .stdout(Stdio::null())
                .stderr(Stdio::null()),
        );
        let client = ::redis::Client::open(("127.0.0.1", port)).expect("an address");
        let replica_port = replica.port().to_string();
        wait_for("the Sentinel", || {
            let known = client.get_connection().and_then(|mut connection| {
                ::redis::cmd("SENTINEL")
                    .arg("REPLICAS")
                    .arg(NAME)
                    .query::<Vec<Vec<String>>>(&mut connection)
            });
            known.is_ok_and(|replicas| replicas.iter().flatten().any(|word| *word == replica_port))
        });
        Some(Self {
            servers: [primary, replica],
            port,
            _process: process,
            _folder: folder,
        })
    }

    /// The Sentinel's `host:port`.
    #[must_use]
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }
}
