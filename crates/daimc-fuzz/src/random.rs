//! Random numbers: `SplitMix64`, seeded by three numbers that identify a case.

/// A stream of random numbers.
pub struct Random(u64);

impl Random {
    /// Creates the stream of a case of a worker.
    pub fn of_case(seed: u64, worker: u64, case: u64) -> Self {
        let mut random = Self(seed);
        random.0 = random.next() ^ worker;
        random.0 = random.next() ^ case;
        random
    }

    /// The next number.
    #[allow(clippy::should_implement_trait)] // The stream is infinite.
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `limit`; 0 if `limit` is 0.
    pub fn below(&mut self, limit: usize) -> usize {
        if limit == 0 { 0 } else { (self.next() % limit as u64) as usize }
    }

    /// True with probability 1 / `times`.
    pub fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    /// A random element of a non-empty list.
    pub fn pick<'a, T>(&mut self, list: &'a [T]) -> &'a T {
        &list[self.below(list.len())]
    }
}
