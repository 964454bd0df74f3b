//! For every answer of a source, a fit ends with a finite model or with an error, never with a panic.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};

use daimc::select::Select;
use daimc::source::{Buffer, MISSING, ReadError, Source};
use daimc::synthetic::Synthetic;
use daimc::{
    Daimc, Error, Fit, Ids, Initialisation, Layout, Neighbours, Penalty, Presence, Preset, Schema, View,
    ViewSchema, ViewWeights, Views,
};

#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    None,
    /// Fewer values than the rows need.
    ShortValues,
    /// Fewer columns than values.
    ShortColumns,
    /// An index of fewer instances than requested.
    ShortIndex,
    /// Rows, columns or offsets that are out of bounds.
    RowOutOfRange,
    ColumnOutOfRange,
    OffsetsBackwards,
    NoOffsets,
    NotANumber,
    Infinite,
    /// Presence, shape or type differs from the schema.
    PresenceChanges,
    RowsWhereNoneArePromised,
    OtherFeatures,
    OtherPrecision,
}

use Fault::*;

const FAULTS: [Fault; 13] = [
    ShortValues,
    ShortColumns,
    ShortIndex,
    RowOutOfRange,
    ColumnOutOfRange,
    OffsetsBackwards,
    NoOffsets,
    NotANumber,
    Infinite,
    PresenceChanges,
    RowsWhereNoneArePromised,
    OtherFeatures,
    OtherPrecision,
];

const INSTANCES: usize = 90;
const FEATURES: usize = 6;

/// Two views of three clusters: view 1 misses every fourth instance. From the given call on, view 1 has a fault.
struct Hostile {
    schema: Schema,
    fault: Fault,
    from: usize,
    asked: AtomicUsize,
}

impl Hostile {
    fn new(fault: Fault, from: usize, sparse: bool) -> Self {
        let layout = if sparse { Layout::SparseF64 } else { Layout::DenseF64 };
        let view = |view: usize, name| {
            ViewSchema::new(name, FEATURES, layout)
                .presence(Presence::from_fn(INSTANCES, |i| present(view, i)))
        };
        let schema = Schema::new(Ids::Numbers(INSTANCES), vec![view(0, "first"), view(1, "second")]).unwrap();
        Self { schema, fault, from, asked: AtomicUsize::new(0) }
    }

    /// The current fault.
    fn fault(&self) -> Fault {
        if self.asked.load(Ordering::Relaxed) >= self.from { self.fault } else { None }
    }

    fn value(view: usize, i: usize, f: usize) -> f64 {
        let own = if f % 3 == i % 3 { 3.0 } else { 0.5 };
        own + 0.1 * ((7 * i + 3 * f + view) % 11) as f64
    }
}

impl Source for Hostile {
    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn read(&self, view: usize, range: Range<usize>, buffer: &mut Buffer) -> Result<(), ReadError> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        let fault = if view == 1 { self.fault() } else { None };
        *buffer = Buffer::default();
        buffer.offsets.push(0);
        let mut row = 0;
        for i in range {
            let shown = match fault {
                PresenceChanges => i % 4 == self.asked.load(Ordering::Relaxed) % 4,
                RowsWhereNoneArePromised => true,
                _ => present(view, i),
            };
            if !shown {
                buffer.index.push(MISSING);
                continue;
            }
            for f in 0..if fault == OtherFeatures { FEATURES - 1 } else { FEATURES } {
                let value = match fault {
                    NotANumber if i == 30 => f64::NAN,
                    Infinite if i == 30 => f64::INFINITY,
                    _ => Self::value(view, i, f),
                };
                if fault == OtherPrecision {
                    buffer.f32.push(value as f32);
                } else {
                    buffer.f64.push(value);
                }
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
        Ok(())
    }
}

fn present(view: usize, i: usize) -> bool {
    view == 0 || i % 4 != 1
}

fn fits() -> Vec<Daimc> {
    let few = |fit: Daimc| fit.max_iterations(3).restarts(2).threads(2);
    vec![
        few(Daimc::new(3)),
        few(Daimc::new(3).preset(Preset::Paper).assess(true)),
        few(Daimc::new(3).initialisation(Initialisation::Paper)),
        few(Daimc::new(3).runs(2)),
        few(Daimc::new(3).view_weights(ViewWeights::Learned)),
        few(Daimc::new(3).penalty(Penalty::Auto)),
    ]
}

/// The result of a fit, unless it panics.
fn outcome(fit: &Daimc, source: &dyn Source) -> Option<daimc::Result<Fit>> {
    catch_unwind(AssertUnwindSafe(|| fit.fit(source))).ok()
}

#[test]
fn a_source_without_fault_is_fitted() {
    for sparse in [false, true] {
        for fit in fits() {
            let fitted = outcome(&fit, &Hostile::new(None, 0, sparse)).unwrap().unwrap();
            assert_eq!(fitted.labels.len(), INSTANCES);
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
                        Some(Ok(fitted)) => {
                            let only_sparse = matches!(
                                fault,
                                ShortColumns | ColumnOutOfRange | OffsetsBackwards | NoOffsets
                            );
                            // A fault that begins too late or concerns unused data has no effect. Fewer stored values
                            // are a valid sparse row. NaN in a dense row is a missing cell.
                            let quiet = from > 0
                                || (only_sparse || fault == NotANumber) && !sparse
                                || fault == OtherFeatures && sparse;
                            assert!(quiet, "{case}: fitted");
                            let numbers = fitted.latent.values().iter().chain(&fitted.confidence);
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
    for fault in [ShortValues, ColumnOutOfRange, RowsWhereNoneArePromised] {
        let message = error(fault, true).to_string();
        assert!(message.contains("view 'second'") && message.contains("could not be read"), "{message}");
    }
    for (fault, sparse) in [(NotANumber, true), (Infinite, false), (Infinite, true)] {
        let found = error(fault, sparse);
        assert!(matches!(&found, Error::NotFinite { view, row: 30, .. } if view == "second"), "{found}");
    }
}

#[test]
fn a_schema_that_makes_no_sense_is_refused() {
    let view = |name: &str, features| ViewSchema::new(name, features, Layout::DenseF32);
    let schema = |views| Schema::new(Ids::Numbers(3), views).unwrap_err();
    assert!(matches!(schema(vec![]), Error::NoViews));
    assert!(matches!(schema(vec![view("a", 2), view("a", 3)]), Error::DuplicateView { .. }));
    assert!(matches!(schema(vec![view("a", 0)]), Error::NoFeatures { .. }));
    assert!(matches!(schema(vec![view("a", usize::MAX)]), Error::Shape { .. }));
    let empty = view("b", 2).presence(Presence::from_fn(3, |_| false));
    assert!(matches!(schema(vec![view("a", 2), empty]), Error::EmptyView { view } if view == "b"));
    let not_one = |name: &str| view(name, 2).presence(Presence::from_fn(3, |i| i != 1));
    assert!(matches!(schema(vec![not_one("a"), not_one("b")]), Error::SeenInNoView { row: 1, count: 1, .. }));
    let few = view("a", 2).presence(Presence::from_fn(90, |_| true));
    assert!(matches!(schema(vec![few]), Error::Shape { .. }));
    let names = view("a", 2).feature_names(vec!["x".to_string()]);
    assert!(matches!(schema(vec![names]), Error::Shape { .. }));
    let many = Schema::new(Ids::Numbers(usize::MAX), vec![view("a", 2)]);
    assert!(matches!(many, Err(Error::TooManyRows { .. })));
    assert!(matches!(Schema::new(Ids::Numbers(0), vec![view("a", 2)]), Err(Error::EmptyView { .. })));
}

#[test]
fn a_view_that_a_resample_would_empty_keeps_an_instance() {
    // No instance is present in two views, and one view has only two.
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
    // K-means and the choice among its starts use 4000 of the instances.
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
