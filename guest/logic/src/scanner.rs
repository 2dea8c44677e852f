//! A validating scanner for JSON texts (RFC 8259).
//!
//! It walks over a body once, checks the whole grammar, and lets its caller
//! look at the members of the objects it cares about. It builds nothing and
//! does not recurse: what a body nests is kept in one bit a level.
//!
//! Bytes above 0x7F inside strings are let through as they are. Whether they
//! are UTF-8 matters for the id alone, and is asked when the id is taken.

use crate::blocks::{Block, plain_end, space_end};
use alloc::vec::Vec;

/// A string as it stands in the body, without its quotation marks.
#[derive(Clone, Copy)]
pub(crate) struct RawString<'a> {
    pub(crate) bytes: &'a [u8],
    /// Whether there is a backslash in it.
    pub(crate) escaped: bool,
}

/// The body is not well-formed JSON.
#[derive(Debug)]
pub(crate) struct Malformed;

pub(crate) type Scan<T> = Result<T, Malformed>;

pub(crate) struct Scanner<'a> {
    body: &'a [u8],
    at: usize,
}

impl<'a> Scanner<'a> {
    pub(crate) fn new(body: &'a [u8]) -> Self {
        Self { body, at: 0 }
    }

    /// The byte at hand, without going past it.
    #[inline(always)]
    pub(crate) fn peek(&self) -> Option<u8> {
        self.body.get(self.at).copied()
    }

    #[inline(always)]
    fn next(&mut self) -> Scan<u8> {
        let byte = self.peek().ok_or(Malformed)?;
        self.at += 1;
        Ok(byte)
    }

    /// The first byte behind any white space, going past it.
    #[inline(always)]
    fn token(&mut self) -> Scan<u8> {
        let byte = self.next()?;
        // Compact JSON has no white space: one comparison decides.
        if byte > b' ' {
            return Ok(byte);
        }
        self.at -= 1;
        self.long_space();
        self.next()
    }

    #[inline(always)]
    fn expect(&mut self, wanted: u8) -> Scan<()> {
        if self.token()? == wanted {
            Ok(())
        } else {
            Err(Malformed)
        }
    }

    #[inline(always)]
    fn block(&self) -> Option<&'a Block> {
        self.body.get(self.at..)?.first_chunk()
    }

    /// Passes over white space.
    #[inline(always)]
    pub(crate) fn space(&mut self) {
        if self.peek().is_some_and(|byte| byte <= b' ') {
            self.long_space();
        }
    }

    #[inline(never)]
    fn long_space(&mut self) {
        while let Some(block) = self.block() {
            if let Some(end) = space_end(block) {
                self.at += end;
                return;
            }
            self.at += block.len();
        }
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.peek() {
            self.at += 1;
        }
    }

    /// Nothing but white space is left.
    pub(crate) fn end(&mut self) -> Scan<()> {
        self.space();
        if self.at == self.body.len() {
            Ok(())
        } else {
            Err(Malformed)
        }
    }

    /// Walks over an object and calls `visit` at the value of each member of
    /// the wanted name; `visit` has to pass over that value.
    pub(crate) fn object(
        &mut self,
        wanted: &str,
        mut visit: impl FnMut(&mut Self) -> Scan<()>,
    ) -> Scan<()> {
        self.expect(b'{')?;
        self.space();
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(());
        }
        loop {
            let name = self.name()?;
            if name.is(wanted) {
                visit(self)?;
            } else {
                self.value()?;
            }
            match self.token()? {
                b',' => {}
                b'}' => return Ok(()),
                _ => return Err(Malformed),
            }
        }
    }

    /// A member's name and the colon, up to its value.
    #[inline(always)]
    fn name(&mut self) -> Scan<RawString<'a>> {
        self.expect(b'"')?;
        let name = self.string()?;
        self.expect(b':')?;
        self.space();
        Ok(name)
    }

    /// The string at hand, or any other value passed over.
    pub(crate) fn string_or_value(&mut self) -> Scan<Option<RawString<'a>>> {
        if self.peek() == Some(b'"') {
            self.at += 1;
            self.string().map(Some)
        } else {
            self.value().map(|()| None)
        }
    }

    /// Passes over one value of any kind.
    pub(crate) fn value(&mut self) -> Scan<()> {
        let mut open = Nesting::default();
        loop {
            // At the first byte of a value.
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    self.string()?;
                }
                Some(b'{') => {
                    self.at += 1;
                    self.space();
                    if self.peek() == Some(b'}') {
                        self.at += 1;
                    } else {
                        open.push(Container::Object);
                        self.name()?;
                        continue;
                    }
                }
                Some(b'[') => {
                    self.at += 1;
                    self.space();
                    if self.peek() == Some(b']') {
                        self.at += 1;
                    } else {
                        open.push(Container::Array);
                        continue;
                    }
                }
                _ => self.scalar()?,
            }
            // Behind a value: leave the containers that it ends.
            loop {
                let Some(container) = open.innermost() else {
                    return Ok(());
                };
                match (self.token()?, container) {
                    (b',', Container::Object) => {
                        self.name()?;
                        break;
                    }
                    (b',', Container::Array) => {
                        self.space();
                        break;
                    }
                    (b'}', Container::Object) | (b']', Container::Array) => open.pop(),
                    _ => return Err(Malformed),
                }
            }
        }
    }

    /// Passes over a number, `true`, `false` or `null`.
    fn scalar(&mut self) -> Scan<()> {
        match self.peek() {
            Some(b't') => self.literal(b"true"),
            Some(b'f') => self.literal(b"false"),
            Some(b'n') => self.literal(b"null"),
            _ => self.number(),
        }
    }

    fn literal(&mut self, text: &[u8]) -> Scan<()> {
        if self.body.get(self.at..).ok_or(Malformed)?.starts_with(text) {
            self.at += text.len();
            Ok(())
        } else {
            Err(Malformed)
        }
    }

    /// The grammar of a number, of any size: its value is never computed.
    fn number(&mut self) -> Scan<()> {
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        if self.peek() == Some(b'0') {
            self.at += 1;
        } else {
            self.digits()?;
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.peek() {
            self.at += 1;
            if let Some(b'+' | b'-') = self.peek() {
                self.at += 1;
            }
            self.digits()?;
        }
        Ok(())
    }

    /// One digit or more.
    #[inline(always)]
    fn digits(&mut self) -> Scan<()> {
        let start = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        if self.at == start {
            Err(Malformed)
        } else {
            Ok(())
        }
    }

    /// A string, behind its first quotation mark; checked but not unescaped.
    #[inline(always)]
    fn string(&mut self) -> Scan<RawString<'a>> {
        // Most strings end within a block, and hold nothing to be looked at.
        if let Some(block) = self.block()
            && let Some(end) = plain_end(block)
            && let Some((bytes, [b'"', ..])) = block.split_at_checked(end)
        {
            self.at += end + 1;
            return Ok(RawString {
                bytes,
                escaped: false,
            });
        }
        self.long_string()
    }

    #[inline(never)]
    fn long_string(&mut self) -> Scan<RawString<'a>> {
        let start = self.at;
        let mut escaped = false;
        loop {
            self.plain();
            match self.next()? {
                b'"' => {
                    let bytes = self.body.get(start..self.at - 1).ok_or(Malformed)?;
                    return Ok(RawString { bytes, escaped });
                }
                b'\\' => {
                    escaped = true;
                    self.escape()?;
                }
                _ => return Err(Malformed),
            }
        }
    }

    /// Passes over string content up to what has to be looked at.
    #[inline(always)]
    fn plain(&mut self) {
        while let Some(block) = self.block() {
            if let Some(end) = plain_end(block) {
                self.at += end;
                return;
            }
            self.at += block.len();
        }
        while self
            .peek()
            .is_some_and(|byte| byte >= b' ' && byte != b'"' && byte != b'\\')
        {
            self.at += 1;
        }
    }

    /// The rest of an escape, behind its backslash.
    fn escape(&mut self) -> Scan<()> {
        match self.next()? {
            b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => Ok(()),
            b'u' => {
                for _ in 0..4 {
                    if !self.next()?.is_ascii_hexdigit() {
                        return Err(Malformed);
                    }
                }
                Ok(())
            }
            _ => Err(Malformed),
        }
    }
}

#[derive(Clone, Copy)]
enum Container {
    Array,
    Object,
}

/// The containers that are open, one bit each; the innermost in the lowest
/// bit of `near`. Only what is deeper than 63 levels needs memory.
struct Nesting {
    /// The innermost levels, below a bit that marks where they begin.
    near: u64,
    far: Vec<u64>,
}

impl Default for Nesting {
    fn default() -> Self {
        Self {
            near: Self::EMPTY,
            far: Vec::new(),
        }
    }
}

impl Nesting {
    const EMPTY: u64 = 1;

    #[inline(always)]
    fn push(&mut self, container: Container) {
        if self.near.leading_zeros() == 0 {
            self.far.push(self.near);
            self.near = Self::EMPTY;
        }
        self.near = self.near << 1 | u64::from(matches!(container, Container::Object));
    }

    #[inline(always)]
    fn innermost(&self) -> Option<Container> {
        match self.near {
            Self::EMPTY => None,
            near if near & 1 == 1 => Some(Container::Object),
            _ => Some(Container::Array),
        }
    }

    #[inline(always)]
    fn pop(&mut self) {
        self.near >>= 1;
        if self.near == Self::EMPTY
            && let Some(outer) = self.far.pop()
        {
            self.near = outer;
        }
    }
}
