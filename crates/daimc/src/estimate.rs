//! Estimates of the memory and time of a fit before it starts, from the shape of the data alone.
//!
//! Each stage has a count of floating-point operations by kind. A benchmark of a few milliseconds converts them into seconds. The
//! number of iterations is an empirical average, so that the time is right within a factor of about two. Memory is the maximum
//! over all stages.

mod distributed;

use std::time::Instant;

use crate::options::{Neighbours, Options, Preset};
use daimc_core::kernel::dense;
use daimc_core::kmeans::{FEW, sample_size, starts};
use daimc_core::{Schema, ViewOf};
use daimc_graph::neighbours::all_pairs;

pub use distributed::Distributed;

/// The shape of a view.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Instances with a row in the view.
    pub present: usize,
    /// Features.
    pub features: usize,
    /// Stored values.
    pub entries: usize,
    /// Bytes of a value: 4 or 8.
    pub value: usize,
    /// Whether only nonzero values are stored.
    pub sparse: bool,
}

/// Memory and time of some work.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cost {
    /// Memory in bytes, in addition to the data.
    pub bytes: f64,
    /// Time in seconds on an otherwise idle machine.
    pub seconds: f64,
}

/// The cost of a fit with the default options.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Estimate {
    /// Bytes of the data in memory.
    pub data: f64,
    /// A fit without neighbourhoods.
    pub fit: Cost,
    /// The additional cost of neighbourhoods: for the use in `used`, or for [`Neighbours::Refine`] if they are not used.
    pub neighbours: Cost,
    /// The use that [`Neighbours::Auto`] chooses within its budget.
    pub used: Neighbours,
}

/// The processor time of a fit, in seconds of one core that does 20 Gflop/s. It follows from the shape of the data alone, so that
/// decisions based on it are the same on every machine and for any number of threads.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Effort {
    /// Without neighbourhoods.
    pub fit: f64,
    /// Additional time of [`Neighbours::Refine`].
    pub refine: f64,
    /// Additional time of all routes of [`Neighbours::Auto`].
    pub auto: f64,
    /// The time of the neighbour search, which is part of both.
    pub search: f64,
    /// Additional time of comparing every pair, if another search finds too few neighbours.
    pub all_pairs: f64,
}

/// Operations per second of an accelerator that compares every pair of rows.
const ACCELERATED: f64 = 1e14;

/// Operations per second of a core.
const NOMINAL: f64 = 2e10;

/// The budget of neighbourhoods: a multiple of the fit without them, and a minimum in seconds.
const TIMES: f64 = 10.0;
const AT_LEAST: f64 = 60.0;

impl Effort {
    /// The processor time of a fit with this number of clusters.
    #[must_use]
    pub fn new(schema: &Schema, clusters: usize) -> Self {
        let shapes: Vec<Shape> = schema.views().map(Shape::from).collect();
        Costs::new(schema.instances(), &shapes, clusters, 1).effort()
    }

    /// The same if an accelerator finds the neighbours in some of the views. Its seconds count as those of a core.
    pub(crate) fn with_found(mut self, schema: &Schema, found: impl Fn(usize) -> bool) -> Self {
        for (_, view) in schema.views().enumerate().filter(|(view, _)| found(*view)) {
            let shape = Shape::from(view);
            let saved = shape.saved();
            self.refine -= saved;
            self.auto -= saved;
            self.search -= saved;
            self.all_pairs -= shape.all_pairs() / NOMINAL;
        }
        self
    }

    /// The processor time that neighbourhoods may take by default.
    #[must_use]
    pub fn budget(&self) -> f64 {
        AT_LEAST.max(TIMES * self.fit)
    }

    /// The additional processor time of this use of neighbourhoods.
    pub(crate) fn of(&self, neighbours: Neighbours) -> f64 {
        match neighbours {
            Neighbours::Off => 0.0,
            Neighbours::Auto => self.auto,
            Neighbours::Refine | Neighbours::Embed => self.refine,
        }
    }

    /// The use that [`Neighbours::Auto`] chooses within this processor time: all routes, the first of them, or none.
    #[must_use]
    pub fn affords(&self, budget: f64) -> Neighbours {
        match () {
            () if self.auto <= budget => Neighbours::Auto,
            () if self.refine <= budget => Neighbours::Refine,
            () => Neighbours::Off,
        }
    }
}

impl From<ViewOf<'_>> for Shape {
    fn from(view: ViewOf<'_>) -> Self {
        let (sparse, bytes) = (!view.layout().is_dense(), view.layout().bytes());
        // A sparse value is stored with its column.
        let value = if sparse { bytes - 4 } else { bytes };
        Self { present: view.present(), features: view.features(), entries: view.entries(), value, sparse }
    }
}

/// Iterations of a fit and of one start of k-means in a view, an empirical average.
const ITERATIONS: f64 = 25.0;
const LLOYD: f64 = 15.0;

/// Passes over a row until its V is optimal, per cluster; at most the limit.
const SOLVE: f64 = 6.0;
const MOST_SOLVE: f64 = 1000.0;

/// The factor by which over-relaxation reduces them, with many clusters.
const RELAXED: f64 = 3.0;

/// Clusterings of V that are compared after the iterations, as a share of the starts.
const CANDIDATES: f64 = 0.8;

/// Links of an instance in the graph of a view, and products with a graph until its eigenvectors converge.
const LINKS: f64 = 16.0;
const PRODUCTS: f64 = 100.0;

/// Directions used to search for neighbours among many instances, and bytes per instance during the search.
const FOLLOWED: f64 = 128.0;
const LISTED: f64 = 800.0;

/// Dimensions of the discriminants of the views, and the passes over the data that they need.
const DIMENSIONS: f64 = 64.0;
const ASKED: f64 = 7.0;

/// Passes over d × K numbers in the U and B steps of one iteration and in one iteration of k-means; passes over d × dimensions
/// numbers when directions are computed.
const SOLVE_PASSES: f64 = 40.0;
const LLOYD_PASSES: f64 = 4.0;
const SPACE_PASSES: f64 = 30.0;

/// Operations of a dense product in single precision, of many vectors with rows in the cache, that take as long as one operation
/// of another kind: of a distance in descent, of a sweep, of a sparse product (more if features exceed the cache), of small
/// matrices, of the V step, of distances between rows of V, of a product with a graph, and of a pass over numbers.
const FOLLOW: f64 = 3.0;
const SWEEP: f64 = 2.0;
const SPARSE: f64 = 5.0;
const CACHED: f64 = 2e4;
const SMALL: f64 = 4.0;
const STEP: f64 = 3.0;
const SHORT: f64 = 5.0;
const GRAPH: f64 = 10.0;
const PASS: f64 = 100.0;

/// Instances that are clustered to choose a scaling, and how many of them for each cluster.
const COMPARED: usize = 1000;
const COMPARED_OF_CLUSTER: usize = 20;

/// Scalings that are compared, and the length of a fit for it relative to a whole one.
const SCALINGS: f64 = 3.0;
const SHORTENED: f64 = 0.5;

/// The program itself.
const PROGRAM: f64 = 1e7;

impl Estimate {
    /// The cost of a default fit with this number of clusters to views of these shapes on this number of threads.
    #[must_use]
    pub fn new(instances: usize, views: &[Shape], clusters: usize, threads: usize) -> Self {
        let plan = Costs::new(instances, views, clusters, threads);
        let effort = plan.effort();
        let used = effort.affords(effort.budget());
        let pace = NOMINAL / (threads as f64 * rate());
        let neighbours = if used == Neighbours::Auto {
            Cost { bytes: plan.auto.bytes, seconds: pace * effort.auto }
        } else {
            Cost { bytes: plan.refine.bytes, seconds: pace * effort.refine }
        };
        let data = views.iter().map(Shape::bytes).sum::<f64>() + PROGRAM;
        let choice = choice(instances, views, clusters, threads);
        let seconds = pace * (effort.fit + choice.seconds / NOMINAL);
        let fit = Cost { bytes: plan.fit.bytes.max(choice.bytes), seconds };
        Self { data, fit, neighbours, used }
    }
}

/// The number of instances that are clustered to choose a scaling, if there are as many.
pub(crate) fn compared(clusters: usize) -> usize {
    COMPARED.max(COMPARED_OF_CLUSTER * clusters)
}

/// The choice of a scaling: fits to a sample, with neighbourhoods but without the fit to eigenvectors.
fn choice(instances: usize, views: &[Shape], clusters: usize, threads: usize) -> Cost {
    let sample = compared(clusters).min(instances);
    let of = |count: usize| (count as f64 * sample as f64 / instances.max(1) as f64).ceil() as usize;
    let views: Vec<Shape> = views
        .iter()
        .map(|view| Shape { present: of(view.present), entries: of(view.entries), ..*view })
        .collect();
    let Costs { fit, refine, .. } = Costs::new(sample, &views, clusters, threads);
    let rows: f64 = views.iter().map(Shape::bytes).sum();
    Cost {
        bytes: rows + fit.bytes.max(refine.bytes),
        seconds: SCALINGS * (fit.seconds * SHORTENED + refine.seconds),
    }
}

/// Bytes that this use of neighbourhoods needs in addition to the rows.
pub(crate) fn neighbours_bytes(used: Neighbours, instances: usize, views: &[Shape], clusters: usize) -> f64 {
    let plan = Costs::new(instances, views, clusters, rayon::current_num_threads());
    let own = if used == Neighbours::Refine { plan.refine } else { plan.auto };
    own.bytes
}

/// The cost of each part, with operations instead of seconds.
struct Costs {
    fit: Cost,
    refine: Cost,
    auto: Cost,
    search: f64,
    all_pairs: f64,
}

impl Costs {
    fn new(instances: usize, views: &[Shape], clusters: usize, threads: usize) -> Self {
        let work = Work::new(instances, clusters, threads);
        let Options { passes, .. } = Options::new(clusters, Preset::Default);
        let fit = work.fit(views, passes as f64);
        // The eigenvectors of each view's graph are views of as many features as there are clusters.
        let embedded: Vec<Shape> = views
            .iter()
            .map(|view| Shape {
                features: clusters,
                entries: view.present * clusters,
                value: 8,
                sparse: false,
                ..*view
            })
            .collect();
        let again = work.fit(&embedded, passes as f64);
        let (search, cut) = (search(views), work.cut(views));
        let rows: f64 = embedded.iter().map(Shape::bytes).sum();
        let lists = work.lists(views);
        // The fit does not return all of its memory before.
        let refine =
            Cost { bytes: search.bytes.max(cut.bytes) + lists, seconds: search.seconds + cut.seconds };
        let auto = Cost {
            bytes: search.bytes.max(cut.bytes).max(rows + again.bytes) + lists,
            seconds: refine.seconds + cut.seconds + work.graphs(views) + again.seconds,
        };
        let all_pairs = views.iter().map(Shape::all_pairs).sum();
        Self { fit, refine, auto, search: search.seconds, all_pairs }
    }

    fn effort(&self) -> Effort {
        let [fit, refine, auto] = [self.fit, self.refine, self.auto].map(|cost| cost.seconds / NOMINAL);
        Effort { fit, refine, auto, search: self.search / NOMINAL, all_pairs: self.all_pairs / NOMINAL }
    }
}

impl Shape {
    /// Bytes of its values.
    pub(crate) fn bytes(&self) -> f64 {
        let index = if self.sparse { 4 } else { 0 };
        (self.entries * (self.value + index)) as f64
    }

    /// Operations to find the leading directions of its rows.
    fn directions(&self) -> f64 {
        let d = self.features as f64;
        let width = DIMENSIONS.min(d);
        if d > DIMENSIONS { SMALL * 8.0 * d * width * width + SPACE_PASSES * PASS * d * width } else { 0.0 }
    }

    /// Seconds of a core saved by an accelerator, which compares every pair.
    pub(crate) fn saved(&self) -> f64 {
        let pairs = (self.present as f64).powi(2) * self.features as f64;
        search(&[*self]).seconds / NOMINAL - 2.0 * pairs / ACCELERATED
    }

    /// Operations to compare every pair of its rows, if descent finds too few neighbours.
    fn all_pairs(&self) -> f64 {
        2.0 * self.price() * self.per_row() * all_pairs(self.present)
    }

    /// Stored values per row.
    fn per_row(&self) -> f64 {
        self.entries as f64 / self.present.max(1) as f64
    }

    /// The cost of an operation of a product with rows, relative to dense single precision.
    fn price(&self) -> f64 {
        let wide = (self.features as f64 / CACHED).min(3.0);
        if self.sparse { SPARSE * (1.0 + wide) } else { self.value as f64 / 4.0 }
    }
}

/// The operations of a fit: those over all rows, which are divided among partitions, and others.
struct Operations {
    /// An iteration: its sweep, and the U and B steps.
    sweep: f64,
    solve: f64,
    /// Everything else: over all rows, and over samples of them.
    rows: f64,
    sample: f64,
}

impl Operations {
    fn total(&self) -> f64 {
        ITERATIONS * (self.sweep + self.solve) + self.rows + self.sample
    }
}

/// The numbers on which the cost of all stages depends.
struct Work {
    n: f64,
    k: f64,
    sample: f64,
    restarts: f64,
    threads: f64,
    held: f64,
}

impl Work {
    fn new(instances: usize, clusters: usize, threads: usize) -> Self {
        Self {
            n: instances as f64,
            k: clusters as f64,
            sample: sample_size(clusters).min(instances) as f64,
            restarts: starts(clusters, Options::new(clusters, Preset::Default).restarts) as f64,
            threads: threads as f64,
            // One accumulator per block, and at most two per thread.
            held: instances.div_ceil(daimc_core::blocks::block_size(instances)).min(2 * threads) as f64,
        }
    }

    /// Operations of k-means, from all starts, on this number of rows of V.
    fn cluster(&self, rows: f64) -> f64 {
        let iterations = 8.0 + 0.6 * self.k;
        self.restarts * iterations * SHORT * 2.0 * rows.min(self.sample) * self.k * self.k
    }

    /// Bytes, and operations instead of seconds.
    fn fit(&self, views: &[Shape], passes: f64) -> Cost {
        let Self { n, k, threads, held, .. } = *self;
        let (mut always, mut iterating, mut starting) = (24.0 * n * k, 0.0, 0.0_f64);
        for view in views {
            let (d, value) = (view.features as f64, view.value as f64);
            // Bases, alignments and statistics; then the working memory of the steps, the sums of threads, or k-means.
            always += 24.0 * d * k;
            iterating += d * k * f64::max(40.0, 8.0 + value * (1.0 + held));
            starting = starting.max(self.start_bytes(d, value, threads));
        }
        Cost { bytes: always + starting.max(iterating), seconds: self.operations(views, passes).total() }
    }

    /// Bytes of k-means in a view.
    fn start_bytes(&self, d: f64, value: f64, threads: f64) -> f64 {
        d * self.k * (threads * (24.0 + value) + 16.0)
    }

    /// Operations of a fit without neighbourhoods.
    fn operations(&self, views: &[Shape], passes: f64) -> Operations {
        let Self { n, k, sample, restarts, .. } = *self;
        let passed = (SOLVE * k).min(MOST_SOLVE);
        let settle = if k > FEW as f64 { passed / RELAXED } else { passed };
        let candidates = (CANDIDATES * restarts).max(1.0);
        let step = 2.0 * STEP * k * k;
        // V of the sample is clustered for every candidate; V of all instances once, then compared a few times with the means.
        let mut all = Operations {
            sweep: step * n * passes,
            solve: 0.0,
            rows: step * n * settle + 10.0 * SHORT * 2.0 * n * k * k,
            sample: candidates * (step * sample * (settle + passes) + self.cluster(sample)) + self.cluster(n),
        };
        for view in views {
            let (d, entries) = (view.features as f64, view.entries as f64);
            let rows = sample.min(view.present as f64) * view.per_row();
            let (sweep, product) = (SWEEP * view.price(), 2.0 * view.price());
            let solve = SMALL * 20.0 * d * k * k + SOLVE_PASSES * PASS * d * k;
            let seeds = k * (2.0 + k.ln().max(0.0)) * (product * rows + 2.0 * PASS * d);
            all.sweep += 4.0 * sweep * entries * k;
            all.solve += solve;
            all.rows += 6.0 * 4.0 * sweep * entries * k + 24.0 * SWEEP * entries;
            all.sample += restarts * (LLOYD * (product * rows * k + LLOYD_PASSES * PASS * d * k) + seeds)
                + 6.0 * solve
                + candidates * (12.0 * sweep * rows * k + solve);
        }
        all
    }

    /// The lists of neighbours and the graphs, which are kept to the end.
    fn lists(&self, views: &[Shape]) -> f64 {
        self.n * (80.0 + 12.0 * LINKS) * views.len() as f64
    }

    /// The cut of the fused graph: eigenvectors and their clusters three times, and discriminants of the views twice.
    fn cut(&self, views: &[Shape]) -> Cost {
        let Self { n, k, held, .. } = *self;
        let vectors = 1.25 * k + 4.0;
        let (mut operations, mut bytes) = (3.0 * self.cluster(n), 16.0 * n * vectors + 24.0 * n * k);
        for view in views {
            let (d, value, entries) = (view.features as f64, view.value as f64, view.entries as f64);
            let width = DIMENSIONS.min(d);
            operations += ASKED * 2.0 * SWEEP * view.price() * entries * width + view.directions();
            bytes = bytes.max(d * width * (24.0 + held * value));
        }
        Cost { bytes, seconds: operations + 3.0 * self.graphs(views) }
    }

    /// The leading eigenvectors of the graphs of all views, or of the fused graph, which has as many links.
    fn graphs(&self, views: &[Shape]) -> f64 {
        let vectors = 1.25 * self.k + 4.0;
        let links = self.n * LINKS * views.len() as f64;
        GRAPH * 2.0 * PRODUCTS * links * vectors + SMALL * 8.0 * 12.0 * self.n * vectors * vectors
    }
}

/// The search for neighbours in every view.
fn search(views: &[Shape]) -> Cost {
    let (mut operations, mut bytes) = (0.0, 0.0_f64);
    for view in views {
        let (d, value) = (view.features as f64, view.value as f64);
        // Beyond `EXACT` instances, rows are compared in single precision along a fixed number of directions.
        let exact = view.present <= Neighbours::EXACT;
        let followed = d.min(FOLLOWED);
        let compare = if exact { 2.0 * view.price() * view.per_row() } else { FOLLOW * followed };
        operations += compare * Neighbours::pairs(view.present) + view.directions();
        let search = match exact {
            true if view.sparse => 16e6,
            true => 64.0 * d * (16.0 + value),
            false => view.present as f64 * (4.0 * followed + LISTED),
        };
        bytes = bytes.max(search);
    }
    Cost { bytes, seconds: operations }
}

/// Operations of a dense product in single precision per second and thread, measured in a few milliseconds.
fn rate() -> f64 {
    const ROWS: usize = 64;
    const FEATURES: usize = 512;
    const VECTORS: usize = 16;
    let values = vec![0.5_f32; ROWS * FEATURES];
    let rows: Vec<&[f32]> = values.chunks(FEATURES).collect();
    let vectors = vec![0.25_f32; VECTORS * dense::padded::<f32>(FEATURES)];
    let mut out = vec![0.0_f32; ROWS * VECTORS];
    let once = || {
        let begun = Instant::now();
        dense::project(&rows, &vectors, VECTORS, &mut out);
        begun.elapsed().as_secs_f64()
    };
    let fastest = std::iter::repeat_with(once).take(30).fold(f64::INFINITY, f64::min);
    2.0 * (ROWS * FEATURES * VECTORS) as f64 / fastest.max(1e-7)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(present: usize, features: usize, entries: usize, sparse: bool) -> Shape {
        Shape { present, features, entries, value: 4, sparse }
    }

    #[test]
    fn more_of_anything_takes_more() {
        let cost = |n: usize, d: usize, k: usize| {
            let Estimate { data, fit, neighbours, .. } = Estimate::new(n, &[shape(n, d, n * d, false)], k, 2);
            (data + fit.bytes + neighbours.bytes, fit.bytes)
        };
        // With few instances, most memory is that of the choice of a scaling, which clusters at most a sample.
        let (all, fit) = cost(20_000, 100, 10);
        for (more, more_fit) in [cost(40_000, 100, 10), cost(20_000, 1000, 10), cost(20_000, 100, 30)] {
            assert!(more > all && more_fit > fit);
        }
        assert_eq!(cost(2000, 100, 10).1, cost(1900, 100, 10).1);
    }

    #[test]
    fn more_time_affords_more_routes() {
        let schema = |n| {
            let view = daimc_core::ViewSchema::new("x", 128, daimc_core::Layout::DenseF32);
            Schema::new(daimc_core::Ids::Numbers(n), vec![view]).unwrap()
        };
        let small = Effort::new(&schema(2000), 10);
        assert_eq!(small.affords(small.budget()), Neighbours::Auto);
        assert_eq!(small.budget(), AT_LEAST);
        let large = Effort::new(&schema(3_000_000), 10);
        assert!(large.refine < large.auto && large.budget() > AT_LEAST, "{large:?}");
        assert_eq!(large.affords(large.auto), Neighbours::Auto);
        assert_eq!(large.affords(large.refine), Neighbours::Refine);
        assert_eq!(large.affords(0.9 * large.refine), Neighbours::Off);
    }

    #[test]
    fn a_wide_sparse_view_is_known_by_its_features() {
        let estimate = Estimate::new(5000, &[shape(5000, 200_000, 1_000_000, true)], 20, 2);
        // Bases and sums of 200 000 × 20, and sums of 200 000 × 64.
        assert!(estimate.fit.bytes > 2e8 && estimate.neighbours.bytes > 1e8, "{estimate:?}");
    }
}
