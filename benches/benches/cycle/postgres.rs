//! PostgreSQL: the store's statements, each question one message of the simple
//! protocol, over the store's own pool.

use super::{Contender, Duel, Message, Outcome, Source};
use babelqueue_guard::sqlx::postgres::PgRow;
use babelqueue_guard::sqlx::{AssertSqlSafe, PgPool, raw_sql};
use babelqueue_guard::store::postgres::{PostgresSettings, PostgresStore};
use babelqueue_guard::{Guard, Inventory, async_trait};

/// What every message begins with.
const PRELUDE: &str =
    "SET TRANSACTION ISOLATION LEVEL READ COMMITTED; SET LOCAL lock_timeout = 2500";

pub(crate) async fn bench(source: &mut Source) -> Outcome {
    let Some(server) = test_servers::postgres() else {
        eprintln!("skipped: no postgres here");
        return Ok(());
    };
    let url = server.url("postgres");
    let store = PostgresStore::connect(&url, &PostgresSettings::default()).await?;
    store.migrate().await?;
    let pool = store.pool();
    let seen = Duel {
        store: "PostgreSQL",
        mode: "seen-set",
        guard: &Guard::new(store.clone())?,
        raw: &Seen(pool.clone()),
    };
    let claims = Duel {
        mode: "claims",
        guard: &Guard::claiming(store.clone())?,
        raw: &Claims(pool.clone()),
        ..seen
    };
    for duel in [seen, claims] {
        for in_flight in [1, 64] {
            source.duel(&duel, in_flight).await?;
        }
    }
    Ok(())
}

async fn ask(pool: &PgPool, statements: &str) -> Outcome<Vec<PgRow>> {
    let message = format!("{PRELUDE}; {statements}");
    let rows = raw_sql(AssertSqlSafe(message)).fetch_all(pool).await?;
    Ok(rows)
}

struct Seen(PgPool);

#[async_trait(?Send)]
impl Contender for Seen {
    async fn cycle(&self, Message { id, .. }: &Message) -> Outcome {
        ask(&self.0, &format!("SELECT {}", marked(id))).await?;
        ask(&self.0, &mark(id)).await?;
        Ok(())
    }
}

struct Claims(PgPool);

#[async_trait(?Send)]
impl Contender for Claims {
    async fn cycle(&self, Message { id, .. }: &Message) -> Outcome {
        let marked = marked(id);
        let until = "clock_timestamp() + 60000 * interval '1 millisecond'";
        let claim = format!(
            "INSERT INTO babelqueue_lease (message_id, token, created_at, expires_at) \
             SELECT '{id}', '{id}', clock_timestamp(), {until} WHERE NOT {marked} \
             ON CONFLICT (message_id) DO UPDATE SET token = EXCLUDED.token, \
             created_at = clock_timestamp(), expires_at = {until} \
             WHERE babelqueue_lease.expires_at <= clock_timestamp(); \
             SELECT {marked}, coalesce(token = '{id}', false), CASE WHEN isfinite(expires_at) THEN \
             ceil(extract(epoch FROM expires_at - clock_timestamp()) * 1000)::bigint END \
             FROM (SELECT) AS one LEFT JOIN babelqueue_lease ON message_id = '{id}'"
        );
        ask(&self.0, &claim).await?;
        let complete = format!(
            "{}; DELETE FROM babelqueue_lease WHERE message_id = '{id}' AND token = '{id}' \
             RETURNING expires_at > clock_timestamp()",
            mark(id)
        );
        let dropped = ask(&self.0, &complete).await?;
        if dropped.len() != 1 {
            return Err(format!("{id} was not leased").into());
        }
        Ok(())
    }
}

fn marked(id: &str) -> String {
    format!(
        "EXISTS (SELECT FROM babelqueue_idempotency WHERE message_id = '{id}' \
         AND (expires_at IS NULL OR expires_at > clock_timestamp()))"
    )
}

fn mark(id: &str) -> String {
    let until = "clock_timestamp() + 1209600000 * interval '1 millisecond'";
    format!(
        "INSERT INTO babelqueue_idempotency (message_id, created_at, expires_at) \
         VALUES ('{id}', clock_timestamp(), {until}) ON CONFLICT (message_id) DO UPDATE \
         SET created_at = clock_timestamp(), expires_at = {until}"
    )
}
