//! Reads the id from an envelope (contract, section 1).

use crate::id;
use crate::scanner::{Malformed, RawString, Scan, Scanner};
use crate::types::FailOpen;
use alloc::string::String;
use alloc::vec::Vec;

/// The usable id of a body, or why it has none.
///
/// The whole body is checked, also behind the id: a body that is no JSON
/// object has no id at all. Takes time linear in the body's length, and
/// memory for one bit a level of nesting beyond the 63rd.
///
/// # Errors
///
/// The reason why the delivery fails open.
pub fn extract(body: &[u8]) -> Result<String, FailOpen> {
    match last_id(body) {
        Err(Malformed) => Err(FailOpen::Malformed),
        Ok(Member::Missing) => Err(FailOpen::Absent),
        Ok(Member::Other) => Err(FailOpen::Unusable),
        // What is not one of the strings that `id::is_usable` describes does
        // not get this far, or is empty, or is not UTF-8.
        Ok(Member::Text(text)) => text
            .unescape(id::MAX_LEN)
            .and_then(|bytes| String::from_utf8(bytes).ok())
            .filter(|id| !id.is_empty())
            .ok_or(FailOpen::Unusable),
    }
}

/// What the envelope says of its id, the last of duplicate members counting.
enum Member<'a> {
    Missing,
    Text(RawString<'a>),
    Other,
}

fn last_id(body: &[u8]) -> Scan<Member<'_>> {
    let mut scanner = Scanner::new(body);
    let mut found = Member::Missing;
    scanner.object("meta", |scanner| {
        if scanner.peek() != Some(b'{') {
            found = Member::Other;
            return scanner.value();
        }
        found = Member::Missing;
        scanner.object("id", |scanner| {
            found = match scanner.string_or_value()? {
                Some(text) => Member::Text(text),
                None => Member::Other,
            };
            Ok(())
        })
    })?;
    scanner.end()?;
    Ok(found)
}

impl RawString<'_> {
    /// Whether the string, once unescaped, is this name.
    #[inline(always)]
    pub(crate) fn is(&self, name: &str) -> bool {
        if self.escaped {
            self.unescape(name.len())
                .is_some_and(|bytes| bytes == name.as_bytes())
        } else {
            self.bytes == name.as_bytes()
        }
    }

    /// The bytes that the string stands for, if they are at most `limit`,
    /// without U+0000, and no surrogate in it is unpaired. They need not be
    /// UTF-8. (U+0000 can only come of an escape.)
    fn unescape(&self, limit: usize) -> Option<Vec<u8>> {
        if !self.escaped {
            return (self.bytes.len() <= limit).then(|| self.bytes.to_vec());
        }
        let mut out = Vec::with_capacity(limit.min(self.bytes.len()));
        let mut rest = self.bytes;
        while let Some((&byte, tail)) = rest.split_first() {
            rest = tail;
            if byte == b'\\' {
                let mut utf8 = [0; 4];
                let scalar = escaped_scalar(&mut rest).filter(|&scalar| scalar != '\0')?;
                out.extend_from_slice(scalar.encode_utf8(&mut utf8).as_bytes());
            } else {
                out.push(byte);
            }
            if out.len() > limit {
                return None;
            }
        }
        Some(out)
    }
}

/// Takes an escape, whose backslash has been taken, from the front of a
/// string that the scanner has checked.
fn escaped_scalar(rest: &mut &[u8]) -> Option<char> {
    let (&kind, tail) = rest.split_first()?;
    *rest = tail;
    Some(match kind {
        b'b' => '\u{8}',
        b'f' => '\u{c}',
        b'n' => '\n',
        b'r' => '\r',
        b't' => '\t',
        b'u' => {
            let unit = code_unit(rest)?;
            if !(0xd800..0xdc00).contains(&unit) {
                // A low surrogate on its own is no scalar value.
                return char::from_u32(unit);
            }
            *rest = rest.strip_prefix(b"\\u")?;
            let low = code_unit(rest)?;
            if !(0xdc00..0xe000).contains(&low) {
                return None;
            }
            char::from_u32(0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00))?
        }
        itself => char::from(itself),
    })
}

/// Takes four hexadecimal digits.
fn code_unit(rest: &mut &[u8]) -> Option<u32> {
    let (digits, tail) = rest.split_first_chunk::<4>()?;
    *rest = tail;
    digits.iter().try_fold(0, |unit, &digit| {
        Some(unit << 4 | char::from(digit).to_digit(16)?)
    })
}
