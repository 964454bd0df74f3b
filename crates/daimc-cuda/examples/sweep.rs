//! Measures a sweep on a GPU: `sweep INSTANCES FEATURES COLUMNS [tf32] [memory=GB] [nearest] [cpu] [fit]`.
//!
//! `nearest` adds the neighbour search, `cpu` a sweep on the CPU, and `fit` a whole fit without neighbourhoods. If `memory` is less than
//! the rows need, they are copied to the GPU in every sweep.

use std::time::Instant;

use daimc::accelerator::{Load, Use};
use daimc::synthetic::Synthetic;
use daimc::{Bases, Cpu, Daimc, Descent, Matrix, Neighbours, Scale, Shard, Solver, Stop, VStep, Views};
use daimc_cuda::{Gpus, Precision};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |i: usize| arguments[i].parse::<usize>();
    let (instances, features, latent) = (number(0)?, number(1)?, number(2)?);
    let has = |word: &str| arguments.iter().any(|argument| argument == word);
    let precision = if has("tf32") { Precision::Tf32 } else { Precision::Single };
    let mut gpus = Gpus::new([0]).precision(precision);
    if let Some(memory) = arguments.iter().find_map(|argument| argument.strip_prefix("memory=")) {
        gpus = gpus.memory((memory.parse::<f64>()? * 1e9) as usize);
    }
    let gpu = gpus.open()?;
    let data = Synthetic::new(instances, latent.min(50)).seed(1);
    let views = Views::new(vec![data.dense::<f32>("x", features)?])?;
    let small = Views::new(vec![Synthetic::new(1000, 4).seed(1).dense::<f32>("x", features)?])?;
    let fit = Daimc::new(latent)
        .scale(Scale::None)
        .neighbours(Neighbours::Off)
        .assess(false)
        .max_iterations(1)
        .fit(&small)?;
    let scalings = [fit.model.views[0].scaling.clone()];
    let begun = Instant::now();
    let resident = gpu.hold(Load::new(&views, &scalings, latent)?)?;
    println!(
        "{} × {features}, K = {latent}, {precision:?}: loaded after {:.2} s",
        instances,
        begun.elapsed().as_secs_f64()
    );
    let stop = Stop::new();
    let mut shard = resident.clone().shard()?;
    let v = Matrix::from_fn(instances, latent, |i, k| ((i * 31 + k * 17) % 97) as f64 / 97.0 + 0.01);
    let statistics = shard.start(v.clone(), &stop)?;
    let squares = Load::new(&views, &scalings, latent)?.view(0).squares();
    let daimc = Daimc::new(latent);
    let mut descent = Descent::new(daimc.options(), vec![squares], Bases::Fitted, statistics)?;
    let step = VStep::Update { solver: Solver::Coordinate, passes: 2 };
    let (mut sweeps, mut solves) = (Vec::new(), Vec::new());
    for _ in 0..12 {
        let begun = Instant::now();
        let factors = descent.solve()?.clone();
        let solved = begun.elapsed();
        let begun = Instant::now();
        let statistics = shard.sweep(&factors, step, &stop)?;
        sweeps.push(begun.elapsed().as_secs_f64() * 1e3);
        solves.push(solved.as_secs_f64() * 1e3);
        descent.absorb(statistics)?;
    }
    let median = |times: &mut Vec<f64>| {
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    };
    println!("  sweep {:.2} ms, U and B {:.2} ms", median(&mut sweeps), median(&mut solves));
    if has("cpu") {
        let mut here = Cpu::new(&views, &scalings, latent)?;
        here.start(v, &stop)?;
        let factors = descent.solve()?.clone();
        let begun = Instant::now();
        here.sweep(&factors, step, &stop)?;
        println!("  CPU {:.1} ms", begun.elapsed().as_secs_f64() * 1e3);
    }
    if has("nearest") {
        let begun = Instant::now();
        let found = resident.nearest(0, 10, &stop)?.ok_or("no neighbours")?;
        println!(
            "  neighbours {:.2} s, {} of the first: {:?}",
            begun.elapsed().as_secs_f64(),
            10,
            &found.others[..10]
        );
    }
    if has("fit") {
        drop((shard, resident));
        let begun = Instant::now();
        let fit = Daimc::new(latent).neighbours(Neighbours::Off).accelerator(gpu, Use::Always).fit(&views)?;
        let seconds = begun.elapsed().as_secs_f64();
        println!("  fit {seconds:.1} s, {} iterations, {:?}", fit.iterations(), fit.timings);
    }
    Ok(())
}
