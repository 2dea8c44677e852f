//! SQLite: the store's statements over the store's own connection, of which
//! there is one: more in flight would only queue up for it.

use super::{Contender, Duel, Message, Outcome, Source};
use babelqueue_guard::sqlx::{SqlitePool, query};
use babelqueue_guard::store::sqlite::{SqliteSettings, SqliteStore};
use babelqueue_guard::{Guard, async_trait};

macro_rules! now {
    () => {
        "CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER)"
    };
}

macro_rules! marked {
    () => {
        concat!(
            "EXISTS (SELECT 1 FROM babelqueue_idempotency WHERE message_id = ?1 \
             AND (expires_at IS NULL OR expires_at > ",
            now!(),
            "))"
        )
    };
}

const SEEN: &str = concat!("SELECT ", marked!());
const REMEMBER: &str = concat!(
    "INSERT INTO babelqueue_idempotency (message_id, created_at, expires_at) VALUES (?1, ",
    now!(),
    ", ",
    now!(),
    " + ?2) ON CONFLICT (message_id) DO UPDATE \
     SET created_at = excluded.created_at, expires_at = excluded.expires_at"
);
const TAKE: &str = concat!(
    "INSERT INTO babelqueue_lease (message_id, token, created_at, expires_at) SELECT ?1, ?2, ",
    now!(),
    ", ",
    now!(),
    " + ?3 WHERE NOT ",
    marked!(),
    " ON CONFLICT (message_id) DO UPDATE SET token = excluded.token, \
     created_at = excluded.created_at, expires_at = excluded.expires_at \
     WHERE babelqueue_lease.expires_at <= ",
    now!()
);
const LOOK: &str = concat!(
    "SELECT ",
    marked!(),
    ", coalesce(babelqueue_lease.token = ?2, 0), babelqueue_lease.expires_at - ",
    now!(),
    " FROM (SELECT 1) LEFT JOIN babelqueue_lease ON babelqueue_lease.message_id = ?1"
);
const RELEASE: &str = concat!(
    "DELETE FROM babelqueue_lease WHERE message_id = ?1 AND token = ?2 RETURNING expires_at > ",
    now!()
);

const RETENTION_MS: i64 = 14 * 24 * 60 * 60 * 1_000;
const LEASE_MS: i64 = 60_000;

pub(crate) async fn bench(source: &mut Source) -> Outcome {
    let folder = tempfile::tempdir()?;
    let url = format!("sqlite:{}", folder.path().join("guard.db").display());
    let store = SqliteStore::connect(&url, &SqliteSettings::default()).await?;
    let pool = store.pool();
    let seen = Duel {
        store: "SQLite",
        mode: "seen-set",
        guard: &Guard::new(store.clone())?,
        raw: &Seen(pool.clone()),
    };
    source.duel(&seen, 1).await?;
    let claims = Duel {
        mode: "claims",
        guard: &Guard::claiming(store.clone())?,
        raw: &Claims(pool.clone()),
        ..seen
    };
    source.duel(&claims, 1).await
}

struct Seen(SqlitePool);

#[async_trait(?Send)]
impl Contender for Seen {
    async fn cycle(&self, Message { id, .. }: &Message) -> Outcome {
        query(SEEN).bind(id).fetch_one(&self.0).await?;
        let remember = query(REMEMBER).bind(id).bind(RETENTION_MS);
        remember.execute(&self.0).await?;
        Ok(())
    }
}

struct Claims(SqlitePool);

#[async_trait(?Send)]
impl Contender for Claims {
    async fn cycle(&self, Message { id, .. }: &Message) -> Outcome {
        let mut connection = self.0.acquire().await?;
        let take = query(TAKE).bind(id).bind(id).bind(LEASE_MS);
        take.execute(&mut *connection).await?;
        let look = query(LOOK).bind(id).bind(id);
        look.fetch_one(&mut *connection).await?;
        drop(connection);
        let mut transaction = self.0.begin_with("BEGIN IMMEDIATE").await?;
        let remember = query(REMEMBER).bind(id).bind(RETENTION_MS);
        remember.execute(&mut *transaction).await?;
        let release = query(RELEASE).bind(id).bind(id);
        release.fetch_one(&mut *transaction).await?;
        transaction.commit().await?;
        Ok(())
    }
}
