//! The extraction as one would write it with serde_json: a visitor that keeps
//! the id and passes over everything else. It is close to the contract, and
//! not all of it; it is here to be compared with, not to be used.

use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, Visitor};
use std::borrow::Cow;
use std::fmt;

/// The id of an envelope, if serde_json reads one.
#[must_use]
pub fn extract(body: &[u8]) -> Option<String> {
    let mut json = serde_json::Deserializer::from_slice(body);
    let id = Member("meta", Member("id", Text))
        .deserialize(&mut json)
        .ok()?;
    json.end().ok()?;
    id.filter(|id| !id.is_empty() && id.len() <= 2_048)
}

/// Reads one member of an object, the last of that name.
#[derive(Clone, Copy)]
struct Member<S>(&'static str, S);

impl<'de, S> DeserializeSeed<'de> for Member<S>
where
    S: DeserializeSeed<'de, Value = Option<String>> + Copy,
{
    type Value = Option<String>;

    fn deserialize<D: serde::Deserializer<'de>>(self, json: D) -> Result<Self::Value, D::Error> {
        json.deserialize_map(self)
    }
}

impl<'de, S> Visitor<'de> for Member<S>
where
    S: DeserializeSeed<'de, Value = Option<String>> + Copy,
{
    type Value = Option<String>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut members: M) -> Result<Self::Value, M::Error> {
        let mut found = None;
        while let Some(name) = members.next_key::<Name<'de>>()? {
            if name.0 == self.0 {
                found = members.next_value_seed(self.1)?;
            } else {
                members.next_value::<IgnoredAny>()?;
            }
        }
        Ok(found)
    }
}

/// A member's name, borrowed where it has no escapes.
struct Name<'de>(Cow<'de, str>);

impl<'de> serde::Deserialize<'de> for Name<'de> {
    fn deserialize<D: serde::Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
        struct Borrow;
        impl<'de> Visitor<'de> for Borrow {
            type Value = Name<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a name")
            }
            fn visit_borrowed_str<E>(self, name: &'de str) -> Result<Self::Value, E> {
                Ok(Name(Cow::Borrowed(name)))
            }
            fn visit_str<E>(self, name: &str) -> Result<Self::Value, E> {
                Ok(Name(Cow::Owned(name.to_owned())))
            }
        }
        json.deserialize_str(Borrow)
    }
}

/// Reads a string.
#[derive(Clone, Copy)]
struct Text;

impl<'de> DeserializeSeed<'de> for Text {
    type Value = Option<String>;

    fn deserialize<D: serde::Deserializer<'de>>(self, json: D) -> Result<Self::Value, D::Error> {
        serde::Deserialize::deserialize(json).map(Some)
    }
}
