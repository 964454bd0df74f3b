//! Memory and time that a fit of loaded data takes, estimated before it starts.

use daimc::estimate::{Cost, Effort, Estimate, Shape};
use daimc::text::bytes;
use daimc::{Daimc, Neighbours, Options, Source};

use crate::data::Loaded;
use crate::failure::{Failure, Result};

/// Memory and time of a fit, data included.
pub fn cost(estimate: &Estimate, with_neighbours: bool) -> Cost {
    let Estimate { data, mut fit, neighbours, .. } = *estimate;
    fit.bytes += data;
    if with_neighbours {
        fit.bytes += neighbours.bytes;
        fit.seconds += neighbours.seconds;
    }
    fit
}

/// Estimates the memory and time of the parts of a fit.
pub fn estimate(loaded: &Loaded, clusters: usize) -> Estimate {
    let shapes: Vec<Shape> = loaded.views.schema().views().map(Shape::from).collect();
    Estimate::new(loaded.views.instances(), &shapes, clusters, rayon::current_num_threads())
}

/// Bytes of the views that a fit copies to fill in missing cells.
pub fn copies(loaded: &Loaded) -> f64 {
    if loaded.from_disk.is_some() {
        return 0.0;
    }
    let lacking = loaded.inputs.iter().zip(&loaded.account.views).filter(|(_, own)| own.missing > 0);
    lacking.map(|(input, _)| input.bytes as f64).sum()
}

/// Fails early if the fit would run out of memory: the OOM killer leaves no message. With `--neighbours auto`, sets the memory
/// budget of the neighbour search instead if the fit itself has enough.
pub fn check(loaded: &Loaded, fit: Daimc) -> Result<Daimc> {
    let Some(available) = daimc_io::memory::available().map(|bytes| bytes as f64) else { return Ok(fit) };
    let Options { clusters, neighbours, neighbours_budget, .. } = *fit.options();
    let mut estimate = estimate(loaded, clusters);
    if let Some(budget) = neighbours_budget {
        estimate.used = Effort::new(loaded.views.schema(), clusters).affords(budget);
    }
    // The data are loaded already.
    let copies = copies(loaded);
    let needed = |with| cost(&estimate, with).bytes - estimate.data + copies;
    let auto = neighbours == Neighbours::Auto;
    let wanted = if auto { estimate.used != Neighbours::Off } else { neighbours != Neighbours::Off };
    if auto && wanted && needed(true) > available && needed(false) <= available {
        return Ok(fit.memory((available - needed(false)) as u64));
    }
    if needed(wanted) > available {
        return Err(Failure::Failed(format!(
            "the fit needs about {} of memory in addition to the data, but {} is available: free or allow more (ulimit, the limit of the \
             container, --memory), read the data as --precision f32, or use fewer threads (--threads)",
            bytes(needed(wanted)),
            bytes(available)
        )));
    }
    Ok(fit)
}
