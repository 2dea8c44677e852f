//! Leases (contract, section 3): taken first, and the mark looked for second;
//! the mark written first, and the lease dropped second. Where one server has
//! both keys, each is one round trip.

use super::client::Target;
use super::link::Repeat;
use super::reply::{Asked, Failure};
use super::{RedisStore, get, pttl};
use crate::error::StoreError;
use crate::settings::Millis;
use crate::store::{Claims, token};
use crate::types::{ClaimOutcome, Hold, Lease};
use async_trait::async_trait;
use redis::{Cmd, Value, cmd};
use std::sync::atomic::Ordering;

/// What every language's store sends to extend a lease.
const RENEW: &str = include_str!("renew.lua");
/// What every language's store sends to drop a lease.
const RELEASE: &str = include_str!("release.lua");

#[async_trait]
impl Claims for RedisStore {
    async fn claim(&self, id: &str) -> Result<ClaimOutcome, StoreError> {
        self.try_scripts().await?;
        let claim = Claim {
            store: self,
            lease: self.keys.lease(id),
            mark: self.keys.mark(id),
            token: token::fresh()?,
        };
        let mut found = claim.look().await;
        let lost = matches!(found, Err(Failure::Lost(_)));
        if lost {
            // With the same token: to find it then means to have won.
            found = claim.look().await;
        }
        match found {
            Ok(found) => claim.conclude(found).await,
            Err(failure) => {
                if lost {
                    claim.give_back().await;
                }
                Err(claim.asked().failed(&failure))
            }
        }
    }

    async fn renew(&self, id: &str, token: &str) -> Result<Hold, StoreError> {
        let lease = self.keys.lease(id);
        let command = renew(&lease, token, self.lease);
        let asked = self.asked("renew the lease", Some(&lease));
        let [reply] = self.send(asked, &lease, [command], Repeat::Once).await?;
        hold(asked, reply)
    }

    async fn complete(&self, id: &str, token: &str) -> Result<Hold, StoreError> {
        let (lease, mark) = (self.keys.lease(id), self.keys.mark(id));
        let marking = self.asked("set the mark", Some(&mark));
        let releasing = self.asked("drop the lease", Some(&lease));
        let (marked, released) = if self.link.is_cluster() {
            let [marked] = self
                .send(marking, &mark, [self.set_mark(&mark)], Repeat::Once)
                .await?;
            marking.answer(marked.clone())?;
            let released = self
                .send(releasing, &lease, [release(&lease, token)], Repeat::Once)
                .await;
            (marked, released.map(|[reply]| reply))
        } else {
            let commands = [self.set_mark(&mark), release(&lease, token)];
            let [marked, released] = self.send(marking, &mark, commands, Repeat::Once).await?;
            (marked, Ok(released))
        };
        marking.answer(marked)?;
        // The mark is set, and that counts, whatever becomes of the lease.
        let held = released.and_then(|reply| hold(releasing, reply));
        Ok(held.unwrap_or_else(|error| {
            tracing::warn!(id, %error, "the lease lasts until it lapses");
            Hold::Held
        }))
    }

    async fn release(&self, id: &str, token: &str) -> Result<Hold, StoreError> {
        let lease = self.keys.lease(id);
        let asked = self.asked("drop the lease", Some(&lease));
        let commands = [release(&lease, token)];
        let [reply] = self.send(asked, &lease, commands, Repeat::Once).await?;
        hold(asked, reply)
    }
}

impl RedisStore {
    /// Takes, renews and drops a lease that nobody else knows, before the
    /// first claim: a user who may not run scripts would otherwise hear of it
    /// when a handler has already run.
    async fn try_scripts(&self) -> Result<(), StoreError> {
        if self.scripts.load(Ordering::Acquire) {
            return Ok(());
        }
        let token = token::fresh()?;
        let lease = self.keys.lease(&format!("trial-{token}"));
        let asked = self.asked(
            "try whether leases can be renewed and dropped",
            Some(&lease),
        );
        let commands = [
            take(&lease, &token, self.lease),
            renew(&lease, &token, self.lease),
            release(&lease, &token),
        ];
        for reply in self.send(asked, &lease, commands, Repeat::Once).await? {
            asked.answer(reply).map_err(what_claims_need)?;
        }
        self.scripts.store(true, Ordering::Release);
        Ok(())
    }
}

/// One claim of one id.
struct Claim<'s> {
    store: &'s RedisStore,
    lease: String,
    mark: String,
    token: String,
}

/// What the server said to a claim.
struct Found {
    taken: Value,
    holder: Value,
    left: Value,
    mark: Value,
}

/// The same if nothing went wrong.
struct Answer {
    /// Milliseconds that the lease has left, whoever holds it.
    left: u64,
    marked: bool,
}

impl Claim<'_> {
    /// Not repeated by the connection: a repetition is ours to know of.
    async fn look(&self) -> Result<Found, Failure> {
        let link = &self.store.link;
        let (at_lease, at_mark) = (Target::Key(&self.lease), Target::Key(&self.mark));
        let lease = [
            take(&self.lease, &self.token, self.store.lease),
            get(&self.lease),
            pttl(&self.lease),
        ];
        let mark = get(&self.mark);
        let [taken, holder, left, mark] = if link.is_cluster() {
            let [taken, holder, left] = link.send(at_lease, lease, Repeat::Never).await?;
            // The lease may be ours by now, whatever becomes of this part.
            let looked = link.send(at_mark, [mark], Repeat::Once).await;
            let [mark] = looked.map_err(Failure::after_another)?;
            [taken, holder, left, mark]
        } else {
            let [take, get, pttl] = lease;
            link.send(at_lease, [take, get, pttl, mark], Repeat::Never)
                .await?
        };
        Ok(Found {
            taken,
            holder,
            left,
            mark,
        })
    }

    async fn conclude(&self, found: Found) -> Result<ClaimOutcome, StoreError> {
        let won = found.taken == Value::Okay
            || matches!(&found.holder, Value::BulkString(token) if token == self.token.as_bytes());
        let answer = self.answer(found);
        if won && !matches!(answer, Ok(Answer { marked: false, .. })) {
            self.give_back().await;
        }
        let Answer { left, marked } = answer?;
        Ok(if marked {
            ClaimOutcome::Done
        } else if won {
            ClaimOutcome::Won(Lease {
                token: self.token.clone(),
                length_ms: self.store.lease.get(),
            })
        } else {
            ClaimOutcome::Busy(left)
        })
    }

    fn answer(&self, found: Found) -> Result<Answer, StoreError> {
        let lease = self.asked();
        let mark = self.store.asked("look for the mark", Some(&self.mark));
        lease.answer(found.taken)?;
        lease.answer(found.holder)?;
        let left = match lease.answer(found.left)? {
            // Below 1 it has just ended.
            Value::Int(left) => u64::try_from(left).unwrap_or(0).max(1),
            reply => return Err(lease.surprised(&reply)),
        };
        let marked = mark.answer(found.mark)? != Value::Nil;
        Ok(Answer { left, marked })
    }

    /// Drops what may have been taken, as well as can be: otherwise it lapses.
    async fn give_back(&self) {
        let release = release(&self.lease, &self.token);
        let link = &self.store.link;
        let target = Target::Key(&self.lease);
        if let Err(failure) = link.send(target, [release], Repeat::Once).await {
            let error = failure.error();
            tracing::warn!(key = self.lease, %error, "a lease that nobody needs lasts until it lapses");
        }
    }

    fn asked(&self) -> Asked<'_> {
        self.store.asked("take the lease", Some(&self.lease))
    }
}

fn take(lease: &str, token: &str, length: Millis) -> Cmd {
    let mut command = cmd("SET");
    command.arg(lease).arg(token).arg("NX");
    command.arg("PX").arg(length.get());
    command
}

/// EVAL rather than EVALSHA: it needs no other permission, and a flush of the
/// scripts does not matter.
fn renew(lease: &str, token: &str, length: Millis) -> Cmd {
    let mut command = cmd("EVAL");
    command.arg(RENEW).arg(1).arg(lease).arg(token);
    command.arg(length.get());
    command
}

fn release(lease: &str, token: &str) -> Cmd {
    let mut command = cmd("EVAL");
    command.arg(RELEASE).arg(1).arg(lease).arg(token);
    command
}

/// What is missing inside a script, the server does not always say.
fn what_claims_need(error: StoreError) -> StoreError {
    match error {
        StoreError::Rejected(text) => StoreError::Rejected(format!(
            "{text}; claims need the permissions eval, get, set, pttl, del and pexpire on such keys"
        )),
        error @ StoreError::Unavailable(_) => error,
    }
}

/// What a script says of the token.
fn hold(asked: Asked<'_>, reply: Value) -> Result<Hold, StoreError> {
    match asked.answer(reply)? {
        Value::Int(0) => Ok(Hold::Lost),
        Value::Int(_) => Ok(Hold::Held),
        reply => Err(asked.surprised(&reply)),
    }
}
