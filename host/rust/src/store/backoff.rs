//! How long to wait after a conflict with another transaction.

use std::time::Duration;

/// How often at most what the database undoes for another's sake is done
/// again.
pub(crate) const CONFLICTS: u32 = 6;

/// 5 ms, twice as much with each conflict, and up to as much again, so that
/// those who met do not meet again.
pub(crate) fn backoff(conflicts: u32) -> Duration {
    let least = 5_u64 << conflicts.min(10);
    let mut random = [0; 2];
    // Without random numbers it is the least.
    let _ = getrandom::fill(&mut random);
    let more = least * u64::from(u16::from_le_bytes(random)) / u64::from(u16::MAX);
    Duration::from_millis(least + more)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_between_conflicts_grows_and_is_bounded() {
        for conflicts in 0..CONFLICTS {
            let least = Duration::from_millis(5 << conflicts);
            for _ in 0..100 {
                let wait = backoff(conflicts);
                assert!(wait >= least && wait <= 2 * least, "{wait:?}");
            }
        }
    }
}
