//! What the stores in databases share: the names of the tables, and what a
//! claim finds in them (contract, sections 3 and 8).

use crate::error::StoreError;
use crate::settings::{Consumer, SettingError};
use crate::store::inventory::{Entry, Kind, Page};
use crate::types::{ClaimOutcome, Lease};
use std::borrow::Cow;
use std::time::Duration;

/// What the tables' names begin with unless another prefix is set.
pub(super) const DEFAULT_PREFIX: &str = "babelqueue_";

/// PostgreSQL cuts off what a name has beyond this many bytes, so that two of
/// them could become one.
const MAX_NAME: usize = 63;

/// What the names of the indexes of a table add to its own. Tables and indexes
/// share one set of names.
const INDEX_ENDS: [&str; 2] = ["_expires_at_idx", "_pkey"];

/// The names of one consumer's tables.
///
/// None has to be quoted with care: all of them are `[a-z_][a-z0-9_]*`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Tables {
    pub(super) mark: String,
    pub(super) lease: String,
    pub(super) once: String,
}

impl Tables {
    pub(super) fn new(prefix: &str, consumer: Option<&Consumer>) -> Result<Self, SettingError> {
        let allowed = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_');
        if !prefix.bytes().all(allowed) || prefix.starts_with(|c: char| c.is_ascii_digit()) {
            return Err(SettingError::new(
                "prefix",
                format!("{prefix:?} is not of a-z, 0-9 and _, beginning with no digit"),
            ));
        }
        let end = consumer.map_or(String::new(), |name| format!("_{name}"));
        if INDEX_ENDS.iter().any(|index| end.ends_with(index)) {
            return Err(SettingError::new(
                "consumer",
                format!("with {end:?} at its end, a table would be called as another's index is"),
            ));
        }
        let named = |kind: &str| format!("{prefix}{kind}{end}");
        let tables = Self {
            mark: named("idempotency"),
            lease: named("lease"),
            once: named("once"),
        };
        // The longest of the names there will be.
        let longest = tables.mark.len() + INDEX_ENDS[0].len();
        if longest > MAX_NAME {
            return Err(SettingError::new(
                "prefix",
                format!(
                    "{prefix:?} is {} bytes too long: with the consumer's name, the name of an \
                     index would have {longest} bytes, and {MAX_NAME} are told apart",
                    longest - MAX_NAME
                ),
            ));
        }
        Ok(tables)
    }

    /// All of them.
    pub(super) fn all(&self) -> [&str; 3] {
        [&self.mark, &self.lease, &self.once]
    }

    /// The shipped SQL with the names changed to these. All names in it are
    /// quoted, and no other text is.
    pub(super) fn rename(&self, shipped: &str) -> String {
        shipped
            .split('"')
            .enumerate()
            .map(|(place, text)| match place % 2 {
                0 => Cow::Borrowed(text),
                _ => Cow::Owned(format!("\"{}\"", self.named(text))),
            })
            .collect()
    }

    fn named(&self, shipped: &str) -> String {
        [
            ("babelqueue_idempotency", &self.mark),
            ("babelqueue_lease", &self.lease),
            ("babelqueue_once", &self.once),
        ]
        .into_iter()
        .find_map(|(default, name)| Some(format!("{name}{}", shipped.strip_prefix(default)?)))
        .unwrap_or_else(|| shipped.to_owned())
    }
}

/// What a claim finds at its second look, after it has tried to take the
/// lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Found {
    /// There is a live mark.
    pub(super) marked: bool,
    /// The lease has the token of this claim.
    pub(super) ours: bool,
    /// The milliseconds left of the lease that is there.
    pub(super) left: Option<i64>,
}

impl Found {
    pub(super) fn outcome(self, token: String, length_ms: u64) -> ClaimOutcome {
        if self.marked {
            ClaimOutcome::Done
        } else if self.ours {
            ClaimOutcome::Won(Lease { token, length_ms })
        } else {
            // Between the two looks it may have ended: then there is no less
            // to wait than this.
            let left = self.left.unwrap_or(1).max(1);
            ClaimOutcome::Busy(left.unsigned_abs())
        }
    }

    /// Whether this claim has taken a lease that it must give back.
    pub(super) fn is_in_vain(self) -> bool {
        self.marked && self.ours
    }
}

/// Where a page of a list begins: all marks come first, in the order of their
/// ids, then all leases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cursor<'a> {
    pub(super) kind: Kind,
    /// The last id of the page before.
    pub(super) after: &'a str,
}

impl<'a> Cursor<'a> {
    pub(super) fn parse(from: Option<&'a str>) -> Result<Self, StoreError> {
        let (kind, after) = match from.map(|from| from.split_once(':')) {
            None => (Kind::Mark, ""),
            Some(Some(("mark", after))) => (Kind::Mark, after),
            Some(Some(("lease", after))) => (Kind::Lease, after),
            Some(_) => {
                return Err(StoreError::Rejected(
                    "no page begins there: give back what the page before said".into(),
                ));
            }
        };
        Ok(Self { kind, after })
    }

    /// The page of these entries, `limit` of which were asked for.
    pub(super) fn page(self, entries: Vec<Entry>, limit: u32) -> Page {
        let next = match (entries.last(), self.kind) {
            (Some(last), kind) if entries.len() as u64 >= u64::from(limit) => {
                let kind = match kind {
                    Kind::Mark => "mark",
                    Kind::Lease => "lease",
                };
                Some(format!("{kind}:{}", last.id))
            }
            (_, Kind::Mark) => Some("lease:".into()),
            (_, Kind::Lease) => None,
        };
        Page { entries, next }
    }
}

/// A difference of two times in a row. A clock that was set back makes rows
/// that are yet to be written.
pub(super) fn duration(millis: i64) -> Duration {
    Duration::from_millis(u64::try_from(millis).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn tables(prefix: &str, consumer: &str) -> Result<Tables, SettingError> {
        Tables::new(prefix, Some(&Consumer::named(consumer).unwrap()))
    }

    #[test]
    fn the_names_are_those_of_the_contract() {
        let plain = Tables::new(DEFAULT_PREFIX, None).unwrap();
        assert_eq!(
            plain.all(),
            [
                "babelqueue_idempotency",
                "babelqueue_lease",
                "babelqueue_once"
            ]
        );
        let named = tables(DEFAULT_PREFIX, "mail").unwrap();
        assert_eq!(
            named.all(),
            [
                "babelqueue_idempotency_mail",
                "babelqueue_lease_mail",
                "babelqueue_once_mail"
            ]
        );
    }

    #[test]
    fn the_longest_consumers_are_told_apart() {
        let a = tables(DEFAULT_PREFIX, &"z".repeat(24)).unwrap();
        assert!(a.mark.len() + INDEX_ENDS[0].len() <= MAX_NAME);
        let long = "p".repeat(MAX_NAME - "idempotency_z_expires_at_idx".len());
        assert!(tables(&long, "z").is_ok());
        let error = tables(&long, "zz").unwrap_err().to_string();
        assert!(error.starts_with("prefix: "), "{error}");
        assert!(Tables::new(&"p".repeat(64), None).is_err());
    }

    #[test]
    fn no_table_is_called_as_an_index_is() {
        for bad in ["pkey", "a_pkey", "expires_at_idx", "a_expires_at_idx"] {
            let error = tables(DEFAULT_PREFIX, bad).unwrap_err().to_string();
            assert!(error.starts_with("consumer: "), "{error}");
        }
        let mut names = HashSet::new();
        for consumer in ["a", "lease", "once", "idempotency", "_", "__", "a_", "_a"] {
            let tables = tables(DEFAULT_PREFIX, consumer).unwrap();
            for table in tables.all() {
                for end in ["", "_expires_at_idx", "_pkey"] {
                    assert!(names.insert(format!("{table}{end}")), "{table}{end}");
                }
            }
        }
    }

    #[test]
    fn prefixes_cannot_reach_into_a_statement() {
        for bad in ["a-", "A_", "a\"", "a.", "0a", "é", "a b", "a;", "a'"] {
            let error = Tables::new(bad, None).unwrap_err().to_string();
            assert!(error.starts_with("prefix: "), "{error}");
        }
        for good in ["", "_", "app_", "q0_"] {
            assert!(Tables::new(good, None).is_ok(), "{good:?}");
        }
    }

    #[test]
    fn the_shipped_names_are_changed_once() {
        let tables = tables("babelqueue_lease_", "once").unwrap();
        let sql = tables.rename(
            r#"CREATE INDEX "babelqueue_once_expires_at_idx" ON "babelqueue_once" (x COLLATE "C")"#,
        );
        assert_eq!(
            sql,
            r#"CREATE INDEX "babelqueue_lease_once_once_expires_at_idx" ON "babelqueue_lease_once_once" (x COLLATE "C")"#
        );
    }

    #[test]
    fn a_mark_counts_before_a_lease() {
        for (marked, ours, left, expected) in [
            (true, true, Some(9), ClaimOutcome::Done),
            (true, false, Some(9), ClaimOutcome::Done),
            (true, false, None, ClaimOutcome::Done),
            (false, false, Some(9), ClaimOutcome::Busy(9)),
            (false, false, Some(-9), ClaimOutcome::Busy(1)),
            (false, false, None, ClaimOutcome::Busy(1)),
        ] {
            let found = Found { marked, ours, left };
            assert_eq!(found.outcome("t".into(), 5), expected);
            assert_eq!(found.is_in_vain(), marked && ours);
        }
    }
}
