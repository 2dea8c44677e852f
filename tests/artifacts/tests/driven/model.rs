//! A store of a few maps, which can be linked to an artifact's imports as well
//! as given to the Rust host. Its clock goes on only when it is told to.

use babelqueue_guard_logic::types::{ClaimOutcome, Hold, Lease, StoreError};
use envelope_corpus::recording::{Answer, Question, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};

const LEASE_MS: u64 = 1_000;

/// Clones are the same store.
#[derive(Clone, Default)]
pub(crate) struct Model(Arc<Mutex<Records>>);

/// Everything that a store holds, and what it was asked.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Records {
    now_ms: u64,
    claims: u64,
    marks: BTreeSet<String>,
    /// The token, and when the lease lapses.
    leases: BTreeMap<String, (String, u64)>,
    steps: BTreeSet<(String, String)>,
    fault: Option<StoreError>,
    asked: Vec<Question>,
}

impl Model {
    fn records(&self) -> MutexGuard<'_, Records> {
        self.0.lock().unwrap()
    }

    pub(crate) fn snapshot(&self) -> Records {
        self.records().clone()
    }

    pub(crate) fn pass(&self, millis: u64) {
        self.records().now_ms += millis;
    }

    /// Answers the next question, whatever it is, by this error.
    pub(crate) fn fail(&self, error: StoreError) {
        self.records().fault = Some(error);
    }

    /// No longer answers by an error that nobody has met.
    pub(crate) fn mend(&self) {
        self.records().fault = None;
    }

    pub(crate) fn answer(&self, question: &Question) -> Answer {
        let mut records = self.records();
        records.asked.push(question.clone());
        match records.fault.take() {
            Some(error) => Err(error),
            None => Ok(records.answer(question)),
        }
    }
}

impl Records {
    fn answer(&mut self, question: &Question) -> Value {
        let arguments: Vec<&str> = question.arguments.iter().map(String::as_str).collect();
        match (question.function.as_str(), arguments.as_slice()) {
            ("seen", [id]) => Value::Bool(self.marks.contains(*id)),
            ("remember", [id]) => {
                self.marks.insert((*id).to_owned());
                Value::Nothing
            }
            ("forget", [id]) => {
                self.marks.remove(*id);
                Value::Nothing
            }
            ("claim", [id]) => Value::Claim(self.claim(id)),
            ("renew", [id, token]) => Value::Hold(self.renew(id, token)),
            ("complete", [id, token]) => {
                self.marks.insert((*id).to_owned());
                Value::Hold(self.drop_lease(id, token))
            }
            ("release", [id, token]) => Value::Hold(self.drop_lease(id, token)),
            ("set-once", [id, step]) => {
                let set = self.steps.insert(((*id).to_owned(), (*step).to_owned()));
                Value::Bool(set)
            }
            other => unreachable!("no function of the WIT: {other:?}"),
        }
    }

    fn claim(&mut self, id: &str) -> ClaimOutcome {
        if self.marks.contains(id) {
            return ClaimOutcome::Done;
        }
        if let Some((_, ends)) = self.leases.get(id)
            && *ends > self.now_ms
        {
            return ClaimOutcome::Busy(ends - self.now_ms);
        }
        self.claims += 1;
        let token = format!("token {}", self.claims);
        let lease = (token.clone(), self.now_ms + LEASE_MS);
        self.leases.insert(id.to_owned(), lease);
        ClaimOutcome::Won(Lease {
            token,
            length_ms: LEASE_MS,
        })
    }

    fn owns(&self, id: &str, token: &str) -> bool {
        let lease = self.leases.get(id);
        lease.is_some_and(|(owner, ends)| owner == token && *ends > self.now_ms)
    }

    fn renew(&mut self, id: &str, token: &str) -> Hold {
        if !self.owns(id, token) {
            return Hold::Lost;
        }
        let lease = (token.to_owned(), self.now_ms + LEASE_MS);
        self.leases.insert(id.to_owned(), lease);
        Hold::Held
    }

    fn drop_lease(&mut self, id: &str, token: &str) -> Hold {
        if !self.owns(id, token) {
            return Hold::Lost;
        }
        self.leases.remove(id);
        Hold::Held
    }
}
