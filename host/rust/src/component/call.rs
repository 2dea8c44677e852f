//! One call of a component: the answer it gets, the question it asks.

use crate::bindings::babelqueue::guard::{claims, marker, store, types as wit};
use crate::error::GuardError;
use crate::types::{ClaimOutcome, Hold};
use wasmtime::ResourceLimiter;

/// What the guard asked of its store in one call.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Question {
    Seen { id: String },
    Remember { id: String },
    Forget { id: String },
    Claim { id: String },
    Renew { id: String, token: String },
    Complete { id: String, token: String },
    Release { id: String, token: String },
    SetOnce { id: String, step: String },
}

impl Question {
    pub(crate) fn id(&self) -> &str {
        match self {
            Self::Seen { id }
            | Self::Remember { id }
            | Self::Forget { id }
            | Self::Claim { id }
            | Self::Renew { id, .. }
            | Self::Complete { id, .. }
            | Self::Release { id, .. }
            | Self::SetOnce { id, .. } => id,
        }
    }

    pub(crate) fn token(&self) -> Option<&str> {
        match self {
            Self::Renew { token, .. }
            | Self::Complete { token, .. }
            | Self::Release { token, .. } => Some(token),
            _ => None,
        }
    }
}

/// What the guard is told if it asks.
#[derive(Debug)]
pub(crate) enum Answer {
    /// Nothing is known yet: the id was not seen, or is busy; a write has
    /// been done, and the lease was held.
    None,
    Seen(bool),
    Claim(ClaimOutcome),
    Hold(Hold),
}

/// The state of one call, and the imports' side of it.
pub(crate) struct Call {
    answer: Answer,
    question: Option<Question>,
    /// A second question in one call breaks the interface's contract.
    broken: bool,
    /// The guest's memory, in bytes, and how far it may grow.
    memory: usize,
    memory_limit: usize,
}

impl Call {
    /// For an instance whose memory may grow to this many bytes.
    pub(super) fn within(memory_limit: usize) -> Self {
        Self {
            answer: Answer::None,
            question: None,
            broken: false,
            memory: 0,
            memory_limit,
        }
    }

    pub(super) fn begin(&mut self, answer: Answer) {
        self.answer = answer;
        self.question = None;
    }

    /// What was asked, if it was one thing at most.
    pub(super) fn end(&mut self) -> Result<Option<Question>, GuardError> {
        if self.broken {
            return Err(GuardError::Trap("asked two questions in one call".into()));
        }
        Ok(self.question.take())
    }

    /// The guest's memory, in bytes.
    pub(super) fn memory(&self) -> usize {
        self.memory
    }

    fn ask(&mut self, question: Question) {
        self.broken |= self.question.replace(question).is_some();
    }

    fn hold(&self) -> Hold {
        match self.answer {
            Answer::Hold(hold) => hold,
            _ => Hold::Held,
        }
    }
}

impl store::Host for Call {
    fn seen(&mut self, id: String) -> Result<bool, wit::StoreError> {
        self.ask(Question::Seen { id });
        Ok(matches!(self.answer, Answer::Seen(true)))
    }

    fn remember(&mut self, id: String) -> Result<(), wit::StoreError> {
        self.ask(Question::Remember { id });
        Ok(())
    }

    fn forget(&mut self, id: String) -> Result<(), wit::StoreError> {
        self.ask(Question::Forget { id });
        Ok(())
    }
}

impl claims::Host for Call {
    fn claim(&mut self, id: String) -> Result<ClaimOutcome, wit::StoreError> {
        self.ask(Question::Claim { id });
        Ok(match std::mem::replace(&mut self.answer, Answer::None) {
            Answer::Claim(outcome) => outcome,
            _ => ClaimOutcome::Busy(0),
        })
    }

    fn renew(&mut self, id: String, token: String) -> Result<Hold, wit::StoreError> {
        self.ask(Question::Renew { id, token });
        Ok(self.hold())
    }

    fn complete(&mut self, id: String, token: String) -> Result<Hold, wit::StoreError> {
        self.ask(Question::Complete { id, token });
        Ok(self.hold())
    }

    fn release(&mut self, id: String, token: String) -> Result<Hold, wit::StoreError> {
        self.ask(Question::Release { id, token });
        Ok(self.hold())
    }
}

impl marker::Host for Call {
    fn set_once(&mut self, id: String, step: String) -> Result<bool, wit::StoreError> {
        self.ask(Question::SetOnce { id, step });
        Ok(true)
    }
}

impl ResourceLimiter for Call {
    fn memory_growing(
        &mut self,
        _current: usize,
        desired: usize,
        _maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        let allowed = desired <= self.memory_limit;
        if allowed {
            self.memory = desired;
        }
        Ok(allowed)
    }

    fn table_growing(
        &mut self,
        _current: usize,
        desired: usize,
        _maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        Ok(desired <= 10_000)
    }
}
