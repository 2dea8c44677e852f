//! `conformance`: the sequences of a cross-SDK manifest, on any store
//! (contract, section 9).

mod manifest;

use crate::args::StoreArgs;
use crate::commands::usable;
use crate::exit::{Failure, Status};
use crate::output::{SequenceResult, json_to_output};
use anstyle::AnsiColor;
use babelqueue_guard::store::Inventory;
use babelqueue_guard::{Error, Guard, Processed};
use manifest::{Case, Effect, Manifest, Step};
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Run a conformance manifest against a store
///
/// Any manifest of the cross-SDK form: `idempotency.dedup_key`, and sequences
/// of deliveries in `idempotency.sequences.cases`. Each delivery has to be run
/// or skipped as listed, and the handler's invocations, failing ones
/// included, have to be as many as listed.
///
/// The records are those of a consumer named "conformance" unless --consumer
/// names another, so that nobody else's are touched; what a database needs for
/// it is created, and the marks are removed at the end. Two runs at once on
/// one store need two names.
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Args {
    /// The manifest, a JSON file; the files it names are beside it
    #[arg(value_name = "MANIFEST")]
    manifest: PathBuf,
    /// Claim each id before its handler runs
    #[arg(long)]
    claim: bool,
    /// Print {"name", "passed", "deliveries", "effects", "expected_effects",
    /// "error"} a line
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    store: StoreArgs,
}

impl Args {
    pub async fn run(self) -> Result<Status, Failure> {
        let manifest = Manifest::read(&self.manifest)?;
        let store = self.store.for_consumer("conformance").open().await?;
        store.migrate().await?;
        let guard = if self.claim {
            Guard::claiming(store.clone())?
        } else {
            Guard::new(store.clone())?
        };

        let mut table = Table::begin(self.json, &manifest)?;
        if let Some(key) = &manifest.idempotency.dedup_key {
            let wrong = key.check(&self.manifest)?;
            table.row(&Outcome {
                name: "dedup_key",
                deliveries: 1,
                effects: 1,
                expected_effects: 1,
                wrong,
            })?;
        }
        for case in manifest.cases() {
            table.row(&replay(&guard, &store, case).await?)?;
        }
        table.end()
    }
}

/// What came of a sequence.
struct Outcome<'a> {
    name: &'a str,
    deliveries: usize,
    effects: u64,
    expected_effects: u64,
    /// The first thing that was not as listed.
    wrong: Option<String>,
}

/// Puts one sequence through the guard, and removes its marks before and
/// after.
async fn replay<'a>(
    guard: &Guard,
    store: &Arc<dyn Inventory>,
    case: &'a Case,
) -> Result<Outcome<'a>, Failure> {
    forget_all(store, case).await?;
    let effects = AtomicU64::new(0);
    let mut wrong = None;
    for (index, step) in case.deliveries.iter().enumerate() {
        if step.forget_before
            && let Some(id) = step.id()
        {
            guard.forget(id).await?;
        }
        let was = deliver(guard, step, &effects).await?;
        if was != step.expect_effect.as_str() && wrong.is_none() {
            let expected = step.expect_effect.as_str();
            wrong = Some(format!(
                "delivery {}: {expected} expected, was {was}",
                index + 1
            ));
        }
    }
    let effects = effects.into_inner();
    if effects != case.expected_effects && wrong.is_none() {
        let expected = case.expected_effects;
        wrong = Some(format!("{expected} effects expected, were {effects}"));
    }
    forget_all(store, case).await?;
    Ok(Outcome {
        name: &case.name,
        deliveries: case.deliveries.len(),
        effects,
        expected_effects: case.expected_effects,
        wrong,
    })
}

async fn deliver(guard: &Guard, step: &Step, effects: &AtomicU64) -> Result<&'static str, Error> {
    let body = step.envelope();
    let throws = step.throws();
    let handler = async |_context| {
        effects.fetch_add(1, Ordering::Relaxed);
        if throws { Err(()) } else { Ok(()) }
    };
    Ok(match guard.process(&body, handler).await? {
        Processed::Ran { .. } | Processed::Failed { .. } => "run",
        Processed::Skipped { .. } => "skip",
        Processed::Parked(_) => "park",
    })
}

async fn forget_all(store: &Arc<dyn Inventory>, case: &Case) -> Result<(), Failure> {
    for id in case.deliveries.iter().filter_map(Step::id) {
        store.forget(id).await?;
    }
    Ok(())
}

/// Writes the results as they come.
struct Table {
    json: bool,
    width: usize,
    passed: usize,
    failed: usize,
}

impl Table {
    fn begin(json: bool, manifest: &Manifest) -> Result<Self, Failure> {
        let names = manifest.cases().map(|case| case.name.chars().count());
        let width = names.max().unwrap_or_default().max("dedup_key".len());
        if !json {
            let mut out = anstream::stdout();
            writeln!(out, "        {:width$}  deliveries  effects", "sequence")?;
        }
        Ok(Self {
            json,
            width,
            passed: 0,
            failed: 0,
        })
    }

    fn row(&mut self, outcome: &Outcome<'_>) -> Result<(), Failure> {
        let passed = outcome.wrong.is_none();
        *(if passed {
            &mut self.passed
        } else {
            &mut self.failed
        }) += 1;
        let mut out = anstream::stdout();
        if self.json {
            let result = SequenceResult {
                name: outcome.name,
                passed,
                deliveries: outcome.deliveries,
                effects: outcome.effects,
                expected_effects: outcome.expected_effects,
                error: outcome.wrong.as_deref(),
            };
            return Ok(json_to_output(&result)?);
        }
        let (word, colour) = if passed {
            ("ok    ", AnsiColor::Green)
        } else {
            ("FAILED", AnsiColor::Red)
        };
        let style = colour.on_default();
        let width = self.width;
        write!(
            out,
            "{style}{word}{style:#}  {:width$}  {:10}  {:7}",
            outcome.name, outcome.deliveries, outcome.effects
        )?;
        match &outcome.wrong {
            Some(wrong) => writeln!(out, "  {wrong}")?,
            None => writeln!(out)?,
        }
        Ok(())
    }

    fn end(self) -> Result<Status, Failure> {
        let (passed, failed) = (self.passed, self.failed);
        if !self.json {
            writeln!(anstream::stdout(), "{passed} passed, {failed} failed")?;
        }
        Ok(if failed == 0 {
            Status::Success
        } else {
            Status::No
        })
    }
}

impl Step {
    /// The id that a store may have recorded for this delivery.
    fn id(&self) -> Option<&str> {
        let id = self.meta_id.as_ref()?.as_str()?;
        usable(id).ok()
    }

    fn throws(&self) -> bool {
        self.outcome == manifest::Handler::Throw
    }
}

impl Effect {
    fn as_str(self) -> &'static str {
        match self {
            Self::Run => "run",
            Self::Skip => "skip",
        }
    }
}
