//! Settings that all stores share, checked where they are made
//! (contract, sections 7 and 8).

use crate::error::StoreError;
use std::fmt;
use std::time::Duration;

/// A setting that cannot be used; the text names it and says what is allowed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{setting}: {problem}")]
pub struct SettingError {
    setting: &'static str,
    problem: String,
}

impl SettingError {
    /// Says what is wrong with the setting of this name.
    pub fn new(setting: &'static str, problem: impl Into<String>) -> Self {
        Self {
            setting,
            problem: problem.into(),
        }
    }
}

/// A length of time in whole milliseconds, at least one and at most ten
/// thousand years, so that no store's arithmetic can overflow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Millis(u64);

impl Millis {
    /// Ten thousand years of 365 days.
    const MAX: u64 = 10_000 * 365 * 24 * 60 * 60 * 1_000;

    /// Takes a duration for the setting of this name.
    ///
    /// # Errors
    ///
    /// Zero, a fraction of a millisecond, or more than ten thousand years.
    pub fn new(setting: &'static str, duration: Duration) -> Result<Self, SettingError> {
        if !duration.subsec_nanos().is_multiple_of(1_000_000) {
            return Err(SettingError::new(
                setting,
                format!("{duration:?} is not a whole number of milliseconds"),
            ));
        }
        match u64::try_from(duration.as_millis()) {
            Ok(millis @ 1..=Self::MAX) => Ok(Self(millis)),
            Ok(0) => Err(SettingError::new(setting, "must be at least 1 ms, is 0")),
            _ => Err(SettingError::new(
                setting,
                format!("{duration:?} is more than ten thousand years"),
            )),
        }
    }

    /// The number of milliseconds.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The number of milliseconds, for the many interfaces that want it
    /// signed.
    #[must_use]
    pub const fn signed(self) -> i64 {
        self.0.cast_signed()
    }

    /// The same length as a [`Duration`].
    #[must_use]
    pub const fn duration(self) -> Duration {
        Duration::from_millis(self.0)
    }
}

/// How long a mark is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retention {
    /// Counted from the last time the id was remembered.
    For(Millis),
    /// Until it is forgotten. Steps need a retention: a store that keeps its
    /// marks for ever rejects them (contract, section 4).
    Forever,
}

impl Retention {
    /// Keeps marks for this long.
    ///
    /// # Errors
    ///
    /// Those of [`Millis::new`], naming `retention`.
    pub fn of(duration: Duration) -> Result<Self, SettingError> {
        Millis::new("retention", duration).map(Self::For)
    }

    /// The milliseconds, or `None` for ever.
    #[must_use]
    pub fn millis(self) -> Option<Millis> {
        match self {
            Self::For(millis) => Some(millis),
            Self::Forever => None,
        }
    }

    /// The milliseconds that a step's mark is kept for (contract, section 4).
    ///
    /// # Errors
    ///
    /// Steps are rejected if marks are kept for ever; `store` names the store.
    pub(crate) fn of_steps(self, store: &str) -> Result<Millis, StoreError> {
        self.millis().ok_or_else(|| {
            StoreError::Rejected(format!(
                "{store}: steps need a retention, and this store keeps its marks for ever: give \
                 it one to use steps"
            ))
        })
    }
}

/// Fourteen days, the longest that common brokers keep a message.
impl Default for Retention {
    fn default() -> Self {
        Self::For(Millis(14 * 24 * 60 * 60 * 1_000))
    }
}

/// How long a lease lasts unless it is renewed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseLength(Millis);

impl LeaseLength {
    /// Leases of this length.
    ///
    /// # Errors
    ///
    /// Those of [`Millis::new`], naming `lease`.
    pub fn of(duration: Duration) -> Result<Self, SettingError> {
        Millis::new("lease", duration).map(Self)
    }

    /// The milliseconds.
    #[must_use]
    pub fn millis(self) -> Millis {
        self.0
    }
}

/// Sixty seconds.
impl Default for LeaseLength {
    fn default() -> Self {
        Self(Millis(60_000))
    }
}

/// A consumer's name, `[a-z0-9_]{1,24}`: two different consumers of one
/// message that share a store need two names, or the first one's mark makes
/// the second skip.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Consumer(String);

impl Consumer {
    /// Takes a name.
    ///
    /// # Errors
    ///
    /// Any name that is not `[a-z0-9_]{1,24}`.
    pub fn named(name: impl Into<String>) -> Result<Self, SettingError> {
        let name = name.into();
        let allowed = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_');
        if (1..=24).contains(&name.len()) && name.bytes().all(allowed) {
            Ok(Self(name))
        } else {
            Err(SettingError::new(
                "consumer",
                format!("{name:?} is not 1 to 24 of a-z, 0-9 and _"),
            ))
        }
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Consumer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_that_no_store_may_see_are_refused_by_name() {
        for bad in [
            Duration::ZERO,
            Duration::from_nanos(1),
            Duration::from_micros(500),
            Duration::from_micros(1_500),
            Duration::MAX,
            Duration::from_millis(u64::MAX),
            Duration::from_millis(Millis::MAX + 1),
        ] {
            let retention = Retention::of(bad).unwrap_err().to_string();
            assert!(retention.starts_with("retention: "), "{retention}");
            let lease = LeaseLength::of(bad).unwrap_err().to_string();
            assert!(lease.starts_with("lease: "), "{lease}");
        }
        for good in [1, 1_500, Millis::MAX] {
            let good = Duration::from_millis(good);
            assert_eq!(
                Retention::of(good).unwrap().millis().unwrap().duration(),
                good
            );
        }
    }

    #[test]
    fn consumers_names_cannot_reach_into_a_key_or_a_statement() {
        for bad in ["", "A", "a-b", "a:b", "a b", "a\"", "é", &"a".repeat(25)] {
            assert!(Consumer::named(bad).is_err(), "{bad:?}");
        }
        for good in ["a", "0", "_", &"z".repeat(24)] {
            assert_eq!(Consumer::named(good).unwrap().as_str(), good);
        }
    }
}
