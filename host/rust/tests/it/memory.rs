//! The memory store: the suite, and its own bounds.

use babelqueue_guard::settings::{LeaseLength, Retention};
use babelqueue_guard::store::memory::{MemorySettings, MemoryStore};
use babelqueue_guard::suite::{self, SuiteSettings};
use babelqueue_guard::{Claims, Inventory, Marker, Store, StoreError};
use std::time::Duration;

async fn make(settings: SuiteSettings) -> MemoryStore {
    let mut memory = MemorySettings::default();
    memory.retention = settings.retention;
    memory.lease = settings.lease;
    MemoryStore::new(memory).unwrap()
}

#[tokio::test]
async fn passes_the_suite_for_stores() {
    suite::check_store(make).await;
}

#[tokio::test]
async fn passes_the_suite_for_claims() {
    suite::check_claims(make).await;
}

#[tokio::test]
async fn passes_the_suite_for_steps() {
    suite::check_steps(make).await;
}

#[tokio::test]
async fn beyond_its_maximum_it_forgets_what_was_remembered_longest_ago() {
    let mut settings = MemorySettings::default();
    settings.maximum = 2;
    let store = MemoryStore::new(settings).unwrap();
    for id in ["a", "b", "a", "c"] {
        store.remember(id).await.unwrap();
    }
    assert!(store.seen("a").await.unwrap(), "remembered again after b");
    assert!(!store.seen("b").await.unwrap(), "the oldest makes room");
    assert!(store.seen("c").await.unwrap());
    for id in ["a", "b", "c"] {
        assert!(store.set_once(id, "step").await.unwrap());
    }
    assert!(store.set_once("a", "step").await.unwrap(), "so do steps");
}

#[tokio::test]
async fn lapsed_records_do_not_pile_up() {
    let mut settings = MemorySettings::default();
    settings.retention = Retention::of(Duration::from_millis(5)).unwrap();
    settings.lease = LeaseLength::of(Duration::from_millis(5)).unwrap();
    let store = MemoryStore::new(settings).unwrap();
    for round in 0..1_000 {
        store.remember(&format!("mark {round}")).await.unwrap();
        store.claim(&format!("lease {round}")).await.unwrap();
        store.set_once(&format!("step {round}"), "s").await.unwrap();
    }
    tokio::time::sleep(Duration::from_millis(20)).await;
    store.remember("last").await.unwrap();
    store.claim("last lease").await.unwrap();
    store.set_once("last", "s").await.unwrap();
    let stats = store.stats().await.unwrap();
    assert_eq!(stats.expired, 0, "{stats:?}");
}

#[tokio::test]
async fn steps_need_a_retention() {
    let mut settings = MemorySettings::default();
    settings.retention = Retention::Forever;
    let store = MemoryStore::new(settings).unwrap();
    store.remember("a").await.unwrap();
    let StoreError::Rejected(refusal) = store.set_once("a", "step").await.unwrap_err() else {
        panic!("not rejected");
    };
    assert!(
        refusal.starts_with("memory: ") && refusal.contains("give it one"),
        "{refusal}"
    );
    assert_eq!(store.stats().await.unwrap().steps, 0);
}

#[test]
fn a_maximum_of_zero_is_refused_by_name() {
    let mut settings = MemorySettings::default();
    settings.maximum = 0;
    let refusal = MemoryStore::new(settings).unwrap_err().to_string();
    assert!(refusal.starts_with("maximum: "), "{refusal}");
}
