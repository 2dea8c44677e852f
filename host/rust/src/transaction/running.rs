//! A delivery whose handler runs in a transaction.

use super::{TransactionGuard, TransactionalStore, Trouble};
use crate::drive::Write;
use crate::error::Error;
use crate::processed::Mark;
use crate::types::{FailOpen, Outcome, Ticket};
use crate::watch::{self, Ending, Handling, Verdict};
use sqlx::{Database, Transaction};
use std::fmt;
use std::ops::{Deref, DerefMut};

/// What a guard has decided within a transaction.
#[derive(Debug)]
#[must_use]
pub enum Begun<'t, S: TransactionalStore> {
    /// The handler is to run, with this.
    Run(Running<'t, S>),
    /// The message of this id has been processed. The transaction goes on as
    /// if nothing had been asked.
    Skip(String),
}

impl<'a, S: TransactionalStore> From<&'a Begun<'_, S>> for Verdict<'a> {
    fn from(begun: &'a Begun<'_, S>) -> Self {
        match begun {
            Begun::Run(run) => Self::Run(run.ticket.id()),
            Begun::Skip(id) => Self::Skip(id),
        }
    }
}

/// The connection for the statements of one handler. What they do, and the
/// mark, is kept or taken back as a whole.
///
/// It dereferences to the connection: `query.execute(&mut *run)`. Dropped, it
/// takes everything back.
#[must_use]
pub struct Running<'t, S: TransactionalStore> {
    guard: TransactionGuard<S>,
    transaction: Transaction<'t, S::Database>,
    ticket: Ticket,
    replay: bool,
}

impl<'t, S: TransactionalStore> Running<'t, S> {
    pub(super) fn new(
        guard: TransactionGuard<S>,
        transaction: Transaction<'t, S::Database>,
        ticket: Ticket,
        replay: bool,
    ) -> Self {
        Self {
            guard,
            transaction,
            ticket,
            replay,
        }
    }

    /// The message's id, if it has a usable one.
    #[must_use]
    pub fn id(&self) -> Option<&str> {
        self.ticket.id().ok()
    }

    /// Why the delivery failed open and is not deduplicated, if it did
    /// (contract, section 1).
    #[must_use]
    pub fn fail_open(&self) -> Option<FailOpen> {
        self.ticket.id().err()
    }

    /// Whether the delivery is a deliberate replay (contract, section 6).
    #[must_use]
    pub fn is_replay(&self) -> bool {
        self.replay
    }

    /// The handler of [`process`](TransactionGuard::process) has succeeded,
    /// with this value.
    pub fn done<T>(self, value: T) -> Done<S, T>
    where
        't: 'static,
    {
        Done { run: self, value }
    }

    /// After [`begin`](TransactionGuard::begin), the handler has succeeded:
    /// the savepoint is released. All that it did is committed, and the
    /// message marked, when the transaction is.
    ///
    /// # Errors
    ///
    /// The mark could not be confirmed, which is also so after a statement of
    /// the handler's has failed; what it did is taken back.
    pub async fn succeed(self) -> Result<Mark, Error> {
        Handling::begin().ended(Ending::Succeeded);
        let store = self.guard.store.clone();
        let marked = match self.end().await {
            Ok(mark) => Ok(mark),
            Err(trouble) => Err(trouble.explained(&store).await),
        };
        watch::errors("settle", marked)
    }

    /// The handler has failed: all that it did is taken back, and the mark
    /// with it. After [`begin`](TransactionGuard::begin), the transaction goes
    /// on from where it was before.
    ///
    /// # Errors
    ///
    /// The database could not be told. Nothing of the transaction should be
    /// committed then.
    pub async fn fail(self) -> Result<(), Error> {
        Handling::begin().ended(Ending::Failed);
        let store = self.guard.store.clone();
        let undone = match self.undo().await {
            Ok(()) => Ok(()),
            Err(trouble) => Err(trouble.explained(&store).await),
        };
        watch::errors("settle", undone)
    }

    pub(super) fn ticket(&self) -> &Ticket {
        &self.ticket
    }

    pub(super) async fn end(mut self) -> Result<Mark, Trouble> {
        let guard = &self.guard;
        let settlement = guard
            .component
            .settlement(&self.ticket, Outcome::Succeeded)?;
        let mark = match settlement.write {
            Write::Remember { id } => {
                let set = guard.store.mark(&mut self.transaction, &id);
                guard.within("confirm a mark", set).await?;
                Mark::Set
            }
            Write::Nothing => {
                // A database says nothing when it is told to commit what it
                // has aborted.
                let probe = guard.store.probe(&mut self.transaction);
                guard.within("go on with the transaction", probe).await?;
                Mark::NoId
            }
            Write::Complete { .. } | Write::Release { .. } => {
                return Err(super::mismatch().into());
            }
        };
        guard.within("commit", self.transaction.commit()).await?;
        Ok(mark)
    }

    async fn undo(self) -> Result<(), Trouble> {
        let guard = &self.guard;
        let settlement = guard.component.settlement(&self.ticket, Outcome::Failed)?;
        if settlement.write != Write::Nothing {
            return Err(super::mismatch().into());
        }
        guard.within("roll back", self.transaction.rollback()).await
    }
}

/// The success of a handler, to be committed.
#[must_use]
pub struct Done<S: TransactionalStore, T> {
    run: Running<'static, S>,
    value: T,
}

impl<S: TransactionalStore, T> Done<S, T> {
    pub(super) fn into_parts(self) -> (Running<'static, S>, T) {
        (self.run, self.value)
    }
}

impl<S: TransactionalStore, T: fmt::Debug> fmt::Debug for Done<S, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Done")
            .field("run", &self.run)
            .field("value", &self.value)
            .finish()
    }
}

impl<S: TransactionalStore> Deref for Running<'_, S> {
    type Target = <S::Database as Database>::Connection;

    fn deref(&self) -> &Self::Target {
        &self.transaction
    }
}

impl<S: TransactionalStore> DerefMut for Running<'_, S> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.transaction
    }
}

impl<S: TransactionalStore> fmt::Debug for Running<'_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Running")
            .field("ticket", &self.ticket)
            .field("replay", &self.replay)
            .finish_non_exhaustive()
    }
}
