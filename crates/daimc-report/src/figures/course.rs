//! The objective from iteration to iteration.

use daimc::Fit;
use serde::Serialize;

/// The course of the objective, thinned out after many iterations.
#[derive(Clone, Debug, Serialize)]
pub struct Course {
    /// The iterations, from 1.
    pub iterations: Vec<usize>,
    /// J.
    pub total: Vec<f64>,
    /// The terms of J with their weights.
    pub parts: Vec<Term>,
    /// J of the returned model, which may have been consolidated after the last iteration.
    pub last: f64,
}

/// A term of J.
#[derive(Clone, Debug, Serialize)]
pub struct Term {
    /// Its name.
    pub name: &'static str,
    /// Its formula.
    pub formula: &'static str,
    /// Its value after each iteration.
    pub values: Vec<f64>,
}

/// The maximum number of points of a line.
const POINTS: usize = 300;

impl Course {
    pub(super) fn of(fit: &Fit) -> Self {
        let (history, alpha, beta) = (&fit.history, fit.model.options.alpha, fit.model.options.beta);
        let step = history.len().div_ceil(POINTS).max(1);
        let kept: Vec<usize> =
            (0..history.len()).filter(|i| i % step == 0 || i + 1 == history.len()).collect();
        let values = |of: &dyn Fn(&daimc::Objective) -> f64| kept.iter().map(|&i| of(&history[i])).collect();
        Self {
            iterations: kept.iter().map(|i| i + 1).collect(),
            total: values(&|objective| objective.total),
            parts: vec![
                Term { name: "reconstruction", formula: "Σ ‖x − Uv‖²", values: values(&|o| o.loss) },
                Term {
                    name: "alignment", formula: "α ‖BᵀU − I‖²", values: values(&|o| alpha * o.alignment)
                },
                Term {
                    name: "sparsity",
                    formula: "αβ ‖B‖₂,₁",
                    values: values(&|o| alpha * beta * o.sparsity),
                },
            ],
            last: fit.objective.total,
        }
    }
}
