//! What is counted through the [`metrics`](https://docs.rs/metrics) facade
//! with the feature `metrics`; without it nothing is.
//!
//! | counter | labels | counts |
//! |---|---|---|
//! | [`DELIVERIES`] | `decision`: `run`, `skip`, `park`, `error` | deliveries that were decided on, or could not be, or whose transaction failed |
//! | [`FAIL_OPEN`] | `reason`: `malformed`, `absent`, `unusable` | those of them that run without an id |
//! | [`HANDLERS`] | `outcome`: `succeeded`, `failed`, `panicked`, `cancelled` | handlers that have ended; in a transaction that is run again, each time |
//! | [`MARKS_MISSING`] | | successes whose mark could not be set: a redelivery may run again |
//! | [`LEASES_LOST`] | | leases that were no longer held when the delivery was settled: another worker may have run it |
//! | [`ERRORS`] | `operation`: `decide`, `settle`, `renew`, `forget`, `once`, `transaction`; `class`: `unavailable`, `rejected`, `guard` | errors by their class (contract, section 7) |
//!
//! ```
//! # #[cfg(feature = "metrics")] {
//! // Once the recorder is installed:
//! babelqueue_guard::counters::describe();
//! # }
//! ```

/// Deliveries, by decision.
pub const DELIVERIES: &str = "babelqueue_guard_deliveries_total";
/// Deliveries that run without a usable id, by reason.
pub const FAIL_OPEN: &str = "babelqueue_guard_fail_open_total";
/// Handlers that have ended, by outcome.
pub const HANDLERS: &str = "babelqueue_guard_handlers_total";
/// Successes whose mark could not be set.
pub const MARKS_MISSING: &str = "babelqueue_guard_marks_missing_total";
/// Leases that were no longer held when their delivery was settled.
pub const LEASES_LOST: &str = "babelqueue_guard_leases_lost_total";
/// Errors, by operation and class.
pub const ERRORS: &str = "babelqueue_guard_errors_total";

/// Tells the recorder what each counter counts. To be called once, after the
/// recorder has been installed.
#[cfg(feature = "metrics")]
pub fn describe() {
    for (counter, text) in [
        (DELIVERIES, "Deliveries, by decision."),
        (FAIL_OPEN, "Deliveries that run without a usable id."),
        (HANDLERS, "Handlers that have ended, by outcome."),
        (MARKS_MISSING, "Successes whose mark could not be set."),
        (
            LEASES_LOST,
            "Leases lost before their delivery was settled.",
        ),
        (ERRORS, "Errors of the guard and its store, by class."),
    ] {
        metrics::describe_counter!(counter, metrics::Unit::Count, text);
    }
}

#[cfg(feature = "metrics")]
pub(crate) fn count(counter: &'static str, labels: &[(&'static str, &'static str)]) {
    metrics::counter!(counter, labels).increment(1);
}

#[cfg(not(feature = "metrics"))]
pub(crate) fn count(_: &'static str, _: &[(&'static str, &'static str)]) {}
