//! The rules for a seen-set.

use super::{Must, SHORT, SuiteSettings, fresh, odd_ids};
use crate::store::Store;
use futures_util::future::join_all;
use tokio::time::sleep;

/// Checks the three functions of [`Store`].
///
/// # Panics
///
/// At the first rule that the store breaks.
pub async fn check_store<S: Store>(make: impl AsyncFn(SuiteSettings) -> S) {
    let store = make(SuiteSettings::default()).await;
    remembers_until_told_to_forget(&store).await;
    keeps_ids_apart(&store).await;
    serves_many_at_once(&store).await;
    lets_marks_expire(&make(SuiteSettings::short_retention()).await).await;
}

async fn remembers_until_told_to_forget(store: &impl Store) {
    let id = fresh("mark");
    assert!(!store.seen(&id).await.must("seen"), "a new id is not seen");
    store.forget(&id).await.must("forgetting a new id");
    store.remember(&id).await.must("remember");
    assert!(
        store.seen(&id).await.must("seen"),
        "a remembered id is seen"
    );
    store.remember(&id).await.must("remembering again");
    assert!(store.seen(&id).await.must("seen"), "it is still seen");
    store.forget(&id).await.must("forget");
    assert!(
        !store.seen(&id).await.must("seen"),
        "a forgotten id is not seen"
    );
    store
        .remember(&id)
        .await
        .must("remembering after forgetting");
    assert!(store.seen(&id).await.must("seen"), "it is seen once more");
}

async fn keeps_ids_apart(store: &impl Store) {
    let ids = odd_ids();
    for (count, id) in ids.iter().enumerate() {
        assert!(
            !store.seen(id).await.must("seen"),
            "{id:?} must not be confused with any of {:?}",
            &ids[..count],
        );
        store.remember(id).await.must("remember");
    }
    for id in &ids {
        assert!(store.seen(id).await.must("seen"), "{id:?} is seen");
    }
    for (count, id) in ids.iter().enumerate() {
        store.forget(id).await.must("forget");
        assert!(!store.seen(id).await.must("seen"), "{id:?} is forgotten");
        for other in &ids[count + 1..] {
            assert!(
                store.seen(other).await.must("seen"),
                "forgetting {id:?} must not forget {other:?}"
            );
        }
    }
}

async fn serves_many_at_once(store: &impl Store) {
    let ids: Vec<String> = (0..200).map(|n| fresh(&n.to_string())).collect();
    for result in join_all(ids.iter().map(|id| store.remember(id))).await {
        result.must("remembering many at once");
    }
    for seen in join_all(ids.iter().map(|id| store.seen(id))).await {
        assert!(seen.must("asking for many at once"));
    }
}

async fn lets_marks_expire(store: &impl Store) {
    let (kept, dropped) = (fresh("kept"), fresh("dropped"));
    store.remember(&kept).await.must("remember");
    store.remember(&dropped).await.must("remember");
    sleep(SHORT * 2 / 3).await;
    store.remember(&kept).await.must("remembering again");
    sleep(SHORT * 2 / 3).await;
    assert!(
        store.seen(&kept).await.must("seen"),
        "remembering again restarts the retention"
    );
    assert!(
        !store.seen(&dropped).await.must("seen"),
        "an expired mark is absent"
    );
    sleep(SHORT).await;
    assert!(
        !store.seen(&kept).await.must("seen"),
        "a restarted retention ends as well"
    );
    store
        .remember(&kept)
        .await
        .must("remembering an expired id");
    assert!(
        store.seen(&kept).await.must("seen"),
        "an expired id can be remembered anew"
    );
}
