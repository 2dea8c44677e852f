//! What the store writes, and what it reads of others, by a plain client.

use super::{rejected, store};
use babelqueue_guard::settings::{Consumer, LeaseLength, Retention};
use babelqueue_guard::store::inventory::Kind;
use babelqueue_guard::store::redis::{RedisSettings, RedisStore};
use babelqueue_guard::store::url::UrlSettings;
use babelqueue_guard::{ClaimOutcome, Claims, Hold, Inventory, Marker, Store};
use std::collections::BTreeSet;
use std::time::Duration;
use test_servers::Redis;

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

#[tokio::test]
async fn it_is_the_same_by_socket_and_by_the_newer_protocol() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("redis.sock").display().to_string();
    let Some(redis) = Redis::start(&["--unixsocket", &socket]) else {
        return;
    };
    for url in [
        format!("redis+unix://{socket}"),
        format!("{}?protocol=resp3", redis.url()),
    ] {
        let store = RedisStore::connect(&url, &settings()).await.unwrap();
        assert_eq!(store.concerns().await.unwrap().len(), 1, "{url}");
        assert!(!store.seen(&url).await.unwrap());
        let ClaimOutcome::Won(lease) = store.claim(&url).await.unwrap() else {
            panic!("not won");
        };
        assert!(matches!(
            store.claim(&url).await.unwrap(),
            ClaimOutcome::Busy(_)
        ));
        let held = store.complete(&url, &lease.token).await.unwrap();
        assert_eq!(held, Hold::Held);
        assert!(store.seen(&url).await.unwrap());
        assert!(store.set_once(&url, "count").await.unwrap());
        assert!(!store.set_once(&url, "count").await.unwrap());
        store.forget(&url).await.unwrap();
    }
}

#[tokio::test]
async fn a_url_leads_to_the_store_with_its_settings() {
    let Some(redis) = test_servers::redis() else {
        return;
    };
    let mut settings = UrlSettings::default();
    settings.prefix = Some("p:".into());
    settings.consumer = Some(Consumer::named("mail").unwrap());
    settings.retention = Retention::Forever;
    for scheme in ["redis", "valkey"] {
        let url = format!("{scheme}://{}/1", redis.address());
        let store = babelqueue_guard::store::url::connect(&url, &settings)
            .await
            .unwrap();
        store.remember(scheme).await.unwrap();
        let url = format!("{}/1", redis.url());
        let left: i64 = babelqueue_guard::redis::cmd("PTTL")
            .arg(format!("p:idemp@mail:{scheme}"))
            .query(&mut babelqueue_guard::redis::Client::open(url).unwrap())
            .unwrap();
        assert_eq!(left, -1);
    }
}

#[tokio::test]
async fn an_operator_is_told_what_is_there() {
    let Some(redis) = test_servers::redis() else {
        return;
    };
    let store = store(&redis, &settings()).await;
    for n in 0..25 {
        store.remember(&format!("mark-{n}")).await.unwrap();
    }
    store.claim("mark-0").await.unwrap();
    store.remember("both").await.unwrap();
    let () = redis.command(&["SET", "bq:lease:both", "token", "PX", "60000"]);
    assert!(store.set_once("a", "count").await.unwrap());
    // Of others, of another consumer, and of another type.
    let () = redis.command(&["SET", "bq:other", "1"]);
    let () = redis.command(&["SET", "bq:idemp@mail:a", "1"]);
    let () = redis.command(&["HSET", "bq:idemp:hash", "field", "value"]);

    let stats = store.stats().await.unwrap();
    assert_eq!(
        (stats.marks, stats.leases, stats.steps, stats.expired),
        (26, 1, 1, 0)
    );
    for limit in [1, 7, 1_000] {
        let mut listed = BTreeSet::new();
        let mut from: Option<String> = None;
        loop {
            let page = store.list(from.as_deref(), limit).await.unwrap();
            for entry in page.entries {
                let left = entry.left.unwrap();
                assert!(left <= Duration::from_secs(90), "{entry:?}");
                listed.insert((entry.id, entry.kind));
            }
            match page.next {
                Some(next) => from = Some(next),
                None => break,
            }
        }
        assert_eq!(listed.len(), 27, "{limit} at a time");
        assert!(listed.contains(&("both".into(), Kind::Lease)));
    }
    assert!(store.list(Some("nonsense"), 1).await.is_err());

    let [mark, lease] = &store.inspect("both").await.unwrap()[..] else {
        panic!("not both");
    };
    assert_eq!((mark.kind, lease.kind), (Kind::Mark, Kind::Lease));
    let whole = mark.age.unwrap() + mark.left.unwrap();
    assert_eq!(whole, Duration::from_secs(90));
    assert_eq!(lease.age, None, "somebody else's is of another length");
    assert_eq!(store.inspect("nobody").await.unwrap(), []);
    assert_eq!(store.collect(10).await.unwrap(), 0);
    assert!(store.migrate().await.unwrap().contains("nothing"));
}

#[test]
fn a_store_outlives_the_runtime_that_opened_it() {
    let Some(redis) = test_servers::redis() else {
        return;
    };
    let runtime = || {
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap()
    };
    let store = runtime().block_on(store(&redis, &RedisSettings::default()));
    for _ in 0..3 {
        runtime().block_on(async {
            store.remember("a").await.unwrap();
            assert!(store.seen("a").await.unwrap());
        });
    }
}
