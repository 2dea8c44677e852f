//! Lines that are parked, since another delivery of their message is being
//! handled: each is tried again until it is run or skipped.

use super::lines::Line;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// While this many lines or bytes are parked, no more input is read.
const MAXIMUM_LINES: usize = 1_000;
const MAXIMUM_BYTES: usize = 64 << 20;

/// A lease is there for crashes and mostly lasts much longer than its handler,
/// so a parked line is tried before it ends: after this long at first, after
/// twice as long each time, at most after the longest pause.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// A line and how often it has been parked.
#[derive(Clone, Debug)]
pub struct Attempt {
    pub line: Arc<Line>,
    pub parked: u32,
}

/// The parked lines, by the time at which they are due.
#[derive(Default)]
pub struct Parked {
    lines: BinaryHeap<Reverse<Due>>,
    bytes: usize,
}

struct Due {
    at: Instant,
    attempt: Attempt,
}

impl Parked {
    /// Keeps a line until its lease has ended, or for a while.
    pub fn park(&mut self, attempt: Attempt, left: Duration) {
        let pause = FIRST_PAUSE
            .saturating_mul(1 << attempt.parked.min(16))
            .min(LONGEST_PAUSE);
        self.bytes += attempt.line.whole().len();
        self.lines.push(Reverse(Due {
            at: Instant::now() + left.min(pause),
            attempt: Attempt {
                parked: attempt.parked.saturating_add(1),
                ..attempt
            },
        }));
    }

    /// When the next one is due.
    pub fn due(&self) -> Option<Instant> {
        self.lines.peek().map(|Reverse(due)| due.at)
    }

    /// The one that is due first.
    pub fn take(&mut self) -> Option<Attempt> {
        let Reverse(due) = self.lines.pop()?;
        self.bytes -= due.attempt.line.whole().len();
        Some(due.attempt)
    }

    pub fn is_full(&self) -> bool {
        self.lines.len() >= MAXIMUM_LINES || self.bytes >= MAXIMUM_BYTES
    }

    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }
}

impl PartialEq for Due {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Due {}

impl PartialOrd for Due {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Due {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.attempt.line.n).cmp(&(other.at, other.attempt.line.n))
    }
}
