//! `seen`, `remember`, `forget`, `inspect`, `list`, `stats`, `gc`, `migrate`.

use crate::program::{Ended, bq_guard, end, objects};
use serde_json::{Value, json};
use test_servers::Redis;

struct Operator(Redis);

impl Operator {
    fn start() -> Option<Self> {
        test_servers::redis().map(Self)
    }

    fn run(&self, arguments: &[&str]) -> Ended {
        end(bq_guard(arguments).env("BQ_GUARD_STORE", self.0.url()))
    }

    fn object(&self, arguments: &[&str]) -> Value {
        let ended = self.run(arguments);
        let mut objects = ended.objects();
        assert_eq!(objects.len(), 1, "{ended:?}");
        objects.remove(0)
    }
}

#[test]
fn an_id_is_remembered_seen_and_forgotten() {
    let Some(operator) = Operator::start() else {
        return;
    };
    let seen = |id: &str| operator.run(&["seen", id]);
    let id = "parcel 1:é";
    assert_eq!(
        (seen(id).status, seen(id).out()),
        (1, "parcel 1:é: not seen\n")
    );
    assert_eq!(
        operator.run(&["remember", id]).out(),
        "parcel 1:é: remembered\n"
    );
    assert_eq!((seen(id).status, seen(id).out()), (0, "parcel 1:é: seen\n"));
    assert_eq!(seen("parcel 1:e").status, 1);
    assert_eq!(
        operator
            .0
            .command::<String>(&["GET", "bq:idemp:parcel 1:é"]),
        "1"
    );

    let forgot = operator.run(&["forget", id]);
    assert_eq!(forgot.status, 0);
    assert!(
        forgot.out().starts_with("parcel 1:é: mark removed ("),
        "{}",
        forgot.out()
    );
    assert!(forgot.out().contains("13days 23h left"), "{}", forgot.out());
    assert_eq!(
        operator.run(&["forget", id]).out(),
        "parcel 1:é: no mark to remove\n"
    );
    assert_eq!(seen(id).status, 1);
}

#[test]
fn the_same_as_objects() {
    let Some(operator) = Operator::start() else {
        return;
    };
    assert_eq!(
        operator.object(&["seen", "a", "--json"]),
        json!({"id": "a", "seen": false})
    );
    assert_eq!(
        operator.object(&["remember", "a", "--json"]),
        json!({"id": "a", "remembered": true})
    );
    assert_eq!(
        operator.object(&["seen", "a", "--json"]),
        json!({"id": "a", "seen": true})
    );
    let inspected = operator.object(&["inspect", "a", "--json"]);
    assert_eq!(inspected["id"], "a");
    assert_eq!(inspected["lease"], Value::Null);
    let left = inspected["mark"]["left_ms"].as_u64().unwrap();
    assert!((1_209_500_000..=1_209_600_000).contains(&left), "{left}");
    let forgotten = operator.object(&["forget", "a", "--json"]);
    assert_eq!(forgotten["removed"], true);
    let forgotten = operator.object(&["forget", "a", "--json"]);
    assert_eq!(
        forgotten,
        json!({"id": "a", "removed": false, "mark": null, "lease": null})
    );
}

#[test]
fn a_lease_is_no_mark() {
    let Some(operator) = Operator::start() else {
        return;
    };
    let _: () = operator
        .0
        .command(&["SET", "bq:lease:a", "token", "PX", "30000"]);
    assert_eq!(operator.run(&["seen", "a"]).status, 1);
    let inspected = operator.run(&["inspect", "a"]);
    assert!(
        inspected.out().starts_with("a: in progress"),
        "{}",
        inspected.out()
    );
    operator.run(&["remember", "a"]);
    let forgot = operator.run(&["forget", "a"]);
    assert_eq!(forgot.status, 0);
    assert!(forgot.out().contains("mark removed"), "{}", forgot.out());
    assert!(
        forgot.out().contains("a worker is handling it"),
        "{}",
        forgot.out()
    );
    assert_eq!(
        operator.0.command::<String>(&["GET", "bq:lease:a"]),
        "token"
    );
}

#[test]
fn what_is_no_id_is_refused_or_harmless() {
    let Some(operator) = Operator::start() else {
        return;
    };
    let long = "x".repeat(2_049);
    for id in ["", &long] {
        for command in ["seen", "remember", "inspect"] {
            let ended = operator.run(&[command, id]);
            assert_eq!(ended.status, 2, "{command}");
            assert!(ended.err.contains("not usable as an id"), "{}", ended.err);
        }
        let ended = operator.run(&["forget", id]);
        assert_eq!(ended.status, 0, "forgetting refuses nothing: {}", ended.err);
        assert!(ended.out().contains("no mark to remove"));
    }
    assert_eq!(operator.0.command::<usize>(&["DBSIZE"]), 0);
}

#[test]
fn consumers_and_prefixes_are_apart() {
    let Some(operator) = Operator::start() else {
        return;
    };
    operator.run(&["remember", "a", "--consumer", "billing"]);
    operator.run(&[
        "remember",
        "a",
        "--prefix",
        "shop:",
        "--retention",
        "forever",
    ]);
    let keys = crate::program::sorted(operator.0.command(&["KEYS", "*"]));
    assert_eq!(keys, ["bq:idemp@billing:a", "shop:idemp:a"]);
    assert_eq!(operator.0.command::<i64>(&["PTTL", "shop:idemp:a"]), -1);
    assert_eq!(operator.run(&["seen", "a"]).status, 1);
    assert_eq!(
        operator.run(&["seen", "a", "--consumer", "billing"]).status,
        0
    );
    let listed = operator.run(&["list", "--consumer", "billing", "--json"]);
    assert_eq!(listed.objects().len(), 1);
    let listed = operator.run(&["inspect", "a", "--prefix", "shop:"]);
    assert!(listed.out().contains("lasts for ever"), "{}", listed.out());
}

#[test]
fn everything_is_listed_and_counted() {
    let Some(operator) = Operator::start() else {
        return;
    };
    for n in 0..700 {
        let key = format!("bq:idemp:parcel-{n}");
        let _: () = operator.0.command(&["SET", &key, "1", "PX", "600000"]);
    }
    let _: () = operator
        .0
        .command(&["SET", "bq:lease:parcel-x", "token", "PX", "60000"]);
    let _: () = operator.0.command(&["SET", "of-somebody-else", "1"]);

    let listed = operator.run(&["list", "--json"]);
    let all = listed.objects();
    let mut ids: Vec<_> = all.iter().map(|it| it["id"].as_str().unwrap()).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 701);
    let lease = all.iter().find(|it| it["kind"] == "lease").unwrap();
    assert_eq!(lease["id"], "parcel-x");
    assert!(lease["left_ms"].as_u64().unwrap() <= 60_000);

    let stats = operator.object(&["stats", "--json"]);
    assert_eq!(
        stats,
        json!({"marks": 700, "leases": 1, "steps": 0, "expired": 0})
    );
    assert!(
        operator
            .run(&["stats"])
            .out()
            .contains("marks           700")
    );
    assert_eq!(operator.object(&["gc", "--json"]), json!({"removed": 0}));
    assert_eq!(operator.run(&["migrate"]).status, 0);

    // Page by page, each from where the last one ended.
    let mut ids = Vec::new();
    let mut from = Vec::new();
    loop {
        let mut arguments = vec!["list", "--json", "--limit", "100"];
        arguments.extend(from.iter().map(String::as_str));
        let page = operator.run(&arguments);
        ids.extend(page.objects().iter().map(|it| it["id"].to_string()));
        let Some((_, next)) = page.err.split_once("--from ") else {
            break;
        };
        from = vec!["--from".to_owned(), next.trim().to_owned()];
    }
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 701);
}

#[test]
fn a_list_whose_reader_has_gone_ends_quietly() {
    let Some(operator) = Operator::start() else {
        return;
    };
    operator.run(&["remember", "a"]);
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = bq_guard(["list"]);
    command
        .env("BQ_GUARD_STORE", operator.0.url())
        .env("BQ_GUARD_LOG", "off");
    let ended = end(command.stdout(writer));
    assert_eq!((ended.status, &*ended.err), (0, ""));
}

#[test]
fn without_a_store_they_say_how_to_name_one() {
    for arguments in [
        &["seen", "a"][..],
        &["remember", "a"],
        &["forget", "a"],
        &["inspect", "a"],
        &["list"],
        &["stats"],
        &["gc"],
        &["migrate"],
    ] {
        let ended = end(&mut bq_guard(arguments));
        assert_eq!(ended.status, 2);
        assert!(ended.err.contains("BQ_GUARD_STORE"), "{}", ended.err);
    }
    // One in memory is empty, but if that is what is wanted…
    let ended = end(&mut bq_guard(["stats", "--json", "--store", "memory:"]));
    assert_eq!(objects(ended.out())[0]["marks"], 0);
}
