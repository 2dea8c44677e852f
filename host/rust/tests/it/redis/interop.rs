//! What the store writes, and what it reads of others, by a plain client.

use super::{rejected, store};
use babelqueue_guard::settings::{Consumer, LeaseLength, Retention};
use babelqueue_guard::store::redis::RedisSettings;
use babelqueue_guard::{ClaimOutcome, Claims, Hold, Marker, Store};
use std::collections::BTreeSet;
use std::time::Duration;

fn settings() -> RedisSettings {
    let mut settings = RedisSettings::default();
    settings.retention = Retention::of(Duration::from_millis(90_000)).unwrap();
    settings.lease = LeaseLength::of(Duration::from_millis(1_234)).unwrap();
    settings
}

#[tokio::test]
async fn a_plain_client_finds_what_the_contract_says() {
    let Some(redis) = test_servers::redis() else {
        return;
    };
    let store = store(&redis, &settings()).await;
    let left = |key: &str| redis.command::<i64>(&["PTTL", key]);
    let text = |key: &str| redis.command::<Option<String>>(&["GET", key]);

    store.remember("a").await.unwrap();
    assert_eq!(text("bq:idemp:a").as_deref(), Some("1"));
    assert!((80_000..=90_000).contains(&left("bq:idemp:a")));

    let ClaimOutcome::Won(lease) = store.claim("b").await.unwrap() else {
        panic!("not won");
    };
    assert_eq!(lease.length_ms, 1_234);
    assert_eq!(text("bq:lease:b").as_deref(), Some(lease.token.as_str()));
    assert!((1..=1_234).contains(&left("bq:lease:b")));
    assert_eq!(text("bq:idemp:b"), None);
    store.complete("b", &lease.token).await.unwrap();
    assert_eq!(text("bq:lease:b"), None);
    assert_eq!(text("bq:idemp:b").as_deref(), Some("1"));
    assert!((80_000..=90_000).contains(&left("bq:idemp:b")));

    assert!(store.set_once("c", "count").await.unwrap());
    assert_eq!(text("bq:once:count:c").as_deref(), Some("1"));
    assert!((80_000..=90_000).contains(&left("bq:once:count:c")));

    store.forget("a").await.unwrap();
    let keys: BTreeSet<String> = redis.command(&["KEYS", "*"]);
    let expected = ["bq:idemp:b", "bq:once:count:c"];
    assert_eq!(keys, BTreeSet::from(expected.map(str::to_owned)));
}

#[tokio::test]
async fn marks_and_leases_of_others_are_recognised() {
    let Some(redis) = test_servers::redis() else {
        return;
    };
    let store = store(&redis, &settings()).await;

    let () = redis.command(&["SET", "bq:idemp:a", "1", "PX", "60000"]);
    assert!(store.seen("a").await.unwrap());
    assert_eq!(store.claim("a").await.unwrap(), ClaimOutcome::Done);
    // Any text is a mark, and one without an end is too.
    let () = redis.command(&["SET", "bq:idemp:b", ""]);
    assert!(store.seen("b").await.unwrap());

    let () = redis.command(&["SET", "bq:lease:c", "another", "PX", "60000"]);
    assert!(!store.seen("c").await.unwrap());
    let ClaimOutcome::Busy(left) = store.claim("c").await.unwrap() else {
        panic!("not busy");
    };
    assert!((50_000..=60_000).contains(&left), "{left}");
    assert_eq!(store.renew("c", "another").await.unwrap(), Hold::Held);
    let left: i64 = redis.command(&["PTTL", "bq:lease:c"]);
    assert!((1..=1_234).contains(&left), "{left}");
    assert_eq!(store.release("c", "another").await.unwrap(), Hold::Held);

    let () = redis.command(&["SET", "bq:once:count:d", "1"]);
    assert!(!store.set_once("d", "count").await.unwrap());
}

#[tokio::test]
async fn remembering_restarts_the_retention_and_forever_has_no_end() {
    let Some(redis) = test_servers::redis() else {
        return;
    };
    let () = redis.command(&["SET", "bq:idemp:a", "1", "PX", "1000"]);
    store(&redis, &settings())
        .await
        .remember("a")
        .await
        .unwrap();
    let left: i64 = redis.command(&["PTTL", "bq:idemp:a"]);
    assert!(left > 80_000, "{left}");

    let mut forever = settings();
    forever.retention = Retention::Forever;
    let store = store(&redis, &forever).await;
    store.remember("a").await.unwrap();
    let ClaimOutcome::Won(lease) = store.claim("b").await.unwrap() else {
        panic!("not won");
    };
    store.complete("b", &lease.token).await.unwrap();
    for key in ["bq:idemp:a", "bq:idemp:b"] {
        assert_eq!(redis.command::<i64>(&["PTTL", key]), -1, "{key}");
    }
    let refusal = rejected(store.set_once("c", "count").await);
    assert!(
        refusal.contains(&redis.address()) && refusal.contains("steps need a retention"),
        "{refusal}"
    );
    assert_eq!(redis.command::<i64>(&["EXISTS", "bq:once:count:c"]), 0);
}

#[tokio::test]
async fn prefixes_and_consumers_never_meet() {
    let Some(redis) = test_servers::redis() else {
        return;
    };
    let mut stores = Vec::new();
    for (prefix, consumer) in [
        ("bq:", None),
        ("bq:", Some("mail")),
        ("bq:", Some("mail2")),
        ("other*[x]:", None),
        ("", None),
    ] {
        let mut settings = settings();
        settings.prefix = prefix.into();
        settings.consumer = consumer.map(|name| Consumer::named(name).unwrap());
        stores.push(store(&redis, &settings).await);
    }
    for id in ["a", "@mail:a", ":a", "idemp:a"] {
        for store in &stores {
            assert!(!store.seen(id).await.unwrap(), "{store:?} {id}");
            assert!(matches!(
                store.claim(id).await.unwrap(),
                ClaimOutcome::Won(_)
            ));
            assert!(store.set_once(id, "mail").await.unwrap());
            store.remember(id).await.unwrap();
        }
    }
}

#[tokio::test]
async fn ids_go_into_keys_byte_by_byte() {
    let Some(redis) = test_servers::redis() else {
        return;
    };
    let store = store(&redis, &settings()).await;
    let odd = (1..=0x7f_u8)
        .map(|byte| char::from(byte).to_string())
        .chain(
            [
                "é",
                "e\u{301}",
                "\u{fffd}",
                "\u{10ffff}",
                "a\r\nDEL x",
                "{a}b",
                " ",
            ]
            .map(Into::into),
        );
    for id in odd {
        store.remember(&id).await.unwrap();
        let key = [b"bq:idemp:", id.as_bytes()].concat();
        let found: i64 = babelqueue_guard::redis::cmd("EXISTS")
            .arg(key)
            .query(&mut redis.connection())
            .unwrap();
        assert_eq!(found, 1, "{id:?}");
    }
}
