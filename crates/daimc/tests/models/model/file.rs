//! The file.

use super::*;

#[test]
fn a_model_that_is_saved_and_loaded_is_equal_to_the_last_bit() {
    let data = easy(120);
    let ids = (0..120).map(|i| format!("instance {i} “ü\"\\")).collect();
    let names = (0..12).map(|f| format!("feature {f}\n")).collect();
    let named = data.dense::<f64>("a \"view\"", 12).unwrap();
    let named = named.ids(ids).unwrap().feature_names(names).unwrap();
    let named = Views::new(vec![named, data.sparse::<f32>("ü", 60, 0.1).unwrap()]).unwrap();
    for views in [named, incomplete(&data, 2)] {
        for (seed, scale) in
            [Scale::Auto, Scale::None, Scale::Unit, Scale::MinMax, Scale::ZScoreUnit].iter().enumerate()
        {
            for preset in [Preset::Default, Preset::Paper] {
                let daimc = Daimc::new(4).preset(preset).scale(*scale).seed(u64::MAX - seed as u64);
                let fitted =
                    daimc.alpha(std::f64::consts::PI).beta(1.0 / 3.0).tolerance(0.0).fit(&views).unwrap();
                let loaded = Fit::from_bytes(&fitted.to_bytes().unwrap()).unwrap();
                assert_eq!(loaded.model.options, fitted.model.options);
                assert_eq!(loaded.model.views, fitted.model.views);
                assert_eq!(loaded.history, fitted.history);
                assert_eq!(loaded.timings, fitted.timings);
                assert_eq!(loaded, fitted);
            }
        }
    }
}

#[test]
fn a_model_can_be_handed_on_without_the_instances_that_it_was_fitted_to() {
    let data = Synthetic::new(60, 3).seed(5);
    let ids: Vec<String> = (0..60).map(|i| format!("patient-{i}")).collect();
    let view = || data.dense::<f64>("a", 12).unwrap();
    let views = Views::new(vec![view().ids(ids).unwrap()]).unwrap();
    let fitted = Daimc::new(3).fit(&views).unwrap();

    let alone = fitted.model.to_bytes().unwrap();
    let text = String::from_utf8_lossy(&alone);
    assert!(!text.contains("patient"));
    assert!(alone.len() < fitted.to_bytes().unwrap().len());
    let model = Model::from_bytes(&alone).unwrap();
    assert_eq!(model, fitted.model);
    assert_eq!(model, Model::from_bytes(&fitted.to_bytes().unwrap()).unwrap());
    let new = Views::new(vec![view()]).unwrap();
    assert_eq!(model.place(&new).unwrap(), fitted.model.place(&new).unwrap());
    assert_eq!(model.contributions_of(&new, &fitted.labels).unwrap(), fitted.contributions(&views).unwrap());
    assert_eq!(model.sizes.iter().sum::<usize>(), 60);
    let refused = Fit::from_bytes(&alone).unwrap_err().to_string();
    assert!(refused.contains("a model alone"), "{refused}");
}

#[test]
fn a_model_has_the_same_bytes_every_time() {
    let views = incomplete(&easy(120), 2);
    let fitted = Daimc::new(4).fit(&views).unwrap();
    let bytes = fitted.to_bytes().unwrap();
    assert!(fitted.to_bytes().unwrap() == bytes, "two files of one model differ");
    assert!(fitted.clone().to_bytes().unwrap() == bytes, "the file of a copy differs");
    let file = Scratch::new("bytes");
    fitted.save(&file.0).unwrap();
    assert!(std::fs::read(&file.0).unwrap() == bytes, "the saved bytes differ from `to_bytes`");
}

#[test]
fn a_model_that_is_loaded_has_the_bytes_of_its_file() {
    let bytes = Daimc::new(4).fit(&incomplete(&easy(120), 2)).unwrap().to_bytes().unwrap();
    assert!(
        Fit::from_bytes(&bytes).unwrap().to_bytes().unwrap() == bytes,
        "the file changes when it is loaded"
    );
}

#[test]
fn a_model_is_saved_over_an_older_one_and_leaves_nothing_else() {
    let views = incomplete(&easy(120), 2);
    let file = Scratch::new("older");
    Daimc::new(2).max_iterations(2).fit(&views).unwrap().save(&file.0).unwrap();
    let fitted = Daimc::new(4).max_iterations(2).fit(&views).unwrap();
    fitted.save(&file.0).unwrap();
    assert_eq!(Fit::load(&file.0).unwrap().labels, fitted.labels);
    let name = file.0.file_name().unwrap().to_str().unwrap();
    let folder = std::fs::read_dir(file.0.parent().unwrap()).unwrap();
    let left = folder.filter(|entry| entry.as_ref().unwrap().file_name().to_str().unwrap().starts_with(name));
    assert_eq!(left.count(), 1);
}

#[test]
fn a_loaded_model_places_instances_as_the_fitted_one() {
    let (old, new) = (incomplete(&easy(200), 2), incomplete(&easy(77), 3));
    for preset in [Preset::Default, Preset::Paper] {
        for scale in [Scale::Auto, Scale::MinMaxUnit, Scale::ZScore, Scale::TfIdf] {
            let fitted = Daimc::new(4).preset(preset).scale(scale).fit(&old).unwrap();
            let file = Scratch::new(&format!("places-{preset:?}-{scale}"));
            fitted.save(&file.0).unwrap();
            let loaded = Fit::load(&file.0).unwrap();
            for views in [&old, &new] {
                let (a, b) = (fitted.model.place(views).unwrap(), loaded.model.place(views).unwrap());
                assert_eq!(a.labels, b.labels);
                assert_close(&b.latent, &a.latent, 1e-12);
            }
        }
    }
}

#[test]
fn ids_and_feature_names_are_kept() {
    let ids: Vec<String> = (0..40).map(|i| format!("id {i}")).collect();
    let names: Vec<String> = (0..6).map(|f| format!("feature {f}")).collect();
    let data = easy(40);
    let a =
        data.dense::<f64>("a", 6).unwrap().ids(ids.clone()).unwrap().feature_names(names.clone()).unwrap();
    let views = Views::new(vec![a, data.dense::<f64>("b", 5).unwrap()]).unwrap();
    let fitted = Daimc::new(4).fit(&views).unwrap();
    for fitted in [&fitted, &Fit::from_bytes(&fitted.to_bytes().unwrap()).unwrap()] {
        assert_eq!(fitted.ids, Ids::Names(ids.clone()));
        assert_eq!(fitted.model.views[0].feature_names.as_ref(), Some(&names));
        assert_eq!(fitted.model.views[1].feature_names, None);
        assert_eq!((&fitted.model.views[0].name[..], &fitted.model.views[1].name[..]), ("a", "b"));
    }
    let plain = Daimc::new(4).fit(&incomplete(&data, 1)).unwrap();
    assert_eq!(plain.ids, Ids::Numbers(40));
}
