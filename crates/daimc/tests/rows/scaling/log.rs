//! Logarithms: a fit with logarithms equals the fit to data of which logarithms were taken before.

use daimc::{Layout, Neighbours};

use super::*;

/// Abundances: logarithms are around the centres of clusters, in different ranges.
fn abundances(truth: &[usize], seed: u64) -> Rows {
    let present: Vec<bool> = (0..truth.len()).map(|i| i % 5 > 0).collect();
    Rows::around(truth, 9, seed, |f, x| (1.5 * x + f as f64).exp()).missing(&present)
}

/// The corresponding scaling of data of which logarithms were taken.
fn after(scale: Scale) -> Scale {
    if scale == Scale::Log { Scale::MinMaxUnit } else { Scale::Unit }
}

impl Rows {
    fn each(&self, value: impl Fn(f64) -> f64) -> Self {
        let mut rows = self.clone();
        rows.values.iter_mut().for_each(|x| *x = value(*x));
        rows
    }

    /// The layouts, with missing cells where the layout allows them.
    fn as_layout(&self, name: &str, layout: Layout) -> View<'static> {
        let lacking = |at: usize| at % 13 == 4 && (at / self.features).is_multiple_of(3);
        let mut rows = self.clone();
        (0..rows.values.len()).filter(|&at| lacking(at)).for_each(|at| rows.values[at] = f64::NAN);
        match layout {
            Layout::DenseF64 => rows.dense(name),
            Layout::DenseF32 => rows.dense_f32(name),
            Layout::SparseF64 => self.sparse(name),
            Layout::SparseF32 => self.sparse_f32(name),
        }
    }
}

const LAYOUTS: [Layout; 4] = [Layout::DenseF64, Layout::DenseF32, Layout::SparseF64, Layout::SparseF32];

#[test]
fn a_fit_takes_logarithms_as_if_they_had_been_taken_before() {
    let truth = truth(60);
    let second = Rows::around(&truth, 5, 9, |_, x| x);
    for scale in [Scale::Log, Scale::LogUnit] {
        for layout in LAYOUTS {
            let single = matches!(layout, Layout::DenseF32 | Layout::SparseF32);
            let raw = abundances(&truth, 3).each(|x| if x > 5.0 { x } else { 0.0 });
            let raw = if single { raw.rounded() } else { raw };
            let views = |rows: &Rows, layout| vec![rows.as_layout("a", layout), second.dense("b")];
            let of =
                |scale| given(&truth, Scale::Unit, true).scale_view("a", scale).neighbours(Neighbours::Off);
            let (own, taken) = (views(&raw, layout), views(&raw.each(f64::ln_1p), layout));
            let (own, taken) = (fit(&of(scale), own), fit(&of(after(scale)), taken));
            assert_eq!(own.model.views[0].scaling.scale, scale);
            assert!(difference(&own.latent, &taken.latent) < 1e-9, "{scale} {layout:?}");
            assert_eq!(own.missing_cells, taken.missing_cells);
            assert_eq!(own.missing_cells[0].cells() > 0, layout.is_dense());

            // New instances and their imputed values: in the units of the data, and never negative.
            let new = |rows: &Rows| {
                Views::new(vec![rows.some((10..40).filter(|i| i % 5 > 0)).as_layout("a", layout)]).unwrap()
            };
            let (raw, logs) = (new(&raw), new(&raw.each(f64::ln_1p)));
            let v = own.model.transform(&raw).unwrap();
            assert!(difference(&v, &taken.model.transform(&logs).unwrap()) < 1e-9);
            let imputed = own.model.impute(&raw, "a", &v).unwrap().values;
            assert!(imputed.values().iter().all(|x| *x >= 0.0 && x.is_finite()));
            let (made, expected) = (own.model.reconstruct("a", &v), taken.model.reconstruct("a", &v));
            for (x, log) in made.unwrap().values().iter().zip(expected.unwrap().values()) {
                assert!(*x >= 0.0 && (x - log.exp_m1().max(0.0)).abs() < 1e-5 * (1.0 + x), "{x} {log}");
            }
        }
    }
}

#[test]
fn what_is_there_is_imputed_as_it_is() {
    let truth = truth(60);
    let rows = abundances(&truth, 4).rounded();
    let views =
        Views::new(vec![rows.dense_f32("a"), Rows::around(&truth, 5, 9, |_, x| x).dense("b")]).unwrap();
    let fit = Daimc::new(3).scale(Scale::Log).scale_view("b", Scale::Unit).fit(&views).unwrap();
    let imputed = fit.model.impute(&views, "a", &fit.latent).unwrap().values;
    for i in (0..60).filter(|&i| rows.present[i]) {
        assert_eq!(imputed.row(i), rows.row(i));
    }
}

#[test]
fn heavy_tails_are_detected_and_reported() {
    let truth = truth(200);
    let of = |rows: &Rows| {
        let views = vec![rows.dense("a"), Rows::around(&truth, 5, 9, |_, x| x).dense("b")];
        fit(&Daimc::new(3).neighbours(Neighbours::Off), views).model.views[0].scaling.clone()
    };
    let normal = Rows::around(&truth, 9, 3, |_, x| x + 5.0);
    let heavy = of(&normal.each(|x| (4.0 * x).exp()));
    assert!(heavy.scale.is_log() && heavy.reason.contains("heavy-tailed"), "{heavy:?}");
    // Neither values that already are logarithms nor negative ones, whatever the sign of their skewness.
    assert!(!of(&normal).scale.is_log());
    assert!(!of(&normal.each(|x| -(4.0 * x).exp())).scale.is_log());
    // A unit changes nothing where values are large, as abundances are.
    assert!(of(&normal.each(|x| 1e6 * (4.0 * x).exp())).scale.is_log());
}

#[test]
fn negative_values_are_named() {
    let truth = truth(60);
    let rows = abundances(&truth, 5);
    let good = |rows: &Rows, layout| Views::new(vec![rows.as_layout("a", layout)]).unwrap();
    for layout in LAYOUTS {
        let daimc = Daimc::new(3).scale(Scale::Log);
        let model = daimc.fit(&good(&rows.some((0..60).filter(|&i| rows.present[i])), layout)).unwrap().model;
        let mut bad = rows.some((0..60).filter(|&i| rows.present[i]));
        bad.values[9 * 7 + 2] = -0.25;
        let message = daimc.fit(&good(&bad, layout)).unwrap_err().to_string();
        assert!(message.contains("-0.25") && message.contains('2') && message.contains("log"), "{message}");
        let message = model.transform(&good(&bad, layout)).unwrap_err().to_string();
        assert!(message.contains("-0.25") && message.contains("units of the fit"), "{message}");
    }
}
