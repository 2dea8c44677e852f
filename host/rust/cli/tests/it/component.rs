//! `component`: the embedded component for hosts of one's own.

use crate::program::{Folder, bq_guard, end};
use babelqueue_guard::component::artifacts;

#[test]
fn each_form_is_written_as_it_is() {
    let folder = Folder::new();
    for (arguments, bytes) in [
        (&["component"][..], artifacts::PLAIN_COMPONENT),
        (&["component", "plain"], artifacts::PLAIN_COMPONENT),
        (&["component", "claiming"], artifacts::CLAIMING_COMPONENT),
        (&["component", "--core"], artifacts::PLAIN_CORE),
        (
            &["component", "claiming", "--core"],
            artifacts::CLAIMING_CORE,
        ),
        (&["component", "--wit"], artifacts::WIT.as_bytes()),
    ] {
        let ended = end(&mut bq_guard(arguments));
        assert_eq!(ended.status, 0, "{}", ended.err);
        assert!(ended.out == bytes, "{arguments:?}");
        let mut command = bq_guard(arguments);
        let ended = end(command.args(["-o", "out"]).current_dir(folder.path()));
        assert_eq!(ended.status, 0, "{}", ended.err);
        assert!(ended.out.is_empty());
        assert!(std::fs::read(folder.file("out")).unwrap() == bytes);
    }
}

#[test]
fn the_wit_is_one_package_with_both_worlds() {
    let wit = end(&mut bq_guard(["component", "--wit"]));
    let mut resolve = wit_parser::Resolve::default();
    let package = resolve.push_str("guard.wit", wit.out()).unwrap();
    let package = &resolve.packages[package];
    assert_eq!(package.name.to_string(), "babelqueue:guard@0.1.0");
    let worlds: Vec<_> = package.worlds.keys().collect();
    assert_eq!(worlds, ["plain", "claiming"]);
}

#[test]
fn imports_and_exports_are_those_of_the_wit() {
    let of = |world| {
        end(&mut bq_guard(["component", world, "--interface"]))
            .out()
            .to_owned()
    };
    assert_eq!(
        of("plain")
            .lines()
            .filter(|line| line.contains(": "))
            .collect::<Vec<_>>(),
        [
            "import babelqueue:guard/store@0.1.0: seen, remember, forget",
            "export babelqueue:guard/guard@0.1.0: decide, decide-text, decide-id, settle, renew, forget",
        ]
    );
    let claiming = of("claiming");
    for line in [
        "import babelqueue:guard/claims@0.1.0: claim, renew, complete, release",
        "import babelqueue:guard/marker@0.1.0: set-once",
        "export babelqueue:guard/steps@0.1.0: once",
    ] {
        assert!(claiming.lines().any(|it| it == line), "{claiming}");
    }
}

#[test]
fn a_file_that_cannot_be_written_is_named() {
    let ended = end(&mut bq_guard([
        "component",
        "-o",
        "/no/such/folder/guard.wasm",
    ]));
    assert_eq!(ended.status, 2);
    assert!(
        ended.err.contains("/no/such/folder/guard.wasm"),
        "{}",
        ended.err
    );
}
