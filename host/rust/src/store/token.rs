//! Tokens, by which a lease knows its owner.

use crate::error::StoreError;
use std::fmt::Write;

/// A token that no other claim has: 128 random bits, as hexadecimal digits.
pub(super) fn fresh() -> Result<String, StoreError> {
    let mut bits = [0; 16];
    getrandom::fill(&mut bits).map_err(|error| {
        StoreError::Unavailable(format!("no random numbers for a lease's token: {error}"))
    })?;
    Ok(hex(&bits))
}

/// Two digits a byte.
pub(super) fn hex(bytes: &[u8]) -> String {
    let mut digits = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        // Writing to a string cannot fail.
        let _ = write!(digits, "{byte:02x}");
    }
    digits
}
