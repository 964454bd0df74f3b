//! In which format a fit writes V.

use clap::ValueEnum;
use daimc::Fit;
use serde::{Deserialize, Serialize};

use crate::failure::Result;
use crate::folder::Folder;
use crate::results;

/// The format of the embedding.
#[derive(ValueEnum, Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Embedding {
    /// Text as long as people may want to look at it, else an array.
    #[default]
    Auto,
    Tsv,
    Npy,
    None,
}

/// Instances up to which [`Embedding::Auto`] is text.
const TEXT_MOST: usize = 100_000;

const TSV: &str = "embedding.tsv";
const NPY: &str = "embedding.npy";

impl Embedding {
    /// Writes V in this format; what an earlier result has in another one does not stay.
    pub fn write(self, folder: &mut Folder, fitted: &Fit) -> Result<()> {
        let own = self.file(fitted.labels.len());
        match own {
            Some(TSV) => folder.write(TSV, |out| results::embedding(out, &fitted.ids, &fitted.latent))?,
            Some(name) => folder.write(name, |out| results::embedding_as_npy(out, &fitted.latent))?,
            None => {}
        }
        for other in [TSV, NPY].into_iter().filter(|name| Some(*name) != own) {
            folder.leave_out(other)?;
        }
        Ok(())
    }

    /// The file, if there is to be one.
    fn file(self, instances: usize) -> Option<&'static str> {
        match self {
            Self::Auto if instances <= TEXT_MOST => Some(TSV),
            Self::Auto | Self::Npy => Some(NPY),
            Self::Tsv => Some(TSV),
            Self::None => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_becomes_an_array_beyond_a_hundred_thousand_instances() {
        assert_eq!(Embedding::Auto.file(100_000), Some("embedding.tsv"));
        assert_eq!(Embedding::Auto.file(100_001), Some("embedding.npy"));
        assert_eq!(Embedding::Tsv.file(100_001), Some("embedding.tsv"));
        assert_eq!(Embedding::Npy.file(1), Some("embedding.npy"));
        assert_eq!(Embedding::None.file(1), None);
    }
}
