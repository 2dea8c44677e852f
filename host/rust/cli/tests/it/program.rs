//! Starts the program and looks at what it says.

use serde_json::Value;
use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use test_servers::Postgres;

/// Nothing here takes this long unless it hangs.
const HANGING: Duration = Duration::from_secs(120);

/// The program with these arguments, and nothing of the caller's environment
/// that matters to it.
pub fn bq_guard<S: AsRef<std::ffi::OsStr>>(arguments: impl IntoIterator<Item = S>) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bq-guard"));
    command.args(arguments).env("RUST_BACKTRACE", "0");
    for variable in [
        "BQ_GUARD_STORE",
        "BQ_GUARD_LOG",
        "BQ_MESSAGE_ID",
        "CLICOLOR_FORCE",
    ] {
        command.env_remove(variable);
    }
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// What a program has said and how it ended.
#[derive(Debug)]
pub struct Ended {
    /// The exit status; -1 if a signal killed it.
    pub status: i32,
    pub out: Vec<u8>,
    pub err: String,
}

impl Ended {
    pub fn out(&self) -> &str {
        std::str::from_utf8(&self.out).expect("text on standard output")
    }

    /// Standard output as one object a line.
    pub fn objects(&self) -> Vec<Value> {
        objects(self.out())
    }

    /// The reports on standard error, and the summary.
    pub fn reports_and_summary(&self) -> (Vec<Value>, Value) {
        let mut objects = objects(&self.err);
        let mut last = objects.pop().expect("a summary");
        // There may be warnings, too.
        objects.retain(|object| object["level"].is_null());
        (objects, last["summary"].take())
    }

    /// The summary alone, among whatever else is on standard error.
    pub fn summary(&self) -> Value {
        let line = self
            .err
            .lines()
            .rfind(|line| line.starts_with("{\"summary\""));
        serde_json::from_str::<Value>(line.expect("a summary")).unwrap()["summary"].take()
    }
}

pub fn objects(text: &str) -> Vec<Value> {
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{line:?}: {error}")))
        .collect()
}

/// Runs it to its end.
pub fn end(command: &mut Command) -> Ended {
    finish(command.spawn().expect("the program starts"))
}

/// Runs it to its end on this input.
pub fn end_with(command: &mut Command, input: impl Into<Vec<u8>>) -> Ended {
    let mut child = command
        .stdin(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut stdin = child.stdin.take().expect("a pipe");
    let input = input.into();
    // It may end before it has read everything.
    let writer = std::thread::spawn(move || drop(stdin.write_all(&input)));
    let ended = finish(child);
    writer.join().unwrap();
    ended
}

/// Waits for the end of a program.
///
/// # Panics
///
/// If it hangs.
pub fn finish(mut child: Child) -> Ended {
    let out = read(child.stdout.take());
    let err = read(child.stderr.take());
    let started = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if started.elapsed() > HANGING {
            child.kill().unwrap();
            panic!("it hangs");
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    Ended {
        status: status.code().unwrap_or(-1),
        out: out.join().unwrap(),
        err: String::from_utf8(err.join().unwrap()).expect("text on standard error"),
    }
}

fn read(from: Option<impl Read + Send + 'static>) -> std::thread::JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut all = Vec::new();
        if let Some(mut from) = from {
            from.read_to_end(&mut all).unwrap();
        }
        all
    })
}

/// Waits until something is so.
///
/// # Panics
///
/// If it never is.
pub fn until(what: &str, mut so: impl FnMut() -> bool) {
    let started = Instant::now();
    while !so() {
        assert!(started.elapsed() < HANGING, "never happened: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// An envelope as producers send it, without a line ending.
pub fn envelope(id: &str) -> String {
    serde_json::json!({
        "job": "urn:babel:parcels:weighed",
        "data": {"grams": 250},
        "meta": {"id": id, "schema_version": 1},
    })
    .to_string()
}

/// A line for each id.
pub fn lines<'a>(ids: impl IntoIterator<Item = &'a str>) -> String {
    ids.into_iter().map(|id| envelope(id) + "\n").collect()
}

/// `parcel-1` and so on.
pub fn parcels(count: usize) -> Vec<String> {
    (1..=count).map(|n| format!("parcel-{n}")).collect()
}

/// A folder with an input and a file in which commands write what they did.
pub struct Folder(TempDir);

impl Folder {
    pub fn new() -> Self {
        Self(TempDir::new().unwrap())
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// A file in it, whether or not it is there.
    pub fn file(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let file = self.file(name);
        fs::write(&file, bytes).unwrap();
        file
    }

    /// What commands have appended to `ledger`, a line each.
    pub fn ledger(&self) -> Vec<String> {
        let text = fs::read_to_string(self.file("ledger")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }
}

/// Sorted, for comparing what may come in any order.
pub fn sorted(mut lines: Vec<String>) -> Vec<String> {
    lines.sort();
    lines
}

/// The URL of an empty database of its own, on a server that the tests of this
/// program share.
pub fn postgres() -> Option<String> {
    static SERVER: OnceLock<Option<Postgres>> = OnceLock::new();
    let server = SERVER.get_or_init(test_servers::postgres).as_ref()?;
    Some(server.url(&server.create_database("")))
}
