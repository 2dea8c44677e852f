//! Marks in the handler's own transaction.

use super::PostgresStore;
use super::errors::{self, Failure};
use super::session::query;
use crate::error::StoreError;
use crate::transaction::TransactionalStore;
use async_trait::async_trait;
use sqlx::{PgConnection, PgPool, Postgres, Row};

/// The isolation is the database's default, or what the guard is told to
/// begin with.
#[async_trait]
impl TransactionalStore for PostgresStore {
    type Database = Postgres;

    const BEGIN: &'static str = "BEGIN";

    fn pool(&self) -> &PgPool {
        &self.pool
    }

    async fn mark_first(&self, connection: &mut PgConnection, id: &str) -> sqlx::Result<bool> {
        let rows = query(connection, &self.statements().mark_first(id)).await?;
        // Among rows that say what was set.
        Ok(rows.iter().any(|row| row.try_get(0).unwrap_or(false)))
    }

    async fn mark(&self, connection: &mut PgConnection, id: &str) -> sqlx::Result<()> {
        query(connection, &self.statements().remember(id)).await?;
        Ok(())
    }

    async fn probe(&self, connection: &mut PgConnection) -> sqlx::Result<()> {
        query(connection, "SELECT 1").await?;
        Ok(())
    }

    fn is_conflict(error: &sqlx::Error) -> bool {
        errors::is_conflict(error)
    }

    async fn meaning(&self, to: &str, error: sqlx::Error) -> StoreError {
        self.failed(to, &Failure::of(error))
    }
}
