//! The cross-SDK manifest, as far as it is about deduplication.

use crate::exit::Failure;
use babelqueue_guard::drive::Asked;
use babelqueue_guard::{Component, Delivery};
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};
use std::path::Path;

#[derive(Deserialize)]
pub struct Manifest {
    pub idempotency: Idempotency,
}

#[derive(Deserialize)]
pub struct Idempotency {
    pub dedup_key: Option<DedupKey>,
    pub sequences: Option<Sequences>,
}

#[derive(Deserialize)]
pub struct Sequences {
    pub cases: Vec<Case>,
}

/// One guard over one store that holds nothing of these ids yet.
#[derive(Deserialize)]
pub struct Case {
    pub name: String,
    pub deliveries: Vec<Step>,
    /// The handler's invocations, whatever their outcome.
    pub expected_effects: u64,
}

#[derive(Deserialize)]
pub struct Step {
    /// Any JSON value, `null` included; `None` if the member is absent.
    #[serde(default, deserialize_with = "present")]
    pub meta_id: Option<Value>,
    pub expect_effect: Effect,
    #[serde(default)]
    pub outcome: Handler,
    #[serde(default)]
    pub forget_before: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Effect {
    Run,
    Skip,
}

/// How the handler ends if it runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Handler {
    #[default]
    Ok,
    Throw,
}

/// What is the key in an envelope that stands in a file of its own.
#[derive(Deserialize)]
pub struct DedupKey {
    pub envelope_file: String,
    #[serde(default = "meta_id")]
    pub key_field: String,
    pub expected_key: String,
}

fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

fn meta_id() -> String {
    "meta.id".into()
}

impl Manifest {
    pub fn read(path: &Path) -> Result<Self, Failure> {
        let shown = path.display();
        let bytes =
            std::fs::read(path).map_err(|error| Failure::usage(format!("{shown}: {error}")))?;
        let manifest: Self = serde_json::from_slice(&bytes).map_err(|error| {
            Failure::usage(format!(
                "{shown} is no manifest of the cross-SDK form: {error}"
            ))
        })?;
        let idempotency = &manifest.idempotency;
        if idempotency.dedup_key.is_none() && manifest.cases().next().is_none() {
            return Err(Failure::usage(format!(
                "{shown} has neither idempotency.dedup_key nor idempotency.sequences.cases"
            )));
        }
        Ok(manifest)
    }

    pub fn cases(&self) -> impl Iterator<Item = &Case> {
        self.idempotency.sequences.iter().flat_map(|it| &it.cases)
    }
}

impl DedupKey {
    /// What the guard reads from the envelope, if it is not the expected key.
    pub fn check(&self, manifest: &Path) -> Result<Option<String>, Failure> {
        if self.key_field != "meta.id" {
            let field = &self.key_field;
            return Ok(Some(format!("the key is meta.id, not {field}")));
        }
        let path = manifest.with_file_name("").join(&self.envelope_file);
        let shown = path.display();
        let body =
            std::fs::read(&path).map_err(|error| Failure::usage(format!("{shown}: {error}")))?;
        let key = match Component::plain()?.ask(&Delivery::from_body(&body))? {
            Asked::Seen { id, .. } | Asked::Claim { id } => Some(id),
            Asked::Decided(_) => None,
        };
        let expected = &self.expected_key;
        Ok(match key {
            Some(key) if key == *expected => None,
            Some(key) => Some(format!("{expected:?} expected, was {key:?}")),
            None => Some(format!("{expected:?} expected, was no usable id")),
        })
    }
}

impl Step {
    /// An envelope with this id.
    pub fn envelope(&self) -> Vec<u8> {
        let mut envelope = json!({
            "job": "urn:babel:conformance:delivered",
            "trace_id": "7d1c0c52-3a61-4a52-9c1e-0b6f6c3a9e44",
            "data": {},
            "meta": { "queue": "conformance", "lang": "rust", "schema_version": 1 },
            "attempts": 0,
        });
        if let Some(id) = &self.meta_id {
            envelope["meta"]["id"] = id.clone();
        }
        envelope.to_string().into_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_absent_id_is_not_a_null_one() {
        let step = |text: &str| serde_json::from_str::<Step>(text).unwrap().envelope();
        let absent = step(r#"{"expect_effect": "run"}"#);
        let null = step(r#"{"expect_effect": "run", "meta_id": null}"#);
        assert!(!String::from_utf8(absent).unwrap().contains("\"id\""));
        assert!(String::from_utf8(null).unwrap().contains("\"id\":null"));
    }
}
