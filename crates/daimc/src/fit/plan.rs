//! The uses of neighbourhoods in a fit, decided from the shape of the data before any search.

use super::search::accelerated;
use crate::estimate::{Effort, Shape, neighbours_bytes};
use crate::options::{Neighbours, Options};
use daimc_core::sweep::Sweep;
use daimc_core::text;
use daimc_core::watch::Watch;
use daimc_core::{Error, Result, Schema, ViewOf};
use daimc_graph::neighbours::{DIRECTIONS, Nearest, Shortened, gathering};

/// The planned uses of neighbourhoods.
#[derive(Clone, Debug)]
pub(crate) struct NeighbourPlan {
    /// `Auto` stands for all, `Refine` and `Embed` for one in addition to V alone.
    pub ways: Neighbours,
    /// Whether all pairs may be compared if descent finds too few neighbours.
    pub thorough: bool,
    /// Why other uses were excluded.
    pub refusal: Option<String>,
    /// The neighbours in each view that an accelerator has found; empty without an accelerator.
    pub given: Vec<Option<Nearest>>,
}

impl NeighbourPlan {
    pub fn new(schema: &Schema, options: &Options) -> Self {
        Self::where_found(schema, options, |_| false)
    }

    /// The plan if an accelerator finds the neighbours in some of the views.
    fn where_found(schema: &Schema, options: &Options, found: impl Fn(usize) -> bool) -> Self {
        let by = |ways, thorough, refusal| Self { ways, thorough, refusal, given: Vec::new() };
        if options.neighbours == Neighbours::Off {
            return by(Neighbours::Off, false, None);
        }
        if options.clusters < 2 || options.clusters == schema.instances() {
            return Self::none("the clustering is trivial with one cluster, or with one for each instance");
        }
        if options.neighbours != Neighbours::Auto {
            return by(options.neighbours, true, None);
        }
        if options.latent != options.clusters {
            return Self::none("the latent dimension differs from the number of clusters");
        }
        let effort = Effort::new(schema, options.clusters);
        let budget = options.neighbours_budget.unwrap_or_else(|| effort.budget());
        let effort = effort.with_found(schema, found);
        let ways = effort.affords(budget);
        let beyond = |seconds| {
            let (time, budget) = (text::duration(seconds), text::duration(budget));
            format!("take {time} of processor time, more than the budget of {budget}")
        };
        let refusal = match ways {
            Neighbours::Off => Some(format!("neighbourhoods would {}", beyond(effort.refine))),
            Neighbours::Refine => Some(format!("embed was left out: it would {}", beyond(effort.auto))),
            _ => None,
        };
        by(ways, effort.of(ways) + effort.all_pairs <= budget, refusal)
    }

    fn none(reason: impl Into<String>) -> Self {
        let refusal = Some(reason.into());
        Self { ways: Neighbours::Off, thorough: false, refusal, given: Vec::new() }
    }

    /// The plan for rows of this process, if neighbourhoods may use `memory` bytes in addition to the rows and the fit. If the plan
    /// depends on whether an accelerator finds the neighbours, it searches first, except in views where comparing all pairs
    /// takes it longer than a descent on the CPU.
    ///
    /// # Errors
    /// When memory does not suffice for the use that the options name, after a request to stop, and when an accelerator fails.
    pub fn alongside(
        sweep: &Sweep<'_>,
        options: &Options,
        memory: Option<u64>,
        watch: &Watch,
    ) -> Result<Self> {
        let schema = sweep.scan.schema();
        let Some(resident) = sweep.resident() else {
            return Self::here(schema, options, memory, |_| false);
        };
        let pays = |view: usize| Shape::from(schema.view(view)).saved() > 0.0;
        let expected = Self::here(schema, options, memory, pays)?;
        if expected.ways == Neighbours::Off {
            return Ok(expected);
        }
        let given = accelerated(sweep, resident, pays, options.seed, watch)?;
        let plan = Self::here(schema, options, memory, |view| given[view].is_some())?;
        Ok(Self { given, ..plan })
    }

    fn here(
        schema: &Schema,
        options: &Options,
        memory: Option<u64>,
        found: impl Fn(usize) -> bool,
    ) -> Result<Self> {
        let shapes: Vec<Shape> = schema.views().map(Shape::from).collect();
        let needed = |ways| neighbours_bytes(ways, schema.instances(), &shapes, options.clusters);
        Self::where_found(schema, options, found).limited(memory, needed, "", options)
    }

    /// The same if rows are [gathered](Shortened) first, by a process that may use `memory` bytes for it.
    ///
    /// # Errors
    /// When memory does not suffice for the use that the options name.
    pub fn within(self, memory: Option<u64>, schema: &Schema, options: &Options) -> Result<Self> {
        let needed = |ways| bytes(ways, schema, options.clusters);
        self.limited(memory, needed, " in the driving process", options)
    }

    /// All, the first, or none of the planned uses, as memory permits.
    fn limited(
        self,
        memory: Option<u64>,
        needed: impl Fn(Neighbours) -> f64,
        place: &str,
        options: &Options,
    ) -> Result<Self> {
        let Some(memory) = memory.map(|bytes| bytes as f64).filter(|_| self.ways != Neighbours::Off) else {
            return Ok(self);
        };
        let all = needed(self.ways);
        if all <= memory {
            return Ok(self);
        }
        let taken = |needed: f64| {
            let (needed, memory) = (text::bytes(needed), text::bytes(memory));
            format!("take {needed} of memory{place}, more than the available {memory}")
        };
        if options.neighbours != Neighbours::Auto {
            let reason = format!("it would {}; use `auto` or `off`", taken(all));
            let value = options.neighbours.to_string();
            return Err(Error::Option { option: "neighbours", value, reason });
        }
        if self.ways == Neighbours::Auto && needed(Neighbours::Refine) <= memory {
            let refusal = Some(format!("embed was left out: it would {}", taken(all)));
            return Ok(Self { ways: Neighbours::Refine, refusal, ..self });
        }
        Ok(Self::none(format!("neighbourhoods would {}", taken(all))))
    }
}

/// The shape of the rows of a view as they are gathered.
fn gathered(view: ViewOf<'_>) -> Shape {
    let whole = Shape::from(view);
    if !Shortened::applies(view) {
        return whole;
    }
    Shape { features: DIRECTIONS, entries: whole.present * DIRECTIONS, value: 4, sparse: false, ..whole }
}

/// Bytes needed to gather rows and V and to search for neighbours among them.
fn bytes(ways: Neighbours, schema: &Schema, clusters: usize) -> f64 {
    let shapes: Vec<Shape> = schema.views().map(gathered).collect();
    // V, and a copy of it that is clustered.
    let latent = 16.0 * schema.instances() as f64 * clusters as f64;
    let rows: f64 = shapes.iter().map(Shape::bytes).sum();
    rows + neighbours_bytes(ways, schema.instances(), &shapes, clusters) + latent + gathering(schema)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Daimc;
    use daimc_core::{Ids, Layout, ViewSchema};

    fn schema(instances: usize, features: usize) -> Schema {
        let view = ViewSchema::new("x", features, Layout::DenseF32);
        Schema::new(Ids::Numbers(instances), vec![view]).unwrap()
    }

    #[test]
    fn uses_that_exceed_the_memory_are_left_out_with_a_reason() {
        let (schema, fit) = (schema(100_000, 2000), Daimc::new(10));
        let plan = || NeighbourPlan::new(&schema, fit.options());
        let unlimited = plan().within(None, &schema, fit.options()).unwrap();
        assert_eq!(unlimited.ways, Neighbours::Auto);
        assert_eq!(plan().within(Some(8 << 30), &schema, fit.options()).unwrap().ways, Neighbours::Auto);
        let little = plan().within(Some(50_000_000), &schema, fit.options()).unwrap();
        let reason = little.refusal.unwrap();
        assert_eq!(little.ways, Neighbours::Off);
        assert!(
            reason.starts_with("neighbourhoods would take ") && reason.ends_with("available 50 MB"),
            "{reason}"
        );
        // With many views and clusters, embed alone may exceed the memory.
        let views = (0..6).map(|view| ViewSchema::new(view.to_string(), 100, Layout::DenseF32));
        let six = Schema::new(Ids::Numbers(100_000), views.collect()).unwrap();
        let many = Daimc::new(60).neighbours_budget(1e9);
        let needed = |ways| bytes(ways, &six, 60);
        assert!(needed(Neighbours::Refine) < needed(Neighbours::Auto));
        let between = f64::midpoint(needed(Neighbours::Refine), needed(Neighbours::Auto)) as u64;
        let refined =
            NeighbourPlan::new(&six, many.options()).within(Some(between), &six, many.options()).unwrap();
        assert_eq!(refined.ways, Neighbours::Refine);
        assert!(refined.refusal.unwrap().starts_with("embed was left out"));
        // Rows that are in memory already are not counted.
        let ways = |bytes| NeighbourPlan::here(&schema, fit.options(), Some(bytes), |_| false).unwrap().ways;
        assert_eq!((ways(800_000_000), ways(1_000_000)), (Neighbours::Auto, Neighbours::Off));
        let requested = Daimc::new(10).neighbours(Neighbours::Refine);
        let plan = NeighbourPlan::new(&schema, requested.options());
        let error = plan.within(Some(50_000_000), &schema, requested.options()).unwrap_err().to_string();
        assert!(error.contains("neighbours = refine") && error.contains("available 50 MB"), "{error}");
    }

    #[test]
    fn an_accelerator_affords_more_where_it_compares_every_pair_sooner() {
        let fit = Daimc::new(10);
        let ways =
            |schema: &Schema, found: bool| NeighbourPlan::where_found(schema, fit.options(), |_| found).ways;
        let narrow = schema(1_000_000, 50);
        assert_eq!((ways(&narrow, false), ways(&narrow, true)), (Neighbours::Off, Neighbours::Refine));
        let saved = |schema: &Schema| Shape::from(schema.view(0)).saved();
        assert!(saved(&narrow) > 0.0 && saved(&schema(20_000, 2000)) > 0.0);
        assert!(saved(&schema(10_000_000, 2000)) < 0.0);
    }

    #[test]
    fn wide_views_take_no_more_memory_than_their_projections() {
        let of = |features| bytes(Neighbours::Refine, &schema(1_000_000, features), 10);
        assert!(of(100) < of(128) && of(256) < 1.2 * of(128), "{} {} {}", of(100), of(128), of(256));
        assert!((of(2000) / of(1000) - 1.0).abs() < 0.1, "{} {}", of(1000), of(2000));
    }
}
