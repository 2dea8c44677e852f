//! The statements, with the names of one consumer's tables.
//!
//! Each question is one message of the simple protocol: one round trip, with
//! nothing prepared, named or set in the session, and no transaction that
//! stays open between two messages. So a pooler may give every question
//! another server, and a worker that hangs holds no lock. (With parameters,
//! the driver parses in one message and executes in a second, which need not
//! meet the same server.)
//!
//! Several statements in one message are one transaction, but each has a
//! snapshot of its own: what was committed before it begins, it sees.

use crate::settings::{LeaseLength, Millis, Retention};
use crate::store::tables::Tables;
use crate::store::token::hex;

/// Makes the texts. Times are the server's, as they pass: `now()` would stand
/// still in a transaction.
#[derive(Debug)]
pub(super) struct Statements {
    tables: Tables,
    /// When a mark that is set now expires.
    marked_until: String,
    /// When a lease that is taken now lapses.
    leased_until: String,
    /// What each question begins with.
    prelude: String,
}

/// The latest clock time, read once for a statement, so that an index can be
/// searched for it.
const TIME: &str = "(SELECT clock_timestamp())";

impl Statements {
    pub(super) fn new(
        tables: Tables,
        retention: Retention,
        lease: LeaseLength,
        lock_timeout_ms: u64,
    ) -> Self {
        let after = |millis: Millis| {
            format!(
                "clock_timestamp() + {} * interval '1 millisecond'",
                millis.get()
            )
        };
        Self {
            tables,
            marked_until: retention.millis().map_or("NULL".into(), after),
            leased_until: after(lease.millis()),
            // In effect for this transaction alone, whatever the database's
            // or the role's defaults are.
            prelude: format!(
                "SET TRANSACTION ISOLATION LEVEL READ COMMITTED; SET LOCAL lock_timeout = {lock_timeout_ms}; "
            ),
        }
    }

    pub(super) fn tables(&self) -> &Tables {
        &self.tables
    }

    /// A message of its own, in a transaction of its own.
    pub(super) fn message(&self, statements: &str) -> String {
        format!("{}{statements}", self.prelude)
    }

    /// Gives whether there is a live mark.
    pub(super) fn seen(&self, id: &str) -> String {
        format!("SELECT {}", self.marked(&text(id)))
    }

    pub(super) fn remember(&self, id: &str) -> String {
        let Self { marked_until, .. } = self;
        let mark = &self.tables.mark;
        let id = text(id);
        format!(
            "INSERT INTO {mark} (message_id, created_at, expires_at) \
             VALUES ({id}, clock_timestamp(), {marked_until}) ON CONFLICT (message_id) DO UPDATE \
             SET created_at = clock_timestamp(), expires_at = {marked_until}"
        )
    }

    /// In a transaction of somebody's: sets the mark unless there is a live
    /// one, and gives a row with `true` if it did. Waits for another
    /// transaction that has set it, for as long as the `lock_timeout` that is
    /// in effect, or half a minute if there is none, and leaves that setting
    /// as it was.
    pub(super) fn mark_first(&self, id: &str) -> String {
        let remember = self.remember(id);
        let expired = expired(&self.tables.mark, "clock_timestamp()");
        format!(
            "SELECT set_config('babelqueue.lock_timeout', current_setting('lock_timeout'), true); \
             SELECT set_config('lock_timeout', '30s', true) \
             WHERE current_setting('lock_timeout') = '0'; \
             {remember} WHERE {expired} RETURNING true; \
             SELECT set_config('lock_timeout', current_setting('babelqueue.lock_timeout'), true)"
        )
    }

    pub(super) fn forget(&self, id: &str) -> String {
        let mark = &self.tables.mark;
        let id = text(id);
        format!("DELETE FROM {mark} WHERE message_id = {id}")
    }

    /// Takes the lease, then looks for the mark. Gives marked, ours, left.
    pub(super) fn claim(&self, id: &str, token: &str) -> String {
        let Self { leased_until, .. } = self;
        let lease = &self.tables.lease;
        let (id, token) = (text(id), text(token));
        let marked = self.marked(&id);
        let lapsed = expired(lease, "clock_timestamp()");
        let left = millis("expires_at", "expires_at - clock_timestamp()");
        // The look at the mark in the first statement only spares the writing
        // of a lease that would be given back: its snapshot may be older than
        // a mark that was there when the lease became free. The look that
        // counts is the second statement's.
        format!(
            "INSERT INTO {lease} (message_id, token, created_at, expires_at) \
             SELECT {id}, {token}, clock_timestamp(), {leased_until} WHERE NOT {marked} \
             ON CONFLICT (message_id) DO UPDATE SET token = EXCLUDED.token, \
             created_at = clock_timestamp(), expires_at = {leased_until} WHERE {lapsed}; \
             SELECT {marked}, coalesce(token = {token}, false), {left} \
             FROM (SELECT) AS one LEFT JOIN {lease} ON message_id = {id}"
        )
    }

    /// Gives a row if the lease was extended.
    pub(super) fn renew(&self, id: &str, token: &str) -> String {
        let Self { leased_until, .. } = self;
        let lease = &self.tables.lease;
        let (id, token) = (text(id), text(token));
        format!(
            "UPDATE {lease} SET expires_at = {leased_until} WHERE message_id = {id} \
             AND token = {token} AND expires_at > clock_timestamp() RETURNING true"
        )
    }

    /// Drops the lease, and gives whether it was live if it was there.
    pub(super) fn release(&self, id: &str, token: &str) -> String {
        let lease = &self.tables.lease;
        let (id, token) = (text(id), text(token));
        format!(
            "DELETE FROM {lease} WHERE message_id = {id} AND token = {token} \
             RETURNING expires_at > clock_timestamp()"
        )
    }

    /// Sets the mark, then drops the lease; gives what
    /// [`release`](Self::release) gives.
    pub(super) fn complete(&self, id: &str, token: &str) -> String {
        format!("{}; {}", self.remember(id), self.release(id, token))
    }

    /// Gives a row if this set the step's mark.
    pub(super) fn set_once(&self, id: &str, step: &str) -> String {
        let Self { marked_until, .. } = self;
        let once = &self.tables.once;
        let (id, step) = (text(id), text(step));
        let expired = expired(once, "clock_timestamp()");
        format!(
            "INSERT INTO {once} (message_id, step, created_at, expires_at) \
             VALUES ({id}, {step}, clock_timestamp(), {marked_until}) \
             ON CONFLICT (message_id, step) DO UPDATE \
             SET created_at = clock_timestamp(), expires_at = {marked_until} \
             WHERE {expired} RETURNING true"
        )
    }

    /// Gives live marks, leases and steps, and what is expired of all three.
    pub(super) fn stats(&self) -> String {
        let count =
            |table: &str, which: &str| format!("(SELECT count(*) FROM {table} WHERE {which})");
        let tables = self.tables.all();
        let live = tables.map(|table| count(table, &live(table, TIME)));
        let expired = tables.map(|table| count(table, &expired(table, TIME)));
        format!("SELECT {}, {}", live.join(", "), expired.join(" + "))
    }

    /// Gives id, age and left of the live row of an id.
    pub(super) fn entry(table: &str, id: &str) -> String {
        format!("{} AND message_id = {}", entries(table), text(id))
    }

    /// The same of many, in the order of the ids' bytes.
    pub(super) fn page(table: &str, after: &str, limit: u32) -> String {
        format!(
            "{} AND message_id > {} COLLATE \"C\" ORDER BY message_id COLLATE \"C\" LIMIT {limit}",
            entries(table),
            text(after)
        )
    }

    /// Removes some expired rows, and gives how many. A row that anybody else
    /// is at work on is passed over. The order makes sure that the index on it
    /// is used.
    pub(super) fn collect(&self, table: &str, limit: u64) -> String {
        let key = if table == self.tables.once {
            "message_id, step"
        } else {
            "message_id"
        };
        let expired = expired(table, TIME);
        format!(
            "WITH expired AS MATERIALIZED (SELECT {key} FROM {table} WHERE {expired} \
             ORDER BY expires_at LIMIT {limit} FOR UPDATE SKIP LOCKED), \
             gone AS (DELETE FROM {table} WHERE ({key}) IN (SELECT {key} FROM expired) \
             RETURNING true) SELECT count(*) FROM gone"
        )
    }

    /// Gives name and kind of those of our tables that are there.
    pub(super) fn present(&self) -> String {
        let names = self
            .tables
            .all()
            .map(|table| format!("to_regclass('{table}')"));
        format!(
            "SELECT relname::text, relkind::text FROM pg_class WHERE oid IN ({})",
            names.join(", ")
        )
    }

    /// What several who do this at once must do one after the other.
    pub(super) fn migrate(&self, shipped: &str) -> String {
        // Any number will do, as long as nobody else uses it.
        format!(
            "SELECT pg_advisory_xact_lock(7143206950428103); {}",
            self.tables.rename(shipped)
        )
    }

    fn marked(&self, id: &str) -> String {
        let mark = &self.tables.mark;
        let live = live(mark, "clock_timestamp()");
        format!("EXISTS (SELECT FROM {mark} WHERE message_id = {id} AND {live})")
    }
}

fn entries(table: &str) -> String {
    format!(
        "SELECT message_id, {}, {} FROM {table} WHERE {}",
        millis("created_at", "clock_timestamp() - created_at"),
        millis("expires_at", "expires_at - clock_timestamp()"),
        live(table, TIME)
    )
}

fn live(table: &str, time: &str) -> String {
    format!("({table}.expires_at IS NULL OR {table}.expires_at > {time})")
}

fn expired(table: &str, time: &str) -> String {
    format!("{table}.expires_at <= {time}")
}

/// A difference of times in whole milliseconds, rounded up; null if the time
/// is, or is infinite.
fn millis(time: &str, difference: &str) -> String {
    format!(
        "CASE WHEN isfinite({time}) THEN ceil(extract(epoch FROM {difference}) * 1000)::bigint END"
    )
}

/// A text from outside, in a form in which no character of it can mean
/// anything, whatever the session's settings.
fn text(value: &str) -> String {
    format!(
        "convert_from(decode('{}', 'hex'), 'UTF8')",
        hex(value.as_bytes())
    )
}
