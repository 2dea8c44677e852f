//! Marks in the handler's own transaction.

use super::{SqliteStore, statement};
use crate::error::StoreError;
use crate::transaction::TransactionalStore;
use async_trait::async_trait;
use sqlx::{Sqlite, SqliteConnection, SqlitePool};

/// A transaction holds the file's one right to write from its beginning: all
/// others wait for it, for as long as their `busy_timeout`.
#[async_trait]
impl TransactionalStore for SqliteStore {
    type Database = Sqlite;

    const BEGIN: &'static str = "BEGIN IMMEDIATE";

    fn pool(&self) -> &SqlitePool {
        &self.pool
    }

    async fn mark_first(&self, connection: &mut SqliteConnection, id: &str) -> sqlx::Result<bool> {
        let set = statement(&self.inner.statements.mark_first)
            .bind(id)
            .bind(self.retention())
            .execute(connection)
            .await?;
        Ok(set.rows_affected() == 1)
    }

    async fn mark(&self, connection: &mut SqliteConnection, id: &str) -> sqlx::Result<()> {
        statement(&self.inner.statements.remember)
            .bind(id)
            .bind(self.retention())
            .execute(connection)
            .await?;
        Ok(())
    }

    async fn probe(&self, _connection: &mut SqliteConnection) -> sqlx::Result<()> {
        // What fails here rolls itself back, and the transaction goes on.
        Ok(())
    }

    fn is_conflict(_error: &sqlx::Error) -> bool {
        false
    }

    async fn meaning(&self, to: &str, error: sqlx::Error) -> StoreError {
        self.failed(to, error).await
    }
}
