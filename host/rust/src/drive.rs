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

use crate::component::{Answer, Component, Question};
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

impl Asked {
    /// The message's id, if it has a usable one.
    #[must_use]
    pub fn id(&self) -> Option<&str> {
        match self {
            Self::Decided(decision) => decision.id(),
            Self::Seen { id, .. } | Self::Claim { id } => Some(id),
        }
    }
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
        let take = |decision, question| match question {
            None => Ok(Asked::Decided(decision)),
            Some(Question::Seen { id }) => Ok(Asked::Seen {
                id,
                unseen: decision,
            }),
            Some(Question::Claim { id }) => Ok(Asked::Claim { id }),
            Some(other) => Err(out_of_turn(&other)),
        };
        match delivery.identity {
            Identity::Id(id) => self.decide_id(id, Answer::None, take),
            Identity::Body(body) => {
                let (len, limit) = (body.len(), self.limits().body);
                if len > limit {
                    return Err(GuardError::BodyTooLarge { len, limit }.into());
                }
                self.call(
                    Answer::None,
                    |exports, call| exports.guard.call_decide(call, body),
                    |decision, question| {
                        consistent(&decision, question.as_ref())?;
                        take(decision, question)
                    },
                )
            }
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
        self.settle(ticket, outcome, Answer::None, |settled, question| {
            let write = match question {
                None => Write::Nothing,
                Some(Question::Remember { id }) => Write::Remember { id },
                Some(Question::Complete { id, token }) => Write::Complete { id, token },
                Some(Question::Release { id, token }) => Write::Release { id, token },
                Some(other) => return Err(out_of_turn(&other)),
            };
            Ok(Settlement { write, settled })
        })
    }

    /// What has been done if the lease turned out not to be held.
    ///
    /// # Errors
    ///
    /// The ticket is not one of a decision, or the component trapped.
    pub fn settled_late(&self, ticket: &Ticket, outcome: Outcome) -> Result<Settled, Error> {
        let lost = Answer::Hold(Hold::Lost);
        self.settle(ticket, outcome, lost, |settled, _| Ok(settled))
    }

    /// Asks how the lease of a ticket is to be extended.
    ///
    /// # Errors
    ///
    /// The ticket is not one of a decision, or the component trapped.
    pub fn renewal(&self, ticket: &Ticket) -> Result<Renewal, Error> {
        self.call(
            Answer::None,
            |exports, call| exports.guard.call_renew(call, ticket),
            |hold, question| match about(ticket, question)? {
                None => Ok(Renewal::Decided(hold)),
                Some(Question::Renew { id, token }) => Ok(Renewal::Renew { id, token }),
                Some(other) => Err(out_of_turn(&other)),
            },
        )
    }

    /// The id whose mark has to be removed to forget this one.
    ///
    /// # Errors
    ///
    /// `rejected` if it is not usable as an id, or the component trapped.
    pub fn forgettable(&self, id: &str) -> Result<String, Error> {
        self.call(
            Answer::None,
            |exports, call| exports.guard.call_forget(call, id),
            |(), question| match question {
                Some(Question::Forget { id: forgotten }) => {
                    same(&forgotten, id)?;
                    Ok(forgotten)
                }
                Some(other) => Err(out_of_turn(&other)),
                None => Err(GuardError::Trap("forgot without asking".into())),
            },
        )
    }

    /// The id under which a step's mark is to be set, or `None` if the step
    /// is to run without one.
    ///
    /// # Errors
    ///
    /// `rejected` if the step's name is not `[a-z0-9_]{1,40}`; the component
    /// has no steps, or trapped.
    pub fn step(&self, ticket: &Ticket, step: &str) -> Result<Option<String>, Error> {
        if !self.has_steps() {
            return Err(GuardError::Misuse("this component has no steps".into()).into());
        }
        self.call(
            Answer::None,
            |exports, call| match &exports.steps {
                Some(steps) => steps.call_once(call, ticket, step),
                None => Err(wasmtime::Error::msg("no steps")),
            },
            |_, question| match about(ticket, question)? {
                None => Ok(None),
                Some(Question::SetOnce { id, step: named }) => {
                    same(&named, step)?;
                    Ok(Some(id))
                }
                Some(other) => Err(out_of_turn(&other)),
            },
        )
    }

    fn answer(&self, id: &str, answer: Answer) -> Result<Decision, Error> {
        self.decide_id(id, answer, |decision, question| match question {
            Some(_) => Ok(decision),
            None => Err(GuardError::Trap(format!("asked about {id:?} once only"))),
        })
    }

    fn decide_id<T>(
        &self,
        id: &str,
        answer: Answer,
        take: impl FnOnce(Decision, Option<Question>) -> Result<T, GuardError>,
    ) -> Result<T, Error> {
        self.call(
            answer,
            |exports, call| exports.guard.call_decide_id(call, id),
            |decision, question| {
                consistent(&decision, question.as_ref())?;
                if let Some(question) = &question {
                    same(question.id(), id)?;
                }
                take(decision, question)
            },
        )
    }

    fn settle<T>(
        &self,
        ticket: &Ticket,
        outcome: Outcome,
        answer: Answer,
        take: impl FnOnce(Settled, Option<Question>) -> Result<T, GuardError>,
    ) -> Result<T, Error> {
        self.call(
            answer,
            |exports, call| exports.guard.call_settle(call, ticket, outcome),
            |settled, question| take(settled, about(ticket, question)?),
        )
    }
}

// A component is held to the id that it was given, or has read from the body,
// and to the lease. None, whoever made it, can have another message's mark or
// lease touched, or skip a message without having asked.

fn consistent(decision: &Decision, question: Option<&Question>) -> Result<(), GuardError> {
    let (decided, asked) = (decision.id(), question.map(Question::id));
    if decided == asked {
        return Ok(());
    }
    let text = format!("decided on {decided:?} and asked about {asked:?}");
    Err(GuardError::Trap(text))
}

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
