//! The mark in the handler's own transaction, on each database.

mod crashes;
#[cfg(feature = "postgres")]
mod postgres;
mod rules;
#[cfg(feature = "sqlite")]
mod sqlite;

use babelqueue_guard::sqlx::{Database, Result};
use babelqueue_guard::transaction::{Done, Running, TransactionGuard, TransactionalStore};
use tokio::task::JoinHandle;

/// A database in which payments are made: the effect that must happen once.
/// Nothing but the guard keeps them from being made twice.
pub(crate) trait Shop: Send + Sync + 'static {
    type Store: TransactionalStore<Database = Self::Database>;
    type Database: Database;

    async fn store(&self) -> Self::Store;

    /// Pays for an order, on the connection of a handler.
    fn pay(
        connection: &mut <Self::Database as Database>::Connection,
        order: &str,
    ) -> impl Future<Output = Result<()>> + Send;

    /// Runs a statement that fails.
    fn stumble(
        connection: &mut <Self::Database as Database>::Connection,
    ) -> impl Future<Output = Result<()>> + Send;

    /// How often an order has been paid for.
    async fn paid(&self, order: &str) -> i64;

    /// How many payments there are, none of which may be twice for one order.
    async fn payments(&self) -> usize;

    /// Lets the marks that are there expire.
    async fn expire(&self);

    /// Pays for an order in a task of its own.
    fn spawn(guard: TransactionGuard<Self::Store>, id: &'static str) -> JoinHandle<()>;

    async fn guard(&self) -> TransactionGuard<Self::Store> {
        TransactionGuard::new(self.store().await).unwrap()
    }
}

pub(crate) fn body(id: &str) -> String {
    format!(r#"{{"job":"urn:babel:orders:paid","meta":{{"id":"{id}"}}}}"#)
}

/// Pays for what the message is about.
pub(crate) async fn pay_for<S: Shop>(run: &mut Running<'_, S::Store>) -> Result<()> {
    let order = run.id().unwrap_or("unknown").to_owned();
    S::pay(run, &order).await
}

/// The same as a handler.
pub(crate) async fn pay<S: Shop>(
    mut run: Running<'static, S::Store>,
) -> Result<Done<S::Store, ()>> {
    pay_for::<S>(&mut run).await?;
    Ok(run.done(()))
}

/// The rules that do not depend on the database.
macro_rules! obeys_the_rules {
    ($shop:expr) => {
        $crate::transaction::obeys_the_rules! {
            $shop =>
            an_effect_happens_once_and_its_mark_is_everybodys
            a_plain_consumers_mark_is_seen
            an_expired_mark_is_revived
            a_failure_takes_back_what_the_handler_did
            a_panic_takes_back_what_the_handler_did
            dropped_half_way_it_leaves_nothing
            without_an_id_it_runs_in_a_transaction_all_the_same
            copies_that_race_pay_once
            after_a_winner_that_fails_the_next_one_runs
            the_callers_transaction_decides
            a_duplicate_does_not_abort_the_callers_transaction
            a_failure_leaves_the_callers_transaction_alone
            a_savepoint_that_is_dropped_is_rolled_back
            a_replay_runs_after_forget
            it_can_be_spawned
        }
    };
    ($shop:expr => $($rule:ident)*) => {$(
        #[tokio::test(flavor = "multi_thread")]
        async fn $rule() {
            if let Some(shop) = $shop {
                $crate::transaction::rules::$rule(shop).await;
            }
        }
    )*};
}
pub(crate) use obeys_the_rules;
