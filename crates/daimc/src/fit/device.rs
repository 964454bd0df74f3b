//! Whether the rows of a fit go to an accelerator.

use super::Daimc;
use crate::accelerator::{DeviceUsed, Use, refused};
use crate::backend::Backend;
use crate::estimate::Effort;
use crate::options::{Neighbours, Options};
use crate::steps::latent::Solver;
use crate::{Error, Result, Schema};

/// Seconds that a fit takes on the processor at least, for its rows to be worth handing over.
const WORTH: f64 = 2.0;

impl Daimc {
    /// Hands the rows to the accelerator, if there is one and it is to have them.
    pub(super) fn hand_over<'a>(&self, rows: &mut impl Backend<'a>, schema: &Schema) -> Result<DeviceUsed> {
        let Some((machine, when)) = &self.accelerator else { return Ok(DeviceUsed::default()) };
        if *when == Use::WhereItPays && self.seconds(schema) < WORTH {
            let reason = format!("it needs less than {WORTH} seconds, which is not worth handing rows over");
            return Ok(DeviceUsed::cpu(Some(reason)));
        }
        let handed = match self.options.solver {
            Solver::Coordinate => rows.hand_to(&**machine, *when),
            solver => Err(refused(
                &machine.name(),
                format!(
                    "solver = {solver} runs on the processor only; use the coordinate solver, or device = cpu"
                ),
            )),
        };
        match handed {
            Err(error @ Error::Accelerator { .. }) if *when == Use::WhereItPays => {
                Ok(DeviceUsed::cpu(Some(error.to_string())))
            }
            handed => handed.map(|()| DeviceUsed::accelerator(&**machine)),
        }
    }

    /// What an accelerator could do, in seconds that it takes the threads here.
    fn seconds(&self, schema: &Schema) -> f64 {
        let Options { clusters, runs, neighbours, .. } = self.options;
        let effort = Effort::new(schema, clusters);
        let search = if neighbours == Neighbours::Off { 0.0 } else { effort.search };
        (effort.fit * runs as f64 + search) / rayon::current_num_threads() as f64
    }
}
