//! Ten thousand deliveries in flight at once: how many instances of the
//! component there are then, and how much memory a delivery takes. Next to it
//! as many tasks that wait without a guard.
//!
//! Prints rows of a table for the README.

use babelqueue_guard::{Component, Guard, MemoryStore, Store, StoreError, async_trait};
use guard_benches::{envelope_of, is_measuring};
use std::convert::Infallible;
use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::Semaphore;

/// Where those who arrive wait until it is opened.
#[derive(Debug)]
struct Gate {
    arrived: AtomicUsize,
    open: Semaphore,
}

impl Gate {
    fn closed() -> Arc<Self> {
        Arc::new(Self {
            arrived: AtomicUsize::new(0),
            open: Semaphore::new(0),
        })
    }

    async fn pass(&self) {
        self.arrived.fetch_add(1, Ordering::Relaxed);
        // An error means that the gate has been closed for good: go on.
        let _ = self.open.acquire().await;
    }

    async fn all_arrived(&self, count: usize) {
        while self.arrived.load(Ordering::Relaxed) < count {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

/// A store whose answer is long in coming.
struct Waiting(Arc<Gate>);

#[async_trait]
impl Store for Waiting {
    async fn seen(&self, _id: &str) -> Result<bool, StoreError> {
        self.0.pass().await;
        Ok(false)
    }

    async fn remember(&self, _id: &str) -> Result<(), StoreError> {
        Ok(())
    }

    async fn forget(&self, _id: &str) -> Result<(), StoreError> {
        Ok(())
    }
}

/// Starts so many tasks, waits until all of them do, and prints what they
/// take. They stay, so that the next ones find no memory to use again.
async fn row<F>(
    name: &str,
    component: Option<&Component>,
    gate: &Gate,
    count: usize,
    task: impl Fn(usize) -> F,
) -> Result<(), Box<dyn Error>>
where
    F: Future<Output = ()> + Send + 'static,
{
    let before = resident()?;
    for number in 0..count {
        tokio::spawn(task(number));
    }
    gate.all_arrived(count).await;
    let taken = resident()?.saturating_sub(before);
    let instances = component.map_or_else(|| "none".into(), |it| it.pooled().to_string());
    println!("| {name} | {count} | {instances} | {} B |", taken / count);
    Ok(())
}

/// The memory of this process that is in use, in bytes.
fn resident() -> Result<usize, Box<dyn Error>> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.trim().strip_suffix(" kB"));
    Ok(kib
        .ok_or("no VmRSS in /proc/self/status")?
        .parse::<usize>()?
        * 1024)
}

async fn bench() -> Result<(), Box<dyn Error>> {
    let count = if is_measuring() { 10_000 } else { 500 };
    let (plain, claiming) = (Component::plain()?, Component::claiming()?);

    println!("| waiting | in flight | instances | memory of each |");
    println!("|---|---|---|---|");
    let gate = Gate::closed();
    row("a task without a guard", None, &gate, count, |_| {
        let gate = gate.clone();
        async move { gate.pass().await }
    })
    .await?;

    let gate = Gate::closed();
    let guard = Guard::new(Waiting(gate.clone()))?;
    let name = "for the store, seen-set";
    row(name, Some(&plain), &gate, count, |number| {
        let guard = guard.clone();
        async move {
            let body = envelope_of(&number.to_string());
            let handler = async |_| Ok::<_, Infallible>(());
            let _ = guard.process(&body[..], handler).await;
        }
    })
    .await?;

    let gate = Gate::closed();
    let guard = Guard::claiming(MemoryStore::default())?;
    let name = "for the handler, claims in memory";
    row(name, Some(&claiming), &gate, count, |number| {
        let (guard, gate) = (guard.clone(), gate.clone());
        async move {
            let body = envelope_of(&number.to_string());
            let handler = async move |_| {
                gate.pass().await;
                Ok::<_, Infallible>(())
            };
            let _ = guard.process(&body[..], handler).await;
        }
    })
    .await
}

fn main() -> Result<(), Box<dyn Error>> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    let done = runtime.block_on(bench());
    // The tasks wait for ever.
    runtime.shutdown_background();
    done
}
