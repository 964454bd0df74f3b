//! Cluster centres from the columns of V.

use serde::{Deserialize, Serialize};

use super::{Members, members};
use crate::forest::{Forest, Merge};
use crate::scaled_view::{Parts, ScaledView};
use crate::scan::Scan;
use crate::source::{Block, Rows};
use crate::table::{RowReduction, Table};
use crate::{Matrix, Result};

/// Sums over the entries of each column of V, and over their squares.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ColumnTotals {
    sums: Vec<f64>,
    squares: Vec<f64>,
}

impl Merge for ColumnTotals {
    fn merge(&mut self, right: Self) {
        self.sums.iter_mut().zip(right.sums).for_each(|(own, right)| *own += right);
        self.squares.iter_mut().zip(right.squares).for_each(|(own, right)| *own += right);
    }
}

impl ColumnTotals {
    fn new(columns: usize) -> Self {
        Self { sums: vec![0.0; columns], squares: vec![0.0; columns] }
    }

    /// The sums over the rows of a scan of V, leaf by leaf.
    fn share(rows: &Scan<'_>) -> Result<Forest<Self>> {
        let columns = rows.schema().view(0).features();
        rows.sum_view(
            0,
            || Self::new(columns),
            |piece, totals| {
                *totals = Self::new(columns);
                for (_, row) in piece.shown() {
                    for (k, value) in row_of(&piece.blocks[0], row, columns).iter().enumerate() {
                        totals.sums[k] += value;
                        totals.squares[k] += value * value;
                    }
                }
                Ok(())
            },
            || Self::new(columns),
            |all, totals| all.merge(totals.clone()),
        )
    }

    /// The typical entry of each column: its mean, weighted by the entries.
    fn usual(&self) -> Vec<f64> {
        self.sums.iter().zip(&self.squares).map(|(sum, square)| square / sum).collect()
    }
}

/// Sums over the columns of V.
pub struct SumLatent;

impl RowReduction for SumLatent {
    const NAME: &'static str = "sum-latent";
    type Request = ();
    type State = ();
    type Partial = Forest<ColumnTotals>;

    fn local(&self, rows: &Scan<'_>, _: &mut ()) -> Result<Self::Partial> {
        ColumnTotals::share(rows)
    }

    fn request(&self) {}

    fn answer((): &(), rows: &Scan<'_>, state: &mut ()) -> Result<Self::Partial> {
        Self.local(rows, state)
    }
}

/// Sums over the instances by their leading column of V: the one with the largest entry relative to the typical entry
/// of the column.
pub struct LeadingColumns<'a> {
    scaled_view: &'a ScaledView,
    totals: &'a ColumnTotals,
}

impl RowReduction for LeadingColumns<'_> {
    const NAME: &'static str = "leading-columns";
    type Request = (Parts, ColumnTotals);
    type State = ();
    type Partial = Forest<Members>;

    fn local(&self, rows: &Scan<'_>, _: &mut ()) -> Result<Self::Partial> {
        leaders(rows, self.scaled_view, self.totals)
    }

    fn request(&self) -> Self::Request {
        (self.scaled_view.parts(), self.totals.clone())
    }

    fn answer(
        (scaled_view, totals): &Self::Request,
        rows: &Scan<'_>,
        state: &mut (),
    ) -> Result<Self::Partial> {
        let scaled_view = ScaledView::placed(rows, 0, scaled_view)?;
        LeadingColumns { scaled_view: &scaled_view, totals }.local(rows, state)
    }
}

fn leaders(rows: &Scan<'_>, scaled_view: &ScaledView, totals: &ColumnTotals) -> Result<Forest<Members>> {
    let (usual, columns) = (totals.usual(), scaled_view.features());
    let leading = |row: &[f64]| {
        let shares = row.iter().zip(&usual).map(|(value, usual)| value / usual).enumerate();
        shares.max_by(|a, b| a.1.total_cmp(&b.1)).map_or(0, |(k, _)| k)
    };
    let mut labels = Vec::with_capacity(rows.instances());
    rows.pass_view(
        0,
        Vec::new,
        |piece, own| {
            let shown = piece.shown().into_iter();
            own.extend(shown.map(|(_, row)| leading(row_of(&piece.blocks[0], row, columns))));
            Ok(())
        },
        |own| labels.append(own),
    )?;
    members(rows, scaled_view, &labels, columns)
}

/// The centres of the clusters that the columns of V represent.
pub fn of_columns(table: &impl Table, scaled_view: &ScaledView) -> Result<Matrix> {
    let totals = table.reduce(&SumLatent, &mut ())?.sum(ColumnTotals::default())?;
    let members = table.reduce(&LeadingColumns { scaled_view, totals: &totals }, &mut ())?;
    Ok(members.sum(Members::default())?.means(scaled_view, scaled_view.features()))
}

/// One row of V.
fn row_of<'a>(block: &Block<'a>, row: usize, columns: usize) -> &'a [f64] {
    match block.rows {
        Rows::DenseF64(values) => &values[row * columns..(row + 1) * columns],
        _ => &[],
    }
}
