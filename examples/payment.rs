//! A payment in the same transaction as the mark of its message: both are
//! there, or neither is, whenever a worker dies.
//!
//! It runs in a SQLite file of its own, or in the PostgreSQL database whose URL
//! is in `BQ_GUARD_POSTGRES`; there it uses tables that begin with `example_`.

use babelqueue_guard::sqlx::{self, Database, query, query_scalar};
use babelqueue_guard::store::postgres::{PostgresSettings, PostgresStore};
use babelqueue_guard::store::sqlite::{SqliteSettings, SqliteStore};
use babelqueue_guard::transaction::{Done, Running, TransactionGuard, TransactionalStore};
use babelqueue_guard::{Inventory, Processed};
use serde::{Deserialize, Serialize};
use std::error::Error;
use std::process::{Command, abort};
use std::{env, fs};

type Connection<S> = <<S as TransactionalStore>::Database as Database>::Connection;

const TABLES: [&str; 6] = [
    "DROP TABLE IF EXISTS example_idempotency",
    "DROP TABLE IF EXISTS example_accounts",
    "DROP TABLE IF EXISTS example_payments",
    "CREATE TABLE example_accounts (holder TEXT, cents BIGINT CHECK (cents >= 0))",
    "CREATE TABLE example_payments (number TEXT, cents BIGINT)",
    "INSERT INTO example_accounts VALUES ('ann', 10000)",
];

/// The two databases take the same statements.
trait Shop: TransactionalStore + Inventory {
    async fn run(connection: &mut Connection<Self>, statement: &'static str) -> sqlx::Result<()>;
    async fn write(
        connection: &mut Connection<Self>,
        statement: &'static str,
        name: &str,
        cents: i64,
    ) -> sqlx::Result<()>;
    async fn count(&self, statement: &'static str) -> sqlx::Result<i64>;
}

macro_rules! shop {
    ($store:ty) => {
        impl Shop for $store {
            async fn run(
                connection: &mut Connection<Self>,
                statement: &'static str,
            ) -> sqlx::Result<()> {
                query(statement).execute(connection).await.map(drop)
            }
            async fn write(
                connection: &mut Connection<Self>,
                statement: &'static str,
                name: &str,
                cents: i64,
            ) -> sqlx::Result<()> {
                let query = query(statement).bind(name).bind(cents);
                query.execute(connection).await.map(drop)
            }
            async fn count(&self, statement: &'static str) -> sqlx::Result<i64> {
                query_scalar(statement).fetch_one(self.pool()).await
            }
        }
    };
}
shop!(SqliteStore);
shop!(PostgresStore);

#[derive(Deserialize, Serialize)]
struct Order {
    number: String,
    cents: i64,
}

#[derive(Deserialize)]
struct Envelope {
    data: Order,
}

/// The handler: two writes, which are committed together with the mark.
async fn pay<S: Shop>(mut run: Running<'static, S>, order: &Order) -> sqlx::Result<Done<S, ()>> {
    let payment = "INSERT INTO example_payments VALUES ($1, $2)";
    S::write(&mut run, payment, &order.number, order.cents).await?;
    let account = "UPDATE example_accounts SET cents = cents - $2 WHERE holder = $1";
    S::write(&mut run, account, "ann", order.cents).await?;
    if env::args().any(|argument| argument == "die") {
        abort();
    }
    Ok(run.done(()))
}

async fn deliver<S: Shop>(
    guard: &TransactionGuard<S>,
    body: &str,
) -> Result<String, Box<dyn Error>> {
    let Envelope { data: order } = serde_json::from_str(body)?;
    let processed = guard
        .process(body, async |run| pay(run, &order).await)
        .await?;
    Ok(match processed {
        Processed::Ran { .. } => "paid".into(),
        Processed::Failed { error, .. } => match error.as_database_error() {
            Some(error) if error.is_check_violation() => "failed, not enough money".into(),
            _ => format!("failed: {error}"),
        },
        Processed::Skipped { .. } | Processed::Parked(_) => "skipped".into(),
    })
}

fn order(number: &str, cents: i64) -> String {
    serde_json::json!({
        "job": "urn:babel:orders:created",
        "data": Order { number: number.into(), cents },
        "meta": { "id": format!("order-{number}") },
    })
    .to_string()
}

async fn day<S: Shop>(store: S, url: &str) -> Result<(), Box<dyn Error>> {
    let guard = TransactionGuard::new(store.clone())?;
    if env::args().any(|argument| argument == "die") {
        deliver(&guard, &order("4", 500)).await?;
        return Ok(());
    }
    let mut connection = store.pool().acquire().await?;
    for statement in TABLES {
        S::run(&mut connection, statement).await?;
    }
    drop(connection);
    store.migrate().await?;
    let report = async |what: &str| -> sqlx::Result<()> {
        let payments = store.count("SELECT COUNT(*) FROM example_payments").await?;
        let cents = store.count("SELECT cents FROM example_accounts").await?;
        println!("{what:<46}payments: {payments}, in ann's account: {cents}");
        Ok(())
    };

    let first = order("1", 1_500);
    report(&format!("order 1: {}", deliver(&guard, &first).await?)).await?;
    report(&format!(
        "delivered again: {}",
        deliver(&guard, &first).await?
    ))
    .await?;

    let second = order("2", 2_500);
    let (one, other) = tokio::join!(deliver(&guard, &second), deliver(&guard, &second));
    report(&format!("order 2 twice at once: {}, {}", one?, other?)).await?;

    let third = order("3", 1_000_000);
    report(&format!("order 3: {}", deliver(&guard, &third).await?)).await?;

    let mut worker = Command::new(env::current_exe()?);
    let died = worker.args(["die", url]).status()?;
    assert!(!died.success());
    report("order 4: its worker died before the commit").await?;
    let fourth = order("4", 500);
    report(&format!(
        "delivered again: {}",
        deliver(&guard, &fourth).await?
    ))
    .await?;
    report(&format!("and again: {}", deliver(&guard, &fourth).await?)).await?;
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    if let Ok(url) = env::var("BQ_GUARD_POSTGRES") {
        let mut settings = PostgresSettings::default();
        settings.prefix = "example_".into();
        return day(PostgresStore::connect(&url, &settings).await?, &url).await;
    }
    let mut settings = SqliteSettings::default();
    settings.prefix = "example_".into();
    if let Some(url) = env::args().nth(2) {
        return day(SqliteStore::connect(&url, &settings).await?, &url).await;
    }
    let folder = env::temp_dir().join(format!("guard-payment-{}", std::process::id()));
    fs::create_dir(&folder)?;
    let url = format!("sqlite:{}", folder.join("shop.db").display());
    let result = day(SqliteStore::connect(&url, &settings).await?, &url).await;
    fs::remove_dir_all(folder)?;
    result
}
