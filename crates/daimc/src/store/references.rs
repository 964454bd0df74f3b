//! The references of a model.

use super::Opened;
use super::tensor::{Content, Tensor};
use daimc_core::Result;
use daimc_graph::neighbours::{References, ViewReferences};

/// The tensors of references.
pub(super) fn tensors(references: &References) -> Vec<Tensor<'_>> {
    let mut tensors = vec![Tensor::vector("references.labels", Content::Labels(&references.labels))];
    for (i, own) in references.views.iter().enumerate() {
        let mut push = |what: &str, content| {
            tensors.push(Tensor::vector(format!("references.{i}.{what}"), content));
        };
        push("origin", Content::Numbers(&own.origin));
        push("members", Content::Labels(&own.members));
        push("rows", Content::Singles(&own.rows));
        push("reach", Content::Singles(&own.reach));
        tensors.push(Tensor::matrix(format!("references.{i}.directions"), &own.directions));
    }
    tensors
}

impl Opened<'_> {
    pub(super) fn references(&self, doubts: &[f64]) -> Result<References> {
        let view = |(i, &doubt): (usize, &f64)| {
            let of = |what: &str| format!("references.{i}.{what}");
            Ok(ViewReferences {
                directions: self.matrix(&of("directions"))?,
                origin: self.numbers(&of("origin"))?.1,
                members: self.counts_if_any(&of("members"))?,
                rows: self.singles(&of("rows"))?,
                reach: self.singles(&of("reach"))?,
                doubt,
            })
        };
        let views = doubts.iter().enumerate().map(view).collect::<Result<_>>()?;
        Ok(References { labels: self.counts_if_any("references.labels")?, views })
    }
}
