//! Calls of a model, and files, that are refused.

use super::*;

#[test]
fn new_data_that_do_not_fit_the_model_are_refused() {
    let data = Synthetic::new(30, 3).seed(1);
    let names = strings(&["p", "q", "r", "s"]);
    let a = data.dense::<f64>("a", 4).unwrap().feature_names(names.clone()).unwrap();
    let views = Views::new(vec![a.clone(), data.dense::<f32>("b", 6).unwrap()]).unwrap();
    let fitted = Daimc::new(3).fit(&views).unwrap();
    let predict = |view: View<'static>| fitted.model.predict(&Views::new(vec![view]).unwrap());

    let unknown = predict(data.dense::<f64>("c", 4).unwrap());
    refused!(unknown, Error::UnknownView { .. }, "view 'c'", "a, b");
    let fewer = predict(data.dense::<f64>("a", 3).unwrap());
    refused!(fewer, Error::Shape { expected: 4, found: 3, .. }, "view 'a'", "features");
    let swapped = a.clone().feature_names(strings(&["p", "r", "q", "s"])).unwrap();
    refused!(
        predict(swapped),
        Error::Unsuitable { what: "features", .. },
        "view 'a'",
        "column 1",
        "'q'",
        "r"
    );
    assert_eq!(predict(a.clone()).unwrap().len(), 30);
    assert_eq!(predict(data.dense::<f64>("a", 4).unwrap()).unwrap(), predict(a).unwrap());
}

#[test]
fn reconstructing_from_rows_of_another_width_is_refused() {
    let fitted = Daimc::new(3).fit(&easy()).unwrap();
    let wide = fitted.model.reconstruct("a", &Matrix::zeros(5, 4));
    refused!(wide, Error::LengthMismatch { expected: 3, found: 4, .. }, "3", "4");
    refused!(fitted.model.reconstruct("c", &fitted.latent), Error::UnknownView { .. }, "view 'c'", "a, b");
}

// Files that are refused.

/// The bytes of a small model.
fn bytes() -> Vec<u8> {
    Daimc::new(3).max_iterations(3).fit(&easy()).unwrap().to_bytes().unwrap()
}

/// The bytes with the first `from` replaced by `to`, of the same length.
fn replaced(bytes: &[u8], from: &str, to: &str) -> Vec<u8> {
    assert_eq!(from.len(), to.len());
    let at = bytes.windows(from.len()).position(|window| window == from.as_bytes()).unwrap();
    let mut bytes = bytes.to_vec();
    bytes[at..at + to.len()].copy_from_slice(to.as_bytes());
    bytes
}

#[test]
fn bytes_that_are_no_model_are_refused() {
    for garbage in [&b""[..], &b"garbage"[..], &[0; 100], &[0xff; 100], &[7; 4096]] {
        refused!(Fit::from_bytes(garbage), Error::ModelFile { .. }, "not a model");
    }
}

#[test]
fn every_truncated_model_is_refused() {
    let bytes = bytes();
    let (header, _) = bytes.split_first_chunk::<8>().unwrap();
    let header = 8 + u64::from_le_bytes(*header) as usize;
    let lengths = (0..header).step_by(7).chain(header..bytes.len());
    for length in lengths {
        refused!(Fit::from_bytes(&bytes[..length]), Error::ModelFile { .. }, "not a model");
    }
}

#[test]
fn a_file_of_other_tensors_is_refused() {
    let values = [0_u8; 16];
    let tensor = || [("latent", TensorView::new(Dtype::F64, vec![2], &values).unwrap())];
    let metadata = |key: &str, text: &str| Some(HashMap::from([(key.to_string(), text.to_string())]));
    let plain = safetensors::serialize(tensor(), None).unwrap();
    refused!(Fit::from_bytes(&plain), Error::ModelFile { .. }, "not one of daimc");
    let other = safetensors::serialize(tensor(), metadata("format", "pt")).unwrap();
    refused!(Fit::from_bytes(&other), Error::ModelFile { .. }, "not one of daimc");
    for text in ["", "{}", "[]", "null", "{\"version\":1}", "{\"version\":2}", "{\"version\":-1}"] {
        let claimed = safetensors::serialize(tensor(), metadata("daimc", text)).unwrap();
        refused!(Fit::from_bytes(&claimed), Error::ModelFile { .. }, "not a model");
    }
}

#[test]
fn a_model_of_another_version_is_refused() {
    let later = replaced(&bytes(), r#"\"version\":2"#, r#"\"version\":9"#);
    refused!(Fit::from_bytes(&later), Error::ModelFile { .. }, "version", "9");
}

#[test]
fn a_model_whose_parts_do_not_fit_is_refused() {
    let bytes = bytes();
    for (from, to) in [
        (r#"\"clusters\":3"#, r#"\"clusters\":2"#),
        (r#"\"latent\":3"#, r#"\"latent\":4"#),
        (r#"\"instances\":30"#, r#"\"instances\":31"#),
        (r#""view.1.basis""#, r#""view.9.basis""#),
        (r#""view.0.basis""#, r#""view.2.basis""#),
    ] {
        refused!(Fit::from_bytes(&replaced(&bytes, from, to)), Error::ModelFile { .. }, "not a model");
    }
    let mut nan = bytes.clone();
    let end = nan.len();
    nan[end - 8..].copy_from_slice(&f64::NAN.to_le_bytes());
    refused!(Fit::from_bytes(&nan), Error::ModelFile { .. }, "NaN");
}

#[test]
fn a_model_with_any_byte_changed_is_refused_or_usable() {
    let (bytes, views) = (bytes(), easy());
    for at in (0..bytes.len()).step_by(3) {
        for flip in [0x01, 0x10, 0x80] {
            let mut changed = bytes.clone();
            changed[at] ^= flip;
            match Fit::from_bytes(&changed) {
                Err(Error::OutOfRange) => {}
                Err(error) => refused!(Err::<(), _>(error), Error::ModelFile { .. }, "not a model"),
                Ok(fitted) => {
                    // A name or a number may have changed; where it matters, the result is an error, not a panic.
                    if let Ok(labels) = fitted.model.predict(&views) {
                        assert!(labels.iter().all(|&label| label < 3), "byte {at} ^ {flip}: {labels:?}");
                    }
                }
            }
        }
    }
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let path = std::env::temp_dir().join("daimc-there-is-no-such-model");
    let shown = path.display().to_string();
    refused!(Fit::load(&path), Error::Io { .. }, &shown);
    let folder = path.join("model");
    let fitted = Daimc::new(3).max_iterations(1).fit(&easy()).unwrap();
    let shown = folder.display().to_string();
    refused!(fitted.save(&folder), Error::Io { .. }, &shown);
}
