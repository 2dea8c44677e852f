//! Which strings are usable as an id, and which as a step's name
//! (contract, sections 1 and 4).

use alloc::string::String;
use alloc::vec::Vec;

/// The longest usable id, in bytes of UTF-8. Every store can hold a key of
/// this length; PostgreSQL's B-tree would refuse about 2,700.
pub const MAX_LEN: usize = 2_048;

/// The longest name of a step, in bytes.
pub const MAX_STEP_LEN: usize = 40;

/// Whether a string is usable as an id: not empty, at most [`MAX_LEN`] bytes,
/// without U+0000. Anything else is kept as it is; a blank string is usable.
#[must_use]
pub fn is_usable(id: &str) -> bool {
    !id.is_empty() && id.len() <= MAX_LEN && !id.as_bytes().contains(&0)
}

/// Takes bytes that stand for an id, if they are UTF-8 and usable.
#[must_use]
pub fn from_bytes(bytes: Vec<u8>) -> Option<String> {
    String::from_utf8(bytes).ok().filter(|id| is_usable(id))
}

/// Whether a string names a step: `[a-z0-9_]{1,40}`.
#[must_use]
pub fn is_step(name: &str) -> bool {
    (1..=MAX_STEP_LEN).contains(&name.len())
        && name
            .bytes()
            .all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_'))
}
