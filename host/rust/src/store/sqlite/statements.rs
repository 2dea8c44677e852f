//! The statements, with the names of one consumer's tables.
//!
//! Each is whole in itself: SQLite lets one statement write at a time, and one
//! that writes sees all that was written before it. Without a transaction
//! around them there is none that could not be upgraded, so that
//! `busy_timeout` covers every wait.

use crate::store::tables::Tables;
use std::sync::Arc;

/// The machine's clock, read inside the statement, in milliseconds.
const NOW: &str = "CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER)";

/// `?1` is the id throughout; a length of `NULL` milliseconds is for ever.
#[derive(Debug)]
pub(super) struct Statements {
    pub(super) seen: Arc<str>,
    /// `?2` the retention.
    pub(super) remember: Arc<str>,
    /// The same, unless there is a live mark already.
    pub(super) mark_first: Arc<str>,
    pub(super) forget: Arc<str>,
    /// `?2` the token, `?3` the lease's length.
    pub(super) take: Arc<str>,
    /// `?2` the token. Gives marked, ours, left.
    pub(super) look: Arc<str>,
    /// `?2` the token, `?3` the lease's length.
    pub(super) renew: Arc<str>,
    /// `?2` the token. Gives whether the lease was live.
    pub(super) release: Arc<str>,
    /// `?2` the step, `?3` the retention.
    pub(super) set_once: Arc<str>,
    /// Gives live marks, leases and steps, and what is expired of all three.
    pub(super) stats: Arc<str>,
    pub(super) marks: Entries,
    pub(super) leases: Entries,
    /// For each table, `?1` how many rows.
    pub(super) collect: [Arc<str>; 3],
    /// Gives the names of those of our tables that are there.
    pub(super) present: Arc<str>,
}

/// Gives id, age and left.
#[derive(Debug)]
pub(super) struct Entries {
    /// `?1` the id.
    pub(super) one: Arc<str>,
    /// `?1` the id that they come after, `?2` how many.
    pub(super) page: Arc<str>,
}

impl Statements {
    pub(super) fn new(tables: &Tables) -> Self {
        let Tables { mark, lease, once } = tables;
        let marked = format!(
            "EXISTS (SELECT 1 FROM {mark} WHERE message_id = ?1 AND {})",
            live(mark)
        );
        let insert_mark = format!(
            "INSERT INTO {mark} (message_id, created_at, expires_at) \
             VALUES (?1, {NOW}, {NOW} + ?2) ON CONFLICT (message_id) DO UPDATE \
             SET created_at = excluded.created_at, expires_at = excluded.expires_at"
        );
        Self {
            seen: format!("SELECT {marked}").into(),
            mark_first: format!("{insert_mark} WHERE {}", expired(mark)).into(),
            remember: insert_mark.into(),
            forget: format!("DELETE FROM {mark} WHERE message_id = ?1").into(),
            // The look at the mark in here only spares the writing of a lease
            // that would be given back; the one that counts comes second.
            take: format!(
                "INSERT INTO {lease} (message_id, token, created_at, expires_at) \
                 SELECT ?1, ?2, {NOW}, {NOW} + ?3 WHERE NOT {marked} \
                 ON CONFLICT (message_id) DO UPDATE SET token = excluded.token, \
                 created_at = excluded.created_at, expires_at = excluded.expires_at WHERE {}",
                expired(lease)
            )
            .into(),
            look: format!(
                "SELECT {marked}, coalesce({lease}.token = ?2, 0), {lease}.expires_at - {NOW} \
                 FROM (SELECT 1) LEFT JOIN {lease} ON {lease}.message_id = ?1"
            )
            .into(),
            renew: format!(
                "UPDATE {lease} SET expires_at = {NOW} + ?3 \
                 WHERE message_id = ?1 AND token = ?2 AND {}",
                live(lease)
            )
            .into(),
            release: format!(
                "DELETE FROM {lease} WHERE message_id = ?1 AND token = ?2 \
                 RETURNING expires_at > {NOW}"
            )
            .into(),
            set_once: format!(
                "INSERT INTO {once} (message_id, step, created_at, expires_at) \
                 VALUES (?1, ?2, {NOW}, {NOW} + ?3) ON CONFLICT (message_id, step) DO UPDATE \
                 SET created_at = excluded.created_at, expires_at = excluded.expires_at WHERE {}",
                expired(once)
            )
            .into(),
            stats: format!(
                "SELECT {}, {}, {}, {} + {} + {}",
                count(mark, &live(mark)),
                count(lease, &live(lease)),
                count(once, &live(once)),
                count(mark, &expired(mark)),
                count(lease, &expired(lease)),
                count(once, &expired(once)),
            )
            .into(),
            marks: Entries::new(mark),
            leases: Entries::new(lease),
            collect: [
                collect(mark, "message_id"),
                collect(lease, "message_id"),
                collect(once, "message_id, step"),
            ],
            present: format!(
                "SELECT name FROM sqlite_schema WHERE type = 'table' \
                 AND name IN ('{mark}', '{lease}', '{once}')"
            )
            .into(),
        }
    }
}

impl Entries {
    fn new(table: &str) -> Self {
        let live = live(table);
        let select = format!(
            "SELECT message_id, {NOW} - created_at, expires_at - {NOW} FROM {table} WHERE {live}"
        );
        Self {
            one: format!("{select} AND message_id = ?1").into(),
            page: format!("{select} AND message_id > ?1 ORDER BY message_id LIMIT ?2").into(),
        }
    }
}

fn live(table: &str) -> String {
    format!("({table}.expires_at IS NULL OR {table}.expires_at > {NOW})")
}

fn expired(table: &str) -> String {
    format!("{table}.expires_at <= {NOW}")
}

fn count(table: &str, condition: &str) -> String {
    format!("(SELECT count(*) FROM {table} WHERE {condition})")
}

fn collect(table: &str, key: &str) -> Arc<str> {
    let expired = expired(table);
    format!(
        "DELETE FROM {table} WHERE ({key}) IN \
         (SELECT {key} FROM {table} WHERE {expired} LIMIT ?1)"
    )
    .into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::tables::DEFAULT_PREFIX;
    use sqlx::{AssertSqlSafe, Connection, Row, SqliteConnection};

    #[tokio::test]
    async fn no_question_reads_a_whole_table() {
        let tables = Tables::new(DEFAULT_PREFIX, None).unwrap();
        let statements = Statements::new(&tables);
        let mut connection = SqliteConnection::connect("sqlite::memory:").await.unwrap();
        sqlx::raw_sql(include_str!("sqlite.sql"))
            .execute(&mut connection)
            .await
            .unwrap();
        let [marks, leases, steps] = &statements.collect;
        for sql in [
            &statements.seen,
            &statements.remember,
            &statements.mark_first,
            &statements.forget,
            &statements.take,
            &statements.look,
            &statements.renew,
            &statements.release,
            &statements.set_once,
            &statements.marks.one,
            &statements.marks.page,
            &statements.leases.one,
            &statements.leases.page,
            marks,
            steps,
        ] {
            let plan = sqlx::query(AssertSqlSafe(format!("EXPLAIN QUERY PLAN {sql}")))
                .fetch_all(&mut connection)
                .await
                .unwrap();
            for step in plan {
                let step: String = step.get("detail");
                assert!(!step.starts_with("SCAN babelqueue"), "{sql}: {step}");
            }
        }
        // Leases have no such index: there are few, and each renewal would
        // change it.
        assert!(leases.contains("babelqueue_lease"));
    }
}
