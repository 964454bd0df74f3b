//! Options that would match IDs which almost agree.

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};

use super::matching::{Matching, Pattern, SEPARATORS};

/// The most IDs that are compared; longer lists are sampled.
const MOST: usize = 100_000;
/// The most leading parts of an ID that are tried.
const PARTS: usize = 6;

/// Options with which lists of IDs would have more instances in common.
#[derive(Clone, Debug)]
pub struct Near {
    /// The options.
    pub matching: Matching,
    /// For each list, the approximate number of its instances that another list would have.
    pub shared: Vec<usize>,
}

/// The options of the command line.
impl fmt::Display for Near {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Matching { prefix, pattern, ignore_case, ignore_separators, .. } = &self.matching;
        let options = [
            prefix.map(|count| format!("--id-prefix {count}")),
            pattern.as_ref().map(|pattern| format!("--id-regex '{pattern}'")),
            ignore_case.then(|| "--ignore-case".into()),
            ignore_separators.then(|| "--ignore-separators".into()),
        ];
        f.write_str(&options.into_iter().flatten().collect::<Vec<String>>().join(" "))
    }
}

/// The options with which the lists have most instances in common, if these are more than without options. Tried are options for IDs
/// that differ in case or separators, after their first parts, or in a prefix or suffix that all IDs of a list share.
pub fn near<S: AsRef<str>>(lists: &[Vec<S>]) -> Option<Near> {
    let all = || lists.iter().flatten().map(AsRef::as_ref);
    let mut trims = vec![Matching::default()];
    trims.extend((1..=PARTS).filter_map(|parts| first_parts(all(), parts)));
    trims.extend(common_ends(lists));
    let folds = [(false, false), (true, false), (false, true), (true, true)];
    let candidates = folds.into_iter().flat_map(|(ignore_case, ignore_separators)| {
        trims.iter().map(move |trim| Matching { ignore_case, ignore_separators, ..trim.clone() })
    });
    // Ties are resolved in favour of the simpler options.
    let mut candidates: Vec<Matching> = candidates.collect();
    candidates.sort_by_key(|own| {
        let cut = 2 * u8::from(own.prefix.is_some()) + 4 * u8::from(own.pattern.is_some());
        cut + u8::from(own.ignore_case) + u8::from(own.ignore_separators)
    });
    let one_in = lists.iter().map(Vec::len).sum::<usize>().div_ceil(MOST).max(1) as u64;
    let score = |matching: &Matching| Score::of(lists, matching, one_in);
    let as_they_are = score(&Matching::default());
    let mut best: Option<(Matching, Score)> = None;
    for matching in candidates {
        let own = score(&matching);
        let better = best
            .as_ref()
            .is_none_or(|(_, known)| (own.total(), known.repeated) > (known.total(), own.repeated));
        if own.total() > as_they_are.total() && better {
            best = Some((matching, own));
        }
    }
    // A few matches by chance are no evidence.
    let least = lists.iter().map(Vec::len).filter(|count| *count > 0).min().unwrap_or(0) / 10;
    let (matching, Score { shared, .. }) = best?;
    let shared: Vec<usize> = shared.into_iter().map(|count| count * one_in as usize).collect();
    shared.iter().any(|count| *count > least).then_some(Near { matching, shared })
}

/// How well lists of IDs are joined.
struct Score {
    /// For each list, the number of its instances that another list has.
    shared: Vec<usize>,
    /// IDs of an instance that their list already has.
    repeated: usize,
}

impl Score {
    /// Compares one of `one_in` instances, the same ones in every list.
    fn of<S: AsRef<str>>(lists: &[Vec<S>], matching: &Matching, one_in: u64) -> Self {
        let mut listers: HashMap<String, BTreeSet<usize>> = HashMap::new();
        let mut repeated = 0;
        for (l, id) in
            lists.iter().enumerate().flat_map(|(l, ids)| ids.iter().map(move |id| (l, id.as_ref())))
        {
            let key = matching.key(id);
            if one_in > 1 {
                let mut hasher = DefaultHasher::new();
                key.hash(&mut hasher);
                if !hasher.finish().is_multiple_of(one_in) {
                    continue;
                }
            }
            repeated += usize::from(!listers.entry(key.into_owned()).or_default().insert(l));
        }
        let mut shared = vec![0; lists.len()];
        for listers in listers.values().filter(|listers| listers.len() > 1) {
            listers.iter().for_each(|&l| shared[l] += 1);
        }
        Self { shared, repeated }
    }

    fn total(&self) -> usize {
        self.shared.iter().sum()
    }
}

/// The options that keep the first parts of every ID: a prefix if its length is the same for all, otherwise a pattern.
fn first_parts<'a>(ids: impl Iterator<Item = &'a str>, parts: usize) -> Option<Matching> {
    let mut lengths = BTreeSet::new();
    let mut cut = false;
    for id in ids {
        let end = id.match_indices(SEPARATORS).nth(parts - 1).map_or(id.len(), |(at, _)| at);
        cut |= end < id.len();
        lengths.insert(id[..end].chars().count());
    }
    if !cut {
        return None;
    }
    if let [length] = lengths.iter().copied().collect::<Vec<_>>()[..] {
        return Some(Matching { prefix: Some(length), ..Matching::default() });
    }
    let (part, separator) = ("[^-._ :/]+", "[-._ :/]");
    let more = if parts > 1 { format!("(?:{separator}{part}){{0,{}}}", parts - 1) } else { String::new() };
    pattern(&format!("^{part}{more}"))
}

/// The options that remove a prefix or suffix which all IDs of a list share, such as `rna_` or `.bam`.
fn common_ends<S: AsRef<str>>(lists: &[Vec<S>]) -> Vec<Matching> {
    let (mut starts, mut ends) = (BTreeSet::new(), BTreeSet::new());
    for ids in lists.iter().filter(|ids| ids.len() > 1) {
        let first = ids[0].as_ref();
        let start =
            ids.iter().fold(first.len(), |least, id| least.min(common(first.chars(), id.as_ref().chars())));
        let end = ids
            .iter()
            .fold(first.len(), |least, id| least.min(common(first.chars().rev(), id.as_ref().chars().rev())));
        // Adjacent digits and letters may belong to the distinctive part.
        if let Some(at) = first[..start].rfind(SEPARATORS) {
            starts.insert(first[..=at].to_owned());
        }
        let tail = &first[first.len() - end..];
        if let Some(at) = tail.find(SEPARATORS) {
            ends.insert(tail[at..].to_owned());
        }
    }
    let either = |parts: &BTreeSet<String>| {
        let escaped: Vec<String> = parts.iter().map(|part| regex_lite::escape(part)).collect();
        escaped.join("|")
    };
    let mut found = Vec::new();
    if !ends.is_empty() {
        found.extend(pattern(&format!("^(.+?)(?:{})?$", either(&ends))));
    }
    if !starts.is_empty() {
        found.extend(pattern(&format!("^(?:{})?(.+)$", either(&starts))));
    }
    found
}

/// The length of the common prefix in bytes.
fn common(one: impl Iterator<Item = char>, other: impl Iterator<Item = char>) -> usize {
    one.zip(other).take_while(|(a, b)| a == b).map(|(a, _)| a.len_utf8()).sum()
}

fn pattern(text: &str) -> Option<Matching> {
    Some(Matching { pattern: Some(text.parse::<Pattern>().ok()?), ..Matching::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn suggested(lists: &[&[&str]]) -> (String, Vec<usize>) {
        let lists: Vec<Vec<&str>> = lists.iter().map(|ids| ids.to_vec()).collect();
        near(&lists).map_or_else(Default::default, |near| (near.to_string(), near.shared))
    }

    fn joined(options: &str, shared: &[usize]) -> (String, Vec<usize>) {
        (options.into(), shared.to_vec())
    }

    #[test]
    fn barcodes_of_different_platforms_agree_in_their_first_characters() {
        let rna = ["TCGA-OR-A5J1-01A-11R-A29S-07", "TCGA-OR-A5J2-01A-11R-A29S-07"];
        let rppa = ["TCGA-OR-A5J2-01A-21-A39K-20", "TCGA-OR-A5J3-01A-21-A39K-20"];
        assert_eq!(suggested(&[&rna, &rppa]), joined("--id-prefix 12", &[1, 1]));
        // A longer prefix distinguishes a tumour from a normal sample of the same patient.
        let both = ["TCGA-OR-A5J1-01A-11R", "TCGA-OR-A5J1-11A-11R", "TCGA-OR-A5J2-01A-11R"];
        let other = ["TCGA-OR-A5J1-01A-21X", "TCGA-OR-A5J1-11A-21X", "TCGA-OR-A5J2-01A-21X"];
        assert_eq!(suggested(&[&both, &other]), joined("--id-prefix 16", &[3, 3]));
        assert_eq!(
            suggested(&[
                &["TCGA.A1.A0SH.01A", "TCGA.A1.A0SJ.01A"],
                &["TCGA-A1-A0SH-01A-11R", "TCGA-A1-A0SJ-01A-11R"]
            ]),
            joined("--id-prefix 12 --ignore-separators", &[2, 2])
        );
    }

    #[test]
    fn case_separators_and_ends_are_found() {
        assert_eq!(suggested(&[&["S1", "S2"], &["s1", "s2"]]), joined("--ignore-case", &[2, 2]));
        assert_eq!(suggested(&[&["S-1", "S-2"], &["S.1", "S.2"]]), joined("--ignore-separators", &[2, 2]));
        assert_eq!(
            suggested(&[&["S1_rna", "S10_rna"], &["S1_prot", "S10_prot"]]),
            joined("--id-regex '^[^-._ :/]+'", &[2, 2])
        );
        let (named, bare) = (["my_sample_1.bam", "my_sample_10.bam"], ["my_sample_1", "my_sample_10"]);
        let (options, shared) = suggested(&[&named, &bare]);
        assert!(
            options == "--id-regex '^[^-._ :/]+(?:[-._ :/][^-._ :/]+){0,2}'" && shared == [2, 2],
            "{options}"
        );
        assert_eq!(
            suggested(&[&["rna_S1", "rna_T10"], &["S1", "T10"]]),
            joined("--id-regex '^(?:rna_)?(.+)$'", &[2, 2])
        );
    }

    #[test]
    fn nothing_is_suggested_for_ids_that_match_or_have_nothing_in_common() {
        assert_eq!(suggested(&[&["a", "b"], &["b", "a"]]), joined("", &[]));
        assert_eq!(suggested(&[&["a", "b"], &["x", "y"]]), joined("", &[]));
        assert_eq!(suggested(&[&[], &["x", "y"]]), joined("", &[]));
    }

    #[test]
    fn long_lists_are_compared_by_a_sample_of_their_instances() {
        let list = |end: &str| (0..150_000).map(|i| format!("cell{i}{end}")).collect::<Vec<_>>();
        let near = near(&[list("-1"), list("-2")]).unwrap();
        assert_eq!(near.to_string(), "--id-regex '^[^-._ :/]+'");
        assert!((120_000..180_000).contains(&near.shared[0]), "{:?}", near.shared);
    }
}
