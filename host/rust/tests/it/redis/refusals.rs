//! What the server refuses: credentials, permissions, types.

use super::{rejected, store};
use babelqueue_guard::redis::{Connection, RedisError, cmd};
use babelqueue_guard::store::redis::{RedisSettings, RedisStore};
use babelqueue_guard::store::url::ConnectError;
use babelqueue_guard::{ClaimOutcome, Claims, Guard, Hold, Inventory, Marker, Store, StoreError};
use test_servers::Redis;

async fn refused(url: &str) -> StoreError {
    match RedisStore::connect(url, &RedisSettings::default()).await {
        Err(ConnectError::Store(error)) => error,
        other => panic!("{other:?}"),
    }
}

fn with_password(redis: &Redis, credentials: &str) -> String {
    format!("redis://{credentials}@{}", redis.address())
}

fn connection(url: &str) -> Connection {
    babelqueue_guard::redis::Client::open(url)
        .unwrap()
        .get_connection()
        .unwrap()
}

#[tokio::test]
async fn wrong_credentials_are_rejected_and_never_shown() {
    let Some(redis) = Redis::start(&["--requirepass", "s3cret"]) else {
        return;
    };
    for (url, reason) in [
        (redis.url(), "NOAUTH"),
        (with_password(&redis, ":wr0ng"), "WRONGPASS"),
        (with_password(&redis, "nobody:s3cret"), "WRONGPASS"),
    ] {
        let error = refused(&url).await;
        let text = error.to_string();
        assert!(matches!(error, StoreError::Rejected(_)), "{text}");
        assert!(text.contains(reason), "{text}");
        assert!(text.contains(&redis.address()), "{text}");
        assert!(
            !text.contains("s3cret") && !text.contains("wr0ng"),
            "{text}"
        );
    }
    let url = with_password(&redis, ":s3cret");
    let store = RedisStore::connect(&url, &RedisSettings::default())
        .await
        .unwrap();
    store.remember("a").await.unwrap();
    assert!(!format!("{store:?}").contains("s3cret"));

    // A store that is open hears of it with its next request.
    let () = cmd("CONFIG")
        .arg(&["SET", "requirepass", "another"])
        .query(&mut connection(&url))
        .unwrap();
    let () = cmd("CLIENT")
        .arg(&["KILL", "TYPE", "normal"])
        .query(&mut connection(&with_password(&redis, ":another")))
        .unwrap();
    assert!(rejected(store.seen("a").await).contains("WRONGPASS"));
}

#[tokio::test]
async fn a_server_with_too_many_clients_is_unavailable_whatever_the_password() {
    let Some(redis) = Redis::start(&["--requirepass", "s3cret", "--maxclients", "1"]) else {
        return;
    };
    let url = with_password(&redis, ":s3cret");
    let only = connection(&url);
    for url in [&url, &redis.url()] {
        let error = refused(url).await;
        assert!(error.is_retryable(), "{error}");
    }
    drop(only);
    loop {
        // The server notices the end of a connection in its own time.
        match RedisStore::connect(&url, &RedisSettings::default()).await {
            Ok(store) => return store.remember("a").await.unwrap(),
            Err(ConnectError::Store(error)) => assert!(error.is_retryable(), "{error}"),
            Err(other) => panic!("{other}"),
        }
    }
}

#[tokio::test]
async fn another_database_is_another_place() {
    let Some(redis) = test_servers::redis() else {
        return;
    };
    let zero = store(&redis, &RedisSettings::default()).await;
    let three = RedisStore::connect(&format!("{}/3", redis.url()), &RedisSettings::default())
        .await
        .unwrap();
    three.remember("a").await.unwrap();
    assert!(!zero.seen("a").await.unwrap());
    let error = refused(&format!("{}/99", redis.url())).await;
    assert!(!error.is_retryable(), "{error}");
}

/// A user who may do what the module's documentation says and nothing else.
fn with_user(redis: &Redis, name: &str, rules: &[&str]) -> String {
    let mut words = vec!["ACL", "SETUSER", name, "on", ">pw", "~bq:*"];
    words.extend(rules);
    let () = redis.command(&words);
    with_password(redis, &format!("{name}:pw"))
}

const SEEN: [&str; 3] = ["+get", "+set", "+getdel"];

#[tokio::test]
async fn a_user_with_the_documented_permissions_can_do_everything() {
    let Some(redis) = test_servers::redis() else {
        return;
    };
    let plain = with_user(&redis, "plain", &SEEN);
    let plain = RedisStore::connect(&plain, &RedisSettings::default())
        .await
        .unwrap();
    assert_eq!(plain.concerns().await.unwrap(), [] as [String; 0]);
    plain.remember("a").await.unwrap();
    assert!(plain.seen("a").await.unwrap());
    plain.forget("a").await.unwrap();
    assert!(plain.set_once("a", "count").await.unwrap());
    assert!(!plain.set_once("a", "count").await.unwrap());

    let claims = ["+pttl", "+eval", "+del", "+pexpire"];
    let claiming = with_user(&redis, "claiming", &[&SEEN[..], &claims].concat());
    let claiming = RedisStore::connect(&claiming, &RedisSettings::default())
        .await
        .unwrap();
    let ClaimOutcome::Won(lease) = claiming.claim("b").await.unwrap() else {
        panic!("not won");
    };
    let token = &lease.token;
    assert_eq!(claiming.renew("b", token).await.unwrap(), Hold::Held);
    assert_eq!(claiming.complete("b", token).await.unwrap(), Hold::Held);

    assert!(rejected(claiming.stats().await).contains("scan"));
    let listing = with_user(
        &redis,
        "listing",
        &[&SEEN[..], &["+scan", "+pttl"]].concat(),
    );
    let listing = RedisStore::connect(&listing, &RedisSettings::default())
        .await
        .unwrap();
    assert_eq!(listing.stats().await.unwrap().marks, 1);
    assert_eq!(listing.list(None, 10).await.unwrap().entries.len(), 1);
}

#[tokio::test]
async fn a_claim_without_the_permission_for_scripts_is_rejected_before_anything_runs() {
    let Some(redis) = test_servers::redis() else {
        return;
    };
    for missing in ["eval", "del", "pexpire"] {
        let without = ["+pttl", "+eval", "+del", "+pexpire", &format!("-{missing}")];
        let url = with_user(&redis, missing, &[&SEEN[..], &without].concat());
        let store = RedisStore::connect(&url, &RedisSettings::default())
            .await
            .unwrap();
        let guard = Guard::claiming(store).unwrap();
        let body = br#"{"meta":{"id":"a"}}"#;
        let handler = async |_context| -> Result<(), RedisError> { panic!("it ran") };
        let error = guard.process(&body[..], handler).await.unwrap_err();
        assert_eq!(error.class(), "rejected", "{error}");
        let text = error.to_string();
        assert!(text.contains(missing), "{text}");
        let leases: Vec<String> = redis.command(&["KEYS", "bq:lease:a"]);
        assert!(leases.is_empty());
    }
}

#[tokio::test]
async fn keys_out_of_a_users_reach_are_rejected_by_name() {
    let Some(redis) = test_servers::redis() else {
        return;
    };
    let () = redis.command(&["ACL", "SETUSER", "u", "on", ">pw", "~other:*", "+@all"]);
    let url = with_password(&redis, "u:pw");
    let store = RedisStore::connect(&url, &RedisSettings::default())
        .await
        .unwrap();
    let text = rejected(store.seen("a").await);
    assert!(text.contains("bq:idemp:a"), "{text}");
}

#[tokio::test]
async fn scripts_survive_a_flush() {
    let Some(redis) = test_servers::redis() else {
        return;
    };
    let store = store(&redis, &RedisSettings::default()).await;
    let ClaimOutcome::Won(lease) = store.claim("a").await.unwrap() else {
        panic!("not won");
    };
    for _ in 0..2 {
        let () = redis.command(&["SCRIPT", "FLUSH"]);
        assert_eq!(store.renew("a", &lease.token).await.unwrap(), Hold::Held);
    }
    let () = redis.command(&["SCRIPT", "FLUSH"]);
    assert_eq!(store.complete("a", &lease.token).await.unwrap(), Hold::Held);
}

#[tokio::test]
async fn another_type_under_a_key_is_rejected_by_name_and_left_alone() {
    let Some(redis) = test_servers::redis() else {
        return;
    };
    let store = store(&redis, &RedisSettings::default()).await;
    store.claim("warm").await.unwrap();
    for key in ["bq:idemp:a", "bq:lease:b", "bq:once:count:c"] {
        let () = redis.command(&["HSET", key, "field", "value"]);
    }

    let mark = [
        rejected(store.seen("a").await),
        rejected(store.remember("a").await),
        rejected(store.forget("a").await),
        rejected(store.claim("a").await),
        rejected(store.complete("a", "token").await),
        rejected(store.inspect("a").await),
    ];
    for text in mark {
        assert!(text.contains(r#""bq:idemp:a""#), "{text}");
        assert!(text.contains(&redis.address()), "{text}");
    }
    // The claim that found it has been given back.
    assert_eq!(redis.command::<i64>(&["EXISTS", "bq:lease:a"]), 0);

    let lease = [
        rejected(store.claim("b").await),
        rejected(store.renew("b", "token").await),
        rejected(store.release("b", "token").await),
    ];
    for text in lease {
        assert!(text.contains(r#""bq:lease:b""#), "{text}");
    }
    assert!(!store.seen("b").await.unwrap());
    // The mark counts whatever becomes of the lease.
    store.complete("b", "token").await.unwrap();
    assert!(store.seen("b").await.unwrap());
    assert!(rejected(store.set_once("c", "count").await).contains(r#""bq:once:count:c""#));

    for key in ["bq:idemp:a", "bq:lease:b", "bq:once:count:c"] {
        let value: String = redis.command(&["HGET", key, "field"]);
        assert_eq!(value, "value", "{key}");
    }
    let stats = store.stats().await.unwrap();
    assert_eq!((stats.marks, stats.leases, stats.steps), (1, 1, 0));
}

#[tokio::test]
async fn a_server_that_may_forget_is_a_concern() {
    let Some(redis) = Redis::start(&["--maxmemory-policy", "allkeys-lru"]) else {
        return;
    };
    let concerns = store(&redis, &RedisSettings::default())
        .await
        .concerns()
        .await
        .unwrap();
    assert_eq!(concerns.len(), 2, "{concerns:?}");
    assert!(concerns[0].contains("allkeys-lru"), "{concerns:?}");
    assert!(concerns[1].contains("appendonly"), "{concerns:?}");
    let () = redis.command(&["CONFIG", "SET", "maxmemory-policy", "noeviction"]);
    let () = redis.command(&["CONFIG", "SET", "save", "60 1"]);
    let concerns = store(&redis, &RedisSettings::default())
        .await
        .concerns()
        .await
        .unwrap();
    assert_eq!(concerns, [] as [String; 0]);
}
