//! DAIMC with one part switched at a time.

use std::ops::{ControlFlow, Range};

use crate::methods::{Clustering, Concatenation, Method};
use daimc::source::{Buffer, MISSING, ReadError};
use daimc::{
    Daimc, Error, Ids, Initialisation, Neighbours, Preset, Scale, Schema, Solver, Source, View, ViewSchema,
    Views,
};

use crate::harness::contender::Contender;

/// The preset itself, and variants with one part switched off or to that of the other preset.
pub fn variants(method: &'static str) -> Vec<Contender> {
    let paper = method == "daimc-paper";
    let preset = if paper { Preset::Paper } else { Preset::Default };
    let base = || Daimc::new(1).preset(preset).neighbours(Neighbours::Off);
    let (start, start_name) = if paper {
        (Initialisation::Aligned, "matched start")
    } else {
        (Initialisation::Paper, "start as published")
    };
    // Each solver with the number of passes of its own preset.
    let (solver, passes, solver_name) = if paper {
        (Solver::Coordinate, 2, "V by coordinate descent")
    } else {
        (Solver::Multiplicative, 10, "V by Eq. 19")
    };
    let (scale, scale_name) =
        if paper { (Scale::Auto, "scaling chosen per view") } else { (Scale::Unit, "rows of length 1") };
    let weight = if paper { "views of equal weight" } else { "views as heavy as they come" };
    let fits = [
        (AS_IT_IS, base()),
        ("no alignment of bases", base().alpha(0.0)),
        (start_name, base().initialisation(start)),
        (solver_name, base().solver(solver).passes(passes)),
        (scale_name, base().scale(scale)),
        ("features to 0 … 1, rows of length 1", base().scale(Scale::MinMaxUnit)),
        ("no scaling", base().scale(Scale::None)),
        (weight, base().equal_weight(paper)),
        ("clusters cut from the graph of neighbours", base().neighbours(Neighbours::Refine)),
        ("views by the eigenvectors of their graphs", base().neighbours(Neighbours::Embed)),
        ("both, as by default", base().neighbours(Neighbours::Auto)),
        ("ten runs combined", base().runs(10)),
    ];
    let mut variants: Vec<Contender> =
        fits.into_iter().map(|(name, fit)| Contender::new(method, name, fit)).collect();
    variants.insert(2, Contender::new(method, "no alignment of instances", Separate { fit: base() }));
    variants
}

/// The setting of the preset itself.
pub const AS_IT_IS: &str = "as it is";

/// DAIMC without its first alignment: each view has its own V, fitted to its present instances. These are concatenated, with
/// rows of length 1 and missing rows as the mean, and clustered by k-means.
struct Separate {
    fit: Daimc,
}

impl Method for Separate {
    fn name(&self) -> String {
        "separate".into()
    }

    fn fit(
        &self,
        source: &dyn Source,
        clusters: usize,
        seed: u64,
        each: &mut (dyn FnMut(usize, f64) -> ControlFlow<()> + Send),
    ) -> Result<Clustering, Error> {
        let mut latents = Vec::with_capacity(source.views());
        for view in 0..source.views() {
            let alone = Alone::new(source, view)?;
            let found = Method::fit(&self.fit, &alone, clusters, seed, each)?.embedding;
            let mut values = vec![0.0; source.instances() * clusters];
            let mut present = vec![false; source.instances()];
            for (row, &instance) in found.iter_rows().zip(&alone.instances) {
                values[instance * clusters..][..clusters].copy_from_slice(row);
                present[instance] = true;
            }
            latents.push(View::dense(source.name(view), clusters, values)?.mask(&present)?);
        }
        Concatenation { scale: Scale::Unit }
            .fit(&Views::new(latents)?, clusters, seed, &mut |_, _| ControlFlow::Continue(()))
    }
}

/// One view of a source, restricted to its present instances.
struct Alone<'a> {
    source: &'a dyn Source,
    view: usize,
    /// Their indices in the source.
    instances: Vec<usize>,
    schema: Schema,
}

impl<'a> Alone<'a> {
    fn new(source: &'a dyn Source, view: usize) -> Result<Self, Error> {
        let shown = |&instance: &usize| source.is_present(view, instance);
        let instances: Vec<usize> = (0..source.instances()).filter(shown).collect();
        let ids = Ids::Names(instances.iter().map(|&instance| source.id(instance)).collect());
        let own = source.schema().view(view);
        let own = ViewSchema::new(own.name(), own.features(), own.layout());
        Ok(Self { source, view, instances, schema: Schema::new(ids, vec![own])? })
    }
}

impl Source for Alone<'_> {
    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn read(&self, _: usize, instances: Range<usize>, buffer: &mut Buffer) -> Result<(), ReadError> {
        let numbers = &self.instances[instances];
        let (Some(first), Some(last)) = (numbers.first(), numbers.last()) else {
            buffer.index.clear();
            return Ok(());
        };
        self.source.read(self.view, *first..last + 1, buffer)?;
        buffer.index.retain(|&row| row != MISSING);
        Ok(())
    }
}
