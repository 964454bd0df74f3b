//! Which ways to clusters are taken, decided from the shape of the data before any neighbour is looked for.

use super::Neighbours;
use super::shorten::{Shortened, gathering};
use crate::estimate::{Effort, Shape, neighbours_bytes};
use crate::options::Options;
use crate::text;
use crate::{Error, Result, Schema};

/// The ways to clusters that are taken.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    /// `Auto` stands for all, `Refine` and `Embed` for one beside V alone.
    pub ways: Neighbours,
    /// Whether every pair may be compared where most neighbours are not found otherwise.
    pub thorough: bool,
    /// Why others are not.
    pub refusal: Option<String>,
}

impl Plan {
    pub fn new(schema: &Schema, options: &Options) -> Self {
        if options.neighbours == Neighbours::Off {
            return Self { ways: Neighbours::Off, thorough: false, refusal: None };
        }
        if options.clusters < 2 || options.clusters == schema.instances() {
            return Self::none("there is nothing to choose with one cluster, or with one for each instance");
        }
        if options.neighbours != Neighbours::Auto {
            return Self { ways: options.neighbours, thorough: true, refusal: None };
        }
        if options.latent != options.clusters {
            return Self::none("the latent dimension is not the number of clusters");
        }
        let effort = Effort::new(schema, options.clusters);
        let budget = options.neighbours_budget.unwrap_or_else(|| effort.budget());
        let ways = effort.affords(budget);
        let beyond = |seconds| {
            let (time, budget) = (text::duration(seconds), text::duration(budget));
            format!("take {time} of processor time, and the budget is {budget}")
        };
        let refusal = match ways {
            Neighbours::Off => Some(format!("they would {}", beyond(effort.refine))),
            Neighbours::Refine => {
                Some(format!("embed was left out: with it they would {}", beyond(effort.auto)))
            }
            _ => None,
        };
        Self { ways, thorough: effort.of(ways) + effort.all_pairs <= budget, refusal }
    }

    fn none(reason: impl Into<String>) -> Self {
        Self { ways: Neighbours::Off, thorough: false, refusal: Some(reason.into()) }
    }

    /// The same where rows are [gathered](Shortened) first, by a process that may take so many bytes for it: none of the ways if
    /// they do not fit.
    ///
    /// # Errors
    /// When there is no memory for what was asked for by name.
    pub fn within(self, memory: Option<u64>, schema: &Schema, options: &Options) -> Result<Self> {
        let Some(memory) = memory.map(|bytes| bytes as f64).filter(|_| self.ways != Neighbours::Off) else {
            return Ok(self);
        };
        let needed = bytes(self.ways, schema, options.clusters);
        if needed <= memory {
            return Ok(self);
        }
        let (needed, memory) = (text::bytes(needed), text::bytes(memory));
        let taken =
            format!("take {needed} of memory in the process that drives the fit, and there are {memory}");
        match options.neighbours {
            Neighbours::Auto => Ok(Self::none(format!("they would {taken}"))),
            asked => {
                let reason = format!("it would {taken}; use `auto` or `off`");
                Err(Error::Option { option: "neighbours", value: asked.to_string(), reason })
            }
        }
    }
}

/// Bytes that it takes to gather rows and V and to look for neighbours among them.
fn bytes(ways: Neighbours, schema: &Schema, clusters: usize) -> f64 {
    let shapes: Vec<Shape> = schema.views().map(Shortened::shape).collect();
    // V, and a copy of it that is clustered.
    let latent = 16.0 * schema.instances() as f64 * clusters as f64;
    neighbours_bytes(ways, schema.instances(), &shapes, clusters) + latent + gathering(schema)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Daimc, Ids, Layout, ViewSchema};

    fn schema(instances: usize, features: usize) -> Schema {
        let view = ViewSchema::new("x", features, Layout::DenseF32);
        Schema::new(Ids::Numbers(instances), vec![view]).unwrap()
    }

    #[test]
    fn what_does_not_fit_into_memory_is_left_out_and_told() {
        let (schema, fit) = (schema(100_000, 2000), Daimc::new(10));
        let plan = || Plan::new(&schema, fit.options());
        let unlimited = plan().within(None, &schema, fit.options()).unwrap();
        assert_eq!(unlimited.ways, Neighbours::Auto);
        assert_eq!(plan().within(Some(8 << 30), &schema, fit.options()).unwrap().ways, Neighbours::Auto);
        let little = plan().within(Some(50_000_000), &schema, fit.options()).unwrap();
        let told = little.refusal.unwrap();
        assert_eq!(little.ways, Neighbours::Off);
        assert!(told.starts_with("they would take ") && told.ends_with("there are 50 MB"), "{told}");
        let asked = Daimc::new(10).neighbours(Neighbours::Refine);
        let plan = Plan::new(&schema, asked.options());
        let error = plan.within(Some(50_000_000), &schema, asked.options()).unwrap_err().to_string();
        assert!(error.contains("neighbours = refine") && error.contains("there are 50 MB"), "{error}");
    }

    #[test]
    fn wide_views_take_no_more_memory_than_their_projections() {
        let of = |features| bytes(Neighbours::Refine, &schema(1_000_000, features), 10);
        assert!(of(100) < of(128) && of(256) < 1.2 * of(128), "{} {} {}", of(100), of(128), of(256));
        assert!((of(2000) / of(1000) - 1.0).abs() < 0.1, "{} {}", of(1000), of(2000));
    }
}
