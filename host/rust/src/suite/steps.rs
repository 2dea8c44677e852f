//! The rules for single steps.

use super::{Must, RACERS, SHORT, SuiteSettings, fresh, odd_ids};
use crate::error::StoreError;
use crate::store::{Marker, Store};
use futures_util::future::join_all;
use tokio::time::sleep;

/// Checks [`Marker`].
///
/// # Panics
///
/// At the first rule that the store breaks.
pub async fn check_steps<S: Store + Marker>(make: impl AsyncFn(SuiteSettings) -> S) {
    let store = make(SuiteSettings::default()).await;
    sets_each_step_once(&store).await;
    one_of_many_sets_it(&store).await;
    lets_steps_expire(&make(SuiteSettings::short_retention()).await).await;
    rejects_steps_without_a_retention(&make(SuiteSettings::forever()).await).await;
}

async fn sets_each_step_once(store: &(impl Store + Marker)) {
    let long = "z".repeat(40);
    for step in ["count", "count_2", "0", "_", &long] {
        for id in odd_ids() {
            assert!(
                store.set_once(&id, step).await.must("set_once"),
                "step {step:?} of {id:?} was never set"
            );
            assert!(
                !store.set_once(&id, step).await.must("set_once"),
                "step {step:?} of {id:?} has been set"
            );
            assert!(
                !store.seen(&id).await.must("seen"),
                "a step is no mark of its message"
            );
        }
    }
    let id = fresh("forgotten");
    store.remember(&id).await.must("remember");
    assert!(
        store.set_once(&id, "count").await.must("set_once"),
        "a mark is no step"
    );
    store.forget(&id).await.must("forget");
    assert!(
        !store.set_once(&id, "count").await.must("set_once"),
        "forgetting a message does not take its steps back"
    );
}

async fn one_of_many_sets_it(store: &impl Marker) {
    for _ in 0..10 {
        let id = fresh("race");
        let results = join_all((0..RACERS).map(|_| store.set_once(&id, "count"))).await;
        let set = results
            .into_iter()
            .filter(|set| set.clone().must("set_once"));
        assert_eq!(set.count(), 1, "of {RACERS} at once, one sets the step");
    }
}

async fn lets_steps_expire(store: &impl Marker) {
    let id = fresh("expiring");
    assert!(store.set_once(&id, "count").await.must("set_once"));
    sleep(SHORT * 4 / 3).await;
    assert!(
        store.set_once(&id, "count").await.must("set_once"),
        "a step's mark has a retention"
    );
}

async fn rejects_steps_without_a_retention(store: &impl Marker) {
    let answer = store.set_once(&fresh("for-ever"), "count").await;
    assert!(
        matches!(answer, Err(StoreError::Rejected(_))),
        "a store that keeps its marks for ever has no steps, it answered {answer:?}"
    );
}
