//! The page as text: completeness, escaping, and size.

use daimc::synthetic::Synthetic;
use daimc::{Daimc, Neighbours, Preset, View, Views, simulate};
use daimc_report::Report;

#[test]
fn a_million_instances_make_a_page_below_three_megabytes() {
    let n = 1_000_000;
    let data = Synthetic::new(n, 5);
    let present = simulate::missing(n, &[0.4, 0.4], 0).unwrap();
    let views = ["a", "b"].iter().zip(&present);
    let views = views.map(|(name, present)| data.dense::<f32>(name, 4).unwrap().mask(present).unwrap());
    let views = Views::new(views.collect()).unwrap();
    let fit = Daimc::new(5).max_iterations(1).restarts(1).fit(&views).unwrap();
    let classes: Vec<Option<String>> = data.truth().iter().map(|class| Some(class.to_string())).collect();
    let start = std::time::Instant::now();
    let page = Report::new(&views, &fit).truth(&classes).render().unwrap();
    println!("{} bytes in {:.1} s", page.len(), start.elapsed().as_secs_f64());
    assert!(page.len() < 3_000_000, "{} bytes", page.len());
    assert!(page.contains("of 1,000,000 instances"));
    assert!(page.matches("<use ").count() < 4200);
}

#[test]
fn a_class_for_each_instance_does_not_fill_the_page() {
    let data = Synthetic::new(20_000, 3);
    let views = Views::new(vec![data.dense::<f32>("a", 4).unwrap()]).unwrap();
    let fit = Daimc::new(3).max_iterations(1).restarts(1).fit(&views).unwrap();
    let classes: Vec<Option<String>> = (0..20_000).map(|i| Some(format!("class {i}"))).collect();
    let page = Report::new(&views, &fit).truth(&classes).render().unwrap();
    assert!(page.len() < 2_000_000, "{} bytes", page.len());
    assert!(page.contains("50 of 20,000 classes"));
}

#[test]
fn many_views_clusters_and_long_names_stay_below_five_megabytes() {
    let n = 600;
    let data = Synthetic::new(n, 200);
    let rates: Vec<f64> = vec![0.5; 50];
    let present = simulate::missing(n, &rates, 0).unwrap();
    let views = present.iter().enumerate().map(|(v, present)| {
        let name = format!("a view with a very long name indeed, number {v} {}", "x".repeat(500));
        let names = (0..8).map(|f| format!("{name}: feature {f}")).collect();
        let ids = (0..n).map(|i| format!("{}-{i}", "instance".repeat(50))).collect();
        let view = data.dense::<f32>(&name, 8).unwrap().feature_names(names).unwrap();
        view.ids(ids).unwrap().mask(present).unwrap()
    });
    let views = Views::new(views.collect()).unwrap();
    let fit = Daimc::new(200).preset(Preset::Paper).max_iterations(2).restarts(1).fit(&views).unwrap();
    let page = Report::new(&views, &fit).render().unwrap();
    println!("{} bytes", page.len());
    assert!(page.len() < 5_000_000, "{} bytes", page.len());
}

#[test]
fn the_page_reports_the_use_of_neighbourhoods() {
    let data = Synthetic::new(60, 3);
    let views = Views::new(vec![data.dense::<f64>("a", 8).unwrap()]).unwrap();
    for used in [Neighbours::Off, Neighbours::Refine] {
        let fit = Daimc::new(3).neighbours(used).fit(&views).unwrap();
        let page = Report::new(&views, &fit).render().unwrap();
        let (_, section) = page.split_once("<h3>Neighbourhoods</h3>").unwrap();
        assert!(section.contains(used.name()) && section.contains(&fit.neighbours.reason), "{used}");
    }
}

#[test]
fn the_page_defines_confidence() {
    let data = Synthetic::new(60, 3);
    let views = Views::new(vec![data.dense::<f64>("a", 8).unwrap()]).unwrap();
    let page = |runs| Report::new(&views, &Daimc::new(3).runs(runs).fit(&views).unwrap()).render().unwrap();
    let share = "the share of fits to resampled data in which an instance stays with its cluster; in quick fits to parts";
    assert!(page(1).contains(share) && !page(1).contains("runs, taken by itself"));
    assert!(page(4).contains(share) && page(4).contains("Each of the 4 runs, taken by itself, agrees on"));
}

#[test]
fn the_page_defines_stability_after_several_runs() {
    let data = Synthetic::new(60, 3);
    let views = Views::new(vec![data.dense::<f64>("a", 8).unwrap()]).unwrap();
    let page = |runs| Report::new(&views, &Daimc::new(3).runs(runs).fit(&views).unwrap()).render().unwrap();
    assert!(page(4).contains("of the 4 runs, those in which the feature leads the cluster"));
    assert!(page(4).contains(">stability there<"));
    assert!(!page(1).contains("its stability") && !page(1).contains(">stability there<"));
}

#[test]
fn the_page_says_if_one_view_or_one_cluster_leaves_nothing_to_compare() {
    let data = Synthetic::new(60, 2);
    let views = |names: &[&str]| {
        Views::new(names.iter().map(|name| data.dense::<f64>(name, 8).unwrap()).collect()).unwrap()
    };
    let page = |views: &Views<'_>, clusters| {
        Report::new(views, &Daimc::new(clusters).fit(views).unwrap()).render().unwrap()
    };
    assert!(page(&views(&["a"]), 2).contains("There is one view, so all evidence comes from it"));
    assert!(
        page(&views(&["a", "b"]), 1)
            .contains("There is one cluster, so there is no other to compare it with")
    );
    assert!(page(&views(&["a", "b"]), 2).contains("id=contributions-table"));
}

#[test]
fn names_are_escaped() {
    let hostile = "</script><img src=x onerror=alert(1)>\u{2028}\"'&";
    let ids = (0..12).map(|i| format!("{hostile}{i}")).collect();
    let values: Vec<f64> = (0..36).map(|i| f64::from(i * i % 13)).collect();
    let names = (0..3).map(|f| format!("{hostile}{f}")).collect();
    let view = View::dense(hostile, 3, values).unwrap().ids(ids).unwrap().feature_names(names).unwrap();
    let views = Views::new(vec![view]).unwrap();
    let fit = Daimc::new(2).fit(&views).unwrap();
    let classes: Vec<Option<&str>> = (0..12).map(|i| (i > 2).then_some(hostile)).collect();
    let provenance = serde_json::json!({ hostile: hostile, "list": [hostile] });
    let report = Report::new(&views, &fit).title(hostile).truth(&classes).provenance(&provenance);
    let page = report.render().unwrap();
    assert!(!page.contains("<img"), "no name became a tag");
    assert_eq!(page.matches("</script>").count(), 2, "the data and the script end once each");
    assert!(!page.contains('\u{2028}') || !page[page.find("id=data").unwrap()..].contains('\u{2028}'));
}

#[test]
fn the_page_may_load_nothing_and_names_no_address() {
    let data = Synthetic::new(50, 2);
    let views = Views::new(vec![data.dense::<f64>("only", 5).unwrap()]).unwrap();
    let fit = Daimc::new(2).fit(&views).unwrap();
    let page = Report::new(&views, &fit).render().unwrap();
    assert!(page.contains("default-src 'none'"));
    assert!(!page.contains("http://") && !page.contains("https://") && !page.contains("url(h"));
    assert!(page.contains("There is one view"), "an edge state says what it is");
    assert!(page.contains(">feature 4<"), "features without names are numbered");
    assert!(!page.contains("True classes"));
}

#[test]
fn the_page_says_if_nothing_is_missing_and_if_there_is_one_cluster() {
    let data = Synthetic::new(40, 1);
    let views = vec![data.dense::<f64>("a", 3).unwrap(), data.dense::<f64>("b", 3).unwrap()];
    let views = Views::new(views).unwrap();
    let fit = Daimc::new(1).fit(&views).unwrap();
    let page = Report::new(&views, &fit).render().unwrap();
    assert!(page.contains("Nothing is missing"));
    let (shown, _) = page.rsplit_once("<script>").unwrap();
    assert!(!shown.contains("NaN"));
}

#[test]
fn the_same_model_makes_the_same_page() {
    let data = Synthetic::new(5000, 3);
    let views = Views::new(vec![data.dense::<f32>("a", 4).unwrap()]).unwrap();
    let fit = Daimc::new(3).max_iterations(2).fit(&views).unwrap();
    let report = Report::new(&views, &fit);
    assert_eq!(report.render().unwrap(), report.render().unwrap());
}

#[test]
fn the_page_judges_the_clusters_and_says_what_was_done() {
    let data = Synthetic::new(200, 3).noise(0.5);
    let present = simulate::missing(200, &[0.3, 0.3], 1).unwrap();
    let views = ["rna", "protein"].iter().zip(&present);
    let views = views.map(|(name, present)| data.dense::<f64>(name, 12).unwrap().mask(present).unwrap());
    let views = Views::new(views.collect()).unwrap();
    let fit = Daimc::new(3).seed(17).fit(&views).unwrap();
    let page = Report::new(&views, &fit).render().unwrap();
    let verdict = &page[page.find("class=verdict").unwrap()..];
    for words in ["The 3 clusters are clearer than chance", "reproducible", "mean silhouette"] {
        assert!(verdict[..600].contains(words), "{words}: {}", &verdict[..600]);
    }
    let methods = &page[page.find("id=methods-text").unwrap()..];
    let scale = fit.model.views[0].scaling.scale.to_string();
    let paragraph = [
        env!("CARGO_PKG_VERSION"),
        "Hu, M. and Chen, S. (2018)",
        "seed 17",
        "K = 3",
        "rna: 12 features",
        &scale,
    ];
    for words in paragraph {
        assert!(methods[..3000].contains(words), "{words}: {}", &methods[..3000]);
    }
    assert!(methods.contains(&fit.neighbours.reason) && methods.contains(&fit.model.views[1].scaling.reason));
    let noise: Vec<f64> = (0..800).map(|i| f64::from(i * i * 31 % 997)).collect();
    let views = Views::new(vec![View::dense("noise", 8, noise).unwrap()]).unwrap();
    let fit = Daimc::new(4).fit(&views).unwrap();
    let page = Report::new(&views, &fit).render().unwrap();
    let clear = fit.significance.is_some_and(|found| found.is_clear());
    assert_eq!(page.contains("clusters are no clearer than chance"), !clear);
}
