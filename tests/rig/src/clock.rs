//! One clock for all processes of this machine.

use rustix::time::{ClockId, clock_gettime};
use std::time::Duration;

/// Time since the machine started, the same in every process.
pub(crate) fn now() -> Duration {
    let now = clock_gettime(ClockId::Monotonic);
    Duration::try_from(now).unwrap_or_default()
}
