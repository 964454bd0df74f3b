//! Lists of the nearest neighbours found so far.

/// No neighbour.
pub(super) const NONE: u32 = !FRESH;

/// A flag of entries that are new since the last comparison.
pub(super) const FRESH: u32 = 1 << 31;

/// The point of an entry.
pub(super) fn point(entry: u32) -> u32 {
    entry & !FRESH
}

/// A fixed number of neighbours of each point, nearest first; ties are broken by the smaller number.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Lists {
    pub kept: usize,
    /// Points, possibly with the flag [`FRESH`].
    pub entries: Vec<u32>,
    /// Empty once distances are no longer needed.
    pub squares: Vec<f32>,
}

impl Lists {
    pub fn empty(points: usize, kept: usize) -> Self {
        Self { kept, entries: vec![NONE; points * kept], squares: vec![f32::INFINITY; points * kept] }
    }

    pub fn len(&self) -> usize {
        self.entries.len() / self.kept
    }

    /// The neighbours of a point with their squared distances.
    pub fn of(&self, i: usize) -> impl Iterator<Item = (u32, f32)> {
        let range = i * self.kept..(i + 1) * self.kept;
        let squares = self.squares.get(range.clone()).unwrap_or_default();
        let squares = squares.iter().copied().chain(std::iter::repeat(0.0));
        let entries = self.entries[range].iter().map(|entry| point(*entry)).zip(squares);
        entries.take_while(|(other, _)| *other != NONE)
    }

    /// The squared distance of the last entry of a list; farther points cannot enter it.
    pub fn bar(&self, i: usize) -> f32 {
        self.squares[(i + 1) * self.kept - 1]
    }

    /// Inserts another point into the list of a point if it is among the nearest.
    pub fn offer(&mut self, i: usize, other: u32, square: f32) {
        let range = i * self.kept..(i + 1) * self.kept;
        insert(&mut self.entries[range.clone()], &mut self.squares[range], other, square);
    }
}

/// Inserts an entry into a list if it is nearer than the last one and not in the list yet; returns whether it did. An equal entry
/// has the same distance, to the last bit.
#[inline]
pub(super) fn insert(entries: &mut [u32], squares: &mut [f32], entry: u32, square: f32) -> bool {
    let other = point(entry);
    let last = entries.len() - 1;
    // Counting without branches compiles to vector instructions.
    let mut at: usize = squares.iter().map(|own| u32::from(*own < square)).sum::<u32>() as usize;
    while at <= last && squares[at] == square && point(entries[at]) < other {
        at += 1;
    }
    if at > last || square.is_nan() || squares[at] == square && point(entries[at]) == other {
        return false;
    }
    entries.copy_within(at..last, at + 1);
    squares.copy_within(at..last, at + 1);
    (entries[at], squares[at]) = (entry, square);
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_keeps_the_nearest_once_whatever_the_order() {
        let offers = [(4, 2.0), (7, 1.0), (2, 1.0), (4 | FRESH, 2.0), (9, 5.0), (1, 3.0), (7 | FRESH, 1.0)];
        let of = |offers: &mut dyn Iterator<Item = (u32, f32)>| {
            let mut lists = Lists::empty(2, 3);
            offers.for_each(|(entry, square)| lists.offer(1, entry, square));
            assert_eq!(lists.of(0).count(), 0);
            assert_eq!(lists.bar(1), 2.0);
            lists.of(1).collect::<Vec<_>>()
        };
        let expected = [(2, 1.0), (7, 1.0), (4, 2.0)];
        assert_eq!(of(&mut offers.into_iter()), expected);
        assert_eq!(of(&mut offers.into_iter().rev()), expected);
    }
}
