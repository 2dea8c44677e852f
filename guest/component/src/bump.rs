//! Memory for one call at a time.
//!
//! The guard keeps nothing between calls. What a call allocates lies one
//! behind the other, and when the last piece has been given back, which is
//! when the host has read the result, everything is free again. A list of
//! free pieces would cost more than the whole decision.

use core::alloc::{GlobalAlloc, Layout};
use core::arch::wasm32;
use core::cell::Cell;

const PAGE: usize = 65_536;

struct Bump {
    /// Where the next piece may begin; zero before the first one.
    next: Cell<usize>,
    /// How many pieces are in use.
    live: Cell<usize>,
}

// SAFETY: a module without the threads proposal has one thread.
unsafe impl Sync for Bump {}

#[global_allocator]
static BUMP: Bump = Bump {
    next: Cell::new(0),
    live: Cell::new(0),
};

unsafe extern "C" {
    /// Where the linker says that the heap begins. Only its address counts.
    static __heap_base: u8;
}

fn heap_base() -> usize {
    &raw const __heap_base as usize
}

/// Grows the memory so that addresses below `end` can be used.
fn reserve(end: usize) -> Option<()> {
    let size = wasm32::memory_size(0) * PAGE;
    if end > size {
        let pages = (end - size).div_ceil(PAGE);
        if wasm32::memory_grow(0, pages) == usize::MAX {
            return None;
        }
    }
    Some(())
}

impl Bump {
    fn take(&self, layout: Layout) -> Option<usize> {
        let free = if self.live.get() == 0 {
            heap_base()
        } else {
            self.next.get()
        };
        let start = free.checked_next_multiple_of(layout.align())?;
        let end = start.checked_add(layout.size())?;
        reserve(end)?;
        self.next.set(end);
        self.live.set(self.live.get() + 1);
        Some(start)
    }

    /// Moves the end of the newest piece.
    fn resize_newest(&self, start: usize, old: usize, new: usize) -> Option<()> {
        if start + old != self.next.get() {
            return None;
        }
        let end = start.checked_add(new)?;
        reserve(end)?;
        self.next.set(end);
        Some(())
    }
}

// SAFETY: pieces never overlap, since `next` only moves back over the newest
// one or when none is in use; each lies within the memory, at its alignment.
unsafe impl GlobalAlloc for Bump {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        match self.take(layout) {
            Some(start) => start as *mut u8,
            None => core::ptr::null_mut(),
        }
    }

    unsafe fn dealloc(&self, piece: *mut u8, layout: Layout) {
        self.live.set(self.live.get() - 1);
        // A piece given back at once, as a short-lived string is, makes room.
        if piece as usize + layout.size() == self.next.get() {
            self.next.set(piece as usize);
        }
    }

    unsafe fn realloc(&self, piece: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if self
            .resize_newest(piece as usize, layout.size(), size)
            .is_some()
        {
            return piece;
        }
        // SAFETY: the caller vouches for the size and the alignment.
        let moved = unsafe { self.alloc(Layout::from_size_align_unchecked(size, layout.align())) };
        if !moved.is_null() {
            // SAFETY: both pieces are in use, apart, and at least this long.
            unsafe {
                core::ptr::copy_nonoverlapping(piece, moved, layout.size().min(size));
                self.dealloc(piece, layout);
            }
        }
        moved
    }
}
