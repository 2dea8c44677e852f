//! Sixteen bytes at a time: where in a block something stands that ends a
//! run.
//!
//! With WebAssembly's `simd128` a block is one vector; elsewhere it is two
//! 64-bit words. The rest of the crate does not know which.

/// A block of input.
pub(crate) type Block = [u8; 16];

/// Where the first byte stands that is not plain string content: a quotation
/// mark, a backslash or a control character.
///
/// `None` rather than the block's length, so that the next block's address
/// depends on a branch that is nearly always guessed, not on this answer.
#[inline(always)]
pub(crate) fn plain_end(block: &Block) -> Option<usize> {
    imp::plain_end(block)
}

/// Where the first byte stands that is not JSON white space.
#[inline(always)]
pub(crate) fn space_end(block: &Block) -> Option<usize> {
    imp::space_end(block)
}

#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
mod imp {
    use super::Block;
    use core::arch::wasm32::{
        u8x16_bitmask, u8x16_eq, u8x16_lt, u8x16_splat, v128, v128_load, v128_or,
    };

    #[inline(always)]
    fn load(block: &Block) -> v128 {
        // SAFETY: the reference is to exactly the sixteen bytes that are
        // read, and the instruction asks for no alignment.
        unsafe { v128_load(block.as_ptr().cast()) }
    }

    #[inline(always)]
    pub(super) fn plain_end(block: &Block) -> Option<usize> {
        let bytes = load(block);
        let special = v128_or(
            v128_or(
                u8x16_eq(bytes, u8x16_splat(b'"')),
                u8x16_eq(bytes, u8x16_splat(b'\\')),
            ),
            u8x16_lt(bytes, u8x16_splat(0x20)),
        );
        first(u8x16_bitmask(special))
    }

    #[inline(always)]
    pub(super) fn space_end(block: &Block) -> Option<usize> {
        let bytes = load(block);
        let space = v128_or(
            v128_or(
                u8x16_eq(bytes, u8x16_splat(b' ')),
                u8x16_eq(bytes, u8x16_splat(b'\n')),
            ),
            v128_or(
                u8x16_eq(bytes, u8x16_splat(b'\r')),
                u8x16_eq(bytes, u8x16_splat(b'\t')),
            ),
        );
        first(!u8x16_bitmask(space))
    }

    /// The position of the lowest bit that is set.
    #[inline(always)]
    fn first(mask: u16) -> Option<usize> {
        (mask != 0).then(|| mask.trailing_zeros() as usize)
    }
}

#[cfg(not(all(target_arch = "wasm32", target_feature = "simd128")))]
mod imp {
    use super::Block;

    const ONES: u64 = u64::from_ne_bytes([0x01; 8]);
    const HIGHS: u64 = u64::from_ne_bytes([0x80; 8]);

    #[inline(always)]
    pub(super) fn plain_end(block: &Block) -> Option<usize> {
        first(block, |word| {
            zeros(word ^ splat(b'"')) | zeros(word ^ splat(b'\\')) | controls(word)
        })
    }

    #[inline(always)]
    pub(super) fn space_end(block: &Block) -> Option<usize> {
        first(block, |word| {
            let space = exact_zeros(word ^ splat(b' '))
                | exact_zeros(word ^ splat(b'\n'))
                | exact_zeros(word ^ splat(b'\r'))
                | exact_zeros(word ^ splat(b'\t'));
            space ^ HIGHS
        })
    }

    /// The position of the first byte whose high bit `find` sets.
    #[inline(always)]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the two halves are taken apart on purpose"
    )]
    fn first(block: &Block, find: impl Fn(u64) -> u64) -> Option<usize> {
        let whole = u128::from_le_bytes(*block);
        let halves = [whole as u64, (whole >> 64) as u64];
        for (half, start) in halves.into_iter().zip([0, 8]) {
            let found = find(half);
            if found != 0 {
                return Some(start + found.trailing_zeros() as usize / 8);
            }
        }
        None
    }

    #[inline(always)]
    const fn splat(byte: u8) -> u64 {
        u64::from_ne_bytes([byte; 8])
    }

    /// Sets the high bit of the lowest byte that is zero. Bytes above it may
    /// be wrong, by the borrow; only the first one is ever asked for.
    #[inline(always)]
    fn zeros(word: u64) -> u64 {
        word.wrapping_sub(ONES) & !word & HIGHS
    }

    /// Sets the high bit of the lowest byte below 0x20, like [`zeros`].
    #[inline(always)]
    fn controls(word: u64) -> u64 {
        word.wrapping_sub(splat(0x20)) & !word & HIGHS
    }

    /// Sets the high bit of every byte that is zero, and of no other.
    #[inline(always)]
    fn exact_zeros(word: u64) -> u64 {
        let low = (word & !HIGHS).wrapping_add(!HIGHS);
        !(low | word) & HIGHS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every byte value at every position, after a run of each kind.
    #[test]
    fn ends_agree_with_a_plain_loop() {
        for filler in [b' ', b'a', b'\n', 0x80, 0xff, b'!', b'#', b'[', b']', 0x7f] {
            for position in 0..16 {
                for byte in 0..=255 {
                    for after in [filler, b'"', 0, 0x21, b'\\'] {
                        let mut block = [filler; 16];
                        block[position..].fill(after);
                        block[position] = byte;
                        let special = |byte: &u8| matches!(byte, b'"' | b'\\' | 0..0x20);
                        let other = |byte: &u8| !matches!(byte, b' ' | b'\n' | b'\r' | b'\t');
                        assert_eq!(
                            plain_end(&block),
                            block.iter().position(special),
                            "{block:x?}"
                        );
                        assert_eq!(
                            space_end(&block),
                            block.iter().position(other),
                            "{block:x?}"
                        );
                    }
                }
            }
        }
    }
}
