//! The data sets of the panel.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use daimc::text::quoted;
use daimc::{Scale, Views};
use daimc_io::{Assembly, Matching};
use serde_json::{Value, json};

use super::super::datasets::Name;
use super::super::files::Files;
use super::fashion;
use super::planted::Family;
use crate::harness::sample::Dataset;
use crate::harness::{Error, Monitor, Result};

/// A data set of the panel.
pub struct Set {
    pub name: &'static str,
    pub planted: bool,
    /// Shares of missing instances.
    pub rates: &'static [f64],
    /// The scaling of all views for the methods without a choice or standardisation of their own: rows of length 1 for counts and
    /// histograms, otherwise after features are scaled to 0 … 1.
    pub scale: Scale,
    /// One data set for all seeds, or one for each seed.
    pub data: Vec<Dataset>,
    /// The files and their SHA-256.
    pub inputs: Value,
}

/// The origin of a data set.
enum Origin {
    Paper(Name),
    Folder {
        /// The folder in `--data`.
        folder: &'static str,
        /// A system folder that may have it.
        system: Option<&'static str>,
        expected: &'static str,
        scale: Scale,
        read: fn(&mut Files) -> Result<Read>,
    },
    Planted(Family),
}

/// Views, and the class of each instance if it is known.
type Read = (Views<'static>, Vec<Option<String>>);

const AS_IT_IS: &[f64] = &[0.0];
const TWO: &[f64] = &[0.0, 0.3];
const HALF: &[f64] = &[0.0, 0.5];
const THREE: &[f64] = &[0.0, 0.3, 0.5];
const FOUR: &[f64] = &[0.0, 0.3, 0.5, 0.7];

/// Every set with its shares of missing instances, in the order of the tables.
fn all() -> Vec<(&'static str, &'static [f64], Origin)> {
    let folder =
        |folder, expected, scale, read| Origin::Folder { folder, system: None, expected, scale, read };
    // Data with negative values are scaled to 0 … 1, for methods that need it.
    let omics = |name, expected, read| folder(name, expected, Scale::MinMaxUnit, read);
    let mut all = vec![
        ("digit", FOUR, Origin::Paper(Name::Digit)),
        ("3sources", AS_IT_IS, Origin::Paper(Name::ThreeSources)),
        ("wikipedia", TWO, Origin::Paper(Name::Wikipedia)),
        ("flowers17", TWO, folder("flowers17", Name::Flowers.expected(), Scale::Unit, flowers)),
        (
            "newsgroups",
            TWO,
            folder(
                "newsgroups",
                "20newsgroups.mat, with the cells X and the groups Y",
                Scale::Unit,
                newsgroups,
            ),
        ),
        (
            "reuters",
            TWO,
            folder("reuters", "Reuters-1200.mat, with the cells X and the topics y", Scale::Unit, reuters),
        ),
        (
            "brca",
            TWO,
            omics(
                "omics/brca",
                "expression.tsv.gz, methylation.tsv.gz and mirna.tsv.gz, and truth.tsv with the clusters",
                |files| {
                    omics_tables(files, &["expression", "methylation", "mirna"], ("truth.tsv", "cluster"), 16)
                },
            ),
        ),
        (
            "nci60",
            TWO,
            omics(
                "omics/nci60",
                "transporter.tsv.gz and compound.tsv.gz, and truth.tsv with the tissues",
                |files| {
                    omics_tables(files, &["transporter", "compound"], ("truth.tsv", "tissue"), usize::MAX)
                },
            ),
        ),
        (
            "nutrimouse-genotype",
            TWO,
            omics("omics/nutrimouse", NUTRIMOUSE, |files| {
                omics_tables(files, &["gene", "lipid"], ("truth.tsv", "genotype"), usize::MAX)
            }),
        ),
        (
            "nutrimouse-diet",
            TWO,
            omics("omics/nutrimouse", NUTRIMOUSE, |files| {
                omics_tables(files, &["gene", "lipid"], ("truth.tsv", "diet"), usize::MAX)
            }),
        ),
        (
            "acc",
            TWO,
            omics(
                "omics/acc",
                "RNASeq2GeneNorm, gistict, RPPAArray, Mutations and miRNASeqGene, each as .tsv.gz, and clinical.tsv with COC",
                |files| {
                    let views = ["RNASeq2GeneNorm", "gistict", "RPPAArray", "Mutations", "miRNASeqGene"];
                    omics_tables(files, &views, ("clinical.tsv", "COC"), 12)
                },
            ),
        ),
        ("scene15", HALF, folder("more/scene15", IMAGES, Scale::MinMaxUnit, images)),
        ("landuse", HALF, folder("more/landuse", IMAGES, Scale::MinMaxUnit, images)),
        (
            "fashion",
            TWO,
            Origin::Folder {
                folder: "fashion",
                system: Some("/usr/share/datasets/fashion-mnist"),
                expected: fashion::FILES,
                scale: Scale::MinMaxUnit,
                read: |files| fashion::some(files).map(|(views, classes)| (views, known(classes))),
            },
        ),
        (
            LARGE,
            THREE,
            Origin::Folder {
                folder: "fashion",
                system: Some("/usr/share/datasets/fashion-mnist"),
                expected: fashion::FILES,
                scale: Scale::MinMaxUnit,
                read: |files| fashion::all(files).map(|(views, classes)| (views, known(classes))),
            },
        ),
    ];
    all.extend(Family::ALL.map(|(name, family)| (name, TWO, Origin::Planted(family))));
    all
}

const IMAGES: &str = "view1.npy, view2.npy and view3.npy, and truth.tsv with the column label";

const NUTRIMOUSE: &str = "gene.tsv.gz and lipid.tsv.gz, and truth.tsv with genotype and diet";

/// The data set that runs only if it is named, because it takes long.
const LARGE: &str = "fashion-70000";

/// Whether a data set is selected, by its name or by the part of it before the first hyphen.
fn wanted(wishes: &[String], name: &str) -> bool {
    if name == LARGE {
        return wishes.iter().any(|wish| wish == LARGE);
    }
    let family = name.split('-').next();
    wishes.is_empty() || wishes.iter().any(|wish| wish == name || Some(wish.as_str()) == family)
}

/// Fails if a name is unknown.
pub fn check(wishes: &[String]) -> Result<()> {
    let names: Vec<&str> = all().into_iter().map(|(name, ..)| name).collect();
    let unknown = |wish: &&String| !names.iter().any(|name| wanted(std::slice::from_ref(wish), name));
    match wishes.iter().find(unknown) {
        None => Ok(()),
        Some(wish) => Err(Error::Usage(format!(
            "there is no data set {}; there are {}",
            quoted(wish),
            names.join(", ")
        ))),
    }
}

/// The selected data sets that are available; planted ones for each of `seeds` seeds.
pub fn load(wishes: &[String], data: Option<&Path>, seeds: u64, monitor: &dyn Monitor) -> Result<Vec<Set>> {
    let mut sets = Vec::new();
    for (name, rates, origin) in all().into_iter().filter(|(name, ..)| wanted(wishes, name)) {
        match origin.load(data, seeds)? {
            Some((scale, data, inputs)) => {
                let planted = matches!(origin, Origin::Planted(_));
                sets.push(Set { name, planted, rates, scale, data, inputs });
            }
            None => monitor.note(&format!("without {name}: {}", origin.absence())),
        }
    }
    if sets.is_empty() {
        let names = wishes.join(", ");
        return Err(Error::Usage(format!(
            "none of the data sets {names} is there; name the folder that has them with --data DIR"
        )));
    }
    Ok(sets)
}

impl Origin {
    /// The scaling, the data and the inputs; `None` if its folder is missing.
    fn load(&self, data: Option<&Path>, seeds: u64) -> Result<Option<(Scale, Vec<Dataset>, Value)>> {
        match self {
            Self::Paper(name) => {
                let there = data.is_some_and(|data| data.join(name.text()).is_dir());
                if !there && *name != Name::Digit {
                    return Ok(None);
                }
                let own = name.load(data)?;
                Ok(Some((own.scale, vec![own.data], json!(own.inputs))))
            }
            Self::Folder { folder, system, expected, scale, read } => {
                let own = data.map(|data| data.join(folder));
                let places = own.into_iter().chain(system.map(PathBuf::from));
                let Some(place) = places.into_iter().find(|place| place.is_dir()) else { return Ok(None) };
                let mut files = Files::new(folder, expected, place);
                let (views, classes) = read(&mut files)?;
                Ok(Some((*scale, vec![dataset(&files, views, &classes)?], json!(files.inputs))))
            }
            Self::Planted(family) => {
                let made = (0..seeds).map(|seed| family.make(seed)).collect::<Result<_>>()?;
                Ok(Some((Scale::MinMaxUnit, made, json!("made here"))))
            }
        }
    }

    /// Why the data set is not available.
    fn absence(&self) -> String {
        let folder = match self {
            Self::Paper(name) => name.text(),
            Self::Folder { folder, .. } => folder,
            Self::Planted(_) => "",
        };
        format!("--data names no folder that has {folder}")
    }
}

/// The number of clusters is the number of distinct classes.
fn dataset(files: &Files, views: Views<'static>, classes: &[Option<String>]) -> Result<Dataset> {
    let different: BTreeSet<&String> = classes.iter().flatten().collect();
    if classes.len() != views.instances() || different.is_empty() {
        let (folder, n) = (files.folder.display(), views.instances());
        let found = classes.iter().flatten().count();
        return Err(Error::Data(format!("{folder}: there are {n} instances but {found} classes")));
    }
    let number = |class: &Option<String>| different.iter().position(|known| Some(*known) == class.as_ref());
    let numbers = classes.iter().map(number).collect();
    Ok(Dataset { views, classes: numbers, clusters: different.len() })
}

/// Classes that are all known.
fn known(classes: Vec<usize>) -> Vec<Option<String>> {
    classes.into_iter().map(|class| Some(class.to_string())).collect()
}

/// Variables of one file as views.
fn variables(files: &mut Files, file: &str, views: &[(&str, &str)], classes: &str) -> Result<Read> {
    let mut tables = Vec::new();
    for (name, variable) in views {
        tables.push(((*name).to_owned(), files.table(file, Some(variable), false)?));
    }
    let (views, _) = daimc_io::assemble(tables, &Assembly::default())?;
    Ok((views, known(files.classes(file, classes)?)))
}

/// The counts themselves; the experiment of the paper uses their distances.
fn flowers(files: &mut Files) -> Result<Read> {
    let views = [("colour", "colour"), ("shape", "shape"), ("texture", "texture")];
    variables(files, "flowers17_bow.npz", &views, "labels")
}

fn newsgroups(files: &mut Files) -> Result<Read> {
    let views = [("first", "X{1}"), ("second", "X{2}"), ("third", "X{3}")];
    variables(files, "20newsgroups.mat", &views, "Y")
}

fn reuters(files: &mut Files) -> Result<Read> {
    let views = [
        ("english", "X{1}"),
        ("french", "X{2}"),
        ("german", "X{3}"),
        ("italian", "X{4}"),
        ("spanish", "X{5}"),
    ];
    variables(files, "Reuters-1200.mat", &views, "y")
}

/// An array per view, and the classes in the same order.
fn images(files: &mut Files) -> Result<Read> {
    let mut tables = Vec::new();
    for view in ["view1", "view2", "view3"] {
        tables.push((view.to_owned(), files.table(&format!("{view}.npy"), None, false)?));
    }
    let (views, _) = daimc_io::assemble(tables, &Assembly::default())?;
    let labels = daimc_io::read_labels(&files.path("truth.tsv")?, Some("label"), &Matching::default())?;
    files.note("truth.tsv", &labels.sha256);
    Ok((views, labels.labels))
}

/// A table per view and a table of classes. IDs are compared on their first `letters` characters; some files use '.' for '-'.
fn omics_tables(
    files: &mut Files,
    views: &[&str],
    (truth, column): (&str, &str),
    letters: usize,
) -> Result<Read> {
    let short = |id: &str| id.replace('-', ".").chars().take(letters).collect::<String>();
    let mut tables = Vec::new();
    for name in views {
        let mut table = files.table(&format!("{name}.tsv.gz"), None, false)?;
        table.ids = table.ids.map(|ids| ids.iter().map(|id| short(id)).collect());
        tables.push(((*name).to_owned(), table));
    }
    let (views, _) = daimc_io::assemble(tables, &Assembly::default())?;
    let labels = daimc_io::read_labels(&files.path(truth)?, Some(column), &Matching::default())?;
    files.note(truth, &labels.sha256);
    let class = |i: usize| {
        let id = views.ids().get(i);
        let place = labels.ids.iter().position(|other| short(other) == id)?;
        labels.labels[place].clone()
    };
    let classes = (0..views.instances()).map(class).collect();
    Ok((views, classes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_are_selected_by_name_or_by_family() {
        let wish = |name: &str| vec![name.to_owned()];
        assert!(wanted(&wish("planted"), "planted-few") && wanted(&wish("planted-few"), "planted-few"));
        assert!(wanted(&wish("nutrimouse"), "nutrimouse-diet") && wanted(&[], "digit"));
        assert!(!wanted(&wish("planted-few"), "planted-junk") && !wanted(&wish("dig"), "digit"));
        assert!(check(&wish("planted")).is_ok());
        let message = check(&wish("mnist")).unwrap_err().to_string();
        assert!(message.contains("'mnist'") && message.contains("fashion"), "{message}");
    }
}
