//! The error of the reconstruction, by instance.

use daimc::synthetic::Synthetic;
use daimc::{Daimc, Scale, View, Views, simulate};

fn incomplete(data: &Synthetic, instances: usize) -> Views<'static> {
    let present = simulate::missing(instances, &[0.3; 3], 5).unwrap();
    let views = vec![
        data.dense::<f64>("a", 12).unwrap(),
        data.dense::<f32>("b", 20).unwrap(),
        data.sparse::<f64>("c", 60, 0.1).unwrap(),
    ];
    let masked = views.into_iter().zip(&present).map(|(view, present)| view.mask(present).unwrap());
    Views::new(masked.collect()).unwrap()
}

#[test]
fn errors_add_up_to_the_loss_under_every_scaling() {
    let data = Synthetic::new(700, 4).noise(0.5).seed(2);
    let views = incomplete(&data, 700);
    for scale in [Scale::Auto, Scale::None, Scale::MinMax, Scale::MinMaxUnit, Scale::ZScore] {
        let fitted = Daimc::new(4).scale(scale).max_iterations(5).fit(&views).unwrap();
        let of = |view: &daimc::ViewModel| fitted.misfit(&views, &view.name).unwrap().error;
        let sum: f64 = fitted.model.views.iter().flat_map(of).sum();
        let loss = fitted.objective.loss;
        assert!((sum - loss).abs() < 1e-5 * loss, "{scale}: {sum}, not {loss}");
    }
}

#[test]
fn each_error_is_that_of_its_own_row_and_zero_where_there_is_none() {
    let values: Vec<f64> = (0..40).map(|i| f64::from(i * i % 17)).collect();
    let present: Vec<bool> = (0..10).map(|i| i % 3 != 1).collect();
    let gaps = View::dense("gaps", 4, &values).unwrap().mask(&present).unwrap();
    let views = Views::new(vec![gaps, View::dense("whole", 4, &values).unwrap()]).unwrap();
    let fitted = Daimc::new(2).scale(Scale::None).equal_weight(false).fit(&views).unwrap();
    let misfit = fitted.misfit(&views, "gaps").unwrap();
    let made = fitted.model.reconstruct("gaps", &fitted.latent).unwrap();
    for i in 0..10 {
        let row = &values[4 * i..4 * i + 4];
        let error: f64 = row.iter().zip(made.row(i)).map(|(x, y)| (x - y).powi(2)).sum();
        let square: f64 = row.iter().map(|x| x * x).sum();
        let expected = if present[i] { (error, square) } else { (0.0, 0.0) };
        assert!((misfit.error[i] - expected.0).abs() < 1e-8, "{i}");
        assert!((misfit.square[i] - expected.1).abs() < 1e-8, "{i}");
    }
}

#[test]
fn other_instances_or_an_unknown_view_are_refused() {
    let data = Synthetic::new(60, 2);
    let views = Views::new(vec![data.dense::<f64>("a", 5).unwrap()]).unwrap();
    let fitted = Daimc::new(2).fit(&views).unwrap();
    let fewer = Views::new(vec![Synthetic::new(59, 2).dense::<f64>("a", 5).unwrap()]).unwrap();
    let message = fitted.misfit(&fewer, "a").unwrap_err().to_string();
    assert_eq!(message, "instances: expected 60 values, found 59");
    assert!(fitted.misfit(&views, "b").unwrap_err().to_string().contains("not part of the model"));
    let renamed = Views::new(vec![data.dense::<f64>("z", 5).unwrap()]).unwrap();
    assert!(fitted.misfit(&renamed, "a").is_err());
}
