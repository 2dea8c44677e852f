//! The whole cycle with claims: the contract's section 3.

use crate::stores::{Probe, envelope};
use babelqueue_guard::settings::LeaseLength;
use babelqueue_guard::store::memory::{MemorySettings, MemoryStore};
use babelqueue_guard::{
    Claims, Context, Decision, Delivery, Error, Guard, Hold, Mark, Outcome, Processed, Settled,
    Store, StoreError,
};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

fn short_leases(millis: u64) -> Probe {
    let mut settings = MemorySettings::default();
    settings.lease = LeaseLength::of(Duration::from_millis(millis)).unwrap();
    let mut probe = Probe::default();
    probe.memory = MemoryStore::new(settings).unwrap();
    probe
}

async fn ok(_: Context) -> Result<(), &'static str> {
    Ok(())
}

#[tokio::test]
async fn of_eight_copies_one_runs_and_seven_are_parked() {
    let guard = Guard::claiming(Probe::default()).unwrap();
    let (ran, parked) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let body = envelope("a");
    let copies = (0..8).map(|_| async {
        let result = guard
            .process(&body, async |_| {
                ran.fetch_add(1, Ordering::SeqCst);
                while parked.load(Ordering::SeqCst) < 7 {
                    tokio::task::yield_now().await;
                }
                Ok::<_, ()>(())
            })
            .await
            .unwrap();
        if let Processed::Parked(parking) = &result {
            assert!(!result.acknowledge());
            assert_eq!(parking.id, "a");
            assert!((1..=60_000).contains(&parking.left_ms), "{parking:?}");
            parked.fetch_add(1, Ordering::SeqCst);
        }
    });
    futures_util::future::join_all(copies).await;
    assert_eq!(ran.load(Ordering::SeqCst), 1);
    let late = guard.process(&body, ok).await.unwrap();
    assert!(matches!(late, Processed::Skipped { .. }));
}

#[tokio::test]
async fn a_failure_frees_the_id_at_once() {
    let store = Probe::default();
    let guard = Guard::claiming(store.clone()).unwrap();
    let body = envelope("a");
    let failed = guard
        .process(&body, async |_| Err::<(), _>("no"))
        .await
        .unwrap();
    assert!(matches!(failed, Processed::Failed { error: "no", .. }));
    let ran = guard.process(&body, ok).await.unwrap();
    assert!(matches!(
        ran,
        Processed::Ran {
            mark: Mark::Set,
            ..
        }
    ));
    assert_eq!(
        store.asked(),
        ["claim a", "release a", "claim a", "complete a"]
    );
}

#[tokio::test]
async fn without_an_id_nothing_is_claimed() {
    let store = Probe::default();
    let guard = Guard::claiming(store.clone()).unwrap();
    let ran = guard.process("[]", ok).await.unwrap();
    assert!(matches!(
        ran,
        Processed::Ran {
            mark: Mark::NoId,
            ..
        }
    ));
    assert!(store.asked().is_empty());
}

#[tokio::test]
async fn a_claim_that_fails_stops_the_delivery() {
    let store = Probe::default();
    let guard = Guard::claiming(store.clone()).unwrap();
    let down = StoreError::Unavailable("down".into());
    store.fail("claim", down.clone());
    let result = guard.process(&envelope("a"), ok).await;
    assert_eq!(result.unwrap_err(), Error::Store(down.clone()));
    store.fail("complete", down.clone());
    let ran = guard.process(&envelope("a"), ok).await.unwrap();
    assert!(matches!(
        ran,
        Processed::Ran {
            mark: Mark::Missing(_),
            ..
        }
    ));
    store.fail("release", down);
    let failed = guard
        .process(&envelope("b"), async |_| Err::<(), _>("no"))
        .await
        .unwrap();
    assert!(matches!(failed, Processed::Failed { error: "no", .. }));
}

#[tokio::test]
async fn a_handler_may_outlive_its_lease_many_times() {
    let store = short_leases(600);
    let guard = Guard::claiming(store.clone()).unwrap();
    let body = envelope("a");
    let ran = guard
        .process(&body, async |context| {
            for _ in 0..4 {
                tokio::time::sleep(Duration::from_millis(400)).await;
                let copy = guard.process(&body, ok).await.unwrap();
                assert!(matches!(copy, Processed::Parked(_)), "{copy:?}");
            }
            Ok::<_, ()>(context.lease_lost().is_cancelled())
        })
        .await
        .unwrap();
    assert!(
        matches!(
            ran,
            Processed::Ran {
                value: false,
                mark: Mark::Set,
                ..
            }
        ),
        "{ran:?}"
    );
}

#[tokio::test]
async fn a_lease_that_is_lost_is_told_to_the_handler_and_the_mark_is_late() {
    let store = short_leases(300);
    let guard = Guard::claiming(store.clone()).unwrap();
    store.fail("renew", StoreError::Unavailable("down".into()));
    let body = envelope("a");
    let ran = guard
        .process(&body, async |context| {
            context.lease_lost().cancelled().await;
            store.mend();
            let other = store.memory.claim("a").await.unwrap();
            Ok::<_, ()>(other)
        })
        .await
        .unwrap();
    let Processed::Ran {
        value: babelqueue_guard::ClaimOutcome::Won(other),
        mark,
        ..
    } = ran
    else {
        panic!("{ran:?}")
    };
    assert_eq!(mark, Mark::SetLate);
    assert!(store.memory.seen("a").await.unwrap());
    let untouched = store.memory.release("a", &other.token).await.unwrap();
    assert_eq!(untouched, Hold::Held, "the other's lease was left alone");
}

#[tokio::test]
async fn a_lease_taken_away_is_noticed_at_the_next_renewal() {
    let store = short_leases(300);
    let guard = Guard::claiming(store.clone()).unwrap();
    let ran = guard
        .process(&envelope("a"), async |context| {
            let babelqueue_guard::Ticket::Leased(_) = decided(&guard, "b").await else {
                panic!("b is free")
            };
            // Time passes with nobody renewing: as if this machine had slept.
            std::thread::sleep(Duration::from_millis(400));
            context.lease_lost().cancelled().await;
            Ok::<_, ()>(())
        })
        .await
        .unwrap();
    assert!(
        matches!(
            ran,
            Processed::Ran {
                mark: Mark::SetLate,
                ..
            }
        ),
        "{ran:?}"
    );
}

async fn decided(guard: &Guard, id: &str) -> babelqueue_guard::Ticket {
    match guard.decide(&Delivery::from_id(id)).await.unwrap() {
        Decision::Run(ticket) => ticket,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn deciding_and_settling_can_be_done_by_hand() {
    let guard = Guard::claiming(Probe::default()).unwrap();
    let ticket = decided(&guard, "a").await;
    let parked = guard.decide(&Delivery::from_id("a")).await.unwrap();
    assert!(matches!(parked, Decision::Park(_)));
    assert_eq!(guard.renew(&ticket).await.unwrap(), Hold::Held);
    let failed = guard.settle(&ticket, Outcome::Failed).await.unwrap();
    assert_eq!(failed, Settled::Released);
    let again = guard.settle(&ticket, Outcome::Failed).await.unwrap();
    assert_eq!(again, Settled::LeaseLost, "settling twice is harmless");
    assert_eq!(guard.renew(&ticket).await.unwrap(), Hold::Lost);

    let ticket = decided(&guard, "a").await;
    let done = guard.settle(&ticket, Outcome::Succeeded).await.unwrap();
    assert_eq!(done, Settled::Marked);
    let again = guard.settle(&ticket, Outcome::Succeeded).await.unwrap();
    assert_eq!(again, Settled::MarkedLate);
    let skipped = guard.decide(&Delivery::from_id("a")).await.unwrap();
    assert_eq!(skipped, Decision::Skip("a".into()));
}

#[test]
fn outside_a_runtime_it_says_so_instead_of_claiming() {
    let store = Probe::default();
    let guard = Guard::claiming(store.clone()).unwrap();
    let body = envelope("a");
    let result = futures_util::FutureExt::now_or_never(guard.process(&body, ok)).unwrap();
    let error = result.unwrap_err().to_string();
    assert!(error.contains("tokio runtime"), "{error}");
    assert!(store.asked().is_empty());
}
