//! In PostgreSQL.

use super::{Shop, body, obeys_the_rules, pay, pay_for};
use crate::postgres::Database;
use crate::postgres::order::until_waiting;
use babelqueue_guard::settings::Retention;
use babelqueue_guard::sqlx::{Error, PgConnection, Postgres, Result, query, raw_sql};
use babelqueue_guard::store::postgres::{PostgresSettings, PostgresStore};
use babelqueue_guard::transaction::{Begun, Running, TransactionGuard};
use babelqueue_guard::{Inventory, Processed, Store};
use std::time::Duration;
use test_servers::Pgbouncer;
use tokio::task::JoinHandle;

pub(super) struct Server(pub(super) Database);

impl Server {
    pub(super) async fn new() -> Option<Self> {
        let database = Database::new().await?;
        database.sql("CREATE TABLE payments (order_id text)");
        Some(Self(database))
    }
}

impl Shop for Server {
    type Store = PostgresStore;
    type Database = Postgres;

    async fn store(&self) -> PostgresStore {
        self.0.store().await
    }

    async fn pay(connection: &mut PgConnection, order: &str) -> Result<()> {
        query("INSERT INTO payments VALUES ($1)")
            .bind(order)
            .persistent(false)
            .execute(connection)
            .await?;
        Ok(())
    }

    async fn stumble(connection: &mut PgConnection) -> Result<()> {
        raw_sql("SELECT no_such_column").execute(connection).await?;
        Ok(())
    }

    async fn paid(&self, order: &str) -> i64 {
        let count = format!("SELECT count(*) FROM payments WHERE order_id = '{order}'");
        self.0.sql(&count).parse().unwrap()
    }

    async fn payments(&self) -> usize {
        let counts = self
            .0
            .sql("SELECT count(*), count(DISTINCT order_id) FROM payments");
        let (all, orders) = counts.split_once('|').unwrap();
        assert_eq!(all, orders);
        all.parse().unwrap()
    }

    async fn expire(&self) {
        self.0
            .sql("UPDATE babelqueue_idempotency SET expires_at = now() - interval '1 hour'");
    }

    fn spawn(guard: TransactionGuard<PostgresStore>, id: &'static str) -> JoinHandle<()> {
        tokio::spawn(async move {
            // With something borrowed, as most handlers have.
            let order = id.to_owned();
            let handler = async |mut run: Running<'static, Self::Store>| {
                Self::pay(&mut run, &order).await?;
                Ok::<_, Error>(run.done(()))
            };
            let _ = guard.process(&body(id), handler).await.unwrap();
        })
    }
}

obeys_the_rules!(Server::new().await);

async fn begin(store: &PostgresStore) -> babelqueue_guard::sqlx::Transaction<'static, Postgres> {
    store.pool().begin().await.unwrap()
}

/// In a transaction `now()` is its beginning: by that time the mark would be
/// live still.
#[tokio::test(flavor = "multi_thread")]
async fn a_mark_expires_while_a_transaction_is_open() {
    let Some(shop) = Server::new().await else {
        return;
    };
    let store = shop.store().await;
    let mut transaction = begin(&store).await;
    raw_sql("SELECT now()")
        .execute(&mut *transaction)
        .await
        .unwrap();
    let mut settings = PostgresSettings::default();
    settings.retention = Retention::of(Duration::from_millis(200)).unwrap();
    let brief = shop.0.store_with(&settings).await;
    brief.remember("a").await.unwrap();
    let guard = TransactionGuard::new(brief).unwrap();
    let skipped = guard.begin(&mut transaction, &body("a")).await.unwrap();
    assert!(matches!(skipped, Begun::Skip(_)));
    drop(skipped);
    tokio::time::sleep(Duration::from_millis(300)).await;
    let Begun::Run(run) = guard.begin(&mut transaction, &body("a")).await.unwrap() else {
        panic!("the mark has expired")
    };
    tokio::time::sleep(Duration::from_millis(300)).await;
    run.succeed().await.unwrap();
    transaction.commit().await.unwrap();
    assert!(
        store.seen("a").await.unwrap(),
        "its retention began with the success"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_loser_of_a_race_waits_and_sees_the_winners_mark() {
    let Some(shop) = Server::new().await else {
        return;
    };
    let store = shop.store().await;
    let guard = TransactionGuard::new(store.clone()).unwrap();
    let mut winner = begin(&store).await;
    let Begun::Run(mut run) = guard.begin(&mut winner, &body("a")).await.unwrap() else {
        panic!("it is new")
    };
    let loser = tokio::spawn({
        let guard = guard.clone();
        async move { guard.process(&body("a"), pay::<Server>).await }
    });
    until_waiting(&shop.0).await;
    pay_for::<Server>(&mut run).await.unwrap();
    run.succeed().await.unwrap();
    winner.commit().await.unwrap();
    let lost = loser.await.unwrap().unwrap();
    assert!(matches!(lost, Processed::Skipped { .. }), "{lost:?}");
    assert_eq!(shop.paid("a").await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_wait_is_bounded_and_the_callers_own_bound_is_kept() {
    let Some(shop) = Server::new().await else {
        return;
    };
    let store = shop.store().await;
    let guard = TransactionGuard::new(store.clone()).unwrap();
    let mut winner = begin(&store).await;
    let begun = guard.begin(&mut winner, &body("a")).await.unwrap();
    let mut loser = begin(&store).await;
    raw_sql("SET LOCAL lock_timeout = '200ms'")
        .execute(&mut *loser)
        .await
        .unwrap();
    let error = guard.begin(&mut loser, &body("a")).await.unwrap_err();
    assert_eq!(error.class(), "unavailable");
    assert!(error.to_string().contains("55P03"), "{error}");
    drop(begun);

    let lock_timeout = async |connection: &mut PgConnection| -> String {
        babelqueue_guard::sqlx::query_scalar("SELECT current_setting('lock_timeout')")
            .fetch_one(connection)
            .await
            .unwrap()
    };
    // After a failure, after a decision, and where there was none.
    assert_eq!(lock_timeout(&mut loser).await, "200ms");
    let begun = guard.begin(&mut loser, &body("b")).await.unwrap();
    let Begun::Run(mut run) = begun else {
        panic!("it is new")
    };
    assert_eq!(lock_timeout(&mut run).await, "200ms");
    drop(run);
    let begun = guard.begin(&mut winner, &body("c")).await.unwrap();
    let Begun::Run(mut run) = begun else {
        panic!("it is new")
    };
    assert_eq!(lock_timeout(&mut run).await, "0");
}

#[tokio::test(flavor = "multi_thread")]
async fn above_read_committed_a_lost_race_is_run_again() {
    let Some(shop) = Server::new().await else {
        return;
    };
    for begin in [
        "BEGIN ISOLATION LEVEL REPEATABLE READ",
        "BEGIN ISOLATION LEVEL SERIALIZABLE",
    ] {
        let guard = shop.guard().await.begin_with(begin);
        for n in 0..10 {
            let id = format!("{begin} {n}");
            let envelope = body(&id);
            let copies = (0..4).map(|_| guard.process(&envelope, pay::<Server>));
            for copy in futures_util::future::join_all(copies).await {
                assert!(copy.unwrap().acknowledge());
            }
            assert_eq!(shop.paid(&id).await, 1);
        }
    }
    // In the caller's own transaction it is for the caller to run it again.
    let store = shop.store().await;
    let guard = TransactionGuard::new(store.clone()).unwrap();
    let mut late = store
        .pool()
        .begin_with("BEGIN ISOLATION LEVEL REPEATABLE READ")
        .await
        .unwrap();
    raw_sql("SELECT 1").execute(&mut *late).await.unwrap();
    store.remember("late").await.unwrap();
    let error = guard.begin(&mut late, &body("late")).await.unwrap_err();
    assert_eq!(error.class(), "unavailable");
    assert!(error.to_string().contains("40001"), "{error}");
}

/// An error of the handler's own that has the database's at its root.
#[derive(Debug, thiserror::Error)]
enum OrderError {
    #[error("the payment failed")]
    Payment(#[source] Error),
}

#[tokio::test(flavor = "multi_thread")]
async fn a_conflict_in_the_handler_is_run_again_a_few_times() {
    let Some(shop) = Server::new().await else {
        return;
    };
    shop.0.sql(
        "CREATE SEQUENCE turns; \
         CREATE FUNCTION lose() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
         IF nextval('turns') <= 3 THEN RAISE EXCEPTION 'lost' USING ERRCODE = '40P01'; \
         END IF; RETURN new; END $$; \
         CREATE TRIGGER lose BEFORE INSERT ON payments FOR EACH ROW EXECUTE FUNCTION lose()",
    );
    let guard = shop.guard().await;
    let handler = async |run| pay::<Server>(run).await.map_err(OrderError::Payment);
    let processed = guard.process(&body("a"), handler).await.unwrap();
    assert!(matches!(processed, Processed::Ran { .. }), "{processed:?}");
    assert_eq!(shop.paid("a").await, 1);
    assert_eq!(shop.0.sql("SELECT last_value FROM turns"), "4");

    shop.0
        .sql("ALTER SEQUENCE turns MINVALUE -100 RESTART WITH -100");
    let failed = guard.process(&body("b"), handler).await.unwrap();
    assert!(
        matches!(
            failed,
            Processed::Failed {
                error: OrderError::Payment(_),
                ..
            }
        ),
        "{failed:?}"
    );
    assert_eq!(shop.paid("b").await, 0);
    assert!(!shop.store().await.seen("b").await.unwrap());
}

/// PostgreSQL answers `COMMIT` without an error when it rolls back what has
/// been aborted.
#[tokio::test(flavor = "multi_thread")]
async fn a_handler_that_hides_a_failed_statement_has_not_succeeded() {
    let Some(shop) = Server::new().await else {
        return;
    };
    let guard = shop.guard().await;
    for envelope in [body("a"), "{}".into()] {
        let hidden = guard
            .process(&envelope, async |mut run| {
                pay_for::<Server>(&mut run).await?;
                let _ = Server::stumble(&mut run).await;
                Ok::<_, Error>(run.done(()))
            })
            .await;
        let error = hidden.unwrap_err();
        assert!(error.to_string().contains("25P02"), "{error}");
        assert_eq!(shop.0.sql("SELECT count(*) FROM payments"), "0");
    }
    assert!(!shop.store().await.seen("a").await.unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_table_leaves_the_callers_transaction_alone() {
    let Some(database) = Database::empty() else {
        return;
    };
    database.sql("CREATE TABLE payments (order_id text)");
    let store = database.store().await;
    let guard = TransactionGuard::new(store.clone()).unwrap();
    let mut transaction = begin(&store).await;
    let error = guard.begin(&mut transaction, &body("a")).await.unwrap_err();
    assert_eq!(error.class(), "rejected");
    assert!(error.to_string().contains("migrate"), "{error}");
    Server::pay(&mut transaction, "after").await.unwrap();
    transaction.commit().await.unwrap();
    assert_eq!(database.sql("SELECT order_id FROM payments"), "after");
}

#[tokio::test(flavor = "multi_thread")]
async fn it_works_behind_a_pooler() {
    let Some(shop) = Server::new().await else {
        return;
    };
    let Some(pooler) = Pgbouncer::start(shop.0.server, 3, "") else {
        return;
    };
    let url = pooler.url(&shop.0.name);
    let store = PostgresStore::connect(&url, &PostgresSettings::default())
        .await
        .unwrap();
    let guard = TransactionGuard::new(store).unwrap();
    let workers: Vec<_> = (0..6)
        .map(|_| {
            let guard = guard.clone();
            tokio::spawn(async move {
                for n in 0..20 {
                    let envelope = body(&n.to_string());
                    let processed = guard.process(&envelope, pay::<Server>).await.unwrap();
                    assert!(processed.acknowledge());
                }
            })
        })
        .collect();
    for worker in workers {
        worker.await.unwrap();
    }
    assert_eq!(
        shop.0
            .sql("SELECT count(*), count(DISTINCT order_id) FROM payments"),
        "20|20"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_hangs_or_goes_away_commits_nothing_by_halves() {
    let Some(mut server) = test_servers::postgres() else {
        return;
    };
    let url = server.url("postgres");
    let mut settings = PostgresSettings::default();
    settings.timeout = Duration::from_secs(1);
    let store = PostgresStore::connect(&url, &settings).await.unwrap();
    store.migrate().await.unwrap();
    server.sql("postgres", "CREATE TABLE payments (order_id text)");
    let guard = TransactionGuard::new(store)
        .unwrap()
        .with_timeout(Duration::from_secs(1))
        .unwrap();
    let _ = guard.process(&body("warm"), pay::<Server>).await.unwrap();

    server.pause();
    let error = guard.process(&body("a"), pay::<Server>).await.unwrap_err();
    assert_eq!(error.class(), "unavailable", "{error}");
    server.resume();
    while guard.process(&body("a"), pay::<Server>).await.is_err() {}

    let failed = guard
        .process(&body("b"), async |mut run| {
            pay_for::<Server>(&mut run).await?;
            server.sql(
                "postgres",
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
                 WHERE application_name = 'babelqueue-guard'",
            );
            Ok::<_, Error>(run.done(()))
        })
        .await;
    assert_eq!(failed.unwrap_err().class(), "unavailable");
    let marks = "SELECT count(*) FROM babelqueue_idempotency WHERE message_id = 'b'";
    assert_eq!(server.sql("postgres", marks), "0");
    server.restart();
    while guard.process(&body("b"), pay::<Server>).await.is_err() {}
    let paid = "SELECT count(*) FROM payments WHERE order_id IN ('a', 'b')";
    assert_eq!(server.sql("postgres", paid), "2");
}
