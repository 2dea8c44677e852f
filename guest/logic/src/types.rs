//! The values of the WIT interface `babelqueue:guard/types`, under the names
//! that its Rust bindings use. Their meaning is documented there.

use alloc::string::String;

/// Why a store gave no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreError {
    /// Retrying the delivery later is right.
    Unavailable(String),
    /// An operator has to act first.
    Rejected(String),
}

/// Why a delivery has no usable id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailOpen {
    /// The body is not one well-formed JSON object.
    Malformed,
    /// There is no `meta`, or a `meta` object without `id`.
    Absent,
    /// `meta` or `id` is there and breaks a rule.
    Unusable,
}

/// A claim that was won.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    /// Names this one acquisition.
    pub token: String,
    /// How long the lease lasts, in milliseconds of the store's clock.
    pub length_ms: u64,
}

/// An id together with the lease held on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leased {
    /// The message's id.
    pub id: String,
    /// The lease.
    pub lease: Lease,
}

/// What a store answers to a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClaimOutcome {
    /// The lease is now ours.
    Won(Lease),
    /// Another's lease, and the milliseconds it has left.
    Busy(u64),
    /// The id is marked.
    Done,
}

/// What settling has to know of a decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ticket {
    /// No usable id; nothing will be recorded.
    Open(FailOpen),
    /// Not seen; to be remembered after a success.
    Seen(String),
    /// Claimed; to be completed or released.
    Leased(Leased),
}

/// A delivery that another one is working on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parked {
    /// The message's id.
    pub id: String,
    /// Milliseconds until the other lease ends.
    pub left_ms: u64,
}

/// What to do with a delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Call the handler, then settle the ticket.
    Run(Ticket),
    /// Acknowledge without calling the handler.
    Skip(String),
    /// Deliver again later; not a failed attempt.
    Park(Parked),
}

/// How the handler ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The effect has happened.
    Succeeded,
    /// The effect has not happened.
    Failed,
}

/// What settling did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settled {
    /// Nothing was to be recorded.
    Nothing,
    /// The mark is set.
    Marked,
    /// The mark is set, but the lease was no longer ours.
    MarkedLate,
    /// The lease was dropped.
    Released,
    /// There was no lease of ours left.
    LeaseLost,
}

/// Whether a lease was still ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hold {
    /// It was.
    Held,
    /// It was not.
    Lost,
}

/// Gives an enum the constructor that wit-bindgen's generated code calls when
/// it is told to use a type of ours in place of its own.
macro_rules! lift {
    ($($name:ident: $($case:ident)*;)*) => {$(
        impl $name {
            #[doc(hidden)]
            #[must_use]
            pub fn _lift(discriminant: u8) -> Self {
                match discriminant {
                    $(case if case == Self::$case as u8 => Self::$case,)*
                    _ => unreachable!(),
                }
            }
        }
    )*};
}

lift! {
    FailOpen: Malformed Absent Unusable;
    Outcome: Succeeded Failed;
    Hold: Held Lost;
}
