use daimc::*;
fn main() {
    let args: Vec<String> = std::env::args().collect();
    let paper = args.get(1).is_some_and(|a| a == "paper");
    let (views, truth) = datasets::digit();
    let views: Vec<_> = views.into_iter().filter(|v| v.name() != "mor").collect();
    for rate in [0.0, 0.3, 0.5] {
        let (mut a, mut n, mut t, mut it) = (vec![], vec![], 0.0, 0);
        for seed in 0..5u64 {
            let mask = simulate::missing(2000, &[rate; 5], seed).unwrap();
            let vs = Views::new(views.iter().zip(&mask).map(|(v, m)| v.clone().mask(m).unwrap()).collect()).unwrap();
            let mut d = Daimc::new(10).seed(seed);
            if paper { d = d.preset(Preset::Paper); }
            for x in &args[2.min(args.len())..] {
                let (k, v) = x.split_once('=').unwrap();
                d = match k { "passes" => d.passes(v.parse().unwrap()), "tol" => d.tolerance(v.parse().unwrap()), "scale" => d.scale(v.parse().unwrap()),
                 "iter" => d.max_iterations(v.parse().unwrap()), "restarts" => d.restarts(v.parse().unwrap()), "alpha" => d.alpha(v.parse().unwrap()),
                 "init" => d.initialisation(if v == "paper" {Initialisation::Paper} else {Initialisation::Aligned}), 
                 "solver" => d.solver(if v == "m" {Solver::Multiplicative} else {Solver::Coordinate}), _ => panic!() };
            }
            let s = std::time::Instant::now();
            let m = d.fit(&vs).unwrap();
            t += s.elapsed().as_secs_f64();
            it += m.iterations();
            if seed == 0 { eprintln!("{:?} {:?}", m.timings, m.outcome); }
            let sc = metrics::scores(&truth, &m.labels).unwrap();
            a.push(sc.ac); n.push(sc.nmi);
        }
        println!("rate {rate}: AC {:.4} NMI {:.4}  ({:.2?}) time {:.3} iters {}", a.iter().sum::<f64>() / 5.0, n.iter().sum::<f64>() / 5.0, a, t / 5.0, it / 5);
    }
}
