//! Neighbourhoods among rows that others hold: what says who is near whom is brought here, and the clusters go back.

use super::Rows;
use crate::consolidate::settled;
use crate::descent::Descent;
use crate::distributed::{Clusters, Gathered, Request, fetch_latent};
use crate::fit::Daimc;
use crate::fit::explore::{self, Decision, Found};
use crate::fit::plan::Plan;
use crate::neighbours::{References, Shortened};
use crate::numbering;
use crate::options::{Neighbours, Options};
use crate::scan::Scan;
use crate::sweep::Sweep;
use crate::views::index;
use crate::watch::Watch;
use crate::{Error, Result, Stop};

/// Clusters of all instances, numbered by size.
pub(super) struct Adopted {
    labels: Vec<usize>,
    confidence: Vec<f64>,
    /// What new instances are compared with, if there was time for it.
    pub references: Option<References>,
}

impl Daimc {
    /// The clusters that neighbourhoods and V give together, if they are to be used, and the decision.
    pub(super) fn explored(
        &self,
        rows: &Rows<'_>,
        plan: Plan,
        stop: &Stop,
    ) -> Result<(Option<Adopted>, Decision)> {
        if plan.ways == Neighbours::Off {
            return Ok((None, Decision::without(plan.refusal)));
        }
        match stop.check().and_then(|()| self.gathered(rows, plan, &self.watch.within(stop))) {
            Err(error @ Error::Interrupted) => Ok((None, Decision::without(Some(error.to_string())))),
            found => found,
        }
    }

    fn gathered(&self, rows: &Rows<'_>, plan: Plan, watch: &Watch) -> Result<(Option<Adopted>, Decision)> {
        let Options { latent, clusters, seed, .. } = self.options;
        let (holders, schema) = (rows.holders, rows.scan.schema());
        let shorten =
            |(view, lens)| -> Result<Shortened> { Shortened::new(&rows.scan, view, lens, seed, watch) };
        let shortened = rows.lenses.iter().enumerate().map(shorten).collect::<Result<Vec<_>>>()?;
        let gathered = Gathered::views(holders, schema, &shortened, &watch.stop)?;
        let v = fetch_latent(holders, rows.latent.schema(), &watch.stop)?;
        let scan = Scan::new(&gathered, &watch.stop);
        let views = shortened.iter().zip(&rows.lenses).enumerate();
        let lenses = views.map(|(view, (shortened, whole))| shortened.lens(&scan, view, whole));
        let lenses = lenses.collect::<Result<Vec<_>>>()?;
        let sweep = Sweep::new(scan, lenses, latent);
        // Nobody lays out a map of instances that are elsewhere.
        let options = Options { map: false, ..self.options.clone() };
        let (found, decision) = explore::clusters(&sweep, plan, &options, &v, watch)?;
        let Some(Found { mut labels, confidence, directions, .. }) = found else {
            return Ok((None, decision));
        };
        numbering::by_size(&mut labels, clusters);
        let made = References::new(&sweep.scan, &sweep.lenses, directions, &labels, clusters, seed, watch);
        let references = match made {
            Err(Error::Interrupted) => None,
            made => {
                let mut made = made?;
                for (view, (shortened, whole)) in shortened.iter().zip(&rows.lenses).enumerate() {
                    if let Some(along) = &shortened.directions {
                        made.lengthen(view, along, whole);
                    }
                }
                Some(made)
            }
        };
        Ok((Some(Adopted { labels, confidence, references }), decision))
    }
}

impl Rows<'_> {
    /// Tells everybody the clusters, and fits the bases to them: one iteration, unless there is no time for it.
    pub(super) fn adopt(&self, adopted: &Adopted, options: &Options, stop: &Stop) -> Result<Option<Descent>> {
        let labels = adopted.labels.iter().map(|&label| index(label)).collect();
        self.holders.tell(Request::Adopt { labels, confidence: adopted.confidence.clone() })?;
        if stop.is_set() {
            return Ok(None);
        }
        let mut sizes = vec![0; options.clusters];
        adopted.labels.iter().for_each(|&label| sizes[label] += 1);
        let clusters = Clusters::Told(options.clusters);
        let statistics = self.holders.ask(Request::Restart { clusters, sizes })?.try_into()?;
        // V stands for the clusters now, so that it has to be made again from the bases.
        let to_the_end = Stop::new();
        let mut descent = settled(&mut self.held(options), options, self.squares(), statistics, &to_the_end)?;
        self.holders.tell(Request::Rescale(descent.take_scale()))?;
        Ok(Some(descent))
    }
}
