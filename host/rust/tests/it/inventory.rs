//! What an operator may ask of a store, alike for every store that has tables.

use babelqueue_guard::ClaimOutcome;
use babelqueue_guard::store::inventory::{Entry, Inventory, Kind};
use std::collections::BTreeSet;
use std::time::Duration;

/// Counts, lists, inspects and collects in an empty store whose marks last a
/// second and whose leases last a minute.
pub(crate) async fn check(store: &impl Inventory) {
    let stats = store.stats().await.unwrap();
    assert_eq!((stats.marks, stats.leases, stats.steps), (0, 0, 0));
    for n in 0..7 {
        store.remember(&format!("mark-{n}")).await.unwrap();
    }
    for n in 0..3 {
        let claimed = store.claim(&format!("lease-{n}")).await.unwrap();
        assert!(matches!(claimed, ClaimOutcome::Won(_)));
    }
    store.remember("lease-0").await.unwrap();
    assert!(store.set_once("mark-0", "count").await.unwrap());

    let stats = store.stats().await.unwrap();
    assert_eq!((stats.marks, stats.leases, stats.steps), (8, 3, 1));
    assert_eq!(stats.expired, 0);

    for limit in [1, 2, 3, 7, 8, 100] {
        let listed = list(store, limit).await;
        assert_eq!(listed.len(), 11, "each once, {limit} at a time");
        let marks = listed.iter().filter(|entry| entry.kind == Kind::Mark);
        let leases = listed.iter().filter(|entry| entry.kind == Kind::Lease);
        let ids: BTreeSet<_> = marks.map(|entry| entry.id.as_str()).collect();
        assert_eq!(ids.len(), 8);
        assert!(ids.contains("lease-0") && ids.contains("mark-6"));
        assert_eq!(leases.count(), 3);
    }
    assert!(store.list(Some("nonsense"), 1).await.is_err());

    let both = store.inspect("lease-0").await.unwrap();
    let kinds: Vec<_> = both.iter().map(|entry| entry.kind).collect();
    assert_eq!(kinds, [Kind::Mark, Kind::Lease]);
    for (entry, length) in both.iter().zip([1, 60]) {
        let (age, left) = (entry.age.unwrap(), entry.left.unwrap());
        assert!(left <= Duration::from_secs(length), "{entry:?}");
        assert!(age + left <= Duration::from_secs(length + 1), "{entry:?}");
    }
    assert_eq!(store.inspect("nobody").await.unwrap(), []);

    tokio::time::sleep(Duration::from_millis(1_300)).await;
    let stats = store.stats().await.unwrap();
    assert_eq!((stats.marks, stats.leases, stats.steps), (0, 3, 0));
    assert_eq!(stats.expired, 9);
    assert_eq!(list(store, 4).await.len(), 3, "only what is live is listed");
    assert_eq!(store.collect(5).await.unwrap(), 5);
    assert_eq!(store.collect(5).await.unwrap(), 4, "the rest");
    assert_eq!(store.collect(5).await.unwrap(), 0);
    let stats = store.stats().await.unwrap();
    assert_eq!((stats.leases, stats.expired), (3, 0), "what is live stays");
}

async fn list(store: &impl Inventory, limit: u32) -> Vec<Entry> {
    let mut listed = Vec::new();
    let mut from: Option<String> = None;
    loop {
        let page = store.list(from.as_deref(), limit).await.unwrap();
        assert!(page.entries.len() <= limit as usize);
        listed.extend(page.entries);
        match page.next {
            Some(next) => from = Some(next),
            None => return listed,
        }
    }
}
