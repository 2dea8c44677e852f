//! What whoever watches a consumer gets to see: a span for each delivery, and
//! counters.

use crate::stores::{Probe, envelope};
use babelqueue_guard::{Context, Guard, StoreError};
use std::io::{self, Write};
use std::sync::{Arc, Mutex};
use tracing::subscriber::{DefaultGuard, set_default};
use tracing_subscriber::fmt::format::FmtSpan;

async fn ok(_: Context) -> Result<(), &'static str> {
    tracing::info!("handling");
    Ok(())
}

async fn fails(_: Context) -> Result<(), &'static str> {
    Err("no")
}

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Log {
    /// Everything that this thread says, until the guard is dropped.
    fn begin() -> (Self, DefaultGuard) {
        let log = Self::default();
        let sink = log.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_writer(move || sink.clone())
            .with_max_level(tracing::Level::TRACE)
            .with_span_events(FmtSpan::CLOSE)
            .with_ansi(false)
            .finish();
        (log, set_default(subscriber))
    }

    fn lines(&self) -> Vec<String> {
        let bytes = self.0.lock().unwrap();
        let text = String::from_utf8(bytes.clone()).unwrap();
        text.lines().map(str::to_owned).collect()
    }

    #[track_caller]
    fn has(&self, parts: &[&str]) {
        let lines = self.lines();
        let found = lines
            .iter()
            .any(|line| parts.iter().all(|part| line.contains(part)));
        assert!(found, "{parts:?} in {lines:#?}");
    }
}

#[tokio::test]
async fn every_delivery_has_one_span_with_its_id_and_what_became_of_it() {
    let (log, watching) = Log::begin();
    let store = Probe::default();
    let guard = Guard::new(store.clone()).unwrap();
    let _ = guard.process(&envelope("a"), ok).await.unwrap();
    let _ = guard.process(&envelope("a"), ok).await.unwrap();
    let _ = guard.process(&envelope("b"), fails).await.unwrap();
    let _ = guard.process("[]", ok).await.unwrap();
    let down = StoreError::Unavailable("down".into());
    store.fail("remember", down.clone());
    let _ = guard.process(&envelope("c"), ok).await.unwrap();
    store.fail("seen", down);
    let _ = guard.process(&envelope("d"), ok).await.unwrap_err();
    drop(watching);

    log.has(&[
        r#"delivery{id="a" replay=false decision="run"}"#,
        "handling",
    ]);
    for (id, became) in [
        (r#"id="a" "#, r#"decision="run" outcome="succeeded""#),
        (r#"id="a" "#, r#"decision="skip""#),
        (r#"id="b" "#, r#"decision="run" outcome="failed""#),
        (
            "{replay=false",
            r#"decision="run" fail_open="malformed" outcome="succeeded""#,
        ),
        (r#"id="c" "#, r#"decision="run" outcome="succeeded""#),
        (r#"id="d" "#, r#"decision="error""#),
    ] {
        log.has(&["delivery{", id, became, "close"]);
    }
    log.has(&["ERROR", r#"delivery{id="c""#, "not marked", "down"]);
    let lines = log.lines();
    let spans = lines.iter().filter(|line| line.contains("close")).count();
    assert_eq!(spans, 6, "{lines:#?}");
}

#[cfg(feature = "sqlite")]
#[tokio::test]
async fn a_transaction_is_within_the_span_of_its_delivery() {
    use babelqueue_guard::sqlx::Error;
    use babelqueue_guard::store::sqlite::{SqliteSettings, SqliteStore};
    use babelqueue_guard::transaction::TransactionGuard;

    let (log, watching) = Log::begin();
    let settings = SqliteSettings::default();
    let store = SqliteStore::connect("sqlite::memory:", &settings).await;
    let guard = TransactionGuard::new(store.unwrap()).unwrap();
    let body = envelope("a");
    for _ in 0..2 {
        let handled = guard.process(&body, async |run| {
            tracing::info!("handling");
            Ok::<_, Error>(run.done(()))
        });
        let _ = handled.await.unwrap();
    }
    drop(watching);
    log.has(&[r#"delivery{replay=false id="a"}"#, "handling"]);
    for became in [
        r#"outcome="succeeded" decision="run"}"#,
        r#"decision="skip"}"#,
    ] {
        log.has(&[r#"delivery{replay=false id="a" "#, became, "close"]);
    }
}

#[cfg(feature = "metrics")]
mod counters {
    use super::{fails, ok};
    use crate::stores::{Probe, envelope};
    use babelqueue_guard::settings::LeaseLength;
    use babelqueue_guard::store::memory::{MemorySettings, MemoryStore};
    use babelqueue_guard::{Guard, StoreError, counters};
    use metrics_util::debugging::{DebugValue, DebuggingRecorder, Snapshotter};
    use std::collections::BTreeMap;
    use std::future::{Future, pending};
    use std::pin::pin;
    use std::task::{Context, Waker};
    use std::time::Duration;

    /// Everything that has been counted, such as
    /// `babelqueue_guard_deliveries_total decision=run`.
    fn counted(snapshotter: &Snapshotter) -> BTreeMap<String, u64> {
        let snapshot = snapshotter.snapshot().into_vec();
        let counters = snapshot.into_iter().map(|(key, _, described, value)| {
            let (_, key) = key.into_parts();
            let name = key.name().strip_prefix("babelqueue_guard_").unwrap();
            assert!(name.ends_with("_total"), "{name}");
            assert!(described.is_some(), "{name} is described");
            let labels = key
                .labels()
                .map(|label| format!(" {}={}", label.key(), label.value()));
            match value {
                DebugValue::Counter(count) => {
                    (name.to_owned() + &labels.collect::<String>(), count)
                }
                other => panic!("{name} is no counter but {other:?}"),
            }
        });
        counters.collect()
    }

    #[tokio::test]
    async fn everything_is_counted_that_a_consumer_is_watched_for() {
        let recorder = DebuggingRecorder::new();
        let snapshotter = recorder.snapshotter();
        let _counting = metrics::set_default_local_recorder(&recorder);
        counters::describe();

        let mut settings = MemorySettings::default();
        settings.lease = LeaseLength::of(Duration::from_millis(100)).unwrap();
        let mut store = Probe::default();
        store.memory = MemoryStore::new(settings).unwrap();
        let guard = Guard::claiming(store.clone()).unwrap();

        let _ = guard.process(&envelope("a"), ok).await.unwrap();
        let _ = guard.process(&envelope("a"), ok).await.unwrap();
        let _ = guard.process("[]", ok).await.unwrap();
        let _ = guard.process(&envelope("b"), fails).await.unwrap();

        let held = envelope("held");
        let copy = async |_| guard.process(&held, ok).await;
        let _ = guard.process(&held, copy).await.unwrap();
        {
            let abandoned = envelope("abandoned");
            let dropped =
                pin!(guard.process(&abandoned, async |_| pending::<Result<(), ()>>().await));
            let polled = dropped.poll(&mut Context::from_waker(Waker::noop()));
            assert!(polled.is_pending());
        }
        let panicking = guard.clone();
        let panicking = async move {
            let body = envelope("panic");
            let panics = async |_| -> Result<(), ()> { panic!("out of paper") };
            panicking.process(&body, panics).await
        };
        tokio::spawn(panicking).await.unwrap_err();

        let down = StoreError::Unavailable("down".into());
        store.fail("renew", down.clone());
        let late = async |context: babelqueue_guard::Context| {
            context.lease_lost().cancelled().await;
            store.mend();
            tokio::time::sleep(Duration::from_millis(200)).await;
            Ok::<_, ()>(())
        };
        let _ = guard.process(&envelope("late"), late).await.unwrap();
        store.fail("complete", down);
        let _ = guard.process(&envelope("c"), ok).await.unwrap();
        store.fail("claim", StoreError::Rejected("no such table".into()));
        let _ = guard.process(&envelope("d"), ok).await.unwrap_err();
        guard.forget("").await.unwrap_err();

        let mut counted = counted(&snapshotter);
        // As often as it was tried.
        let renewals = counted.remove("errors_total operation=renew class=unavailable");
        assert!(renewals.unwrap() >= 1);
        let expected = [
            ("deliveries_total decision=error", 1),
            ("deliveries_total decision=park", 1),
            ("deliveries_total decision=run", 8),
            ("deliveries_total decision=skip", 1),
            ("errors_total operation=decide class=rejected", 1),
            ("errors_total operation=forget class=rejected", 1),
            ("errors_total operation=settle class=unavailable", 1),
            ("fail_open_total reason=malformed", 1),
            ("handlers_total outcome=cancelled", 1),
            ("handlers_total outcome=failed", 1),
            ("handlers_total outcome=panicked", 1),
            ("handlers_total outcome=succeeded", 5),
            ("leases_lost_total", 1),
            ("marks_missing_total", 1),
        ];
        let expected = expected.map(|(name, count)| (name.to_owned(), count));
        assert_eq!(counted, BTreeMap::from(expected));
    }

    #[cfg(feature = "sqlite")]
    #[tokio::test]
    async fn transactions_are_counted_as_well() {
        use babelqueue_guard::sqlx::Error;
        use babelqueue_guard::store::sqlite::{SqliteSettings, SqliteStore};
        use babelqueue_guard::transaction::{Begun, Done, Running, TransactionGuard};

        let recorder = DebuggingRecorder::new();
        let snapshotter = recorder.snapshotter();
        let _counting = metrics::set_default_local_recorder(&recorder);
        counters::describe();

        type Handled = Result<Done<SqliteStore, ()>, Error>;
        let succeed = async |run: Running<'static, SqliteStore>| -> Handled { Ok(run.done(())) };
        let fail = async |_: Running<'static, SqliteStore>| -> Handled { Err(Error::RowNotFound) };
        let settings = SqliteSettings::default();
        let store = SqliteStore::connect("sqlite::memory:", &settings).await;
        let store = store.unwrap();
        let guard = TransactionGuard::new(store.clone()).unwrap();
        let _ = guard.process(&envelope("a"), succeed).await.unwrap();
        let _ = guard.process(&envelope("a"), succeed).await.unwrap();
        let _ = guard.process("[]", succeed).await.unwrap();
        let _ = guard.process(&envelope("b"), fail).await.unwrap();

        let mut transaction = store.pool().begin().await.unwrap();
        let begun = guard.begin(&mut transaction, &envelope("c")).await;
        let Begun::Run(run) = begun.unwrap() else {
            panic!("c is new")
        };
        run.fail().await.unwrap();
        transaction.rollback().await.unwrap();

        store.pool().close().await;
        let closed = guard.process(&envelope("d"), succeed).await;
        closed.unwrap_err();

        let expected = [
            ("deliveries_total decision=error", 1),
            ("deliveries_total decision=run", 4),
            ("deliveries_total decision=skip", 1),
            ("errors_total operation=transaction class=unavailable", 1),
            ("fail_open_total reason=malformed", 1),
            ("handlers_total outcome=failed", 2),
            ("handlers_total outcome=succeeded", 2),
        ];
        let expected = expected.map(|(name, count)| (name.to_owned(), count));
        assert_eq!(counted(&snapshotter), BTreeMap::from(expected));
    }
}
