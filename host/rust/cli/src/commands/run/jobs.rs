//! All lines of the input, several at a time.

use super::delivery::{Handled, Next, handle, too_long};
use super::effect::Effect;
use super::lines::Input;
use super::parked::{Attempt, Parked};
use super::report::Reports;
use super::signals::Signals;
use super::stop::Stop;
use babelqueue_guard::Guard;
use rustix::process::Signal;
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::task::{Id, JoinSet};
use tokio::time::{Instant, sleep_until, timeout_at};

/// After a stop, what is left of the input is counted as long as it comes
/// this fast, and for this long.
const NEXT_LINE: Duration = Duration::from_millis(100);
const COUNTING: Duration = Duration::from_secs(1);

/// The handling of one input.
pub struct Jobs {
    pub guard: Guard,
    pub effect: Arc<Effect>,
    pub input: mpsc::Receiver<io::Result<Input>>,
    /// How many lines are handled at a time.
    pub maximum: usize,
    /// The longest body, in bytes.
    pub limit: usize,
    pub signals: Signals,
    /// Where a second signal is passed on to commands.
    pub to_commands: watch::Sender<Option<Signal>>,
    pub reports: Reports,
}

/// What is under way.
#[derive(Default)]
struct State {
    running: JoinSet<(Attempt, Handled)>,
    /// The lines' numbers.
    numbers: BTreeMap<Id, u64>,
    parked: Parked,
    input_ended: bool,
    stop: Option<Stop>,
    signalled: bool,
}

impl Jobs {
    /// Handles every line, or as many as come before something stops it.
    pub async fn run(mut self) -> Reports {
        let mut state = State::default();
        while !state.is_over() {
            let free = state.stop.is_none() && state.running.len() < self.maximum;
            let due = state.parked.due().filter(|_| free);
            tokio::select! {
                biased;
                signal = self.signals.next() => {
                    if std::mem::replace(&mut state.signalled, true) {
                        match *self.effect {
                            Effect::Exec(_) => drop(self.to_commands.send(Some(signal))),
                            // It waits for a reader who reads no more.
                            Effect::PassOn => break,
                        }
                    }
                    state.stop.get_or_insert(Stop::Signal(signal));
                }
                Some(ended) = state.running.join_next_with_id() => match ended {
                    Ok((id, (attempt, handled))) => {
                        state.numbers.remove(&id);
                        self.ended(attempt, handled, &mut state);
                    }
                    Err(error) if error.is_panic() => {
                        std::panic::resume_unwind(error.into_panic())
                    }
                    Err(_) => {}
                },
                () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => {
                    if let Some(attempt) = state.parked.take() {
                        self.start(attempt, &mut state);
                    }
                }
                input = self.input.recv(),
                    if free && !state.input_ended && !state.parked.is_full() =>
                {
                    self.read(input, &mut state);
                }
            }
        }
        self.count_the_rest(state).await;
        self.reports
    }

    fn read(&mut self, input: Option<io::Result<Input>>, state: &mut State) {
        match input {
            None => state.input_ended = true,
            Some(Ok(Input::Blank)) => self.reports.blank(),
            Some(Ok(Input::Line(line))) => {
                self.reports.line();
                let line = Arc::new(line);
                self.start(Attempt { line, parked: 0 }, state);
            }
            Some(Ok(Input::TooLong { n, len })) => {
                self.reports.line();
                let handled = too_long(n, len, self.limit);
                self.report(&handled, 0, state);
            }
            Some(Err(error)) => {
                state.input_ended = true;
                state
                    .stop
                    .get_or_insert(Stop::CannotRead(error.to_string()));
            }
        }
    }

    fn start(&self, attempt: Attempt, state: &mut State) {
        let (guard, effect) = (self.guard.clone(), self.effect.clone());
        let n = attempt.line.n;
        let task = state.running.spawn(async move {
            let handled = handle(&guard, &effect, &attempt.line).await;
            (attempt, handled)
        });
        state.numbers.insert(task.id(), n);
    }

    fn ended(&mut self, attempt: Attempt, handled: Handled, state: &mut State) {
        self.report(&handled, attempt.parked, state);
        match handled.next {
            Next::Done | Next::GiveUp => {}
            Next::Again { left } => state.parked.park(attempt, left),
            Next::Stop(stop) => drop(state.stop.get_or_insert(stop)),
        }
    }

    fn report(&mut self, handled: &Handled, parked: u32, state: &mut State) {
        if self.reports.handled(handled, parked).is_err() {
            // The effect has happened and is marked; who wanted to know of it
            // has gone away.
            state.stop.get_or_insert(Stop::ReaderGone);
        }
    }

    /// Says what was not handled.
    async fn count_the_rest(&mut self, mut state: State) {
        for &n in state.numbers.values() {
            self.reports.not_handled(n);
        }
        while let Some(attempt) = state.parked.take() {
            self.reports.not_handled(attempt.line.n);
        }
        let Some(stop) = state.stop else { return };
        let mut left = !state.input_ended;
        if !matches!(stop, Stop::ReaderGone) {
            let end = Instant::now() + COUNTING;
            while left && Instant::now() < end {
                let next = end.min(Instant::now() + NEXT_LINE);
                match timeout_at(next, self.input.recv()).await {
                    Ok(Some(Ok(Input::Line(line)))) => {
                        self.reports.line();
                        self.reports.not_handled(line.n);
                    }
                    Ok(Some(Ok(Input::TooLong { n, .. }))) => {
                        self.reports.line();
                        self.reports.not_handled(n);
                    }
                    Ok(Some(Ok(Input::Blank))) => self.reports.blank(),
                    Ok(Some(Err(_)) | None) => left = false,
                    Err(_elapsed) => break,
                }
            }
        }
        self.reports.stopped(stop, left);
    }
}

impl State {
    fn is_over(&self) -> bool {
        let nothing_to_start = self.input_ended && self.parked.is_empty();
        self.running.is_empty() && (nothing_to_start || self.stop.is_some())
    }
}
