//! Several connections and processes over one file.

use super::Place;
use crate::child;
use babelqueue_guard::store::sqlite::{SqliteSettings, SqliteStore};
use babelqueue_guard::{ClaimOutcome, Claims, Inventory, Store};
use std::time::Duration;

const WORKERS: usize = 8;

#[tokio::test(flavor = "multi_thread")]
async fn of_eight_that_open_a_new_file_at_once_none_fails() {
    for _ in 0..5 {
        let place = Place::new();
        let url = place.url();
        let opened = (0..WORKERS).map(|_| {
            let url = url.clone();
            tokio::spawn(async move {
                let store = SqliteStore::connect(&url, &SqliteSettings::default()).await?;
                Ok::<_, babelqueue_guard::store::url::ConnectError>(store.claim("a").await?)
            })
        });
        let mut won = 0;
        for claimed in futures_util::future::join_all(opened).await {
            match claimed.unwrap().unwrap() {
                ClaimOutcome::Won(_) => won += 1,
                ClaimOutcome::Busy(_) => {}
                ClaimOutcome::Done => panic!("nothing is marked"),
            }
        }
        assert_eq!(won, 1);
    }
}

#[test]
fn processes_share_a_file_without_a_busy_error() {
    let place = Place::new();
    let children: Vec<_> = (0..4)
        .map(|_| child::spawn("sqlite::sharing::child_claims_and_completes", &place.url()))
        .collect();
    let won: usize = children
        .into_iter()
        .map(|child| child::output(child).matches("won\n").count())
        .sum();
    assert_eq!(won, 200, "each id is won once, by one process");
}

#[tokio::test]
async fn child_claims_and_completes() {
    let Some(url) = child::argument() else { return };
    let store = SqliteStore::connect(&url, &SqliteSettings::default())
        .await
        .unwrap();
    for n in 0..200 {
        let id = n.to_string();
        if let ClaimOutcome::Won(lease) = store.claim(&id).await.unwrap() {
            println!("won");
            store.complete(&id, &lease.token).await.unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn collecting_does_not_disturb_consumers() {
    let place = Place::new();
    let mut settings = SqliteSettings::default();
    settings.retention =
        babelqueue_guard::settings::Retention::of(Duration::from_millis(1)).unwrap();
    let brief = place.store_with(&settings).await;
    for n in 0..300 {
        brief.remember(&n.to_string()).await.unwrap();
    }
    tokio::time::sleep(Duration::from_millis(5)).await;
    let collector = tokio::spawn(async move {
        let mut removed = 0;
        loop {
            match brief.collect(10).await.unwrap() {
                0 => return removed,
                batch => removed += batch,
            }
        }
    });
    let store = place.store().await;
    for n in 0..300 {
        // Some of these revive a row that is about to be collected.
        store.remember(&n.to_string()).await.unwrap();
    }
    let removed = collector.await.unwrap();
    assert!(removed <= 300);
    for n in 0..300 {
        assert!(
            store.seen(&n.to_string()).await.unwrap(),
            "{n} was collected"
        );
    }
}
