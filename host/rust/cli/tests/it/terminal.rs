//! What is different on a terminal.

use crate::program::{Folder, bq_guard, finish, lines};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use std::fs::File;
use std::io::Read;
use std::process::{Command, Stdio};

/// Runs it with these of its outputs on a terminal; what the terminal showed,
/// and the exit status.
fn on_terminal(command: &mut Command, out: bool, err: bool) -> (i32, String) {
    let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&terminal).unwrap();
    unlockpt(&terminal).unwrap();
    let name = ptsname(&terminal, Vec::new())
        .unwrap()
        .into_string()
        .unwrap();
    let open = || Stdio::from(File::options().read(true).write(true).open(&name).unwrap());
    command.env_remove("NO_COLOR").env("TERM", "xterm");
    if out {
        command.stdout(open());
    }
    if err {
        command.stderr(open());
    }
    let child = command.spawn().unwrap();
    // Nobody but the program holds the terminal any more.
    *command = Command::new("true");
    let mut shown = Vec::new();
    let mut buffer = [0; 4_096];
    // It ends by an error once the last one has closed it.
    while let Ok(count @ 1..) = File::from(terminal.try_clone().unwrap()).read(&mut buffer) {
        shown.extend_from_slice(&buffer[..count]);
    }
    (finish(child).status, String::from_utf8(shown).unwrap())
}

#[test]
fn the_demo_has_colours() {
    let (status, shown) = on_terminal(&mut bq_guard(["demo"]), true, false);
    assert_eq!(status, 0);
    assert!(shown.contains("\u{1b}[32mrun"), "{shown:?}");
}

#[test]
fn no_binary_is_written_to_it() {
    for arguments in [&["component"][..], &["component", "claiming", "--core"]] {
        let (status, shown) = on_terminal(&mut bq_guard(arguments), true, true);
        assert_eq!(status, 2);
        assert!(shown.contains("-o FILE"), "{shown:?}");
        assert!(!shown.contains("asm"), "{shown:?}");
    }
    let (status, shown) = on_terminal(&mut bq_guard(["component", "--interface"]), true, true);
    assert_eq!(status, 0);
    assert!(shown.contains("babelqueue:guard/store"), "{shown:?}");
}

#[test]
fn a_run_shows_how_far_it_is() {
    let folder = Folder::new();
    let input = folder.write("input", lines(["a", "b", "a"]));
    let command = || {
        let mut command = bq_guard(["run", "--quiet"]);
        command.arg(&input).args(["--exec", "sleep", "0.15"]);
        command
    };
    let (status, shown) = on_terminal(&mut command(), false, true);
    assert_eq!(status, 0);
    assert!(
        shown.contains("2 lines read, 2 succeeded, 0 skipped, 0 failed\r"),
        "{shown:?}"
    );
    // It is gone at the end.
    assert!(
        shown.ends_with("\u{1b}[Kbq-guard: 3 lines: 2 succeeded, 1 skipped\r\n"),
        "{shown:?}"
    );

    let ended = finish(command().spawn().unwrap());
    assert!(!ended.err.contains("read,"), "nor in a file: {}", ended.err);

    // Nor among what the commands print.
    let mut told = bq_guard(["run"]);
    told.arg(&input).args(["--exec", "echo", "printed"]);
    let (_, shown) = on_terminal(&mut told, true, true);
    assert!(shown.contains("printed\r\nline 1  "), "{shown:?}");
    assert!(!shown.contains("read,"), "{shown:?}");
}

#[test]
fn a_filter_shows_how_far_it_is() {
    let folder = Folder::new();
    let input = folder.write("input", lines(["a", "b", "a"]));
    let mut filter = bq_guard(["run"]);
    let (_, shown) = on_terminal(filter.arg(&input), false, true);
    assert!(shown.contains("lines: 2 succeeded, 1 skipped"), "{shown:?}");
    assert!(shown.contains("1 line read, 1 succeeded"), "{shown:?}");
}
