//! A store that gives the one answer it was made with, and writes down what it
//! was asked.

use babelqueue_guard_logic::types::{ClaimOutcome, Hold, StoreError};
use babelqueue_guard_logic::{Claims, Marker, Store};
use std::cell::RefCell;

/// What a store answers when it gives no error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// To `seen` and `set-once`.
    Bool(bool),
    /// To `remember` and `forget`.
    Nothing,
    /// To `claim`.
    Claim(ClaimOutcome),
    /// To `renew`, `complete` and `release`.
    Hold(Hold),
}

/// The same, or the store's error.
pub type Answer = Result<Value, StoreError>;

/// A question as it reached the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// The function's name, as in the WIT.
    pub function: String,
    /// The id, and the token or the step if the function takes one.
    pub arguments: Vec<String>,
}

impl Question {
    /// The question that this function puts with these arguments.
    #[must_use]
    pub fn new(function: &str, arguments: &[&str]) -> Self {
        Self {
            function: function.to_owned(),
            arguments: arguments.iter().map(|&text| text.to_owned()).collect(),
        }
    }
}

/// What came of a call, and what it asked.
pub type Outcomes<R> = (Result<R, StoreError>, Vec<Question>);

/// Makes a call over a store that gives this answer.
///
/// # Panics
///
/// If the answer is not one to what is asked.
pub fn record<R>(
    answer: &Answer,
    call: impl FnOnce(&Recorder) -> Result<R, StoreError>,
) -> Outcomes<R> {
    let store = Recorder {
        answer: answer.clone(),
        asked: RefCell::default(),
    };
    let result = call(&store);
    (result, store.asked.into_inner())
}

/// The store that [`record`] makes.
pub struct Recorder {
    answer: Answer,
    asked: RefCell<Vec<Question>>,
}

impl Recorder {
    fn ask(&self, function: &str, arguments: &[&str]) -> Answer {
        let question = Question::new(function, arguments);
        self.asked.borrow_mut().push(question);
        self.answer.clone()
    }
}

fn bool(value: Value) -> bool {
    match value {
        Value::Bool(yes) => yes,
        other => unreachable!("{other:?} is no answer to this question"),
    }
}

fn nothing(value: Value) {
    match value {
        Value::Nothing => {}
        other => unreachable!("{other:?} is no answer to this question"),
    }
}

fn hold(value: Value) -> Hold {
    match value {
        Value::Hold(hold) => hold,
        other => unreachable!("{other:?} is no answer to this question"),
    }
}

impl Store for &Recorder {
    fn seen(&self, id: &str) -> Result<bool, StoreError> {
        self.ask("seen", &[id]).map(bool)
    }

    fn remember(&self, id: &str) -> Result<(), StoreError> {
        self.ask("remember", &[id]).map(nothing)
    }

    fn forget(&self, id: &str) -> Result<(), StoreError> {
        self.ask("forget", &[id]).map(nothing)
    }
}

impl Claims for &Recorder {
    fn claim(&self, id: &str) -> Result<ClaimOutcome, StoreError> {
        self.ask("claim", &[id]).map(|value| match value {
            Value::Claim(outcome) => outcome,
            other => unreachable!("{other:?} is no answer to this question"),
        })
    }

    fn renew(&self, id: &str, token: &str) -> Result<Hold, StoreError> {
        self.ask("renew", &[id, token]).map(hold)
    }

    fn complete(&self, id: &str, token: &str) -> Result<Hold, StoreError> {
        self.ask("complete", &[id, token]).map(hold)
    }

    fn release(&self, id: &str, token: &str) -> Result<Hold, StoreError> {
        self.ask("release", &[id, token]).map(hold)
    }
}

impl Marker for &Recorder {
    fn set_once(&self, id: &str, step: &str) -> Result<bool, StoreError> {
        self.ask("set-once", &[id, step]).map(bool)
    }
}
