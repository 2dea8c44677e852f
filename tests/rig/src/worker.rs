//! The worker program: handles the deliveries that come in, several at a time,
//! until there are no more or it is killed.

use crate::effects;
use crate::ledger::{Event, Ledger};
use crate::messages::{Answer, Delivery, Result as Told};
use crate::recorded::Recorded;
use crate::settings::{Mode, Settings};
use babelqueue_guard::store::Inventory;
use babelqueue_guard::store::url::{ConnectError, connect};
use babelqueue_guard::transaction::TransactionGuard;
use babelqueue_guard::{Context, Error, Guard, Mark, Processed, StoreError};
use clap::Args;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::time::sleep;

#[derive(Args, Clone, Debug)]
pub(crate) struct Work {
    pub(crate) mode: Mode,
    /// The store's URL
    pub(crate) url: String,
    /// The ledger's file
    pub(crate) ledger: PathBuf,
    /// Length of a lease in milliseconds
    pub(crate) lease: u64,
    /// Its number in the rig
    pub(crate) number: u32,
}

/// What handles deliveries.
pub(crate) trait Consumer: Clone + Send + Sync + 'static {
    fn process(&self, delivery: &Delivery) -> impl Future<Output = Told> + Send;
}

pub(crate) async fn work(work: Work) -> Result<(), Box<dyn std::error::Error>> {
    if work.mode == Mode::Transaction {
        return if work.url.starts_with("sqlite:") {
            consume(TransactionGuard::new(effects::sqlite(&work.url).await?)?).await
        } else {
            consume(TransactionGuard::new(effects::postgres(&work.url).await?)?).await
        };
    }
    let ledger = Ledger::open(&work.ledger, work.number)?;
    let store = Recorded {
        store: open(&work.url, work.lease).await?,
        ledger: ledger.clone(),
    };
    let guard = if work.mode == Mode::Claim {
        Guard::claiming(store)?
    } else {
        Guard::new(store)?
    };
    consume(Noting { guard, ledger }).await
}

async fn consume(consumer: impl Consumer) -> Result<(), Box<dyn std::error::Error>> {
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    while let Some(line) = lines.next_line().await? {
        let delivery: Delivery = serde_json::from_str(&line)?;
        let consumer = consumer.clone();
        tokio::spawn(async move {
            let result = consumer.process(&delivery).await;
            let number = delivery.number;
            answer(&Answer { number, result })
        });
    }
    Ok(())
}

/// Opens the store; while it cannot be reached, tries again.
pub(crate) async fn open(
    url: &str,
    lease: u64,
) -> Result<Arc<dyn Inventory>, Box<dyn std::error::Error>> {
    let settings = Settings::of_store(lease)?;
    until_reached(async || connect(url, &settings).await).await
}

/// Connects; while the store cannot be reached, tries again.
pub(crate) async fn until_reached<S>(
    connect: impl AsyncFn() -> Result<S, ConnectError>,
) -> Result<S, Box<dyn std::error::Error>> {
    loop {
        match connect().await {
            Err(ConnectError::Store(StoreError::Unavailable(_))) => {
                sleep(Duration::from_millis(20)).await;
            }
            connected => return Ok(connected?),
        }
    }
}

/// A handler whose effect is a line in the ledger.
#[derive(Clone)]
struct Noting {
    guard: Guard,
    ledger: Ledger,
}

impl Consumer for Noting {
    async fn process(&self, delivery: &Delivery) -> Told {
        let handler = async |context: Context| {
            let id = context.id().ok_or("no id")?;
            let number = delivery.number;
            let note = |event| self.ledger.write(id, event).map_err(|_| "no ledger");
            note(Event::Begun { delivery: number })?;
            sleep(Duration::from_millis(delivery.work_ms)).await;
            let effect = !delivery.fails;
            note(Event::Ended {
                delivery: number,
                effect,
            })?;
            if effect { Ok(()) } else { Err("as asked") }
        };
        let processed = self.guard.process(&delivery.body, handler).await;
        match processed {
            Ok(Processed::Ran { mark, .. }) => match mark {
                Mark::Set | Mark::SetLate => Told::Marked,
                Mark::Missing(Error::Store(StoreError::Unavailable(_))) => Told::Unmarked,
                Mark::NoId => Told::Refused("no usable id".into()),
                Mark::Missing(error) => Told::Refused(error.to_string()),
            },
            Ok(Processed::Failed { .. }) if delivery.fails => Told::Failed,
            Ok(Processed::Failed { error, .. }) => Told::Refused(error.into()),
            Ok(Processed::Skipped { .. }) => Told::Skipped,
            Ok(Processed::Parked(parked)) => Told::Parked {
                left_ms: parked.left_ms,
            },
            Err(Error::Store(StoreError::Unavailable(_))) => Told::Unavailable,
            Err(error) => Told::Refused(error.to_string()),
        }
    }
}

fn answer(answer: &Answer) -> io::Result<()> {
    let mut line = serde_json::to_vec(answer)?;
    line.push(b'\n');
    let mut out = io::stdout().lock();
    out.write_all(&line)?;
    out.flush()
}
