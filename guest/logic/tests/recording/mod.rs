//! A store for tests: it gives the one answer it was made with, and writes
//! down what it was asked.

#![allow(clippy::panic, reason = "a wrong question is a failed test")]

use babelqueue_guard_logic::types::{ClaimOutcome, Hold, StoreError};
use babelqueue_guard_logic::{Claims, Marker, Store};
use std::cell::RefCell;

/// A question, as it reached the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    Seen(String),
    Remember(String),
    Forget(String),
    Claim(String),
    Renew(String, String),
    Complete(String, String),
    Release(String, String),
    SetOnce(String, String),
}

/// An answer of any of the store's functions.
#[derive(Clone, Debug)]
pub(crate) enum Answer {
    Bool(bool),
    Unit,
    Claim(ClaimOutcome),
    Hold(Hold),
}

/// Gives each question the one answer it was made with, and writes it down.
pub(crate) struct Recorder {
    answer: Result<Answer, StoreError>,
    asked: RefCell<Vec<Asked>>,
}

impl Recorder {
    fn ask(&self, question: Asked) -> Result<Answer, StoreError> {
        self.asked.borrow_mut().push(question);
        self.answer.clone()
    }

    fn bool(&self, question: Asked) -> Result<bool, StoreError> {
        match self.ask(question)? {
            Answer::Bool(yes) => Ok(yes),
            _ => panic!("not a question for this answer: {:?}", self.asked),
        }
    }

    fn unit(&self, question: Asked) -> Result<(), StoreError> {
        match self.ask(question)? {
            Answer::Unit => Ok(()),
            _ => panic!("not a question for this answer: {:?}", self.asked),
        }
    }

    fn hold(&self, question: Asked) -> Result<Hold, StoreError> {
        match self.ask(question)? {
            Answer::Hold(hold) => Ok(hold),
            _ => panic!("not a question for this answer: {:?}", self.asked),
        }
    }
}

fn pair(id: &str, other: &str) -> (String, String) {
    (id.to_owned(), other.to_owned())
}

impl Store for &Recorder {
    fn seen(&self, id: &str) -> Result<bool, StoreError> {
        self.bool(Asked::Seen(id.to_owned()))
    }

    fn remember(&self, id: &str) -> Result<(), StoreError> {
        self.unit(Asked::Remember(id.to_owned()))
    }

    fn forget(&self, id: &str) -> Result<(), StoreError> {
        self.unit(Asked::Forget(id.to_owned()))
    }
}

impl Claims for &Recorder {
    fn claim(&self, id: &str) -> Result<ClaimOutcome, StoreError> {
        match self.ask(Asked::Claim(id.to_owned()))? {
            Answer::Claim(outcome) => Ok(outcome),
            _ => panic!("not a question for this answer: {:?}", self.asked),
        }
    }

    fn renew(&self, id: &str, token: &str) -> Result<Hold, StoreError> {
        let (id, token) = pair(id, token);
        self.hold(Asked::Renew(id, token))
    }

    fn complete(&self, id: &str, token: &str) -> Result<Hold, StoreError> {
        let (id, token) = pair(id, token);
        self.hold(Asked::Complete(id, token))
    }

    fn release(&self, id: &str, token: &str) -> Result<Hold, StoreError> {
        let (id, token) = pair(id, token);
        self.hold(Asked::Release(id, token))
    }
}

impl Marker for &Recorder {
    fn set_once(&self, id: &str, step: &str) -> Result<bool, StoreError> {
        let (id, step) = pair(id, step);
        self.bool(Asked::SetOnce(id, step))
    }
}

/// What came of a call, and what it asked.
pub(crate) fn call<R>(
    answer: Result<Answer, StoreError>,
    call: impl FnOnce(&Recorder) -> Result<R, StoreError>,
) -> (Result<R, StoreError>, Vec<Asked>) {
    let store = Recorder {
        answer,
        asked: RefCell::default(),
    };
    let result = call(&store);
    (result, store.asked.into_inner())
}
