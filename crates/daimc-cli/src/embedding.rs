//! `--embedding`: the format of V.

use clap::ValueEnum;
use daimc::Fit;
use serde::{Deserialize, Serialize};

use crate::failure::Result;
use crate::folder::Folder;
use crate::results;
use crate::tables::Format;

/// The format of the embedding.
#[derive(ValueEnum, Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Embedding {
    /// Text if it is short enough to read, else an array.
    #[default]
    Auto,
    Tsv,
    Npy,
    Parquet,
    None,
}

/// Instances up to which [`Embedding::Auto`] is text.
const TEXT_MOST: usize = 100_000;

const TSV: &str = "embedding.tsv";
const NPY: &str = "embedding.npy";
const PARQUET: &str = "embedding.parquet";

impl Embedding {
    /// Writes V in this format, or by default in that of the other tables, and removes V in other formats from an earlier result.
    pub fn write(self, folder: &mut Folder, fitted: &Fit, tables: Format) -> Result<()> {
        let (ids, latent) = (&fitted.ids, &fitted.latent);
        let own = self.file(fitted.labels.len(), tables);
        match own {
            Some(TSV) => folder.write(TSV, |out| results::embedding(out, ids, latent))?,
            Some(PARQUET) => folder.write(PARQUET, |out| crate::tables::embedding(ids, latent).write(out))?,
            Some(name) => folder.write(name, |out| results::embedding_as_npy(out, latent))?,
            None => {}
        }
        for other in [TSV, NPY, PARQUET].into_iter().filter(|name| Some(*name) != own) {
            folder.leave_out(other)?;
        }
        Ok(())
    }

    /// The name of the file, if one is written.
    fn file(self, instances: usize, tables: Format) -> Option<&'static str> {
        match self {
            Self::Auto if tables == Format::Parquet => Some(PARQUET),
            Self::Auto if instances <= TEXT_MOST => Some(TSV),
            Self::Auto | Self::Npy => Some(NPY),
            Self::Tsv => Some(TSV),
            Self::Parquet => Some(PARQUET),
            Self::None => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_becomes_an_array_beyond_a_hundred_thousand_instances() {
        let file = |embedding: Embedding, instances: usize| embedding.file(instances, Format::Tsv);
        assert_eq!(file(Embedding::Auto, 100_000), Some("embedding.tsv"));
        assert_eq!(file(Embedding::Auto, 100_001), Some("embedding.npy"));
        assert_eq!(file(Embedding::Tsv, 100_001), Some("embedding.tsv"));
        assert_eq!(file(Embedding::Npy, 1), Some("embedding.npy"));
        assert_eq!(file(Embedding::None, 1), None);
    }

    #[test]
    fn it_is_as_the_other_tables_unless_something_else_is_asked_for() {
        assert_eq!(Embedding::Auto.file(1, Format::Parquet), Some("embedding.parquet"));
        assert_eq!(Embedding::Tsv.file(1, Format::Parquet), Some("embedding.tsv"));
        assert_eq!(Embedding::Parquet.file(1, Format::Tsv), Some("embedding.parquet"));
    }
}
