//! Decisions without waiting inside the component.
//!
//! One call of the guard asks its store at most one question and is a pure
//! function of the answer; the WIT says so, and tests hold it to that. So the
//! component is asked first what it wants to know, the store is asked next, in
//! whatever way the caller likes, and the component is told the answer last:
//!
//! ```text
//! ask(delivery) ──▶ Decided(decision)                      it failed open
//!               └─▶ Seen { id, .. }  ──▶ answer_seen(..)   a look at the store between
//!               └─▶ Claim { id }     ──▶ answer_claim(..)
//! ```
//!
//! [`Guard`](crate::Guard) does this with an asynchronous [`Store`]; these
//! functions are for those who ask their store in a way of their own.
//!
//! [`Store`]: crate::Store

use crate::component::{Answer, Call, Component, Exports, Question};
use crate::delivery::{Delivery, Identity};
use crate::error::{Error, GuardError};
use crate::types::{ClaimOutcome, Decision, Hold, Outcome, Settled, Ticket};

/// What a component has to know before it decides on a delivery.
#[derive(Debug, PartialEq, Eq)]
#[must_use]
pub enum Asked {
    /// Nothing: the delivery has no usable id.
    Decided(Decision),
    /// Whether this id was seen. If not, the decision is there already.
    Seen {
        /// The message's id.
        id: String,
        /// The decision if the id was not seen.
        unseen: Decision,
    },
    /// What a claim of this id finds.
    Claim {
        /// The message's id.
        id: String,
    },
}

/// How a ticket is to be settled.
#[derive(Debug, PartialEq, Eq)]
#[must_use]
pub struct Settlement {
    /// What has to be written.
    pub write: Write,
    /// What has been done once it is written, and the lease, if there was
    /// one, was still held.
    pub settled: Settled,
}

/// What has to be written to settle a ticket.
#[derive(Debug, PartialEq, Eq)]
#[must_use]
pub enum Write {
    /// Nothing.
    Nothing,
    /// The mark of this id.
    Remember {
        /// The message's id.
        id: String,
    },
    /// The mark of this id, and the end of the lease.
    Complete {
        /// The message's id.
        id: String,
        /// The lease's token.
        token: String,
    },
    /// The end of the lease.
    Release {
        /// The message's id.
        id: String,
        /// The lease's token.
        token: String,
    },
}

/// How the lease of a ticket is to be extended.
#[derive(Debug, PartialEq, Eq)]
#[must_use]
pub enum Renewal {
    /// Nothing is to be asked: there is no lease to lose, or nothing here that
    /// could hold one.
    Decided(Hold),
    /// By asking the store for this lease.
    Renew {
        /// The message's id.
        id: String,
        /// The lease's token.
        token: String,
    },
}

impl Component {
    /// Asks what has to be known before a delivery can be decided on.
    ///
    /// # Errors
    ///
    /// The body is over the limit, or the component trapped.
    pub fn ask(&self, delivery: &Delivery<'_>) -> Result<Asked, Error> {
        let (decision, question) = match delivery.identity {
            Identity::Body(body) => {
                let limit = self.limits().body;
                if body.len() > limit {
                    return Err(GuardError::BodyTooLarge {
                        len: body.len(),
                        limit,
                    }
                    .into());
                }
                self.decision(Answer::None, |exports, call| {
                    exports.guard.call_decide(call, body)
                })?
            }
            Identity::Id(id) => self.decide_id(id, Answer::None)?,
        };
        match question {
            None => Ok(Asked::Decided(decision)),
            Some(Question::Seen { id }) => Ok(Asked::Seen {
                id,
                unseen: decision,
            }),
            Some(Question::Claim { id }) => Ok(Asked::Claim { id }),
            Some(other) => Err(out_of_turn(&other).into()),
        }
    }

    /// The decision on an id that was asked for and was, or was not, seen.
    ///
    /// # Errors
    ///
    /// The component trapped.
    pub fn answer_seen(&self, id: &str, seen: bool) -> Result<Decision, Error> {
        self.answer(id, Answer::Seen(seen))
    }

    /// The decision on an id that was asked for, after a claim.
    ///
    /// # Errors
    ///
    /// The component trapped.
    pub fn answer_claim(&self, id: &str, found: ClaimOutcome) -> Result<Decision, Error> {
        self.answer(id, Answer::Claim(found))
    }

    /// Asks how a ticket is to be settled.
    ///
    /// # Errors
    ///
    /// The ticket is not one of a decision, or the component trapped.
    pub fn settlement(&self, ticket: &Ticket, outcome: Outcome) -> Result<Settlement, Error> {
        let (settled, question) = self.settle(ticket, outcome, Answer::None)?;
        let write = match question {
            None => Write::Nothing,
            Some(Question::Remember { id }) => Write::Remember { id },
            Some(Question::Complete { id, token }) => Write::Complete { id, token },
            Some(Question::Release { id, token }) => Write::Release { id, token },
            Some(other) => return Err(out_of_turn(&other).into()),
        };
        Ok(Settlement { write, settled })
    }

    /// What has been done if the lease turned out not to be held.
    ///
    /// # Errors
    ///
    /// The ticket is not one of a decision, or the component trapped.
    pub fn settled_late(&self, ticket: &Ticket, outcome: Outcome) -> Result<Settled, Error> {
        Ok(self.settle(ticket, outcome, Answer::Hold(Hold::Lost))?.0)
    }

    /// Asks how the lease of a ticket is to be extended.
    ///
    /// # Errors
    ///
    /// The ticket is not one of a decision, or the component trapped.
    pub fn renewal(&self, ticket: &Ticket) -> Result<Renewal, Error> {
        let (hold, question) = self.call(Answer::None, |exports, call| {
            exports.guard.call_renew(call, ticket)
        })?;
        let hold = hold.map_err(crate::StoreError::from)?;
        match about(ticket, question)? {
            None => Ok(Renewal::Decided(hold)),
            Some(Question::Renew { id, token }) => Ok(Renewal::Renew { id, token }),
            Some(other) => Err(out_of_turn(&other).into()),
        }
    }

    /// The id whose mark has to be removed to forget this one.
    ///
    /// # Errors
    ///
    /// `rejected` if it is not usable as an id, or the component trapped.
    pub fn forgettable(&self, id: &str) -> Result<String, Error> {
        let (result, question) = self.call(Answer::None, |exports, call| {
            exports.guard.call_forget(call, id)
        })?;
        result.map_err(crate::StoreError::from)?;
        match question {
            Some(Question::Forget { id: forgotten }) => {
                same(&forgotten, id)?;
                Ok(forgotten)
            }
            other => Err(GuardError::Trap(format!("forgot {other:?}")).into()),
        }
    }

    /// The id under which a step's mark is to be set, or `None` if the step
    /// is to run without one.
    ///
    /// # Errors
    ///
    /// `rejected` if the step's name is not `[a-z0-9_]{1,40}`; the component
    /// has no steps, or trapped.
    pub fn step(&self, ticket: &Ticket, step: &str) -> Result<Option<String>, Error> {
        let (result, question) = self.call(Answer::None, |exports, call| {
            Ok(match &exports.steps {
                Some(steps) => Some(steps.call_once(call, ticket, step)?),
                None => None,
            })
        })?;
        match result {
            Some(result) => result.map_err(crate::StoreError::from)?,
            None => {
                return Err(GuardError::Misuse("this component has no steps".into()).into());
            }
        };
        match about(ticket, question)? {
            None => Ok(None),
            Some(Question::SetOnce { id, step: named }) => {
                same(&named, step)?;
                Ok(Some(id))
            }
            Some(other) => Err(out_of_turn(&other).into()),
        }
    }

    fn answer(&self, id: &str, answer: Answer) -> Result<Decision, Error> {
        match self.decide_id(id, answer)? {
            (decision, Some(_)) => Ok(decision),
            (_, None) => Err(GuardError::Trap(format!("asked about {id:?} once only")).into()),
        }
    }

    fn decide_id(&self, id: &str, answer: Answer) -> Result<(Decision, Option<Question>), Error> {
        let (decision, question) = self.decision(answer, |exports, call| {
            exports.guard.call_decide_id(call, id)
        })?;
        if let Some(question) = &question {
            same(question.id(), id)?;
        }
        Ok((decision, question))
    }

    fn decision(
        &self,
        answer: Answer,
        function: impl FnOnce(
            &Exports,
            &mut wasmtime::Store<Call>,
        ) -> wasmtime::Result<
            Result<Decision, crate::bindings::babelqueue::guard::types::StoreError>,
        >,
    ) -> Result<(Decision, Option<Question>), Error> {
        let (decision, question) = self.call(answer, function)?;
        let decision = decision.map_err(crate::StoreError::from)?;
        let (decided, asked) = (decision.id(), question.as_ref().map(Question::id));
        if decided != asked {
            let text = format!("decided on {decided:?} and asked about {asked:?}");
            return Err(GuardError::Trap(text).into());
        }
        Ok((decision, question))
    }

    fn settle(
        &self,
        ticket: &Ticket,
        outcome: Outcome,
        answer: Answer,
    ) -> Result<(Settled, Option<Question>), Error> {
        let (settled, question) = self.call(answer, |exports, call| {
            exports.guard.call_settle(call, ticket, outcome)
        })?;
        let settled = settled.map_err(crate::StoreError::from)?;
        Ok((settled, about(ticket, question)?))
    }
}

/// Holds a component to the ticket that it was given: none, whoever made it,
/// can have another message's mark or lease touched.
fn about(ticket: &Ticket, question: Option<Question>) -> Result<Option<Question>, GuardError> {
    if let Some(question) = &question {
        let (id, token) = match ticket {
            Ticket::Open(_) => return Err(out_of_turn(question)),
            Ticket::Seen(id) => (id, None),
            Ticket::Leased(leased) => (&leased.id, Some(leased.lease.token.as_str())),
        };
        same(question.id(), id)?;
        if let Some(used) = question.token() {
            same(used, token.unwrap_or_default())?;
        }
    }
    Ok(question)
}

fn same(asked: &str, given: &str) -> Result<(), GuardError> {
    if asked == given {
        return Ok(());
    }
    let text = format!("asked about {asked:?}, was given {given:?}");
    Err(GuardError::Trap(text))
}

/// A component that asks for something the interface has no place for here.
fn out_of_turn(question: &Question) -> GuardError {
    GuardError::Trap(format!("asked out of turn: {question:?}"))
}
