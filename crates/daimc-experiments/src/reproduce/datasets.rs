//! The data sets of the paper, from the files that their creators distribute.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;

use daimc::{Scale, View, Views, datasets};
use rayon::prelude::*;
use serde_json::{Value, json};

use super::files::{Files, dense};
use crate::harness::sample::Dataset;
use crate::harness::{Error, Result};

/// A data set of the paper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Name {
    ThreeSources,
    Digit,
    Wikipedia,
    Flowers,
}

/// A loaded data set.
pub struct Loaded {
    pub name: Name,
    pub data: Dataset,
    /// The scaling of all views for the methods without an automatic choice. Most of them need non-negative values and comparable
    /// views.
    pub scale: Scale,
    /// The files and their SHA-256.
    pub inputs: Vec<Value>,
}

const NEWSPAPERS: [&str; 3] = ["bbc", "guardian", "reuters"];
/// The cells in the file of Digit; the paper does not use the fourth, `mor`.
const DIGIT: [(&str, &str); 5] =
    [("fac", "X{1}"), ("fou", "X{2}"), ("kar", "X{3}"), ("pix", "X{5}"), ("zer", "X{6}")];
const FLOWERS: [&str; 3] = ["colour", "shape", "texture"];

impl Name {
    /// The name in tables and of the folder in `--data`.
    pub fn text(self) -> &'static str {
        match self {
            Self::ThreeSources => "3sources",
            Self::Digit => "digit",
            Self::Wikipedia => "wikipedia",
            Self::Flowers => "flowers17",
        }
    }

    /// The files in its folder, and their origin.
    pub fn expected(self) -> &'static str {
        match self {
            Self::ThreeSources => {
                "3sources_bbc, 3sources_guardian and 3sources_reuters, each as .mtx and .docs, and \
                 3sources.disjoint.clist, from the 3Sources archive of UCD"
            }
            Self::Digit => {
                "Handwritten.mat, with the cells X and the digits y (without the folder, the embedded data are taken)"
            }
            Self::Wikipedia => {
                "raw_features.mat, with I_te and T_te, and testset_txt_img_cat.list, from the Wikipedia data of SVCL"
            }
            Self::Flowers => {
                "flowers17_bow.npz, with the counts colour, shape and texture and the labels of the Oxford Flowers 17"
            }
        }
    }

    /// Reads the data set from its folder under `data`.
    pub fn load(self, data: Option<&Path>) -> Result<Loaded> {
        let folder = data.map(|data| data.join(self.text()));
        if self == Self::Digit && !folder.as_ref().is_some_and(|folder| folder.is_dir()) {
            return embedded();
        }
        let (text, expected) = (self.text(), self.expected());
        let Some(folder) = folder else {
            return Err(Error::Usage(format!(
                "this experiment needs --data DIR, a folder in which {text}/ holds {expected}"
            )));
        };
        let mut files = Files::new(text, expected, folder);
        let (views, classes, scale) = match self {
            Self::ThreeSources => files.three_sources()?,
            Self::Digit => files.digit()?,
            Self::Wikipedia => files.wikipedia()?,
            Self::Flowers => files.flowers()?,
        };
        if classes.len() != views.instances() {
            let (folder, found) = (files.folder.display(), classes.len());
            let n = views.instances();
            return Err(Error::Data(format!("{folder}: there are {n} instances but {found} classes")));
        }
        Ok(loaded(self, views, &classes, scale, files.inputs))
    }
}

/// Renumbers the classes from 0; the number of clusters is the number of distinct classes.
fn loaded(name: Name, views: Views<'static>, classes: &[usize], scale: Scale, inputs: Vec<Value>) -> Loaded {
    let different: BTreeSet<usize> = classes.iter().copied().collect();
    let number = |class: &usize| different.iter().position(|known| known == class);
    let classes = classes.iter().map(number).collect();
    Loaded { name, data: Dataset { views, classes, clusters: different.len() }, scale, inputs }
}

fn embedded() -> Result<Loaded> {
    let (views, classes) = datasets::digit();
    let views = views.into_iter().filter(|view| view.name() != "mor").collect();
    Ok(loaded(
        Name::Digit,
        Views::new(views)?,
        &classes,
        Scale::MinMaxUnit,
        vec![json!(["digit", "embedded"])],
    ))
}

type Read = (Views<'static>, Vec<usize>, Scale);

impl Files {
    /// Word counts by story; the list of topics has the stories of each topic.
    fn three_sources(&mut self) -> Result<Read> {
        let mut views = Vec::new();
        for paper in NEWSPAPERS {
            let mut table = self.table(&format!("3sources_{paper}.mtx"), None, true)?;
            let (_, stories) = self.text(&format!("3sources_{paper}.docs"))?;
            table.ids = Some(stories.lines().map(|line| line.trim().to_owned()).collect());
            views.push((paper.to_owned(), table));
        }
        let (views, _) = daimc_io::assemble(views, &daimc_io::Assembly::default())?;
        let (path, topics) = self.text("3sources.disjoint.clist")?;
        let mut topic_of = HashMap::new();
        for (topic, line) in topics.lines().enumerate() {
            let stories = line.split_once(':').map_or("", |(_, stories)| stories);
            topic_of.extend(stories.split(',').map(|story| (story.trim().to_owned(), topic)));
        }
        let topic = |i: usize| {
            let story = views.ids().get(i);
            let missing = || Error::Data(format!("{}: story {story} has no topic", path.display()));
            topic_of.get(&story).copied().ok_or_else(missing)
        };
        let classes = (0..views.instances()).map(topic).collect::<Result<_>>()?;
        Ok((views, classes, Scale::Unit))
    }

    fn digit(&mut self) -> Result<Read> {
        let file = "Handwritten.mat";
        let mut views = Vec::new();
        for (name, cell) in DIGIT {
            let (values, features) = dense(self.table(file, Some(cell), false)?)?;
            views.push(View::dense(name, features, values)?);
        }
        // One view has negative values.
        Ok((Views::new(views)?, self.classes(file, "y")?, Scale::MinMaxUnit))
    }

    fn wikipedia(&mut self) -> Result<Read> {
        let mut views = Vec::new();
        for (name, variable) in [("image", "I_te"), ("text", "T_te")] {
            let (values, features) = dense(self.table("raw_features.mat", Some(variable), false)?)?;
            views.push(View::dense(name, features, values)?);
        }
        let (path, list) = self.text("testset_txt_img_cat.list")?;
        let class = |(i, line): (usize, &str)| {
            let class = line.split_whitespace().nth(2).and_then(|class| class.parse::<usize>().ok());
            let wrong = || {
                let line = i + 1;
                Error::Data(format!(
                    "{}: line {line}: its third column is not a class from 1",
                    path.display()
                ))
            };
            class.and_then(|class| class.checked_sub(1)).ok_or_else(wrong)
        };
        let classes = list.lines().enumerate().map(class).collect::<Result<_>>()?;
        Ok((Views::new(views)?, classes, Scale::Unit))
    }

    /// Each view is the matrix of χ² distances between the histograms of the images.
    fn flowers(&mut self) -> Result<Read> {
        let file = "flowers17_bow.npz";
        let mut views = Vec::new();
        for name in FLOWERS {
            let (counts, words) = dense(self.table(file, Some(name), false)?)?;
            let distances = distances(counts, words);
            views.push(View::dense(name, distances.len().isqrt(), distances)?);
        }
        Ok((Views::new(views)?, self.classes(file, "labels")?, Scale::Unit))
    }
}

/// The χ² distances ½ Σ (a − b)² / (a + b) between rows of counts, each scaled to sum 1, row by row.
fn distances(mut counts: Vec<f64>, words: usize) -> Vec<f64> {
    for row in counts.chunks_exact_mut(words) {
        let sum: f64 = row.iter().sum();
        row.iter_mut().filter(|_| sum > 0.0).for_each(|count| *count /= sum);
    }
    let term = |(a, b): (&f64, &f64)| if a + b > 0.0 { (a - b).powi(2) / (a + b) } else { 0.0 };
    let distance = |a: &[f64], b: &[f64]| 0.5 * a.iter().zip(b).map(term).sum::<f64>();
    counts
        .par_chunks_exact(words)
        .flat_map_iter(|a| counts.chunks_exact(words).map(move |b| distance(a, b)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_as_many_clusters_as_different_classes() {
        let views = Views::new(vec![View::dense("a", 1, vec![1.0, 2.0, 3.0]).unwrap()]).unwrap();
        let Loaded { data, .. } = loaded(Name::Digit, views, &[10, 1, 10], Scale::Unit, Vec::new());
        assert_eq!((data.clusters, data.classes), (2, vec![Some(1), Some(0), Some(1)]));
    }

    #[test]
    fn distances_are_those_of_histograms() {
        // Histograms (½, ½, 0), (0, ½, ½), and an empty one.
        let found = distances(vec![2.0, 2.0, 0.0, 0.0, 3.0, 3.0, 0.0, 0.0, 0.0], 3);
        assert_eq!(found, [0.0, 0.5, 0.5, 0.5, 0.0, 0.5, 0.5, 0.5, 0.0]);
    }
}
