//! Clusters Digit with half of every view missing and writes a report about it.
//!
//!     cargo run --release -p daimc-report --example digit -- report.html

use daimc::{Daimc, Views, datasets, simulate};
use daimc_report::Report;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).unwrap_or_else(|| "report.html".into());
    let (views, truth) = datasets::digit();
    // The five views of the paper; the sixth, `mor`, has only six features.
    let views: Vec<_> = views.into_iter().filter(|view| view.name() != "mor").collect();
    let present = simulate::missing(truth.len(), &vec![0.5; views.len()], 0)?;
    let views = views.into_iter().zip(&present).map(|(view, present)| view.mask(present));
    let views = Views::new(views.collect::<Result<_, _>>()?)?;
    let model = Daimc::new(10).fit(&views)?;

    let provenance = serde_json::json!({
        "data": "Digit (UCI Multiple Features, CC BY 4.0), half of every view removed at random",
        "program": concat!("daimc ", env!("CARGO_PKG_VERSION")),
        "seed": 0,
        "missing": 0.5,
        "views": views.iter().map(daimc::View::name).collect::<Vec<_>>(),
    });
    let classes: Vec<Option<String>> = truth.iter().map(|digit| Some(digit.to_string())).collect();
    let report = Report::new(&views, &model)
        .title("Handwritten digits, half of every view missing")
        .truth(&classes)
        .provenance(&provenance);
    std::fs::write(&path, report.render()?)?;
    println!("{path}");
    Ok(())
}
