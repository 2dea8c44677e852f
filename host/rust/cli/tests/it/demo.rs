//! `demo`: the walkthrough.

use crate::program::{bq_guard, end};

/// The decisions and the charges so far, in order.
const SHOWN: [(&str, u32); 15] = [
    ("run", 1),
    ("skip", 1),
    ("skip", 1),
    ("skip", 1),
    ("skip", 1),
    ("run", 1),
    ("run", 2),
    ("skip", 2),
    ("run", 3),
    ("run", 4),
    ("run", 5),
    ("skip", 5),
    ("park", 5),
    ("run", 6),
    ("skip", 6),
];

fn shows_it(out: &str) {
    let shown: Vec<(&str, u32)> = out
        .lines()
        .filter(|line| line.starts_with("  order "))
        .map(|line| {
            let words: Vec<_> = line.split_whitespace().collect();
            (words[2], words[words.len() - 2].parse().unwrap())
        })
        .collect();
    assert_eq!(shown, SHOWN, "{out}");
    assert!(out.contains("15 deliveries, 6 charges"), "{out}");
    assert!(!out.contains('\u{1b}'), "no colour in a pipe");
}

#[test]
fn in_memory() {
    let ended = end(&mut bq_guard(["demo"]));
    assert_eq!((ended.status, &*ended.err), (0, ""));
    shows_it(ended.out());
}

#[test]
fn on_redis_as_often_as_one_likes() {
    let Some(redis) = test_servers::redis() else {
        return;
    };
    for _ in 0..2 {
        let ended = end(&mut bq_guard(["demo", "--store", &redis.url()]));
        assert_eq!(ended.status, 0, "{}", ended.err);
        shows_it(ended.out());
        assert_eq!(redis.command::<usize>(&["DBSIZE"]), 0, "it leaves nothing");
    }
}
