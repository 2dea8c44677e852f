//! One delivery from beginning to end: decide, run, settle
//! (contract, sections 2 and 3).

use crate::component::Component;
use crate::context::Context;
use crate::delivery::Delivery;
use crate::detach::Detach;
use crate::drive::{Asked, Renewal, Write};
use crate::error::{Error, GuardError};
use crate::in_flight::InFlight;
use crate::processed::Processed;
use crate::store::{Claims, Marker, Store};
use crate::types::{ClaimOutcome, Decision, Hold, Outcome, Settled, Ticket};
use crate::watch::{self, Ending, Handling};
use futures_util::FutureExt;
use std::fmt;
use std::panic::{AssertUnwindSafe, resume_unwind};
use std::sync::Arc;
use tokio::runtime::Handle;
use tracing::{Instrument, Span};

/// Makes the effect of a message happen once, however often it is delivered.
///
/// Clones share the store and the component. Any number of deliveries may be
/// in flight; each keeps a ticket, none keeps an instance of the component.
#[derive(Clone)]
pub struct Guard {
    component: Component,
    store: Backing,
    marker: Option<Arc<dyn Marker>>,
}

/// A delivery whose body has been read.
pub(crate) struct Read {
    asked: Result<Asked, Error>,
    replay: bool,
}

impl Read {
    fn span(&self) -> Span {
        let asked = self.asked.as_ref().ok();
        watch::span(asked.and_then(Asked::id), self.replay)
    }
}

#[derive(Clone)]
enum Backing {
    Seen(Arc<dyn Store>),
    Claims(Arc<dyn Claims>),
}

impl Backing {
    /// The seen-set, which a store with claims is as well.
    fn seen_set(&self) -> &dyn Store {
        match self {
            Self::Seen(store) => &**store,
            Self::Claims(store) => &**store,
        }
    }
}

impl fmt::Debug for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guard")
            .field("claiming", &self.is_claiming())
            .field("component", &self.component)
            .finish_non_exhaustive()
    }
}

impl Guard {
    /// A guard over a seen-set. Two copies of a message in flight at the same
    /// moment both run; see [`claiming`](Self::claiming).
    ///
    /// # Errors
    ///
    /// This machine cannot run compiled WebAssembly.
    pub fn new(store: impl Store) -> Result<Self, GuardError> {
        Ok(Self::with_component(Component::plain()?, store))
    }

    /// A guard that claims an id before its handler runs, so that of several
    /// copies in flight one runs and the others are parked.
    ///
    /// The lease is renewed from a task of its own while the handler runs;
    /// [`process`](Self::process) needs a tokio runtime for it.
    ///
    /// # Errors
    ///
    /// This machine cannot run compiled WebAssembly.
    pub fn claiming(store: impl Claims) -> Result<Self, GuardError> {
        Ok(Self {
            component: Component::claiming()?,
            store: Backing::Claims(Arc::new(store)),
            marker: None,
        })
    }

    /// A guard over a seen-set with a component of the caller's own, such as
    /// one with other [`Limits`](crate::component::Limits).
    #[must_use]
    pub fn with_component(component: Component, store: impl Store) -> Self {
        Self {
            component,
            store: Backing::Seen(Arc::new(store)),
            marker: None,
        }
    }

    /// The same guard with another component.
    #[must_use]
    pub fn over(self, component: Component) -> Self {
        Self { component, ..self }
    }

    /// Adds the store for [`Context::once`], usually the same one again.
    #[must_use]
    pub fn with_steps(self, marker: impl Marker) -> Self {
        if !self.is_claiming() {
            // Compiled now rather than in the first handler that has a step,
            // which is told if this has failed.
            drop(Component::claiming());
        }
        Self {
            marker: Some(Arc::new(marker)),
            ..self
        }
    }

    /// Whether ids are claimed before handlers run.
    #[must_use]
    pub fn is_claiming(&self) -> bool {
        matches!(self.store, Backing::Claims(_))
    }

    /// Handles one delivery: decides, calls the handler if it is to run, and
    /// records how it ended.
    ///
    /// The handler's success is recorded even if the caller goes away: a
    /// future dropped after that hands the rest to the runtime. Dropped before
    /// it, nothing is marked, and a lease is given up. A panic of the handler
    /// is a failure, and goes on once that is settled.
    ///
    /// # Errors
    ///
    /// The store could not be asked, or the component could not decide. The
    /// handler was not called, and the delivery must not be acknowledged.
    pub async fn process<'a, T, E, F, Fut>(
        &self,
        delivery: impl Into<Delivery<'a>>,
        handler: F,
    ) -> Result<Processed<T, E>, Error>
    where
        F: FnOnce(Context) -> Fut,
        Fut: Future<Output = Result<T, E>>,
    {
        let delivery = delivery.into();
        self.handle(self.read(&delivery), handler).await
    }

    /// Reads the delivery's body, which is not needed any more after this.
    pub(crate) fn read(&self, delivery: &Delivery<'_>) -> Read {
        Read {
            asked: self.component.ask(delivery),
            replay: delivery.replay,
        }
    }

    /// The rest of [`process`](Self::process).
    pub(crate) async fn handle<T, E, F, Fut>(
        &self,
        read: Read,
        handler: F,
    ) -> Result<Processed<T, E>, Error>
    where
        F: FnOnce(Context) -> Fut,
        Fut: Future<Output = Result<T, E>>,
    {
        if self.is_claiming() && Handle::try_current().is_err() {
            let text = "claims are renewed by a task: call this within a tokio runtime";
            return Err(GuardError::Misuse(text.into()).into());
        }
        let span = read.span();
        async {
            let ticket = match self.decide_on(read.asked).await? {
                Decision::Run(ticket) => ticket,
                Decision::Skip(id) => return Ok(Processed::Skipped { id }),
                Decision::Park(parked) => return Ok(Processed::Parked(parked)),
            };
            let id = ticket.id().map(str::to_owned);
            let run = InFlight::start(self, ticket, read.replay);
            let context = run.context();
            let handling = Handling::begin();
            let ended = AssertUnwindSafe(async { handler(context).await })
                .catch_unwind()
                .await;
            match ended {
                Ok(Ok(value)) => {
                    handling.ended(Ending::Succeeded);
                    let mark = run.succeed().await;
                    Ok(Processed::Ran { value, id, mark })
                }
                Ok(Err(error)) => {
                    handling.ended(Ending::Failed);
                    run.fail().await;
                    Ok(Processed::Failed { error, id })
                }
                Err(panic) => {
                    handling.ended(Ending::Panicked);
                    run.fail().await;
                    resume_unwind(panic)
                }
            }
        }
        .instrument(span)
        .await
    }

    /// Decides on a delivery, for those who run the handler themselves and
    /// [`settle`](Self::settle) afterwards.
    ///
    /// With claims, a decision to run holds a lease, which whoever asked has
    /// to [`renew`](Self::renew). Dropped before it is ready, it gives up what
    /// it may have claimed.
    ///
    /// # Errors
    ///
    /// As for [`process`](Self::process).
    pub async fn decide(&self, delivery: &Delivery<'_>) -> Result<Decision, Error> {
        self.decide_on(self.component.ask(delivery)).await
    }

    async fn decide_on(&self, asked: Result<Asked, Error>) -> Result<Decision, Error> {
        let decision = match asked {
            Ok(asked) => self.answer(asked).await,
            Err(error) => Err(error),
        };
        watch::decided("decide", &decision);
        decision
    }

    async fn answer(&self, asked: Asked) -> Result<Decision, Error> {
        match (asked, &self.store) {
            (Asked::Decided(decision), _) => Ok(decision),
            (Asked::Seen { id, unseen }, Backing::Seen(store)) => {
                if store.seen(&id).await? {
                    self.component.answer_seen(&id, true)
                } else {
                    Ok(unseen)
                }
            }
            (Asked::Claim { id }, Backing::Claims(store)) => {
                claim(self.component.clone(), store.clone(), id).await
            }
            (_, _) => Err(mismatch().into()),
        }
    }

    /// Records how a handler ended. Settling twice is harmless. Once begun it
    /// runs to its end, also if this future is dropped.
    ///
    /// # Errors
    ///
    /// The store could not be written, or the component trapped.
    pub async fn settle(&self, ticket: &Ticket, outcome: Outcome) -> Result<Settled, Error> {
        let guard = self.clone();
        let ticket = ticket.clone();
        let settle = async move {
            let settled = guard.settle_here(&ticket, outcome).await;
            // Here, since the caller may have gone away.
            watch::settled(&ticket, outcome, &settled);
            settled
        };
        Detach::new(|_| settle.in_current_span()).await
    }

    async fn settle_here(&self, ticket: &Ticket, outcome: Outcome) -> Result<Settled, Error> {
        let settlement = self.component.settlement(ticket, outcome)?;
        let hold = match (settlement.write, &self.store) {
            (Write::Nothing, _) => Hold::Held,
            (Write::Remember { id }, store) => {
                store.seen_set().remember(&id).await?;
                Hold::Held
            }
            (Write::Complete { id, token }, Backing::Claims(store)) => {
                store.complete(&id, &token).await?
            }
            (Write::Release { id, token }, Backing::Claims(store)) => {
                store.release(&id, &token).await?
            }
            (_, Backing::Seen(_)) => return Err(mismatch().into()),
        };
        match hold {
            Hold::Held => Ok(settlement.settled),
            Hold::Lost => self.component.settled_late(ticket, outcome),
        }
    }

    /// Extends the lease of a ticket, if it has one.
    ///
    /// # Errors
    ///
    /// The store could not be asked, or the component trapped.
    pub async fn renew(&self, ticket: &Ticket) -> Result<Hold, Error> {
        watch::errors("renew", self.renew_here(ticket).await)
    }

    async fn renew_here(&self, ticket: &Ticket) -> Result<Hold, Error> {
        match (self.component.renewal(ticket)?, &self.store) {
            (Renewal::Decided(hold), _) => Ok(hold),
            (Renewal::Renew { id, token }, Backing::Claims(store)) => {
                Ok(store.renew(&id, &token).await?)
            }
            (Renewal::Renew { .. }, Backing::Seen(_)) => Err(mismatch().into()),
        }
    }

    /// Removes the mark of an id, so that its next delivery runs, as a
    /// deliberate replay needs (contract, section 6). A lease on it stays.
    ///
    /// # Errors
    ///
    /// `rejected` for what is not usable as an id; or the store could not be
    /// written.
    pub async fn forget(&self, id: &str) -> Result<(), Error> {
        watch::errors("forget", self.forget_here(id).await)
    }

    async fn forget_here(&self, id: &str) -> Result<(), Error> {
        let id = self.component.forgettable(id)?;
        Ok(self.store.seen_set().forget(&id).await?)
    }

    pub(crate) async fn once(&self, ticket: &Ticket, step: &str) -> Result<bool, Error> {
        watch::errors("once", self.once_here(ticket, step).await)
    }

    async fn once_here(&self, ticket: &Ticket, step: &str) -> Result<bool, Error> {
        // Steps are an export of the claiming component alone; what they
        // decide does not depend on how the ticket came about.
        let steps = if self.is_claiming() {
            self.component.clone()
        } else {
            Component::claiming()?
        };
        let Some(id) = steps.step(ticket, step)? else {
            return Ok(true);
        };
        let marker = self.marker.as_ref().ok_or_else(|| {
            GuardError::Misuse("the guard has no store for steps: add it by `with_steps`".into())
        })?;
        Ok(marker.set_once(&id, step).await?)
    }
}

/// Claims an id, and gives the claim up again if it does not lead to a
/// decision or if nobody waits for it any more.
async fn claim(
    component: Component,
    store: Arc<dyn Claims>,
    id: String,
) -> Result<Decision, Error> {
    Detach::new(|abandoned| async move {
        let found = store.claim(&id).await?;
        let token = match &found {
            ClaimOutcome::Won(lease) => Some(lease.token.clone()),
            ClaimOutcome::Busy(_) | ClaimOutcome::Done => None,
        };
        let decision = component.answer_claim(&id, found);
        if let Some(token) = token
            && (decision.is_err() || abandoned.get())
            && let Err(error) = store.release(&id, &token).await
        {
            tracing::warn!(id, %error, "a claim that nobody needs lasts until it lapses");
        }
        decision
    })
    .await
}

/// A component and a store of different kinds.
fn mismatch() -> GuardError {
    GuardError::Misuse(
        "the component and the store do not fit: claims need the component for the world \
         `claiming` and a store with claims"
            .into(),
    )
}
