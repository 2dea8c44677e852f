//! `tests/cases`: the shared table, read as it stands.

#![expect(
    clippy::expect_used,
    reason = "a table that cannot be read is a failed test"
)]

use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::fs;
use std::path::PathBuf;

use crate::Reason;

/// A body, and what must be read from it.
#[derive(Debug)]
pub struct Case {
    /// The name of its file in `tests/cases/bodies`.
    pub file: String,
    /// The file's content.
    pub body: Vec<u8>,
    /// The id, or why there is none.
    pub verdict: Result<String, Reason>,
    /// What the case is there for.
    pub why: String,
}

/// An id that a host passes itself.
#[derive(Debug, Deserialize)]
pub struct GivenId {
    /// The id.
    pub id: String,
    /// Whether the contract's section 1 lets it be used.
    pub usable: bool,
    /// What the case is there for.
    pub why: String,
}

/// Deliveries that go through one guard over one store, one after another.
#[derive(Debug, Deserialize)]
pub struct Sequence {
    /// What it shows.
    pub name: String,
    /// In their order.
    pub deliveries: Vec<Delivery>,
}

/// One of a [`Sequence`].
#[derive(Debug, Deserialize)]
pub struct Delivery {
    /// The envelope's `meta.id`.
    pub meta_id: String,
    /// Whether the id's mark is removed first.
    #[serde(default)]
    pub forget_before: bool,
    /// What is to become of it.
    pub expect_effect: Effect,
    /// How the handler ends, if it runs.
    pub outcome: Option<Ending>,
}

/// What becomes of a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Effect {
    /// Its handler is called.
    Run,
    /// It is acknowledged without.
    Skip,
}

/// How a handler ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Ending {
    /// The effect has happened.
    Ok,
    /// It has not.
    Throw,
}

impl Delivery {
    /// The envelope that is delivered.
    #[must_use]
    pub fn body(&self) -> String {
        serde_json::json!({ "job": "urn:babel:parcels:weighed", "meta": { "id": self.meta_id } })
            .to_string()
    }
}

#[derive(Deserialize)]
struct Row {
    file: String,
    id: Option<String>,
    reason: Option<Reason>,
    why: String,
}

/// The folder `tests/cases`.
#[must_use]
pub fn folder() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../cases"))
}

/// All bodies of the table, in the order of their names.
///
/// # Panics
///
/// If the table cannot be read, or a row names not exactly one of id and
/// reason.
#[must_use]
pub fn bodies() -> Vec<Case> {
    let bodies = folder().join("bodies");
    let rows: Vec<Row> = json("bodies/manifest.json");
    rows.into_iter()
        .map(|row| Case {
            body: fs::read(bodies.join(&row.file)).expect("a body that the manifest names"),
            verdict: match (row.id, row.reason) {
                (Some(id), None) => Ok(id),
                (None, reason) => Err(reason.expect("a reason where there is no id")),
                (Some(_), Some(_)) => unreachable!("{}: an id and a reason", row.file),
            },
            file: row.file,
            why: row.why,
        })
        .collect()
}

/// The ids of `tests/cases/ids.json`.
///
/// # Panics
///
/// If the file cannot be read.
#[must_use]
pub fn given_ids() -> Vec<GivenId> {
    json("ids.json")
}

/// The sequences of `tests/cases/conformance/manifest.json`.
///
/// # Panics
///
/// If the manifest cannot be read.
#[must_use]
pub fn sequences() -> Vec<Sequence> {
    let manifest: Manifest = json("conformance/manifest.json");
    manifest.idempotency.sequences.cases
}

#[derive(Deserialize)]
struct Manifest {
    idempotency: Idempotency,
}

#[derive(Deserialize)]
struct Idempotency {
    sequences: Sequences,
}

#[derive(Deserialize)]
struct Sequences {
    cases: Vec<Sequence>,
}

fn json<T: DeserializeOwned>(file: &str) -> T {
    let text = fs::read(folder().join(file)).expect("a file in tests/cases");
    serde_json::from_slice(&text).expect("a manifest of the form that tests/README.md describes")
}
