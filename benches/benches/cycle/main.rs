//! What a whole cycle costs: a delivery decided on, an empty handler run, its
//! success recorded. Next to it the same commands or statements sent raw, by
//! the same client to the same server, in slices that take turns.
//!
//! Prints rows of a table for the README. PostgreSQL does not wait for the
//! disk here, so that the guard's part stands out; SQLite does.

mod postgres;
mod redis;
mod sqlite;

use babelqueue_guard::{Guard, Mark, Processed, async_trait};
use futures_util::future::try_join_all;
use guard_benches::{envelope_of, is_measuring, median};
use std::convert::Infallible;
use std::error::Error;
use std::time::{Duration, Instant};

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

/// A message that nobody has seen.
struct Message {
    id: String,
    body: Vec<u8>,
}

/// Who handles messages.
#[async_trait(?Send)]
trait Contender {
    async fn cycle(&self, message: &Message) -> Outcome;
}

#[async_trait(?Send)]
impl Contender for Guard {
    async fn cycle(&self, message: &Message) -> Outcome {
        let handler = async |_| Ok::<_, Infallible>(());
        match self.process(&message.body[..], handler).await? {
            Processed::Ran {
                mark: Mark::Set, ..
            } => Ok(()),
            other => Err(format!("{}: {other:?}", message.id).into()),
        }
    }
}

/// One row: the guard against the raw commands.
struct Duel<'c> {
    store: &'c str,
    mode: &'c str,
    guard: &'c dyn Contender,
    raw: &'c dyn Contender,
}

/// Makes messages with ids of their own.
#[derive(Default)]
struct Source(u64);

impl Source {
    fn messages(&mut self, count: usize) -> Vec<Message> {
        let mut message = || {
            self.0 += 1;
            let id = format!("00000000-0000-4000-8000-{:012}", self.0);
            let body = envelope_of(&id);
            Message { id, body }
        };
        (0..count).map(|_| message()).collect()
    }

    /// The time of a cycle, from one slice with so many in flight all along.
    async fn slice(
        &mut self,
        contender: &dyn Contender,
        in_flight: usize,
        each: usize,
    ) -> Outcome<Duration> {
        let messages = self.messages(in_flight * each);
        let lane = async |messages: &[Message]| {
            for message in messages {
                contender.cycle(message).await?;
            }
            Outcome::Ok(())
        };
        let begun = Instant::now();
        try_join_all(messages.chunks(each).map(lane)).await?;
        Ok(begun.elapsed() / u32::try_from(messages.len())?)
    }

    async fn duel(&mut self, duel: &Duel<'_>, in_flight: usize) -> Outcome {
        let (slices, count) = if is_measuring() { (41, 512) } else { (3, 64) };
        let each = count / in_flight;
        let (mut guard, mut raw) = (Vec::new(), Vec::new());
        for slice in 0..=slices {
            let times = (
                self.slice(duel.guard, in_flight, each).await?,
                self.slice(duel.raw, in_flight, each).await?,
            );
            // In the first one, connections are opened.
            if slice > 0 {
                guard.push(times.0);
                raw.push(times.1);
            }
        }
        let (guard, raw) = (median(guard), median(raw));
        println!(
            "| {} | {} | {in_flight} | {:.1} µs | {:.1} µs | {:.2} |",
            duel.store,
            duel.mode,
            micros(guard),
            micros(raw),
            guard.as_secs_f64() / raw.as_secs_f64()
        );
        Ok(())
    }
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

fn main() -> Outcome {
    println!("| store | mode | in flight | a cycle | sent raw | guard ÷ raw |");
    println!("|---|---|---|---|---|---|");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let mut source = Source::default();
        redis::bench(&mut source).await?;
        postgres::bench(&mut source).await?;
        sqlite::bench(&mut source).await
    })
}
