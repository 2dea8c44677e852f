//! The contract's section 5, for any database.

use super::{Shop, body, pay, pay_for};
use babelqueue_guard::sqlx::Error;
use babelqueue_guard::transaction::{Begun, Done, Running, TransactionGuard, TransactionalStore};
use babelqueue_guard::{Delivery, FailOpen, Guard, Mark, Processed, REPLAY_HEADER, Store};
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

pub(super) async fn an_effect_happens_once_and_its_mark_is_everybodys<S: Shop>(shop: S) {
    let guard = shop.guard().await;
    let first = guard.process(&body("a"), pay::<S>).await.unwrap();
    assert!(
        matches!(&first, Processed::Ran { id: Ok(id), mark: Mark::Set, .. } if id == "a"),
        "{first:?}"
    );
    for _ in 0..3 {
        let again = guard.process(&body("a"), pay::<S>).await.unwrap();
        assert!(matches!(&again, Processed::Skipped { id } if id == "a"));
        assert!(again.acknowledge());
    }
    assert_eq!(shop.paid("a").await, 1);

    let store = shop.store().await;
    assert!(store.seen("a").await.unwrap(), "in the same table");
    let plain = Guard::new(store).unwrap();
    let plainly = plain
        .process(&body("a"), async |_| Ok::<_, Error>(()))
        .await
        .unwrap();
    assert!(matches!(plainly, Processed::Skipped { .. }));
}

pub(super) async fn a_plain_consumers_mark_is_seen<S: Shop>(shop: S) {
    shop.store().await.remember("a").await.unwrap();
    let processed = shop.guard().await.process(&body("a"), pay::<S>).await;
    assert!(matches!(processed.unwrap(), Processed::Skipped { .. }));
    assert_eq!(shop.paid("a").await, 0);
}

pub(super) async fn an_expired_mark_is_revived<S: Shop>(shop: S) {
    let guard = shop.guard().await;
    for times in 1..=3 {
        assert!(
            guard
                .process(&body("a"), pay::<S>)
                .await
                .unwrap()
                .acknowledge()
        );
        assert!(
            guard
                .process(&body("a"), pay::<S>)
                .await
                .unwrap()
                .acknowledge()
        );
        assert_eq!(shop.paid("a").await, times);
        shop.expire().await;
        assert!(!shop.store().await.seen("a").await.unwrap());
    }
}

/// A handler that pays, and fails afterwards.
async fn fail<S: Shop>(mut run: Running<'static, S::Store>) -> Result<Done<S::Store, ()>, Error> {
    pay_for::<S>(&mut run).await?;
    S::stumble(&mut run).await?;
    Ok(run.done(()))
}

pub(super) async fn a_failure_takes_back_what_the_handler_did<S: Shop>(shop: S) {
    let guard = shop.guard().await;
    for _ in 0..2 {
        let failed = guard.process(&body("a"), fail::<S>).await.unwrap();
        assert!(matches!(failed, Processed::Failed { .. }), "{failed:?}");
        assert!(!failed.acknowledge());
        assert_eq!(shop.paid("a").await, 0);
        assert!(!shop.store().await.seen("a").await.unwrap());
    }
    let retried = guard.process(&body("a"), pay::<S>).await.unwrap();
    assert!(matches!(retried, Processed::Ran { .. }));
    assert_eq!(shop.paid("a").await, 1);
}

pub(super) async fn a_panic_takes_back_what_the_handler_did<S: Shop>(shop: S) {
    use futures_util::FutureExt;
    let guard = shop.guard().await;
    let envelope = body("a");
    let panicking = guard.process(&envelope, async |mut run| {
        pay_for::<S>(&mut run).await?;
        if shop.paid("nothing").await == 0 {
            panic!("in the handler");
        }
        Ok::<_, Error>(run.done(()))
    });
    let ended = AssertUnwindSafe(panicking).catch_unwind().await;
    let panic = ended.expect_err("the panic goes on");
    assert_eq!(panic.downcast_ref::<&str>(), Some(&"in the handler"));
    assert_eq!(shop.paid("a").await, 0);
    let _ = guard.process(&body("a"), pay::<S>).await.unwrap();
    assert_eq!(shop.paid("a").await, 1);
}

pub(super) async fn dropped_half_way_it_leaves_nothing<S: Shop>(shop: S) {
    let guard = shop.guard().await;
    for _ in 0..3 {
        let envelope = body("a");
        let endless = guard.process(&envelope, async |mut run| {
            pay_for::<S>(&mut run).await?;
            std::future::pending::<()>().await;
            Ok::<_, Error>(run.done(()))
        });
        let ended = tokio::time::timeout(Duration::from_millis(300), endless).await;
        assert!(ended.is_err());
    }
    let _ = guard.process(&body("a"), pay::<S>).await.unwrap();
    assert_eq!(shop.paid("a").await, 1);
}

pub(super) async fn without_an_id_it_runs_in_a_transaction_all_the_same<S: Shop>(shop: S) {
    let guard = shop.guard().await;
    for times in 1..=2 {
        let processed = guard.process("{}", pay::<S>).await.unwrap();
        assert!(
            matches!(
                processed,
                Processed::Ran {
                    id: Err(FailOpen::Absent),
                    mark: Mark::NoId,
                    ..
                }
            ),
            "{processed:?}"
        );
        assert_eq!(shop.paid("unknown").await, times);
    }
    let failed = guard
        .process("{}", async |run| {
            assert_eq!(run.fail_open(), Some(FailOpen::Absent));
            fail::<S>(run).await
        })
        .await
        .unwrap();
    assert!(matches!(failed, Processed::Failed { .. }));
    assert_eq!(shop.paid("unknown").await, 2);
}

pub(super) async fn copies_that_race_pay_once<S: Shop>(shop: S) {
    let guard = shop.guard().await;
    for n in 0..10 {
        let envelope = body(&n.to_string());
        let copies = (0..8).map(|_| guard.process(&envelope, pay::<S>));
        let mut ran = 0;
        for copy in futures_util::future::join_all(copies).await {
            match copy.unwrap() {
                Processed::Ran { .. } => ran += 1,
                Processed::Skipped { .. } => {}
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(ran, 1);
        assert_eq!(shop.paid(&n.to_string()).await, 1);
    }
}

pub(super) async fn after_a_winner_that_fails_the_next_one_runs<S: Shop>(shop: S) {
    let guard = shop.guard().await;
    let (envelope, fails) = (body("a"), AtomicUsize::new(0));
    let copies = (0..8).map(|_| {
        guard.process(&envelope, async |run| {
            if fails.fetch_add(1, Ordering::SeqCst) < 5 {
                fail::<S>(run).await
            } else {
                pay::<S>(run).await
            }
        })
    });
    let (mut ran, mut failed) = (0, 0);
    for copy in futures_util::future::join_all(copies).await {
        match copy.unwrap() {
            Processed::Ran { .. } => ran += 1,
            Processed::Failed { .. } => failed += 1,
            _ => {}
        }
    }
    assert_eq!((ran, failed), (1, 5));
    assert_eq!(shop.paid("a").await, 1);
}

/// Begins a transaction as a caller does.
async fn transaction<S: Shop>(
    store: &S::Store,
) -> babelqueue_guard::sqlx::Transaction<'static, S::Database> {
    store.pool().begin_with(S::Store::BEGIN).await.unwrap()
}

pub(super) async fn the_callers_transaction_decides<S: Shop>(shop: S) {
    let store = shop.store().await;
    let guard = TransactionGuard::new(store.clone()).unwrap();
    for commit in [false, true] {
        let mut transaction = transaction::<S>(&store).await;
        match guard.begin(&mut transaction, &body("a")).await.unwrap() {
            Begun::Run(mut run) => {
                assert_eq!(run.id(), Some("a"));
                pay_for::<S>(&mut run).await.unwrap();
                assert_eq!(run.succeed().await.unwrap(), Mark::Set);
            }
            Begun::Skip(_) => panic!("what was rolled back is not there"),
        }
        if commit {
            transaction.commit().await.unwrap();
        } else {
            transaction.rollback().await.unwrap();
        }
        assert_eq!(store.seen("a").await.unwrap(), commit);
        assert_eq!(shop.paid("a").await, i64::from(commit));
    }
}

pub(super) async fn a_duplicate_does_not_abort_the_callers_transaction<S: Shop>(shop: S) {
    let store = shop.store().await;
    let guard = TransactionGuard::new(store.clone()).unwrap();
    let mut transaction = transaction::<S>(&store).await;
    // The same message twice, and another one, in one transaction.
    let mut skipped = 0;
    for id in ["a", "a", "b", "a"] {
        match guard.begin(&mut transaction, &body(id)).await.unwrap() {
            Begun::Run(mut run) => {
                pay_for::<S>(&mut run).await.unwrap();
                run.succeed().await.unwrap();
            }
            Begun::Skip(id) => {
                assert_eq!(id, "a");
                skipped += 1;
            }
        }
    }
    S::pay(&mut transaction, "after").await.unwrap();
    transaction.commit().await.unwrap();
    assert_eq!(skipped, 2);
    for id in ["a", "b", "after"] {
        assert_eq!(shop.paid(id).await, 1, "{id}");
    }
}

pub(super) async fn a_failure_leaves_the_callers_transaction_alone<S: Shop>(shop: S) {
    let store = shop.store().await;
    let guard = TransactionGuard::new(store.clone()).unwrap();
    let mut transaction = transaction::<S>(&store).await;
    S::pay(&mut transaction, "before").await.unwrap();
    let Begun::Run(mut run) = guard.begin(&mut transaction, &body("a")).await.unwrap() else {
        panic!("it is new")
    };
    pay_for::<S>(&mut run).await.unwrap();
    S::stumble(&mut run).await.unwrap_err();
    run.fail().await.unwrap();
    S::pay(&mut transaction, "after").await.unwrap();
    transaction.commit().await.unwrap();
    assert_eq!(shop.paid("a").await, 0);
    assert!(!store.seen("a").await.unwrap());
    assert_eq!(shop.paid("before").await, 1);
    assert_eq!(shop.paid("after").await, 1);
}

pub(super) async fn a_savepoint_that_is_dropped_is_rolled_back<S: Shop>(shop: S) {
    let store = shop.store().await;
    let guard = TransactionGuard::new(store.clone()).unwrap();
    let mut transaction = transaction::<S>(&store).await;
    {
        let Begun::Run(mut run) = guard.begin(&mut transaction, &body("a")).await.unwrap() else {
            panic!("it is new")
        };
        pay_for::<S>(&mut run).await.unwrap();
    }
    S::pay(&mut transaction, "after").await.unwrap();
    transaction.commit().await.unwrap();
    assert_eq!(shop.paid("a").await, 0);
    assert_eq!(shop.paid("after").await, 1);
    assert!(!store.seen("a").await.unwrap());
}

pub(super) async fn a_replay_runs_after_forget<S: Shop>(shop: S) {
    let guard = shop.guard().await;
    let envelope = body("a");
    let replay = || Delivery::from(&envelope).with_headers([REPLAY_HEADER]);
    let told = async |mut run: Running<'static, S::Store>| {
        pay_for::<S>(&mut run).await?;
        let replay = run.is_replay();
        Ok::<_, Error>(run.done(replay))
    };
    let _ = guard.process(&envelope, told).await.unwrap();
    let skipped = guard.process(replay(), told).await.unwrap();
    assert!(matches!(skipped, Processed::Skipped { .. }));
    shop.store().await.forget("a").await.unwrap();
    let ran = guard.process(replay(), told).await.unwrap();
    assert!(matches!(ran, Processed::Ran { value: true, .. }));
    assert_eq!(shop.paid("a").await, 2);
}

/// Workers run deliveries as tasks: the future has to be `Send`.
pub(super) async fn it_can_be_spawned<S: Shop>(shop: S) {
    let guard = shop.guard().await;
    S::spawn(guard, "a").await.unwrap();
    assert_eq!(shop.paid("a").await, 1);
}
