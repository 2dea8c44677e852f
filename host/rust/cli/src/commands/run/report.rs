//! What a run tells: a report for each line, a progress line on a terminal,
//! and a summary.

use super::delivery::{Handled, Next};
use super::stop::Stop;
use crate::exit::Status;
use crate::output::{Decided, Ended, LineReport, Summary, json_to_error, json_to_output, shown};
use anstyle::{AnsiColor, Style};
use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

/// How lines are reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// For a person, on standard error.
    Text,
    /// For a person, only what went wrong.
    Quiet,
    /// An object a line, on standard error.
    JsonToError,
    /// An object a line, on standard output.
    JsonToOutput,
}

pub struct Reports {
    form: Form,
    summary: Summary,
    /// Lines that the guard could not decide on.
    undecided: u64,
    stop: Option<Stop>,
    progress: Option<Progress>,
}

impl Reports {
    /// `with_command` says whether lines are given to a command.
    pub fn new(form: Form, with_command: bool) -> Self {
        // Where lines are reported among what they print, that is progress
        // enough, and nothing more is to come in between.
        let told_anyway = form == Form::Text && (with_command || io::stdout().is_terminal());
        let progress = io::stderr().is_terminal() && !told_anyway;
        Self {
            form,
            summary: Summary::default(),
            undecided: 0,
            stop: None,
            progress: progress.then(Progress::default),
        }
    }

    /// A line was read.
    pub fn line(&mut self) {
        self.summary.lines += 1;
    }

    /// A blank line was read.
    pub fn blank(&mut self) {
        self.summary.lines += 1;
        self.summary.blank += 1;
    }

    /// Tells what became of a line. A parked one is told once, and again when
    /// it is run or skipped at last.
    ///
    /// # Errors
    ///
    /// Standard output cannot be written. Standard error is never a reason to
    /// stop.
    pub fn handled(&mut self, handled: &Handled, parked: u32) -> io::Result<()> {
        let Handled { report, next } = handled;
        match next {
            Next::Done => self.count(report),
            Next::Again { .. } if parked > 0 => return Ok(()),
            Next::Again { .. } => {}
            Next::GiveUp => {
                self.undecided += 1;
                self.not_handled(report.n);
            }
            Next::Stop(_) => self.not_handled(report.n),
        }
        if let Some(progress) = &mut self.progress {
            progress.clear();
        }
        match self.form {
            Form::JsonToOutput => json_to_output(report)?,
            Form::JsonToError => drop(json_to_error(report)),
            Form::Quiet if report.error.is_none() => {}
            Form::Text | Form::Quiet => drop(text(report)),
        }
        if let Some(progress) = &mut self.progress {
            progress.draw(&self.summary);
        }
        Ok(())
    }

    fn count(&mut self, report: &LineReport) {
        let summary = &mut self.summary;
        match report.outcome {
            None => summary.skipped += 1,
            Some(Ended::Failed) => summary.failed += 1,
            Some(Ended::Succeeded) => {
                summary.succeeded += 1;
                summary.unmarked += u64::from(!report.marked && report.id.is_some());
            }
        }
        summary.without_id += u64::from(report.reason.is_some());
    }

    /// A line was read and is neither run nor skipped.
    pub fn not_handled(&mut self, n: u64) {
        self.summary.not_handled += 1;
        let first = self.summary.first_not_handled.get_or_insert(n);
        *first = n.min(*first);
    }

    /// Something ended the run before its input.
    pub fn stopped(&mut self, stop: Stop, input_left: bool) {
        self.summary.input_left = input_left;
        self.summary.stopped = Some(stop.to_string());
        self.stop = Some(stop);
    }

    /// Writes the summary. Marks that nobody asked to be kept are gone with it.
    pub fn end(mut self, kept: bool) -> Status {
        if let Some(progress) = &mut self.progress {
            progress.clear();
        }
        let summary = &self.summary;
        // Nobody is left to be told if these fail.
        let _ = match self.form {
            Form::JsonToError | Form::JsonToOutput => json_to_error(&Summarized { summary }),
            Form::Text | Form::Quiet => self.summary_as_text(kept),
        };
        self.status()
    }

    fn status(&self) -> Status {
        let all_handled = self.summary.not_handled == 0 && !self.summary.input_left;
        match &self.stop {
            Some(Stop::Signal(_)) if all_handled => {}
            Some(stop) => return stop.status(),
            None => {}
        }
        if self.undecided > 0 {
            Status::Stopped
        } else if self.summary.failed + self.summary.unmarked > 0 {
            Status::No
        } else {
            Status::Success
        }
    }

    fn summary_as_text(&self, kept: bool) -> io::Result<()> {
        let summary = &self.summary;
        let mut parts = vec![
            format!("{} succeeded", summary.succeeded),
            format!("{} skipped", summary.skipped),
        ];
        for (count, what) in [
            (summary.failed, "failed"),
            (summary.unmarked, "not marked though it succeeded"),
            (summary.without_id, "without a usable id"),
            (summary.blank, "blank"),
        ] {
            if count > 0 {
                parts.push(format!("{count} {what}"));
            }
        }
        let mut err = anstream::stderr();
        let lines = counted(summary.lines);
        writeln!(err, "bq-guard: {lines}: {}", parts.join(", "))?;
        if let Some(stopped) = &summary.stopped {
            writeln!(err, "bq-guard: stopped: {stopped}")?;
        }
        if let Some(first) = summary.first_not_handled {
            let bold = Style::new().bold();
            let lines = counted(summary.not_handled);
            writeln!(
                err,
                "bq-guard: {bold}not handled: {lines}{bold:#}, the first is line {first}{}; \
                 given the same input again, only what is not marked runs",
                if summary.input_left {
                    ", and what was not read yet"
                } else {
                    ""
                },
            )?;
        } else if summary.input_left {
            writeln!(err, "bq-guard: not handled: what was not read yet")?;
        }
        if !kept && self.form == Form::Text {
            writeln!(
                err,
                "bq-guard: the marks were in memory and are gone: --store keeps them"
            )?;
        }
        Ok(())
    }
}

#[derive(serde::Serialize)]
struct Summarized<'a> {
    summary: &'a Summary,
}

fn counted(lines: u64) -> String {
    if lines == 1 {
        "1 line".into()
    } else {
        format!("{lines} lines")
    }
}

/// One line's report for a person.
fn text(report: &LineReport) -> io::Result<()> {
    let (decision, colour) = match (report.decision, report.outcome) {
        (Decided::Run, Some(Ended::Failed)) => ("run", AnsiColor::Red),
        (Decided::Run, _) => ("run", AnsiColor::Green),
        (Decided::Skip, _) => ("skip", AnsiColor::Cyan),
        (Decided::Park, _) => ("park", AnsiColor::Yellow),
        (Decided::Error, _) => ("error", AnsiColor::Red),
    };
    let style = colour.on_default();
    let id = match (&report.id, report.reason) {
        (Some(id), _) => shown(id).into_owned(),
        (None, Some(reason)) => format!("(no usable id: {reason})"),
        (None, None) => "(not decided)".into(),
    };
    let outcome = match (report.decision, report.outcome) {
        (_, Some(Ended::Succeeded)) if report.id.is_some() && !report.marked => {
            "  succeeded, but is not marked"
        }
        (_, Some(Ended::Succeeded)) => "  succeeded",
        (_, Some(Ended::Failed)) => "  failed",
        (Decided::Park, None) => "  another delivery is being handled: tried again later",
        (_, None) => "",
    };
    let error = report.error.as_deref().map(|error| format!("  {error}"));
    writeln!(
        anstream::stderr(),
        "line {}  {style}{decision:5}{style:#} {id}{outcome}{}",
        report.n,
        error.unwrap_or_default(),
    )
}

/// The last line of a terminal, redrawn now and then.
#[derive(Default)]
struct Progress {
    drawn: Option<Instant>,
    shown: bool,
}

impl Progress {
    const PAUSE: Duration = Duration::from_millis(100);

    /// Leaves the cursor at the line's beginning, so that whatever a command
    /// prints goes over it.
    fn draw(&mut self, summary: &Summary) {
        if self
            .drawn
            .is_some_and(|drawn| drawn.elapsed() < Self::PAUSE)
        {
            return;
        }
        self.drawn = Some(Instant::now());
        self.shown = true;
        let _ = write!(
            io::stderr(),
            "{} read, {} succeeded, {} skipped, {} failed\r",
            counted(summary.lines),
            summary.succeeded,
            summary.skipped,
            summary.failed,
        );
    }

    fn clear(&mut self) {
        if std::mem::take(&mut self.shown) {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}
