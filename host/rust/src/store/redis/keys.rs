//! The keys that every language's store uses (contract, section 8).

use super::settings::RedisSettings;

/// What the keys of one consumer begin with.
#[derive(Clone, Debug)]
pub(super) struct Keys {
    prefix: String,
    mark: String,
    lease: String,
    once: String,
}

/// Which of a consumer's records a key is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Record {
    Mark,
    Lease,
    Once,
}

impl Keys {
    pub(super) fn new(settings: &RedisSettings) -> Self {
        let consumer = match &settings.consumer {
            Some(name) => format!("@{name}"),
            None => String::new(),
        };
        let of = |kind: &str| format!("{}{kind}{consumer}:", settings.prefix);
        Self {
            prefix: settings.prefix.clone(),
            mark: of("idemp"),
            lease: of("lease"),
            once: of("once"),
        }
    }

    pub(super) fn mark(&self, id: &str) -> String {
        format!("{}{id}", self.mark)
    }

    pub(super) fn lease(&self, id: &str) -> String {
        format!("{}{id}", self.lease)
    }

    /// A step's name has no colon, so that no two pairs make one key.
    pub(super) fn once(&self, id: &str, step: &str) -> String {
        format!("{}{step}:{id}", self.once)
    }

    /// What a key of this consumer records, and the rest of it: the id, or
    /// step and id.
    pub(super) fn parse<'k>(&self, key: &'k str) -> Option<(Record, &'k str)> {
        [
            (Record::Mark, &self.mark),
            (Record::Lease, &self.lease),
            (Record::Once, &self.once),
        ]
        .into_iter()
        .find_map(|(record, start)| Some((record, key.strip_prefix(start)?)))
    }

    /// A pattern for SCAN that all keys match.
    pub(super) fn pattern(&self) -> String {
        let mut pattern = String::with_capacity(self.prefix.len() + 1);
        for character in self.prefix.chars() {
            if matches!(character, '*' | '?' | '[' | ']' | '\\') {
                pattern.push('\\');
            }
            pattern.push(character);
        }
        pattern.push('*');
        pattern
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Consumer;

    fn keys(prefix: &str, consumer: Option<&str>) -> Keys {
        Keys::new(&RedisSettings {
            prefix: prefix.into(),
            consumer: consumer.map(|name| Consumer::named(name).unwrap()),
            ..RedisSettings::default()
        })
    }

    #[test]
    fn the_keys_are_those_of_the_contract() {
        let plain = keys("bq:", None);
        assert_eq!(plain.mark("i"), "bq:idemp:i");
        assert_eq!(plain.lease("i"), "bq:lease:i");
        assert_eq!(plain.once("i", "count"), "bq:once:count:i");
        let named = keys("bq:", Some("mail"));
        assert_eq!(named.mark("i"), "bq:idemp@mail:i");
        assert_eq!(named.lease("i"), "bq:lease@mail:i");
        assert_eq!(named.once("i", "count"), "bq:once@mail:count:i");
    }

    #[test]
    fn a_key_is_read_back_by_its_own_consumer_alone() {
        let plain = keys("bq:", None);
        let named = keys("bq:", Some("mail"));
        for id in ["i", "@mail:i", ":", "idemp:i", "\u{1}é*"] {
            assert_eq!(plain.parse(&plain.mark(id)), Some((Record::Mark, id)));
            assert_eq!(named.parse(&named.lease(id)), Some((Record::Lease, id)));
            assert_eq!(named.parse(&plain.mark(id)), None);
            assert_eq!(plain.parse(&named.mark(id)), None);
        }
        assert_eq!(
            plain.parse("bq:once:count:i"),
            Some((Record::Once, "count:i"))
        );
        assert_eq!(plain.parse("bq:other"), None);
    }

    #[test]
    fn a_prefix_is_no_pattern() {
        assert_eq!(keys("bq:", None).pattern(), "bq:*");
        assert_eq!(keys(r"a*?[x]\:", None).pattern(), r"a\*\?\[x\]\\:*");
    }
}
