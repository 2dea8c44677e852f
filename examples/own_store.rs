//! A store of one's own: three functions, and the suite that every store has
//! to pass.

use babelqueue_guard::{Guard, Processed, Store, StoreError, async_trait, suite};
use std::collections::HashMap;
use std::error::Error;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// When each id was last remembered.
struct Notebook {
    retention: Option<Duration>,
    marks: Mutex<HashMap<String, Instant>>,
}

#[async_trait]
impl Store for Notebook {
    async fn seen(&self, id: &str) -> Result<bool, StoreError> {
        let live = |marked: &Instant| self.retention.is_none_or(|keep| marked.elapsed() < keep);
        Ok(self.marks().get(id).is_some_and(live))
    }

    async fn remember(&self, id: &str) -> Result<(), StoreError> {
        self.marks().insert(id.to_owned(), Instant::now());
        Ok(())
    }

    async fn forget(&self, id: &str) -> Result<(), StoreError> {
        self.marks().remove(id);
        Ok(())
    }
}

impl Notebook {
    fn keeping(retention: Option<Duration>) -> Self {
        let marks = Mutex::default();
        Self { retention, marks }
    }

    fn marks(&self) -> MutexGuard<'_, HashMap<String, Instant>> {
        self.marks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    suite::check_store(async |settings| {
        Notebook::keeping(settings.retention.millis().map(|millis| millis.duration()))
    })
    .await;
    println!("the notebook passes the suite");

    let guard = Guard::new(Notebook::keeping(None))?;
    for _ in 0..2 {
        let body = r#"{"job":"urn:babel:letters:sent","data":{},"meta":{"id":"letter-1"}}"#;
        let sent = guard.process(body, async |_| Ok::<_, ()>(())).await?;
        let sent = matches!(sent, Processed::Ran { .. });
        println!("letter-1: {}", if sent { "sent" } else { "had been sent" });
    }
    Ok(())
}
