//! `--annotate`: a copy of the annotated input file with the results added.

use std::io;
use std::path::{Path, PathBuf};

use daimc::Fit;
use daimc_io::{Annotation, Matching};

use crate::data::Data;
use crate::failure::{Failure, Result};
use crate::folder::Folder;

/// The name of the column of clusters.
const KEY: &str = "daimc";

/// The annotated file that is copied.
pub struct Annotated {
    source: PathBuf,
    matching: Matching,
    name: &'static str,
}

impl Annotated {
    /// The annotated file, if all views come from one.
    pub fn of(data: &Data) -> Result<Self> {
        let mut views = data.view_paths()?;
        views.dedup();
        let [source] = &views[..] else {
            let reason = "all views must be of one .h5ad or .h5mu file, to which the results can be added";
            return Err(Failure::Usage(format!("--annotate: {reason}")));
        };
        let ending = source.extension().unwrap_or_default().to_string_lossy().to_lowercase();
        let name = match ending.as_str() {
            "h5ad" => "annotated.h5ad",
            "h5mu" => "annotated.h5mu",
            _ => {
                let reason = "is no .h5ad or .h5mu file, to which the results could be added";
                return Err(Failure::Usage(format!("--annotate: {} {reason}", source.display())));
            }
        };
        Ok(Self { source: source.clone(), matching: data.ids.matching()?, name })
    }

    /// Writes the copy; `scratch` is the folder for its temporary file.
    pub fn write(&self, folder: &mut Folder, fitted: &Fit, scratch: &Path) -> Result<()> {
        let annotation = Annotation {
            key: KEY,
            ids: &fitted.ids,
            labels: &fitted.labels,
            clusters: fitted.model.options.clusters,
            confidence: &fitted.confidence,
            latent: &fitted.latent,
            map: fitted.map.as_ref(),
        };
        let mut failed = None;
        let written = folder.write(self.name, |out| {
            daimc_io::annotate(&self.source, &annotation, &self.matching, scratch, out).map_err(|error| {
                let text = io::Error::other(error.to_string());
                failed = Some(error);
                text
            })
        });
        match failed {
            Some(error) => Err(error.into()),
            None => Ok(written?),
        }
    }
}
