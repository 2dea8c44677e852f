//! The rules for claims.

use super::{Must, RACERS, SHORT, SuiteSettings, fresh, odd_ids};
use crate::store::Claims;
use crate::types::{ClaimOutcome, Hold, Lease};
use futures_util::future::{join_all, join3};
use std::collections::HashSet;
use std::time::Duration;
use tokio::time::sleep;

/// Checks the four functions of [`Claims`], and how they go together with
/// those of [`Store`](crate::Store).
///
/// # Panics
///
/// At the first rule that the store breaks.
pub async fn check_claims<S: Claims>(make: impl AsyncFn(SuiteSettings) -> S) {
    let store = make(SuiteSettings::default()).await;
    one_claim_wins(&store).await;
    only_the_owner_releases(&store).await;
    completing_marks(&store).await;
    a_mark_counts_before_a_lease(&store).await;
    keeps_leases_apart(&store).await;
    one_of_many_wins(&store).await;
    none_wins_over_a_mark(&store).await;

    let short = make(SuiteSettings::short_lease()).await;
    leases_lapse_and_are_never_revived(&short).await;
    renewal_extends(&short).await;
    a_late_success_keeps_its_mark(&short).await;
}

#[allow(clippy::panic, reason = "the suite's verdict")]
async fn won(store: &impl Claims, id: &str) -> Lease {
    match store.claim(id).await.must("claim") {
        ClaimOutcome::Won(lease) => lease,
        other => panic!("{id:?} is free to be claimed, but the answer is {other:?}"),
    }
}

async fn is_busy(store: &impl Claims, id: &str, length: Duration) -> bool {
    match store.claim(id).await.must("claim") {
        ClaimOutcome::Busy(left) => {
            let length = length.as_millis();
            assert!(
                u128::from(left) <= length,
                "{left} ms are left of a lease of {length}"
            );
            true
        }
        ClaimOutcome::Won(_) | ClaimOutcome::Done => false,
    }
}

const MINUTE: Duration = Duration::from_secs(60);

async fn one_claim_wins(store: &impl Claims) {
    let id = fresh("claim");
    let lease = won(store, &id).await;
    assert_eq!(lease.length_ms, 60_000, "the lease's length is as set");
    assert!(is_busy(store, &id, MINUTE).await, "a live lease is busy");
    assert!(is_busy(store, &id, MINUTE).await, "also when asked again");
    assert!(
        !store.seen(&id).await.must("seen"),
        "a lease is never a mark"
    );
    let released = store.release(&id, &lease.token).await.must("release");
    assert_eq!(released, Hold::Held, "the owner releases");
    let next = won(store, &id).await;
    assert_ne!(next.token, lease.token, "each claim has a fresh token");
    let again = store.release(&id, &lease.token).await.must("release");
    assert_eq!(again, Hold::Lost, "a token is good for one lease");
}

async fn only_the_owner_releases(store: &impl Claims) {
    let id = fresh("stranger");
    for token in ["", "1", "stranger", "*", "%"] {
        let renewed = store.renew(&id, token).await.must("renew");
        assert_eq!(renewed, Hold::Lost, "an absent lease cannot be renewed");
        let released = store.release(&id, token).await.must("release");
        assert_eq!(released, Hold::Lost, "an absent lease cannot be released");
    }
    let lease = won(store, &id).await;
    let elsewhere = won(store, &fresh("elsewhere")).await;
    for token in ["", "1 ", "stranger", "*", "%", &elsewhere.token] {
        let released = store.release(&id, token).await.must("release");
        assert_eq!(released, Hold::Lost, "{token:?} owns nothing");
        let renewed = store.renew(&id, token).await.must("renew");
        assert_eq!(renewed, Hold::Lost, "{token:?} owns nothing");
        assert!(is_busy(store, &id, MINUTE).await, "the lease is untouched");
    }
    let renewed = store.renew(&id, &lease.token).await.must("renew");
    assert_eq!(renewed, Hold::Held, "its owner still holds it");
}

async fn completing_marks(store: &impl Claims) {
    let id = fresh("complete");
    let lease = won(store, &id).await;
    let completed = store.complete(&id, &lease.token).await.must("complete");
    assert_eq!(completed, Hold::Held, "the owner completes");
    assert!(store.seen(&id).await.must("seen"), "a completion marks");
    let claimed = store.claim(&id).await.must("claim");
    assert_eq!(claimed, ClaimOutcome::Done, "a marked id is done");
    let renewed = store.renew(&id, &lease.token).await.must("renew");
    assert_eq!(renewed, Hold::Lost, "a completed lease is gone");
    let completed = store.complete(&id, &lease.token).await.must("complete");
    assert_eq!(completed, Hold::Lost, "completing again finds no lease");
    assert!(store.seen(&id).await.must("seen"), "and leaves the mark");
    store.forget(&id).await.must("forget");
    won(store, &id).await;

    let unclaimed = fresh("unclaimed");
    let completed = store
        .complete(&unclaimed, "stranger")
        .await
        .must("complete");
    assert_eq!(completed, Hold::Lost, "there was no lease");
    assert!(
        store.seen(&unclaimed).await.must("seen"),
        "a completion marks whoever holds the lease"
    );
}

async fn a_mark_counts_before_a_lease(store: &impl Claims) {
    let id = fresh("both");
    let lease = won(store, &id).await;
    store
        .remember(&id)
        .await
        .must("a plain consumer's remember");
    assert!(store.seen(&id).await.must("seen"), "the mark is seen");
    let claimed = store.claim(&id).await.must("claim");
    assert_eq!(claimed, ClaimOutcome::Done, "marked, though also leased");
    store.forget(&id).await.must("forget");
    assert!(
        is_busy(store, &id, MINUTE).await,
        "forgetting does not touch a live lease"
    );
    let completed = store.complete(&id, &lease.token).await.must("complete");
    assert_eq!(completed, Hold::Held, "whoever holds it finishes");
    assert!(store.seen(&id).await.must("seen"), "and marks");
}

async fn keeps_leases_apart(store: &impl Claims) {
    let mut leases = Vec::new();
    for id in odd_ids() {
        leases.push((won(store, &id).await, id));
    }
    let tokens: HashSet<_> = leases.iter().map(|(lease, _)| &lease.token).collect();
    assert_eq!(tokens.len(), leases.len(), "no two claims share a token");
    for (lease, id) in &leases {
        let released = store.release(id, &lease.token).await.must("release");
        assert_eq!(released, Hold::Held, "{id:?} has a lease of its own");
    }
}

async fn one_of_many_wins(store: &impl Claims) {
    for _ in 0..20 {
        let id = fresh("race");
        let outcomes = join_all((0..RACERS).map(|_| store.claim(&id))).await;
        let mut wins = 0;
        for outcome in outcomes {
            match outcome.must("claim") {
                ClaimOutcome::Won(_) => wins += 1,
                ClaimOutcome::Busy(_) => {}
                ClaimOutcome::Done => wins += RACERS,
            }
        }
        assert_eq!(wins, 1, "of {RACERS} claims at once, one wins");
    }
}

/// Claims that begin after a mark is there never win, however they race with
/// the completion that set it.
async fn none_wins_over_a_mark(store: &impl Claims) {
    for _ in 0..20 {
        let id = fresh("finish");
        let lease = won(store, &id).await;
        let until_free = async || {
            loop {
                match store.claim(&id).await.must("claim") {
                    ClaimOutcome::Busy(_) => tokio::task::yield_now().await,
                    free => return free,
                }
            }
        };
        let (completed, first, second) = join3(
            store.complete(&id, &lease.token),
            until_free(),
            until_free(),
        )
        .await;
        assert_eq!(completed.must("complete"), Hold::Held);
        for outcome in [first, second] {
            assert_eq!(
                outcome,
                ClaimOutcome::Done,
                "the lease lasts until the mark is there"
            );
        }
    }
}

async fn leases_lapse_and_are_never_revived(store: &impl Claims) {
    let id = fresh("lapse");
    let first = won(store, &id).await;
    assert!(is_busy(store, &id, SHORT).await, "the lease is live");
    sleep(SHORT * 4 / 3).await;
    let renewed = store.renew(&id, &first.token).await.must("renew");
    assert_eq!(renewed, Hold::Lost, "a lapsed lease is not revived");
    let released = store.release(&id, &first.token).await.must("release");
    assert_eq!(released, Hold::Lost, "a lapsed lease is not ours to drop");
    let second = won(store, &id).await;
    assert_ne!(first.token, second.token, "each claim has a fresh token");
    let renewed = store.renew(&id, &first.token).await.must("renew");
    assert_eq!(renewed, Hold::Lost, "the old owner cannot renew it");
    let released = store.release(&id, &first.token).await.must("release");
    assert_eq!(released, Hold::Lost, "the old owner cannot release it");
    assert!(is_busy(store, &id, SHORT).await, "the new owner holds it");
}

async fn renewal_extends(store: &impl Claims) {
    let id = fresh("renew");
    let lease = won(store, &id).await;
    for _ in 0..2 {
        sleep(SHORT * 2 / 3).await;
        let renewed = store.renew(&id, &lease.token).await.must("renew");
        assert_eq!(renewed, Hold::Held, "a live lease can be renewed");
    }
    assert!(
        is_busy(store, &id, SHORT).await,
        "it has outlived its length"
    );
    sleep(SHORT * 4 / 3).await;
    won(store, &id).await;
}

async fn a_late_success_keeps_its_mark(store: &impl Claims) {
    let id = fresh("late");
    let first = won(store, &id).await;
    sleep(SHORT * 4 / 3).await;
    let second = won(store, &id).await;
    let completed = store.complete(&id, &first.token).await.must("complete");
    assert_eq!(completed, Hold::Lost, "the lease was another's by then");
    assert!(store.seen(&id).await.must("seen"), "the mark is set anyhow");
    let renewed = store.renew(&id, &second.token).await.must("renew");
    assert_eq!(renewed, Hold::Held, "the other's lease is not touched");
    sleep(SHORT * 4 / 3).await;
    assert!(
        store.seen(&id).await.must("seen"),
        "the mark has its own retention, not the lease's length"
    );
    let claimed = store.claim(&id).await.must("claim");
    assert_eq!(claimed, ClaimOutcome::Done, "the mark outlives every lease");
}
