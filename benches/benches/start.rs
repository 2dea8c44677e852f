//! From the start of a process to its first decision, with the component
//! compiled then, and with code that was compiled beforehand. Each is a
//! process of its own: this program starts itself.
//!
//! Prints rows of a table for the README.

use babelqueue_guard::component::Limits;
use babelqueue_guard::drive::Asked;
use babelqueue_guard::{Component, Delivery};
use guard_benches::{ID, envelope_of, is_measuring, median};
use std::error::Error;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// What a process of its own is told to do. The path of precompiled code may
/// follow.
const FIRST_DECISION: &str = "first-decision";

fn first_decision(precompiled: Option<&str>) -> Result<Duration, Box<dyn Error>> {
    let begun = Instant::now();
    let component = match precompiled {
        // SAFETY: written by `main` below, to a folder of this user's.
        Some(path) => {
            unsafe { Component::from_precompiled(&std::fs::read(path)?, Limits::TRUSTED) }?
        }
        None => Component::plain()?,
    };
    match component.ask(&Delivery::from_body(&envelope_of(ID)))? {
        Asked::Seen { id, .. } if id == ID => Ok(begun.elapsed()),
        other => Err(format!("{other:?}").into()),
    }
}

/// The same in a process of its own: until its first decision, and until its
/// end.
fn in_a_process(precompiled: Option<&Path>) -> Result<(Duration, Duration), Box<dyn Error>> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg(FIRST_DECISION).args(precompiled);
    let begun = Instant::now();
    let output = command.stderr(Stdio::inherit()).output()?;
    let whole = begun.elapsed();
    if !output.status.success() {
        return Err(format!("it ended with {}", output.status).into());
    }
    let nanoseconds = String::from_utf8(output.stdout)?.trim().parse()?;
    Ok((Duration::from_nanos(nanoseconds), whole))
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let Some((FIRST_DECISION, rest)) = arguments
        .split_first()
        .map(|(word, rest)| (word.as_str(), rest))
    {
        let taken = first_decision(rest.first().map(String::as_str))?;
        println!("{}", taken.as_nanos());
        return Ok(());
    }

    let folder = tempfile::tempdir()?;
    let code = folder.path().join("plain.cwasm");
    std::fs::write(&code, Component::plain()?.precompiled()?)?;
    let rounds = if is_measuring() { 21 } else { 3 };
    let (mut compiled, mut loaded) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        compiled.push(in_a_process(None)?);
        loaded.push(in_a_process(Some(&code))?);
    }
    println!("| component | first decision | whole process |");
    println!("|---|---|---|");
    for (name, times) in [("compiled at start", compiled), ("precompiled", loaded)] {
        let (decided, whole) = times.into_iter().unzip();
        let (decided, whole) = (millis(median(decided)), millis(median(whole)));
        println!("| {name} | {decided:.1} ms | {whole:.1} ms |");
    }
    Ok(())
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
