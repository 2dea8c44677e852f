//! The requests and answers of `tests/README.md`.

use babelqueue_guard::Error;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

#[derive(Deserialize)]
#[serde(tag = "op", rename_all = "lowercase")]
pub enum Request {
    Open(Open),
    Verdict { file: PathBuf },
    Process(Process),
    Seen { id: String },
    Remember { id: String },
    Forget { id: String },
}

#[derive(Deserialize)]
pub struct Open {
    pub store: String,
    pub prefix: Option<String>,
    pub name: Option<String>,
    pub retention_ms: Option<u64>,
    #[serde(default)]
    pub claim: bool,
    pub lease_ms: Option<u64>,
}

#[derive(Deserialize)]
pub struct Process {
    pub body: Option<String>,
    pub file: Option<PathBuf>,
    pub id: Option<String>,
    #[serde(default)]
    pub outcome: Outcome,
    #[serde(default)]
    pub hold_ms: u64,
    #[serde(default)]
    pub headers: BTreeMap<String, serde_json::Value>,
    pub step: Option<String>,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    #[default]
    Ok,
    Throw,
}

#[derive(Serialize)]
#[serde(untagged)]
pub enum Answer {
    Ok {
        ok: bool,
    },
    Seen {
        seen: bool,
    },
    Verdict {
        id: Option<String>,
        reason: Option<&'static str>,
    },
    Processed(Processed),
    Failure(Failure),
}

#[derive(Default, Serialize)]
pub struct Processed {
    pub decision: &'static str,
    pub id: Option<String>,
    pub reason: Option<&'static str>,
    pub outcome: Option<&'static str>,
    pub marked: bool,
    pub error: Option<&'static str>,
    pub left_ms: Option<u64>,
    pub replay: Option<bool>,
    pub step: Option<bool>,
}

#[derive(Serialize)]
pub struct Failure {
    error: &'static str,
    detail: String,
}

impl Failure {
    pub fn of(error: &Error) -> Self {
        Self {
            error: error.class(),
            detail: error.to_string(),
        }
    }

    pub fn unsupported(detail: &dyn std::fmt::Display) -> Self {
        Self {
            error: "unsupported",
            detail: detail.to_string(),
        }
    }
}
