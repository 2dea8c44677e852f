//! A store whose answers are written into the ledger.
//!
//! With the time at which the store was asked, which is before it answered:
//! a lease lasts at least its length from then on.

use crate::clock;
use crate::ledger::{Event, Ledger};
use babelqueue_guard::{ClaimOutcome, Claims, Hold, Inventory, Store, StoreError, async_trait};
use std::sync::Arc;

pub(crate) struct Recorded {
    pub(crate) store: Arc<dyn Inventory>,
    pub(crate) ledger: Ledger,
}

impl Recorded {
    fn write(&self, id: &str, event: Event) -> Result<(), StoreError> {
        let written = self.ledger.write(id, event);
        written.map_err(|error| StoreError::Rejected(format!("the ledger: {error}")))
    }
}

#[async_trait]
impl Store for Recorded {
    async fn seen(&self, id: &str) -> Result<bool, StoreError> {
        let asked = clock::now();
        let seen = self.store.seen(id).await?;
        if !seen {
            self.write(id, Event::Free { token: None, asked })?;
        }
        Ok(seen)
    }

    async fn remember(&self, id: &str) -> Result<(), StoreError> {
        self.store.remember(id).await?;
        self.write(id, Event::Marked)
    }

    async fn forget(&self, id: &str) -> Result<(), StoreError> {
        self.store.forget(id).await
    }
}

#[async_trait]
impl Claims for Recorded {
    async fn claim(&self, id: &str) -> Result<ClaimOutcome, StoreError> {
        let asked = clock::now();
        let found = self.store.claim(id).await?;
        if let ClaimOutcome::Won(lease) = &found {
            let token = Some(lease.token.clone());
            self.write(id, Event::Free { token, asked })?;
        }
        Ok(found)
    }

    async fn renew(&self, id: &str, token: &str) -> Result<Hold, StoreError> {
        let asked = clock::now();
        let token = token.to_owned();
        self.write(
            id,
            Event::Renewing {
                token: token.clone(),
            },
        )?;
        let hold = self.store.renew(id, &token).await;
        let event = match &hold {
            Ok(Hold::Held) => Event::Kept { token, asked },
            Ok(Hold::Lost) => Event::NotKept { token, lost: true },
            Err(_) => Event::NotKept { token, lost: false },
        };
        self.write(id, event)?;
        hold
    }

    async fn complete(&self, id: &str, token: &str) -> Result<Hold, StoreError> {
        let hold = self.store.complete(id, token).await?;
        self.write(id, Event::Marked)?;
        Ok(hold)
    }

    async fn release(&self, id: &str, token: &str) -> Result<Hold, StoreError> {
        self.store.release(id, token).await
    }
}
