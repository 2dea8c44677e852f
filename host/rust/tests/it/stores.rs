//! Stores that fail, wait or take notes, for the tests of the guard itself.

use babelqueue_guard::{ClaimOutcome, Claims, Hold, MemoryStore, Store, StoreError, async_trait};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use tokio::sync::Semaphore;

/// An envelope with this id.
pub(crate) fn envelope(id: &str) -> String {
    format!(
        r#"{{"job":"urn:babel:orders:created","data":{{"order_id":1042}},"meta":{{"id":"{id}"}}}}"#
    )
}

/// A memory store that notes each question, answers as told, and can be made
/// to wait before it writes.
#[derive(Clone, Default)]
pub(crate) struct Probe {
    pub(crate) memory: MemoryStore,
    asked: Arc<Mutex<Vec<String>>>,
    fault: Arc<Mutex<Option<(&'static str, StoreError)>>>,
    gate: Arc<Mutex<Option<Arc<Semaphore>>>>,
    pub(crate) waiting: Arc<AtomicUsize>,
}

impl Probe {
    /// What was asked so far, such as `seen a`.
    pub(crate) fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }

    /// Makes one kind of question fail, until told otherwise.
    pub(crate) fn fail(&self, question: &'static str, error: StoreError) {
        *self.fault.lock().unwrap() = Some((question, error));
    }

    pub(crate) fn mend(&self) {
        *self.fault.lock().unwrap() = None;
    }

    /// Makes every question wait for a permit.
    pub(crate) fn close(&self) -> Arc<Semaphore> {
        let gate = Arc::new(Semaphore::new(0));
        *self.gate.lock().unwrap() = Some(gate.clone());
        gate
    }

    async fn ask(&self, question: &'static str, id: &str) -> Result<(), StoreError> {
        self.asked.lock().unwrap().push(format!("{question} {id}"));
        let gate = self.gate.lock().unwrap().clone();
        if let Some(gate) = gate {
            self.waiting.fetch_add(1, Ordering::SeqCst);
            gate.acquire().await.unwrap().forget();
        }
        match &*self.fault.lock().unwrap() {
            Some((failing, error)) if *failing == question => Err(error.clone()),
            _ => Ok(()),
        }
    }
}

#[async_trait]
impl Store for Probe {
    async fn seen(&self, id: &str) -> Result<bool, StoreError> {
        self.ask("seen", id).await?;
        self.memory.seen(id).await
    }
    async fn remember(&self, id: &str) -> Result<(), StoreError> {
        self.ask("remember", id).await?;
        self.memory.remember(id).await
    }
    async fn forget(&self, id: &str) -> Result<(), StoreError> {
        self.ask("forget", id).await?;
        self.memory.forget(id).await
    }
}

#[async_trait]
impl Claims for Probe {
    async fn claim(&self, id: &str) -> Result<ClaimOutcome, StoreError> {
        self.ask("claim", id).await?;
        self.memory.claim(id).await
    }
    async fn renew(&self, id: &str, token: &str) -> Result<Hold, StoreError> {
        self.ask("renew", id).await?;
        self.memory.renew(id, token).await
    }
    async fn complete(&self, id: &str, token: &str) -> Result<Hold, StoreError> {
        self.ask("complete", id).await?;
        self.memory.complete(id, token).await
    }
    async fn release(&self, id: &str, token: &str) -> Result<Hold, StoreError> {
        self.ask("release", id).await?;
        self.memory.release(id, token).await
    }
}
