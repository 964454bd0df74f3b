//! Whatever a source answers, a fit ends with a model of numbers or with an error, never with a panic.

use std::ops::{ControlFlow, Range};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};

use daimc::select::Select;
use daimc::source::{Block, Buffer, Csr, Index, MISSING, Rows, Source, Stoppable};
use daimc::synthetic::Synthetic;
use daimc::{Daimc, Error, Initialisation, Model, Neighbours, Penalty, Preset, View, ViewWeights, Views};

#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    None,
    /// Fewer values than the rows need.
    ShortValues,
    /// Fewer columns than values.
    ShortColumns,
    /// An index of fewer instances than were asked for.
    ShortIndex,
    /// Rows, columns or offsets that are not there.
    RowOutOfRange,
    ColumnOutOfRange,
    OffsetsBackwards,
    NoOffsets,
    NotANumber,
    Infinite,
    /// A view that shows nobody, an instance that nobody shows.
    EmptyView,
    UnseenInstance,
    NoFeatures,
    NoInstances,
    NoViews,
    TooManyInstances,
    TooManyFeatures,
    OneName,
    /// What is said of presence, of the shape or of the layout is not what comes.
    PresenceChanges,
    RowsWhereNoneArePromised,
    FewerInstances,
    MoreFeatures,
    OtherPrecision,
    OtherLayout,
}

use Fault::*;

const FAULTS: [Fault; 23] = [
    ShortValues,
    ShortColumns,
    ShortIndex,
    RowOutOfRange,
    ColumnOutOfRange,
    OffsetsBackwards,
    NoOffsets,
    NotANumber,
    Infinite,
    EmptyView,
    UnseenInstance,
    NoFeatures,
    NoInstances,
    NoViews,
    TooManyInstances,
    TooManyFeatures,
    OneName,
    PresenceChanges,
    RowsWhereNoneArePromised,
    FewerInstances,
    MoreFeatures,
    OtherPrecision,
    OtherLayout,
];

const INSTANCES: usize = 90;
const FEATURES: usize = 6;

/// Two views of three clusters: view 1 misses every fourth instance. From the given question on it has a fault, in view 1.
struct Hostile {
    fault: Fault,
    from: usize,
    asked: AtomicUsize,
    sparse: bool,
}

impl Hostile {
    fn new(fault: Fault, from: usize, sparse: bool) -> Self {
        Self { fault, from, asked: AtomicUsize::new(0), sparse }
    }

    /// The fault at hand.
    fn fault(&self) -> Fault {
        if self.asked.load(Ordering::Relaxed) >= self.from { self.fault } else { None }
    }

    fn value(view: usize, i: usize, f: usize) -> f64 {
        let own = if f % 3 == i % 3 { 3.0 } else { 0.5 };
        own + 0.1 * ((7 * i + 3 * f + view) % 11) as f64
    }
}

impl Source for Hostile {
    fn instances(&self) -> usize {
        match self.fault() {
            NoInstances => 0,
            TooManyInstances => usize::MAX,
            FewerInstances => INSTANCES / 2,
            _ => INSTANCES,
        }
    }

    fn views(&self) -> usize {
        if self.fault() == NoViews { 0 } else { 2 }
    }

    fn name(&self, view: usize) -> &str {
        if view == 0 || self.fault() == OneName { "first" } else { "second" }
    }

    fn features(&self, view: usize) -> usize {
        match self.fault() {
            NoFeatures if view == 1 => 0,
            TooManyFeatures if view == 1 => usize::MAX,
            MoreFeatures if view == 1 => 2 * FEATURES,
            _ => FEATURES,
        }
    }

    fn is_present(&self, view: usize, i: usize) -> bool {
        match self.fault() {
            EmptyView if view == 1 => false,
            UnseenInstance if i == 5 => false,
            PresenceChanges if view == 1 => i % 4 == self.asked.load(Ordering::Relaxed) % 4,
            _ => view == 0 || i % 4 != 1,
        }
    }

    fn block<'b>(
        &'b self,
        view: usize,
        range: Range<usize>,
        buffer: &'b mut Buffer,
    ) -> daimc::Result<Block<'b>> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        let fault = if view == 1 { self.fault() } else { None };
        *buffer = Buffer::default();
        buffer.offsets.push(0);
        let mut row = 0;
        for i in range {
            let shown = self.is_present(view, i) || fault == RowsWhereNoneArePromised;
            if !shown {
                buffer.index.push(MISSING);
                continue;
            }
            for f in 0..FEATURES {
                let value = match fault {
                    NotANumber if i == 30 => f64::NAN,
                    Infinite if i == 30 => f64::INFINITY,
                    _ => Self::value(view, i, f),
                };
                buffer.f64.push(value);
                buffer.f32.push(value as f32);
                buffer.columns.push(if fault == ColumnOutOfRange { 1 << 20 } else { f as u32 });
            }
            buffer.offsets.push(buffer.columns.len());
            buffer.index.push(if fault == RowOutOfRange { row + 1000 } else { row });
            row += 1;
        }
        match fault {
            ShortValues => buffer.f64.truncate(buffer.f64.len() / 2),
            ShortColumns => buffer.columns.truncate(buffer.columns.len() / 2),
            ShortIndex => buffer.index.truncate(buffer.index.len() / 2),
            OffsetsBackwards => buffer.offsets.reverse(),
            NoOffsets => buffer.offsets.clear(),
            _ => {}
        }
        let Buffer { f32, f64, offsets, columns, index, .. } = &*buffer;
        let sparse = self.sparse != (fault == OtherLayout);
        let rows = match (sparse, fault == OtherPrecision) {
            (true, false) => Rows::SparseF64(Csr { offsets, columns, values: f64 }),
            (true, true) => Rows::SparseF32(Csr { offsets, columns, values: f32 }),
            (false, false) => Rows::DenseF64(f64),
            (false, true) => Rows::DenseF32(f32),
        };
        Ok(Block { rows, index: Index::Rows(index) })
    }
}

fn fits() -> Vec<Daimc> {
    let few = |fit: Daimc| fit.max_iterations(3).restarts(2).threads(2);
    vec![
        few(Daimc::new(3)),
        few(Daimc::new(3).preset(Preset::Paper)),
        few(Daimc::new(3).neighbours(Neighbours::Refine).initialisation(Initialisation::Paper)),
        few(Daimc::new(3).neighbours(Neighbours::Embed).runs(2)),
        few(Daimc::new(3).view_weights(ViewWeights::Learned)),
        few(Daimc::new(3).penalty(Penalty::Auto)),
    ]
}

/// The outcome of a fit, unless it panics.
fn outcome(fit: &Daimc, source: &dyn Source) -> Option<daimc::Result<Model>> {
    let go_on = |_: &daimc::Iteration| ControlFlow::Continue(());
    catch_unwind(AssertUnwindSafe(|| fit.fit_source(source, go_on))).ok()
}

#[test]
fn a_source_without_fault_is_fitted() {
    for sparse in [false, true] {
        for fit in fits() {
            let model = outcome(&fit, &Hostile::new(None, 0, sparse)).unwrap().unwrap();
            assert_eq!(model.labels.len(), INSTANCES);
        }
    }
}

#[test]
fn a_fault_at_any_time_is_an_error_and_never_a_panic() {
    let mut panics = Vec::new();
    for fault in FAULTS {
        for sparse in [false, true] {
            for (number, fit) in fits().into_iter().enumerate() {
                for from in [0, 1, 3, 7, 20, 60] {
                    let source = Hostile::new(fault, from, sparse);
                    let case = format!("{fault:?} from {from}, sparse: {sparse}, fit {number}");
                    match outcome(&fit, &source) {
                        Option::None => panics.push(case),
                        Some(Err(_)) => {}
                        Some(Ok(model)) => {
                            let only_sparse = matches!(
                                fault,
                                ShortColumns | ColumnOutOfRange | OffsetsBackwards | NoOffsets
                            );
                            // What begins late or concerns what is not looked at has no effect, and an untruth that is
                            // told from the first question on, and that the rows do not belie, is none.
                            let told = matches!(fault, FewerInstances | OtherPrecision | OtherLayout)
                                || fault == MoreFeatures && sparse;
                            let quiet = from > 0 || only_sparse && !sparse || told;
                            assert!(quiet, "{case}: fitted");
                            let numbers = model.latent.values().iter().chain(&model.confidence);
                            assert!(numbers.into_iter().all(|value| value.is_finite()), "{case}");
                        }
                    }
                }
            }
        }
    }
    assert!(panics.is_empty(), "{panics:#?}");
}

#[test]
fn errors_name_what_is_wrong() {
    let fit = Daimc::new(3);
    let error = |fault, sparse| outcome(&fit, &Hostile::new(fault, 0, sparse)).unwrap().unwrap_err();
    assert!(matches!(error(EmptyView, false), Error::EmptyView { view } if view == "second"));
    assert!(matches!(error(NoFeatures, false), Error::NoFeatures { view } if view == "second"));
    assert!(matches!(error(NoViews, false), Error::NoViews));
    assert!(matches!(error(OneName, false), Error::DuplicateView { .. }));
    assert!(matches!(error(UnseenInstance, false), Error::SeenInNoView { row: 5, count: 1, .. }));
    for fault in [ShortValues, ColumnOutOfRange, RowsWhereNoneArePromised] {
        let message = error(fault, true).to_string();
        assert!(message.contains("view 'second'") && message.contains("could not be read"), "{message}");
    }
    for sparse in [false, true] {
        let found = error(NotANumber, sparse);
        assert!(matches!(&found, Error::NotFinite { view, row: 30, .. } if view == "second"), "{found}");
    }
    let stop = std::sync::atomic::AtomicBool::new(false);
    let hostile = Hostile::new(EmptyView, 0, false);
    let refused = outcome(&fit, &Stoppable { source: &hostile, stop: &stop }).unwrap();
    assert!(matches!(refused, Err(Error::EmptyView { .. })));
}

#[test]
fn a_view_that_a_resample_would_empty_keeps_an_instance() {
    // No instance is seen in two views, and one view shows but two.
    let data = Synthetic::new(60, 3).seed(4);
    let rare = [7, 31];
    let mask = |own: bool| (0..60).map(|i| rare.contains(&i) == own).collect::<Vec<bool>>();
    let views = Views::new(vec![
        data.dense::<f64>("common", 8).unwrap().mask(&mask(false)).unwrap(),
        data.dense::<f64>("rare", 5).unwrap().mask(&mask(true)).unwrap(),
    ])
    .unwrap();
    let fit = Daimc::new(2).neighbours(Neighbours::Off).max_iterations(5).restarts(2);
    for seed in 0..5 {
        let selection =
            Select::new(fit.clone().seed(seed), 2..=4).resamples(8).hidden(1.0).run(&views).unwrap();
        assert_eq!(selection.resamples, 8);
    }
}

#[test]
fn a_view_that_no_sampled_instance_has_is_no_obstacle() {
    // K-means and the choice among its starts look at 4000 of the instances.
    let n = 9000;
    let data = Synthetic::new(n, 2).seed(4);
    let mask: Vec<bool> = (0..n).map(|i| i == 4567).collect();
    let rare = View::dense("rare", 2, vec![1.0; 2 * n]).unwrap().mask(&mask).unwrap();
    let views = Views::new(vec![data.dense::<f32>("common", 4).unwrap(), rare]).unwrap();
    let fit = Daimc::new(2).neighbours(Neighbours::Off).max_iterations(3);
    for seed in 0..3 {
        fit.clone().seed(seed).fit(&views).unwrap();
    }
}
