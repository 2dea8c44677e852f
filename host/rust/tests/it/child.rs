//! Processes for tests that need several, or need to kill one: this program
//! again, told to run a single test, which does the work when it finds an
//! argument in its environment.

use std::process::{Child, Command, Stdio};

const ARGUMENT: &str = "BQ_GUARD_TEST_CHILD";

/// Starts one, to run the test of this name.
pub(crate) fn spawn(test: &str, argument: &str) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args([test, "--exact", "--nocapture", "--test-threads", "1"])
        .env(ARGUMENT, argument)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// What it was started with, in the process itself.
pub(crate) fn argument() -> Option<String> {
    std::env::var(ARGUMENT).ok()
}

/// Waits for its end, and gives what it printed.
pub(crate) fn output(child: Child) -> String {
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{:?}", output.status);
    String::from_utf8(output.stdout).unwrap()
}
