//! `id`: what the guard reads from a body.

use crate::exit::{Failure, Status};
use crate::output::{Verdict, explain, json_to_output, shown};
use babelqueue_guard::component::DEFAULT_BODY_LIMIT;
use babelqueue_guard::drive::Asked;
use babelqueue_guard::{Component, Decision, Delivery, FailOpen};
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::PathBuf;

/// Show what the guard reads from a body: its id, or why it has none
///
/// Each file is one body, however many lines it has. For the question "why was
/// this not deduplicated?": without a usable id a message runs each time, and
/// this says which of the three reasons it was:
///
///   malformed  the body is not one well-formed JSON object
///   absent     there is no meta, or no id in it
///   unusable   meta or its id is of the wrong type, empty or too long
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Args {
    /// Files with one body each; "-" or none for standard input
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Print {"file", "id", "reason"} a line
    #[arg(long)]
    json: bool,
}

impl Args {
    pub fn run(self) -> Result<Status, Failure> {
        let files = if self.files.is_empty() {
            vec![PathBuf::from("-")]
        } else {
            self.files
        };
        let component = Component::plain()?;
        let mut out = anstream::stdout();
        let mut status = Status::Success;
        for file in files {
            let name = file.to_string_lossy();
            let body = match read(&file) {
                Ok(body) => body,
                Err(error) => {
                    let _ = writeln!(anstream::stderr(), "bq-guard: {name}: {error}");
                    status = Status::Usage;
                    continue;
                }
            };
            let mut verdict = Verdict {
                file: &name,
                id: None,
                reason: None,
                error: None,
            };
            let text;
            let id;
            match verdict_on(&component, &body) {
                Ok(Ok(found)) => {
                    id = found;
                    verdict.id = Some(&id);
                    text = shown(&id).into_owned();
                }
                Ok(Err(reason)) => {
                    verdict.reason = Some(reason.as_str());
                    text = format!("no usable id ({reason}): {}", explain(reason));
                }
                Err(error) => {
                    status = Status::Stopped;
                    text = format!("not decided: {error}");
                    verdict.error = Some(error);
                }
            }
            if self.json {
                json_to_output(&verdict)?;
            } else {
                writeln!(out, "{name}: {text}")?;
            }
        }
        Ok(status)
    }
}

/// The id, or why there is none, or why that cannot be told.
fn verdict_on(component: &Component, body: &[u8]) -> Result<Result<String, FailOpen>, String> {
    if body.len() > DEFAULT_BODY_LIMIT {
        return Err(format!(
            "guard: the body is longer than the limit of {DEFAULT_BODY_LIMIT} bytes"
        ));
    }
    let asked = component
        .ask(&Delivery::from_body(body))
        .map_err(|error| format!("{}: {error}", error.class()))?;
    Ok(match asked {
        Asked::Decided(Decision::Run(ticket)) => ticket.id().map(str::to_owned),
        Asked::Decided(Decision::Skip(id)) | Asked::Seen { id, .. } | Asked::Claim { id } => Ok(id),
        Asked::Decided(Decision::Park(parked)) => Ok(parked.id),
    })
}

/// A body, or the beginning of one that is over the limit in any case.
fn read(file: &PathBuf) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    let limit = DEFAULT_BODY_LIMIT as u64 + 1;
    if file.as_os_str() == "-" {
        io::stdin().lock().take(limit).read_to_end(&mut body)?;
    } else {
        File::open(file)?.take(limit).read_to_end(&mut body)?;
    }
    Ok(body)
}
