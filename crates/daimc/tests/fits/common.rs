//! Helpers that several test files share.
#![allow(dead_code)]

use std::collections::BTreeMap;
use std::path::PathBuf;

use daimc::{View, Views};

/// Reports that a test is skipped because something is missing; with `DAIMC_STRICT` that is a failure.
pub fn skip(reason: &str) {
    assert!(std::env::var_os("DAIMC_STRICT").is_none_or(|strict| strict != "1"), "{reason}");
    println!("skipped: {reason}");
}

/// The folder of a data set that is not part of the repository, if it is there.
fn shared(folder: &str) -> Option<PathBuf> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data").join(folder);
    if !path.is_dir() {
        skip(&format!("{} is missing", path.display()));
        return None;
    }
    Some(path)
}

/// 3Sources: stories from three newspapers, as word counts, with their topics. `None` if the data are missing.
pub fn three_sources() -> Option<(Views<'static>, Vec<usize>)> {
    three_sources_of(&[0, 1, 2])
}

/// The stories that appear in any of these newspapers (BBC, Guardian, Reuters).
pub fn three_sources_of(papers: &[usize]) -> Option<(Views<'static>, Vec<usize>)> {
    let folder = shared("3sources")?;
    let read = |name: String| std::fs::read_to_string(folder.join(name)).unwrap();
    let views = papers.iter().map(|&paper| {
        let name = ["bbc", "guardian", "reuters"][paper];
        let ids: Vec<String> = read(format!("3sources_{name}.docs")).lines().map(String::from).collect();
        let text = read(format!("3sources_{name}.mtx"));
        let mut numbers = text.lines().filter(|line| !line.starts_with('%')).map(|line| {
            let parts: Vec<f64> = line.split_whitespace().map(|part| part.parse().unwrap()).collect();
            (parts[0] as usize, parts[1] as usize, parts[2])
        });
        let (terms, stories, _) = numbers.next().unwrap();
        assert_eq!(stories, ids.len());
        let mut rows: Vec<BTreeMap<u32, f64>> = vec![BTreeMap::new(); stories];
        for (term, story, count) in numbers {
            rows[story - 1].insert(term as u32 - 1, count);
        }
        let mut offsets = vec![0];
        let (mut columns, mut values) = (Vec::new(), Vec::<f64>::new());
        for row in rows {
            columns.extend(row.keys());
            values.extend(row.values());
            offsets.push(columns.len());
        }
        View::sparse(name, terms, offsets, columns, values).unwrap().ids(ids).unwrap()
    });
    let (views, account) = Views::join(views.collect()).unwrap();
    if papers.len() == 3 {
        assert_eq!((account.instances, account.in_every_view), (416, 169));
    }
    let topics = read("3sources.disjoint.clist".into());
    let mut topic_of = BTreeMap::new();
    for (topic, line) in topics.lines().enumerate() {
        for id in line.split_once(':').unwrap().1.split(',') {
            topic_of.insert(id.trim().to_string(), topic);
        }
    }
    let truth = (0..views.instances()).map(|i| topic_of[&views.ids().get(i)]).collect();
    Some((views, truth))
}

/// Digit without `mor`, as in the paper, with a share of the instances of every view missing.
#[cfg(feature = "digit")]
pub fn digit(rate: f64, seed: u64) -> (Views<'static>, Vec<usize>) {
    let (views, truth) = daimc::datasets::digit();
    let present = daimc::simulate::missing(truth.len(), &[rate; 5], seed).unwrap();
    let views = views.into_iter().filter(|view| view.name() != "mor").zip(&present);
    (Views::new(views.map(|(view, present)| view.mask(present).unwrap()).collect()).unwrap(), truth)
}
