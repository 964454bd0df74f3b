//! Memory aligned to cache lines: a register load that crosses a line costs two loads.

use std::ops::{Deref, DerefMut};

const LINE: usize = 64;

/// A slice of numbers that starts at a multiple of 64 bytes.
#[derive(Debug)]
pub struct Aligned<T> {
    values: Vec<T>,
    start: usize,
    length: usize,
}

impl<T: Copy + Default> Aligned<T> {
    /// Allocates `length` zeros.
    pub fn zeros(length: usize) -> Self {
        let spare = LINE / size_of::<T>();
        let values = vec![T::default(); length + spare];
        // Never more than `spare`. If the offset is unknown, the slice is still valid, but not aligned.
        let start = values.as_ptr().align_offset(LINE).min(spare);
        Self { values, start, length }
    }
}

impl<T> Deref for Aligned<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        &self.values[self.start..self.start + self.length]
    }
}

impl<T> DerefMut for Aligned<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.values[self.start..self.start + self.length]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_start_at_cache_lines_and_keep_their_length() {
        for length in [0, 1, 7, 1000] {
            let mut single = Aligned::<f32>::zeros(length);
            assert_eq!((single.len(), single.as_mut_ptr() as usize % LINE), (length, 0));
            let double = Aligned::<f64>::zeros(length);
            assert_eq!((double.len(), double.as_ptr() as usize % LINE), (length, 0));
        }
    }
}
