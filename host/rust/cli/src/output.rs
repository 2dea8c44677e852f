//! Everything that other programs read: one JSON object a line. And how ids
//! and times look to a person.

use babelqueue_guard::FailOpen;
use babelqueue_guard::store::inventory::{Entry, Kind, Stats};
use serde::Serialize;
use serde_json::ser::{Formatter, Serializer};
use std::borrow::Cow;
use std::io::{self, Write};
use std::time::Duration;

/// Writes one object a line to standard output.
pub fn json_to_output(object: &impl Serialize) -> io::Result<()> {
    json_line(io::stdout().lock(), object)
}

/// Writes one object a line to standard error.
pub fn json_to_error(object: &impl Serialize) -> io::Result<()> {
    json_line(io::stderr().lock(), object)
}

/// Not through `anstream`, which takes U+007F away.
fn json_line(mut out: impl Write, object: &impl Serialize) -> io::Result<()> {
    let mut line = Vec::new();
    object.serialize(&mut Serializer::with_formatter(&mut line, OneLine))?;
    line.push(b'\n');
    out.write_all(&line)?;
    out.flush()
}

/// JSON in which no reader takes a character within a string for the end of a
/// line, and no terminal one for a command.
struct OneLine;

impl Formatter for OneLine {
    fn write_string_fragment<W: Write + ?Sized>(
        &mut self,
        out: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        for part in fragment.split_inclusive(must_be_escaped) {
            match part
                .chars()
                .next_back()
                .filter(|&last| must_be_escaped(last))
            {
                Some(last) => {
                    out.write_all(&part.as_bytes()[..part.len() - last.len_utf8()])?;
                    write!(out, "\\u{:04x}", u32::from(last))?;
                }
                None => out.write_all(part.as_bytes())?,
            }
        }
        Ok(())
    }
}

fn must_be_escaped(c: char) -> bool {
    c.is_control() || matches!(c, '\u{2028}' | '\u{2029}')
}

/// `run --json`: what became of one line of the input.
#[derive(Debug, Default, Serialize)]
pub struct LineReport {
    /// The line's number, from 1.
    pub n: u64,
    pub id: Option<String>,
    pub decision: Decided,
    /// Why there is no id.
    pub reason: Option<&'static str>,
    pub outcome: Option<Ended>,
    pub marked: bool,
    /// `CLASS: text`, the class one of `unavailable`, `rejected`, `guard`,
    /// `command`, `output`, `late`.
    pub error: Option<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Decided {
    Run,
    Skip,
    Park,
    #[default]
    Error,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Ended {
    Succeeded,
    Failed,
}

/// `run --json`: the last line on standard error.
#[derive(Debug, Default, Serialize)]
pub struct Summary {
    /// Lines read, blank ones included.
    pub lines: u64,
    pub blank: u64,
    /// The handler ran and succeeded.
    pub succeeded: u64,
    pub skipped: u64,
    /// The handler ran and failed.
    pub failed: u64,
    /// Of those that succeeded: without a mark, since the store failed.
    pub unmarked: u64,
    /// Of those that ran: without a usable id.
    pub without_id: u64,
    /// Read, and neither run nor skipped.
    pub not_handled: u64,
    /// The first of those.
    pub first_not_handled: Option<u64>,
    /// Whether there may be more input that was not read.
    pub input_left: bool,
    /// Why it ended before everything was handled.
    pub stopped: Option<String>,
}

/// `id --json`.
#[derive(Serialize)]
pub struct Verdict<'a> {
    pub file: &'a str,
    pub id: Option<&'a str>,
    pub reason: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// `seen --json`.
#[derive(Serialize)]
pub struct Seen<'a> {
    pub id: &'a str,
    pub seen: bool,
}

/// `remember --json`.
#[derive(Serialize)]
pub struct Remembered<'a> {
    pub id: &'a str,
    pub remembered: bool,
}

/// `forget --json`: what was found, and whether there was a mark to remove.
#[derive(Serialize)]
pub struct Forgotten<'a> {
    pub id: &'a str,
    pub removed: bool,
    pub mark: Option<Times>,
    pub lease: Option<Times>,
}

/// `inspect --json`.
#[derive(Serialize)]
pub struct Inspected<'a> {
    pub id: &'a str,
    pub mark: Option<Times>,
    pub lease: Option<Times>,
}

/// `list --json`.
#[derive(Serialize)]
pub struct Listed<'a> {
    pub id: &'a str,
    pub kind: &'static str,
    #[serde(flatten)]
    pub times: Times,
}

/// `gc --json`.
#[derive(Serialize)]
pub struct Collected {
    pub removed: u64,
}

/// `stats --json`.
#[derive(Serialize)]
pub struct Counted {
    pub marks: u64,
    pub leases: u64,
    pub steps: u64,
    pub expired: u64,
}

impl From<Stats> for Counted {
    fn from(stats: Stats) -> Self {
        Self {
            marks: stats.marks,
            leases: stats.leases,
            steps: stats.steps,
            expired: stats.expired,
        }
    }
}

/// `conformance --json`: the result of one sequence.
#[derive(Serialize)]
pub struct SequenceResult<'a> {
    pub name: &'a str,
    pub passed: bool,
    pub deliveries: usize,
    pub effects: u64,
    pub expected_effects: u64,
    /// What was not as listed.
    pub error: Option<&'a str>,
}

/// How old a record is and how long it will last, in milliseconds; `null`
/// where the store does not know its age, or it lasts for ever.
#[derive(Clone, Copy, Serialize)]
pub struct Times {
    pub age_ms: Option<u64>,
    pub left_ms: Option<u64>,
}

impl From<&Entry> for Times {
    fn from(entry: &Entry) -> Self {
        let ms = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        Self {
            age_ms: entry.age.map(ms),
            left_ms: entry.left.map(ms),
        }
    }
}

pub fn kind(kind: Kind) -> &'static str {
    match kind {
        Kind::Mark => "mark",
        Kind::Lease => "lease",
    }
}

/// The record of this kind among those of one id.
pub fn of_kind(entries: &[Entry], kind: Kind) -> Option<&Entry> {
    entries.iter().find(|entry| entry.kind == kind)
}

/// Age and remaining time for a person.
pub fn times(entry: &Entry) -> String {
    let left = match entry.left {
        Some(left) => format!("{} left", time(left)),
        None => "lasts for ever".into(),
    };
    match entry.age {
        Some(age) => format!("{} old, {left}", time(age)),
        None => left,
    }
}

/// A length of time in its two or three largest units.
pub fn time(time: Duration) -> String {
    let seconds = time.as_secs();
    let rounded = match seconds {
        0 => Duration::from_millis(u64::from(time.subsec_millis())),
        1..60 => {
            Duration::from_millis(seconds * 1_000 + u64::from(time.subsec_millis()) / 100 * 100)
        }
        60..3_600 => Duration::from_secs(seconds),
        3_600..86_400 => Duration::from_secs(seconds / 60 * 60),
        _ => Duration::from_secs(seconds / 3_600 * 3_600),
    };
    humantime::format_duration(rounded).to_string()
}

/// An id as it is, unless it holds what a terminal would act on.
pub fn shown(id: &str) -> Cow<'_, str> {
    if id.is_empty() || id.trim() != id || id.chars().any(char::is_control) {
        Cow::Owned(format!("{id:?}"))
    } else {
        Cow::Borrowed(id)
    }
}

/// What a reason means, for a person.
pub fn explain(reason: FailOpen) -> &'static str {
    match reason {
        FailOpen::Malformed => "the body is not one well-formed JSON object",
        FailOpen::Absent => "the object has no meta, or its meta has no id",
        FailOpen::Unusable => {
            "meta is no object, or its id is no string, or it is empty, longer than 2048 bytes, \
             or not well-formed Unicode without U+0000"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_short() {
        for (milliseconds, text) in [
            (0, "0s"),
            (7, "7ms"),
            (1_234, "1s 200ms"),
            (60_999, "1m"),
            (3_725_000, "1h 2m"),
            (14 * 86_400_000 - 1, "13days 23h"),
        ] {
            assert_eq!(time(Duration::from_millis(milliseconds)), text);
        }
    }

    #[test]
    fn an_object_is_one_line_to_every_reader() {
        let text = "a\u{7f}b\u{85}\u{2028}é\u{2029}\u{1b}[\u{9b}\n\"\\📦";
        let mut line = Vec::new();
        json_line(&mut line, &text).unwrap();
        assert_eq!(serde_json::from_slice::<String>(&line).unwrap(), text);
        let line = String::from_utf8(line).unwrap();
        let escaped = r#""a\u007fb\u0085\u2028é\u2029\u001b[\u009b\n\"\\📦""#;
        assert_eq!(line.trim_end(), escaped);
    }

    #[test]
    fn an_id_cannot_reach_the_terminal() {
        assert_eq!(shown("order-1"), "order-1");
        assert_eq!(shown("a\u{1b}[2Jb"), "\"a\\u{1b}[2Jb\"");
        assert_eq!(shown(" a"), "\" a\"");
    }
}
