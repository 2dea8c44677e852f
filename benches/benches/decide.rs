//! What one decision on an id that was not seen costs, the store a set in
//! memory:
//!
//! - `component`: through the component, the store asked between two calls,
//! - `component, async`: the same by `Guard::decide` over an asynchronous store
//!   whose answer is ready,
//! - `native`: the component's own logic compiled for this machine,
//! - `serde_json`: a serde_json visitor in its place,
//! - `empty call`: a function of the component that does nothing.
//!
//! `scripts/bench-table` prints the ratios.

use babelqueue_guard::drive::Asked;
use babelqueue_guard::{Component, Decision, Delivery, FailOpen, Guard, Ticket};
use babelqueue_guard_logic::{Guard as _, Plain};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use futures_util::FutureExt;
use guard_benches::{SeenSet, baseline, bodies};
use std::hint::black_box;

#[allow(
    clippy::expect_used,
    reason = "a benchmark without a component is none"
)]
fn decide(c: &mut Criterion) {
    let component = Component::plain().expect("the component compiles");
    let guard = Guard::new(SeenSet::default()).expect("the component compiles");
    let (set, native) = (SeenSet::default(), Plain(SeenSet::default()));
    let mut group = c.benchmark_group("decide");
    for body in bodies() {
        group.throughput(Throughput::Bytes(body.bytes.len() as u64));
        let bytes = &body.bytes[..];
        let mut contender = |name: &str, run: &mut dyn FnMut() -> bool| {
            assert!(run(), "{name} runs {}", body.name);
            group.bench_function(BenchmarkId::new(name, body.name), |b| {
                b.iter(|| black_box(run()));
            });
        };
        contender(
            "component",
            &mut || match component.ask(&Delivery::from_body(black_box(bytes))) {
                Ok(Asked::Seen { id, unseen }) => {
                    !set.contains(&id) && matches!(unseen, Decision::Run(_))
                }
                _ => false,
            },
        );
        contender("component, async", &mut || {
            let delivery = Delivery::from_body(black_box(bytes));
            let decision = guard.decide(&delivery).now_or_never();
            matches!(decision, Some(Ok(Decision::Run(_))))
        });
        contender("native", &mut || native.decide(black_box(bytes)).is_ok());
        contender("serde_json", &mut || {
            baseline::extract(black_box(bytes)).is_some_and(|id| !set.contains(&id))
        });
    }
    let open = Ticket::Open(FailOpen::Absent);
    group.bench_function("empty call", |b| {
        b.iter(|| component.renewal(black_box(&open)));
    });
    group.finish();
}

criterion_group!(benches, decide);
criterion_main!(benches);
