//! The worker program of `tests/README.md` for the Rust host: a JSON object a
//! line in, one a line out.

#![allow(unreachable_pub, reason = "a program has no public interface")]

mod requests;

use babelqueue_guard::drive::Asked;
use babelqueue_guard::settings::{Consumer, LeaseLength, Retention};
use babelqueue_guard::store::Inventory;
use babelqueue_guard::store::url::{ConnectError, UrlSettings, connect};
use babelqueue_guard::{
    Component, Context, Decision, Delivery, Error, Guard, Mark, MemoryStore, Processed, Store,
    StoreError,
};
use requests::{Answer, Failure, Open, Outcome, Process, Request};
use std::io::{self, BufRead, Write};
use std::sync::Arc;
use std::time::Duration;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut worker = Worker::over(Arc::new(MemoryStore::default()), false)?;
    for line in io::stdin().lock().lines() {
        let answer = match serde_json::from_str(&line?) {
            Ok(request) => worker.answer(request).await,
            Err(error) => Answer::Failure(Failure::unsupported(&error)),
        };
        let mut out = io::stdout().lock();
        serde_json::to_writer(&mut out, &answer)?;
        out.write_all(b"\n")?;
        out.flush()?;
    }
    Ok(())
}

struct Worker {
    store: Arc<dyn Inventory>,
    guard: Guard,
}

impl Worker {
    fn over(store: Arc<dyn Inventory>, claim: bool) -> Result<Self, Error> {
        let guard = if claim {
            Guard::claiming(store.clone())?
        } else {
            Guard::new(store.clone())?
        };
        let guard = guard.with_steps(store.clone());
        Ok(Self { store, guard })
    }

    async fn answer(&mut self, request: Request) -> Answer {
        let answer = match request {
            Request::Open(open) => self.open(open).await,
            Request::Verdict { file } => verdict(&file),
            Request::Process(process) => self.process(process).await,
            Request::Seen { id } => self.seen(&id).await,
            Request::Remember { id } => self.remember(&id).await,
            Request::Forget { id } => self.forget(&id).await,
        };
        answer.unwrap_or_else(Answer::Failure)
    }

    async fn open(&mut self, open: Open) -> Result<Answer, Failure> {
        let mut settings = UrlSettings::default();
        settings.prefix = open.prefix;
        settings.consumer = open
            .name
            .map(Consumer::named)
            .transpose()
            .map_err(unusable)?;
        if let Some(ms) = open.retention_ms {
            settings.retention = Retention::of(Duration::from_millis(ms)).map_err(unusable)?;
        }
        if let Some(ms) = open.lease_ms {
            settings.lease = LeaseLength::of(Duration::from_millis(ms)).map_err(unusable)?;
        }
        let store = connect(&open.store, &settings)
            .await
            .map_err(|error| match error {
                ConnectError::Store(error) => Failure::of(&error.into()),
                error => unusable(error),
            })?;
        *self = Self::over(store, open.claim).map_err(|error| Failure::of(&error))?;
        Ok(Answer::Ok { ok: true })
    }

    async fn seen(&self, id: &str) -> Result<Answer, Failure> {
        let seen = self.store.seen(id).await.map_err(of_store)?;
        Ok(Answer::Seen { seen })
    }

    async fn remember(&self, id: &str) -> Result<Answer, Failure> {
        self.store.remember(id).await.map_err(of_store)?;
        Ok(Answer::Ok { ok: true })
    }

    async fn forget(&self, id: &str) -> Result<Answer, Failure> {
        let forgotten = self.guard.forget(id).await;
        forgotten.map_err(|error| Failure::of(&error))?;
        Ok(Answer::Ok { ok: true })
    }

    async fn process(&self, request: Process) -> Result<Answer, Failure> {
        let file = request.file.as_ref().map(std::fs::read).transpose();
        let file = file.map_err(unusable)?;
        let delivery = match (&request.id, &request.body, &file) {
            (Some(id), ..) => Delivery::from_id(id),
            (None, Some(body), _) => Delivery::from_body(body),
            (None, None, Some(file)) => Delivery::from_body(file),
            (None, None, None) => return Err(Failure::unsupported(&"no body, file or id")),
        };
        let delivery = delivery.with_headers(request.headers.keys());

        let mut told = requests::Processed::default();
        let handler = async |context: Context| {
            told.replay = Some(context.is_replay());
            if let Some(step) = &request.step {
                told.step = Some(context.once(step).await.map_err(Some)?);
            }
            tokio::time::sleep(Duration::from_millis(request.hold_ms)).await;
            match request.outcome {
                Outcome::Ok => Ok(()),
                Outcome::Throw => Err(None),
            }
        };
        let processed = self.guard.process(delivery, handler).await;
        tell(&mut told, processed);
        Ok(Answer::Processed(told))
    }
}

fn tell(told: &mut requests::Processed, processed: Result<Processed<(), Option<Error>>, Error>) {
    let processed = match processed {
        Ok(processed) => processed,
        Err(error) => {
            told.decision = "error";
            told.error = Some(error.class());
            return;
        }
    };
    told.id = processed.id().map(str::to_owned);
    told.reason = processed
        .fail_open()
        .map(babelqueue_guard::FailOpen::as_str);
    match processed {
        Processed::Ran { mark, .. } => {
            told.decision = "run";
            told.outcome = Some("succeeded");
            told.marked = matches!(mark, Mark::Set | Mark::SetLate);
            if let Mark::Missing(error) = mark {
                told.error = Some(error.class());
            }
        }
        Processed::Failed { error, .. } => {
            told.decision = "run";
            told.outcome = Some("failed");
            told.error = error.map(|error| error.class());
        }
        Processed::Skipped { .. } => told.decision = "skip",
        Processed::Parked(parked) => {
            told.decision = "park";
            told.left_ms = Some(parked.left_ms);
        }
    }
}

fn verdict(file: &std::path::Path) -> Result<Answer, Failure> {
    let body = std::fs::read(file).map_err(unusable)?;
    let component = Component::plain().map_err(|error| Failure::of(&error.into()))?;
    let asked = component
        .ask(&Delivery::from_body(&body))
        .map_err(|error| Failure::of(&error))?;
    Ok(match asked {
        Asked::Seen { id, .. } | Asked::Claim { id } => Answer::Verdict {
            id: Some(id),
            reason: None,
        },
        Asked::Decided(Decision::Run(ticket)) => Answer::Verdict {
            id: None,
            reason: ticket.id().err().map(babelqueue_guard::FailOpen::as_str),
        },
        Asked::Decided(other) => return Err(Failure::unsupported(&format!("{other:?}"))),
    })
}

fn of_store(error: StoreError) -> Failure {
    Failure::of(&error.into())
}

fn unusable(error: impl std::fmt::Display) -> Failure {
    Failure::unsupported(&error)
}
