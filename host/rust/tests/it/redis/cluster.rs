//! A cluster of three nodes, with slots that move in the middle of the work.

use super::{as_in_suite, impatient, rejected};
use babelqueue_guard::redis::cluster::ClusterClient;
use babelqueue_guard::store::inventory::Kind;
use babelqueue_guard::store::redis::{RedisSettings, RedisStore};
use babelqueue_guard::suite;
use babelqueue_guard::{ClaimOutcome, Claims, Hold, Inventory, Marker, Store};
use futures_util::future::join_all;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;
use test_servers::RedisCluster;
use tokio::task::spawn_blocking;
use tokio::time::sleep;

fn url(cluster: &RedisCluster) -> String {
    format!("redis+cluster://{}", cluster.addresses())
}

async fn store(cluster: &RedisCluster, settings: &RedisSettings) -> RedisStore {
    RedisStore::connect(&url(cluster), settings).await.unwrap()
}

async fn won(store: &RedisStore, id: &str) -> String {
    match store.claim(id).await.unwrap() {
        ClaimOutcome::Won(lease) => lease.token,
        other => panic!("{id}: {other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn passes_the_suites_and_lists_all_nodes() {
    let Some(cluster) = RedisCluster::start(3, &[]) else {
        return;
    };
    let make = async |settings| store(&cluster, &as_in_suite(settings)).await;
    suite::check_store(make).await;
    suite::check_claims(make).await;
    suite::check_steps(make).await;

    // One address is enough to find the others.
    let mut settings = RedisSettings::default();
    settings.prefix = "listed:".into();
    let one = format!("redis+cluster://{}", cluster.nodes()[2].address());
    let store = RedisStore::connect(&one, &settings).await.unwrap();
    for n in 0..60 {
        store.remember(&format!("mark-{n}")).await.unwrap();
    }
    won(&store, "lease").await;
    assert!(store.set_once("a", "count").await.unwrap());
    let stats = store.stats().await.unwrap();
    assert_eq!((stats.marks, stats.leases, stats.steps), (60, 1, 1));
    let mut marks = BTreeSet::new();
    let mut from = None;
    loop {
        let page = store.list(from.as_deref(), 10).await.unwrap();
        marks.extend(
            page.entries
                .into_iter()
                .filter(|entry| entry.kind == Kind::Mark)
                .map(|entry| entry.id),
        );
        match page.next {
            Some(next) => from = Some(next),
            None => break,
        }
    }
    assert_eq!(marks.len(), 60);

    // A client of the user's own, with the crate's usual repetitions.
    let client = ClusterClient::new(vec![cluster.nodes()[0].url()]).unwrap();
    let own = RedisStore::new(client, &settings).unwrap();
    assert!(own.seen("mark-7").await.unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn each_call_follows_a_slot_that_is_moving() {
    let Some(cluster) = RedisCluster::start(3, &[]) else {
        return;
    };
    let store = store(&cluster, &RedisSettings::default()).await;
    // In one slot: mark and lease, and a step's mark that is not there yet.
    let id = "{moving}a";
    let slot = cluster.slot("{moving}");
    let to = (cluster.owner(slot) + 1) % 3;
    store.remember("{moving}marked").await.unwrap();
    let token = won(&store, "{moving}leased").await;

    cluster.begin_move(slot, to);
    // What is there is asked of the old node, what is not of the new one.
    assert!(store.seen("{moving}marked").await.unwrap());
    assert!(!store.seen(id).await.unwrap());
    let new = won(&store, id).await;
    assert!(matches!(
        store.claim(id).await.unwrap(),
        ClaimOutcome::Busy(_)
    ));
    assert_eq!(store.renew(id, &new).await.unwrap(), Hold::Held);
    assert_eq!(store.complete(id, &new).await.unwrap(), Hold::Held);
    assert!(store.seen(id).await.unwrap());
    assert!(store.set_once(id, "count").await.unwrap());
    assert!(!store.set_once(id, "count").await.unwrap());
    let held = store.renew("{moving}leased", &token).await.unwrap();
    assert_eq!(held, Hold::Held);

    cluster.move_keys(slot, to);
    assert!(store.seen("{moving}marked").await.unwrap());
    assert!(matches!(
        store.claim("{moving}leased").await.unwrap(),
        ClaimOutcome::Busy(_)
    ));
    cluster.end_move(slot, to);
    assert!(store.seen("{moving}marked").await.unwrap());
    let held = store.release("{moving}leased", &token).await.unwrap();
    assert_eq!(held, Hold::Held);
    store.forget(id).await.unwrap();
    assert!(!store.seen(id).await.unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn no_two_claims_win_and_no_mark_is_lost_while_a_slot_moves_to_and_fro() {
    let Some(cluster) = RedisCluster::start(3, &[]) else {
        return;
    };
    let store = store(&cluster, &RedisSettings::default()).await;
    let slot = cluster.slot("{moving}");
    let moving = Arc::new(AtomicBool::new(true));

    let workers = (0..8).map(|_| {
        let (store, moving) = (store.clone(), moving.clone());
        async move {
            let mut effects = Vec::new();
            for n in 0.. {
                if !moving.load(Ordering::Acquire) {
                    break;
                }
                let id = format!("{{moving}}{}", n % 2_000);
                // Anything but an answer is tried again, as a queue would.
                match store.claim(&id).await {
                    Ok(ClaimOutcome::Won(lease)) => {
                        effects.push(id.clone());
                        while let Err(error) = store.complete(&id, &lease.token).await {
                            assert!(error.is_retryable(), "{error}");
                        }
                    }
                    Ok(ClaimOutcome::Busy(_) | ClaimOutcome::Done) => {}
                    Err(error) => assert!(error.is_retryable(), "{error}"),
                }
            }
            effects
        }
    });
    let workers: Vec<_> = workers.map(tokio::spawn).collect();
    let cluster = spawn_blocking(move || {
        for _ in 0..6 {
            let to = (cluster.owner(slot) + 1) % 3;
            cluster.begin_move(slot, to);
            std::thread::sleep(Duration::from_millis(100));
            cluster.move_keys(slot, to);
            cluster.end_move(slot, to);
            std::thread::sleep(Duration::from_millis(100));
        }
        cluster
    })
    .await
    .unwrap();
    moving.store(false, Ordering::Release);
    let effects: Vec<String> = join_all(workers)
        .await
        .into_iter()
        .flat_map(Result::unwrap)
        .collect();
    let distinct: BTreeSet<_> = effects.iter().collect();
    assert!(!effects.is_empty());
    assert_eq!(distinct.len(), effects.len(), "an id was handled twice");
    for id in distinct {
        assert!(store.seen(id).await.unwrap(), "{id}");
    }
    drop(cluster);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_is_down_takes_its_slots_and_gives_them_back() {
    let durable = ["--appendonly", "yes", "--appendfsync", "always"];
    let whole = ["--cluster-require-full-coverage", "no"];
    let Some(mut cluster) = RedisCluster::start(3, &[&durable[..], &whole].concat()) else {
        return;
    };
    let store = store(&cluster, &RedisSettings::default()).await;
    let ids: Vec<String> = (0..30).map(|n| format!("id-{n}")).collect();
    for id in &ids {
        store.remember(id).await.unwrap();
    }
    cluster.nodes_mut()[1].kill();
    let down = AtomicUsize::new(0);
    for id in &ids {
        match store.seen(id).await {
            Ok(seen) => assert!(seen),
            Err(error) => {
                assert!(error.is_retryable(), "{error}");
                down.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
    assert!(down.into_inner() > 0, "the node had none of the slots");
    cluster.nodes_mut()[1].restart();
    for id in &ids {
        loop {
            match store.seen(id).await {
                Ok(seen) => break assert!(seen),
                Err(error) => assert!(error.is_retryable(), "{error}"),
            }
            sleep(Duration::from_millis(50)).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_hangs_is_unavailable_and_goes_on() {
    let Some(cluster) = RedisCluster::start(3, &[]) else {
        return;
    };
    let store = store(&cluster, &impatient()).await;
    let id = "a";
    store.remember(id).await.unwrap();
    let owner = cluster.owner(cluster.slot("bq:idemp:a"));
    cluster.nodes()[owner].pause();
    let error = store.seen(id).await.unwrap_err();
    assert!(error.is_retryable(), "{error}");
    cluster.nodes()[owner].resume();
    loop {
        match store.seen(id).await {
            Ok(seen) => break assert!(seen),
            Err(error) => assert!(error.is_retryable(), "{error}"),
        }
        sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn types_and_passwords_are_refused_as_by_one_server() {
    let Some(cluster) = RedisCluster::start(3, &[]) else {
        return;
    };
    let store = store(&cluster, &RedisSettings::default()).await;
    for key in ["bq:idemp:a", "bq:lease:b", "bq:once:count:c"] {
        let node = &cluster.nodes()[cluster.owner(cluster.slot(key))];
        let () = node.command(&["HSET", key, "field", "value"]);
    }
    for text in [
        rejected(store.seen("a").await),
        rejected(store.remember("a").await),
        rejected(store.claim("a").await),
        rejected(store.complete("a", "token").await),
    ] {
        assert!(text.contains(r#""bq:idemp:a""#), "{text}");
    }
    assert!(rejected(store.claim("b").await).contains(r#""bq:lease:b""#));
    assert!(rejected(store.set_once("c", "count").await).contains(r#""bq:once:count:c""#));
    let node = &cluster.nodes()[cluster.owner(cluster.slot("bq:lease:a"))];
    assert_eq!(node.command::<i64>(&["EXISTS", "bq:lease:a"]), 0);

    for node in cluster.nodes() {
        let () = node.command(&["CONFIG", "SET", "requirepass", "s3cret"]);
    }
    let wrong = format!("redis+cluster://:wr0ng@{}", cluster.addresses());
    let error = RedisStore::connect(&wrong, &RedisSettings::default())
        .await
        .unwrap_err();
    let text = error.to_string();
    assert!(text.contains("rejected"), "{text}");
    assert!(!text.contains("wr0ng"), "{text}");
    let own = format!("redis://:wr0ng@{}", cluster.nodes()[0].address());
    let own = RedisStore::new(
        ClusterClient::new(vec![own]).unwrap(),
        &RedisSettings::default(),
    )
    .unwrap();
    rejected(own.seen("a").await);
    let right = format!("redis+cluster://:s3cret@{}", cluster.addresses());
    let store = RedisStore::connect(&right, &RedisSettings::default())
        .await
        .unwrap();
    store.remember("d").await.unwrap();
}
