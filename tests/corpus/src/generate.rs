//! Bodies by the million: envelopes put together at random, with a fault here
//! and there, and bodies of the table with a few bytes changed.
//!
//! The same seed gives the same bodies, on every machine.

use crate::table;
use fastrand::Rng;
use std::env;

/// How many generated bodies a test looks at: `BQ_GUARD_CASES`, or `otherwise`.
///
/// # Panics
///
/// If the variable is set and is no number.
#[must_use]
pub fn count(otherwise: usize) -> usize {
    match env::var("BQ_GUARD_CASES") {
        Ok(text) => match text.parse() {
            Ok(count) => count,
            Err(_) => unreachable!("BQ_GUARD_CASES is to be a number, not {text:?}"),
        },
        Err(_) => otherwise,
    }
}

/// An endless supply of bodies.
pub struct Bodies {
    rng: Rng,
    /// The bodies that get changed: those of the table that are short.
    seeds: Vec<Vec<u8>>,
}

impl Bodies {
    /// The supply that belongs to a seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let seeds = table::bodies().into_iter().map(|case| case.body);
        Self {
            rng: Rng::with_seed(seed),
            seeds: seeds.filter(|body| body.len() <= 1_500).collect(),
        }
    }
}

impl Iterator for Bodies {
    type Item = Vec<u8>;

    fn next(&mut self) -> Option<Vec<u8>> {
        let mut body = if self.rng.u8(..5) < 3 {
            Writer::envelope(&mut self.rng)
        } else {
            pick(&mut self.rng, &self.seeds).clone()
        };
        // One body in two stays as it is: most changes make it malformed.
        if self.rng.bool() {
            for _ in 0..self.rng.usize(1..4) {
                change(&mut self.rng, &mut body, &self.seeds);
            }
        }
        Some(body)
    }
}

fn pick<'a, T>(rng: &mut Rng, from: &'a [T]) -> &'a T {
    &from[rng.usize(..from.len())]
}

/// Bytes that mean something to a JSON parser, or to one that errs.
const BYTES: &[u8] = b"{}[]:,\"\\/'ubfnrt0123456789-+.eEdDcC8 \t\n\r\x00\x01\x0b\x0c\x1f\x7f\x80\xa0\xbf\xc0\xc3\xe2\xed\xef\xf0\xf4\xff";

/// Pieces that are put in whole.
#[rustfmt::skip]
const PIECES: &[&[u8]] = &[
    b"\"id\"", b"\"meta\"", b"\"id\":\"x\",", b"\"meta\":{},", b"\"meta\":null,", b",\"id\":7", b"{}", b"[]",
    b"\\ud83d", b"\\udce6", b"\\u0000", b"\\u0069", b"\\\\", b"\\\"", b"\\u", b"\xed\xa0\xbd", b"\xf0\x9f\x93\xa6",
    b"\xef\xbb\xbf", b"null", b"true", b"-0", b"1e5", b"0.5", b"                 ", b"aaaaaaaaaaaaaaaa", b"[[[[[[[[",
];

/// Changes a body at one place.
fn change(rng: &mut Rng, body: &mut Vec<u8>, seeds: &[Vec<u8>]) {
    let at = rng.usize(..=body.len());
    let behind = (at + rng.usize(..12)).min(body.len());
    match rng.u8(..10) {
        0 if at < body.len() => body[at] = *pick(rng, BYTES),
        1 if at < body.len() => body[at] ^= 1 << rng.u8(..8),
        2 if at < body.len() => drop(body.remove(at)),
        3 => body.truncate(at),
        4 => drop(body.drain(at..behind)),
        5 => body.extend_from_within(at..behind),
        6 => {
            let span = body[at..behind].to_vec();
            body.splice(at..at, span);
        }
        7 => {
            let other = pick(rng, seeds);
            let from = rng.usize(..=other.len());
            body.truncate(at);
            body.extend_from_slice(&other[from..]);
        }
        8 => body.insert(at, *pick(rng, BYTES)),
        _ => drop(body.splice(at..at, pick(rng, PIECES).iter().copied())),
    }
}

/// Writes an envelope that is well-formed but for a rare fault, and often
/// unusual.
struct Writer<'a> {
    rng: &'a mut Rng,
    body: Vec<u8>,
}

#[rustfmt::skip]
const SCALARS: &[&str] = &[
    "null", "true", "false", "0", "-0", "17", "-2.50e+3", "1E400", "123456789012345678901234567890", "\"\"", "\"meta\"",
    "\"a text that is longer than a block of sixteen bytes\"",
];
#[rustfmt::skip]
const BAD_SCALARS: &[&str] = &[
    "", "01", "-", "+1", ".5", "1.", "1e", "NaN", "nul", "True", "'a'", "\"", "\"\\x\"", "\"\t\"", "1 2", "[", "}",
];
#[rustfmt::skip]
const NAMES: &[&str] = &[
    "job", "data", "", "Meta", "meta ", "met", "metadata", "ID", "ids", "i", "id\\u0000", "\\ud83d", "\\u006D", "trace_id",
];
#[rustfmt::skip]
const CHARACTERS: &[&[u8]] = &[
    b"a", b"Z", b"0", b" ", b"-", b"\\n", b"\\\"", b"\\\\", b"\\/", b"\\u0041", b"\\u00e9", b"\\uFFFF", b"\\ud83d\\udce6",
    b"\xc3\xa9", b"\xe2\x82\xac", b"\xf0\x9f\x93\xa6", b"\x7f",
];
#[rustfmt::skip]
const BAD_CHARACTERS: &[&[u8]] = &[
    b"\\u0000", b"\\ud83d", b"\\udce6", b"\xff", b"\xc3", b"\xed\xa0\xbd", b"\xed\xb3\xa6", b"\xc0\x80", b"\xf4\x90\x80\x80", b"\x80",
];

impl Writer<'_> {
    fn envelope(rng: &mut Rng) -> Vec<u8> {
        let mut writer = Writer {
            rng,
            body: Vec::new(),
        };
        writer.space();
        writer.object(&["meta", "m\\u0065ta"], |writer| {
            if writer.one_in(8) {
                writer.value(0);
            } else {
                writer.object(&["id", "\\u0069d"], Writer::id);
            }
        });
        writer.space();
        writer.body
    }

    fn one_in(&mut self, chances: u32) -> bool {
        self.rng.u32(..chances) == 0
    }

    fn put(&mut self, bytes: &[u8]) {
        self.body.extend_from_slice(bytes);
    }

    /// White space, seldom, and sometimes more of it than a block holds.
    fn space(&mut self) {
        if self.one_in(8) {
            let most = if self.one_in(4) { 40 } else { 3 };
            for _ in 0..self.rng.usize(..most) {
                let space = *pick(self.rng, b" \t\n\r");
                self.body.push(space);
            }
        }
    }

    /// An object whose members have the wanted name now and then, so that it
    /// may be missing, and may be there twice.
    fn object(&mut self, wanted: &[&str], mut value: impl FnMut(&mut Self)) {
        self.put(b"{");
        self.space();
        let members = self.rng.usize(..5);
        for member in 0..members {
            if member > 0 {
                self.put(b",");
                self.space();
            }
            let is_wanted = self.rng.bool();
            let name = *pick(self.rng, if is_wanted { wanted } else { NAMES });
            self.put(b"\"");
            self.put(name.as_bytes());
            self.put(b"\"");
            self.space();
            self.put(b":");
            self.space();
            if is_wanted {
                value(self);
            } else {
                self.value(0);
            }
            self.space();
        }
        self.put(b"}");
    }

    fn id(&mut self) {
        if self.one_in(8) {
            return self.value(2);
        }
        self.put(b"\"");
        let length = if self.one_in(16) {
            self.rng.usize(2000..2080)
        } else {
            self.rng.usize(..40)
        };
        if length > 40 {
            self.body.resize(self.body.len() + length, b'y');
        } else {
            for _ in 0..length {
                let character = *pick(self.rng, CHARACTERS);
                self.put(character);
            }
        }
        if self.one_in(6) {
            let bad = *pick(self.rng, BAD_CHARACTERS);
            self.put(bad);
        }
        if self.one_in(4) {
            let character = *pick(self.rng, CHARACTERS);
            self.put(character);
        }
        self.put(b"\"");
    }

    /// Any value; seldom one that is none.
    fn value(&mut self, depth: usize) {
        match self.rng.u8(..12) {
            0..=1 if depth < 4 => {
                self.put(b"[");
                for item in 0..self.rng.usize(..4) {
                    if item > 0 {
                        self.put(b",");
                    }
                    self.space();
                    self.value(depth + 1);
                }
                self.put(b"]");
            }
            2..=3 if depth < 4 => self.object(&["meta", "id"], |writer| writer.value(depth + 1)),
            4 => {
                // Across the 64 levels that the scanner keeps in one word.
                let levels = self.rng.usize(..140);
                self.body.resize(self.body.len() + levels, b'[');
                self.put(b"0");
                self.body.resize(self.body.len() + levels, b']');
            }
            5 => {
                let bad = *pick(self.rng, BAD_CHARACTERS);
                self.put(b"\"elsewhere ");
                self.put(bad);
                self.put(b"\"");
            }
            _ => {
                let bad = self.one_in(60);
                let scalar = *pick(self.rng, if bad { BAD_SCALARS } else { SCALARS });
                self.put(scalar.as_bytes());
            }
        }
    }
}
