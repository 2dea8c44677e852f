//! What the program says of itself, and of command lines it cannot use.

use crate::program::{bq_guard, end};

const COMMANDS: [&str; 14] = [
    "demo",
    "run",
    "id",
    "seen",
    "remember",
    "forget",
    "inspect",
    "list",
    "stats",
    "gc",
    "migrate",
    "conformance",
    "component",
    "completions",
];

#[test]
fn every_command_is_explained() {
    let all = end(&mut bq_guard(["--help"]));
    assert_eq!(all.status, 0);
    for command in COMMANDS {
        let line = all
            .out()
            .lines()
            .find(|line| line.trim_start().starts_with(command));
        assert!(
            line.is_some_and(|line| line.trim().len() > command.len() + 10),
            "{command}"
        );
        let own = end(&mut bq_guard([command, "--help"]));
        assert_eq!(own.status, 0);
        assert!(
            own.out().contains(&format!("Usage: bq-guard {command}")),
            "{}",
            own.out()
        );
        for line in own.out().lines().chain(all.out().lines()) {
            assert!(line.chars().count() <= 100, "{command}: {line}");
        }
    }
    assert!(all.out().contains("Exit status:"));
}

#[test]
fn without_a_command_it_is_shown_what_there_is() {
    let ended = end(&mut bq_guard([] as [&str; 0]));
    assert_eq!(ended.status, 2);
    assert!(ended.err.contains("demo"), "{}", ended.err);
}

#[test]
fn a_secret_is_never_printed() {
    let secret = "s3cret-word";
    let url = format!("redis://somebody:{secret}@127.0.0.1:1/0");
    let odd = format!("mysql://somebody:{secret}@127.0.0.1:1/0");
    for arguments in [
        &["--help"][..],
        &["run", "--help"],
        &["seen"],
        &["run", "--lease", "x"],
    ] {
        let ended = end(bq_guard(arguments).env("BQ_GUARD_STORE", &url));
        assert!(
            !ended.err.contains(secret) && !ended.out().contains(secret),
            "{ended:?}"
        );
    }
    for url in [&url, &odd, &odd.replace(':', "")] {
        let ended = end(&mut bq_guard(["seen", "a", "--store", url]));
        assert_ne!(ended.status, 0);
        assert!(!ended.err.contains(secret), "{}", ended.err);
    }
}

#[test]
fn what_cannot_be_used_is_named() {
    for (arguments, named) in [
        (&["run", "--retention", "0s"][..], "--retention"),
        (&["run", "--retention=-1s"], "--retention"),
        (&["run", "--retention", "1.5us"], "--retention"),
        (&["run", "--retention", "60"], "14d"),
        (&["run", "--claim", "--lease", "0ms"], "--lease"),
        (&["run", "--lease", "60s"], "--claim"),
        (&["run", "--jobs", "0"], "--jobs"),
        (&["run", "--max-body", "16MB"], "--max-body"),
        (&["run", "--consumer", "Billing"], "consumer"),
        (&["run", "--exec"], "--exec"),
        (&["run", "--store", "nothing:"], "redis://"),
        (&["list", "--limit", "0"], "--limit"),
        (&["completions", "tcsh"], "bash"),
    ] {
        let ended = end(&mut bq_guard(arguments));
        assert_eq!(ended.status, 2, "{arguments:?}: {}", ended.err);
        assert!(ended.err.contains(named), "{arguments:?}: {}", ended.err);
        assert!(ended.out.is_empty());
    }
    let ended = end(bq_guard(["demo"]).env("BQ_GUARD_LOG", "guard=loud"));
    assert_eq!(ended.status, 2);
    assert!(ended.err.contains("BQ_GUARD_LOG"), "{}", ended.err);
}

#[test]
fn shells_get_completions() {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let ended = end(&mut bq_guard(["completions", shell]));
        assert_eq!(ended.status, 0);
        for command in COMMANDS {
            assert!(ended.out().contains(command), "{shell}: {command}");
        }
    }
    let script = end(&mut bq_guard(["completions", "bash"])).out;
    let checked = crate::program::end_with(std::process::Command::new("bash").arg("-n"), script);
    assert_eq!(checked.status, 0);
}
