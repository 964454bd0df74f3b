//! Model files: names of any size, older files, and manipulated files.

use std::collections::HashMap;
use std::io::{self, Write};

use daimc::synthetic::Synthetic;
use daimc::{Daimc, Error, Fit, Ids, Neighbours, View, Views};
use safetensors::tensor::{Dtype, SafeTensors, TensorView};

/// A small model with names of several alphabets, one of them empty.
fn named() -> Fit {
    let data = Synthetic::new(20, 2).noise(0.3).seed(1);
    let ids = (0..20).map(|i| if i == 3 { String::new() } else { format!("größe {i} 細胞") });
    let features = (0..4).map(|f| format!("größe {f}")).collect();
    let a = data.dense::<f64>("a", 4).unwrap().ids(ids.collect()).unwrap().feature_names(features).unwrap();
    let views = Views::new(vec![a, data.dense::<f64>("b", 3).unwrap()]).unwrap();
    Daimc::new(2).max_iterations(3).fit(&views).unwrap()
}

#[test]
fn a_file_of_version_1_is_read() {
    let fitted = Fit::load(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/version-1.safetensors")).unwrap();
    let ids: Vec<String> = (0..12).map(|i| format!("s{i}")).collect();
    assert_eq!(fitted.ids, Ids::Names(ids));
    assert_eq!(fitted.labels, [0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1]);
    let [a, b] = &fitted.model.views[..] else { panic!("two views") };
    assert_eq!((a.name.as_str(), b.name.as_str()), ("a", "b"));
    assert_eq!(a.feature_names.as_deref(), Some(&["x", "y", "z größe"].map(String::from)[..]));
    assert_eq!(b.feature_names.as_deref(), Some(&["p", "q"].map(String::from)[..]));
    assert_eq!((fitted.model.options.seed, fitted.runs.len()), (3, 2));
    let new = View::dense("a", 3, vec![5.0, 0.1, 1.0, 0.125, 4.975, 1.025]).unwrap();
    let place = fitted.model.place(&Views::new(vec![new]).unwrap()).unwrap();
    assert_eq!(place.labels, [0, 1]);
    // As version 0.1.0 assigned them.
    for (found, known) in place.confidence.iter().zip([0.978_129_403_283_497_5, 0.978_080_404_127_373_7]) {
        assert!((found - known).abs() < 1e-9, "{found} {known}");
    }
    // It is written in the present format.
    assert_eq!(Fit::from_bytes(&fitted.to_bytes().unwrap()).unwrap(), fitted);
}

#[test]
fn more_ids_than_a_header_can_hold_are_kept() {
    let (instances, length) = (500_000_usize, 220);
    let ids: Vec<String> = (0..instances).map(|i| format!("{i:0length$}")).collect();
    let values: Vec<f32> = (0..instances).map(|i| (i % 2) as f32).collect();
    let views = Views::new(vec![View::dense("a", 1, values).unwrap().ids(ids).unwrap()]).unwrap();
    let fitted = Daimc::new(2).neighbours(Neighbours::Off).max_iterations(1).fit(&views).unwrap();
    drop(views);
    let bytes = fitted.to_bytes().unwrap();
    assert!(bytes.len() > 110_000_000);
    assert!(Fit::from_bytes(&bytes).unwrap() == fitted);
}

/// Counts the bytes written, and accepts a limited number at a time.
struct Meter {
    largest: usize,
    left: usize,
}

impl Write for Meter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.largest = self.largest.max(bytes.len());
        self.left = self.left.checked_sub(bytes.len()).ok_or(io::ErrorKind::StorageFull)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_model_is_written_piece_by_piece_and_a_full_disk_is_an_error() {
    let data = Synthetic::new(5000, 2).noise(0.3).seed(1);
    let views = Views::new(vec![data.dense::<f64>("a", 40).unwrap()]).unwrap();
    let fitted = Daimc::new(2).neighbours(Neighbours::Off).max_iterations(2).fit(&views).unwrap();
    let size = fitted.to_bytes().unwrap().len();
    let mut meter = Meter { largest: 0, left: size };
    fitted.write(&mut meter).unwrap();
    assert!(meter.left == 0 && meter.largest < size / 10, "{} of {size}", meter.largest);
    for left in [0, 100, size / 2, size - 1] {
        let error = fitted.write(Meter { largest: 0, left }).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    }
}

/// The tensors of a file: type, shape and bytes by name.
type Tensors = HashMap<String, (Dtype, Vec<usize>, Vec<u8>)>;

/// The file with its tensors changed.
fn changed(bytes: &[u8], change: impl FnOnce(&mut Tensors)) -> Vec<u8> {
    let (_, header) = SafeTensors::read_metadata(bytes).unwrap();
    let file = SafeTensors::deserialize(bytes).unwrap();
    let tensors = file.tensors().into_iter();
    let mut tensors: Tensors =
        tensors.map(|(name, own)| (name, (own.dtype(), own.shape().to_vec(), own.data().to_vec()))).collect();
    change(&mut tensors);
    let views = tensors
        .iter()
        .map(|(name, (dtype, shape, data))| (name, TensorView::new(*dtype, shape.clone(), data).unwrap()));
    safetensors::serialize(views, header.metadata().clone()).unwrap()
}

#[test]
fn invalid_names_are_refused() {
    let bytes = named().to_bytes().unwrap();
    assert_eq!(Fit::from_bytes(&changed(&bytes, |_| ())).unwrap().ids, named().ids);
    for owner in ["ids", "view.0.features"] {
        let (offsets, text) = (format!("{owner}.offsets"), format!("{owner}.bytes"));
        let count = SafeTensors::deserialize(&bytes).unwrap().tensor(&offsets).unwrap().shape()[0];
        let set = |at: usize, value: u64| {
            changed(&bytes, |own| {
                own.get_mut(&offsets).unwrap().2[8 * at..8 * at + 8].copy_from_slice(&value.to_le_bytes());
            })
        };
        let resized = |length: usize| {
            changed(&bytes, |own| {
                let (_, shape, data) = own.get_mut(&offsets).unwrap();
                *shape = vec![length];
                data.resize(8 * length, 0);
            })
        };
        let cases = [
            ("an offset before the one before it", set(2, 0)),
            ("an offset beyond the end", set(1, 1 << 40)),
            ("the largest offset", set(1, u64::MAX)),
            ("an offset within a character", set(1, 3)),
            ("a start that is not the first byte", set(0, 1)),
            ("an end before the last byte", set(count - 1, 5)),
            ("no offset at all", resized(0)),
            ("one offset", resized(1)),
            ("fewer names", resized(count - 1)),
            ("more names", resized(count + 1)),
            ("no offsets", changed(&bytes, |own| drop(own.remove(&offsets)))),
            ("no bytes", changed(&bytes, |own| drop(own.remove(&text)))),
            ("bytes that are not UTF-8", changed(&bytes, |own| own.get_mut(&text).unwrap().2[1] = 0xff)),
            ("offsets of another type", changed(&bytes, |own| own.get_mut(&offsets).unwrap().0 = Dtype::I64)),
            ("bytes of another type", changed(&bytes, |own| own.get_mut(&text).unwrap().0 = Dtype::I8)),
            ("offsets in a matrix", changed(&bytes, |own| own.get_mut(&offsets).unwrap().1.push(1))),
        ];
        for (what, bytes) in cases {
            match Fit::from_bytes(&bytes) {
                Err(Error::ModelFile { .. }) => {}
                other => panic!("{owner}, {what}: {:?}", other.map(|fitted| fitted.ids)),
            }
        }
    }
}

#[test]
fn a_file_with_names_and_any_byte_changed_is_refused_or_a_model() {
    let bytes = named().to_bytes().unwrap();
    for at in 0..bytes.len() {
        for flip in [0x01, 0x80] {
            let mut changed = bytes.clone();
            changed[at] ^= flip;
            match Fit::from_bytes(&changed) {
                Ok(fitted) => assert_eq!((fitted.ids.len(), fitted.labels.len()), (20, 20)),
                Err(Error::ModelFile { .. } | Error::OutOfRange) => {}
                Err(error) => panic!("byte {at}: {error}"),
            }
        }
    }
}

#[test]
fn what_does_not_begin_like_a_model_is_not_read_to_its_end() {
    for endless in ["/dev/zero", "/dev/urandom"] {
        if std::path::Path::new(endless).exists() {
            assert!(matches!(Fit::load(endless), Err(Error::ModelFile { .. })), "{endless}");
        }
    }
}
