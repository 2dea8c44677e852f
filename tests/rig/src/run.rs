//! One rig from beginning to end: prepare, deliver, judge.

use crate::effects;
use crate::ledger::{self, Ledger};
use crate::rig::{self, Record};
use crate::server::Server;
use crate::settings::{Mode, Settings};
use crate::verdict::{Circumstances, Verdict, judge};
use crate::worker;
use babelqueue_guard::Inventory;
use std::error::Error;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Prints its line, and what speaks against the guard.
pub(crate) async fn run(settings: &Settings) -> Result<ExitCode, Box<dyn Error>> {
    let began = Instant::now();
    let seed = settings.seed.unwrap_or_else(|| fastrand::u64(..));
    let Some(server) = Server::start(settings.store)? else {
        return Ok(ExitCode::SUCCESS);
    };
    let url = server.url();
    worker::open(&url, settings.lease).await?.migrate().await?;
    if settings.mode == Mode::Transaction {
        effects::prepare(settings, &url).await?;
    }
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("ledger");
    Ledger::open(&path, 0)?;

    let arguments = arguments(settings, &url, &path);
    let (record, _server) =
        tokio::task::block_in_place(|| rig::deliver(settings, seed, server, arguments))?;

    let mut verdict = verdict(settings, &url, &path, &record).await?;
    let store = worker::open(&url, settings.lease).await?;
    let left = what_is_left(settings, &*store, &record, &mut verdict).await?;
    let violations = record.violations.iter().chain(&verdict.violations);
    let violations: Vec<_> = violations.collect();
    let ended = |restart| {
        record
            .outages
            .iter()
            .filter(|out| out.restart == restart)
            .count()
    };
    println!(
        "rig: {} {} seed={seed} messages={} copies={} workers={} jobs={} lease={}ms \
         deliveries={} kills={} restarts={} pauses={} effects={} duplicates={} parked={} \
         failed={} unavailable={} overlaps={} slow={} unmarked={} leases={} lost={} violations={} \
         seconds={:.1}",
        settings.mode,
        settings.store,
        settings.messages,
        settings.copies,
        settings.workers,
        settings.jobs,
        settings.lease,
        record.deliveries,
        record.killed.len(),
        ended(true),
        ended(false),
        verdict.effects,
        verdict.duplicates,
        record.parked,
        record.failed,
        record.unavailable,
        verdict.overlaps,
        verdict.slow,
        left.unmarked,
        left.leases,
        left.lost,
        violations.len(),
        began.elapsed().as_secs_f64(),
    );
    for violation in &violations {
        eprintln!("violation: {violation}");
    }
    Ok(if violations.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

async fn verdict(
    settings: &Settings,
    url: &str,
    ledger: &Path,
    record: &Record,
) -> Result<Verdict, Box<dyn Error>> {
    if settings.mode == Mode::Transaction {
        return Ok(Verdict::of_table(&effects::count(settings, url).await?));
    }
    let (entries, cut) = ledger::read(ledger)?;
    let lease = Duration::from_millis(settings.lease);
    let mut verdict = judge(
        &entries,
        &Circumstances {
            lease: (settings.mode == Mode::Claim).then_some(lease),
            killed: &record.killed,
            outages: &record.outages,
        },
    );
    if cut > record.killed.len() {
        let text = format!("{cut} lines of the ledger are cut short");
        verdict.violations.push(text);
    }
    Ok(verdict)
}

fn arguments(settings: &Settings, url: &str, ledger: &Path) -> Vec<String> {
    vec![
        settings.mode.to_string(),
        url.to_owned(),
        ledger.display().to_string(),
        settings.lease.to_string(),
    ]
}

struct Left {
    /// Messages whose effect happened and whose mark could not be written.
    unmarked: u64,
    leases: u64,
    /// Messages without an effect.
    lost: u64,
}

/// Nothing may be lost, neither effect nor mark, and no lease may stay.
async fn what_is_left(
    settings: &Settings,
    store: &dyn Inventory,
    record: &Record,
    verdict: &mut Verdict,
) -> Result<Left, Box<dyn Error>> {
    let (mut unmarked, mut lost) = (0, 0);
    for message in 0..settings.messages {
        let id = rig::id(message);
        if !verdict.done.contains(&id) {
            lost += 1;
            verdict.violations.push(format!("{id}: no effect"));
        }
        if store.seen(&id).await? {
            continue;
        }
        if verdict.marked.contains(&id) {
            verdict.violations.push(format!("{id}: its mark is gone"));
        } else if record.unmarked.contains(&message) {
            unmarked += 1;
        } else {
            verdict.violations.push(format!("{id}: never marked"));
        }
    }
    let mut leases = store.stats().await?.leases;
    if leases > 0 {
        // Those of workers that were killed live for their length.
        tokio::time::sleep(Duration::from_millis(settings.lease + 10)).await;
        leases = store.stats().await?.leases;
    }
    if leases > 0 {
        let text = format!("{leases} leases outlive their length");
        verdict.violations.push(text);
    }
    Ok(Left {
        unmarked,
        leases,
        lost,
    })
}
