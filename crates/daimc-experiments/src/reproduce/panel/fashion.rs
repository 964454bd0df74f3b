//! Fashion-MNIST: images of clothes, and three views computed from them.

use std::io::Read;
use std::path::Path;

use daimc::{View, Views};
use rayon::prelude::*;

use super::super::files::Files;
use crate::harness::{Error, Result};

/// The images: the first of the test set, or all.
const SOME: &[(&str, usize)] = &[("t10k", 5000)];
const ALL: &[(&str, usize)] = &[("train", 60_000), ("t10k", 10_000)];
/// Pixels of a side.
const SIDE: usize = 28;
/// Cells of a side, and directions, of the histograms of gradients.
const CELLS: usize = 4;
const DIRECTIONS: usize = 8;
/// Fourier frequencies below this are kept, in either direction.
const FREQUENCIES: usize = 8;

pub const FILES: &str = "t10k-images-idx3-ubyte and t10k-labels-idx1-ubyte (and the same of train for all images), each as it is \
                         or as .gz, of Fashion-MNIST (Debian has them in the package dataset-fashion-mnist)";

/// The views and the class of 5000 images.
pub fn some(files: &mut Files) -> Result<(Views<'static>, Vec<usize>)> {
    read(files, SOME)
}

/// The views and the class of all 70 000 images.
pub fn all(files: &mut Files) -> Result<(Views<'static>, Vec<usize>)> {
    read(files, ALL)
}

fn read(files: &mut Files, parts: &[(&str, usize)]) -> Result<(Views<'static>, Vec<usize>)> {
    let (mut images, mut labels) = (Vec::new(), Vec::new());
    for &(part, count) in parts {
        images.extend(idx(files, &format!("{part}-images-idx3-ubyte"), count, &[SIDE, SIDE])?);
        labels.extend(idx(files, &format!("{part}-labels-idx1-ubyte"), count, &[])?);
    }
    let pixels: Vec<f64> = images.iter().map(|&pixel| f64::from(pixel) / 255.0).collect();
    let made = |view: fn(&[f64]) -> Vec<f64>| -> Vec<f64> {
        pixels.par_chunks_exact(SIDE * SIDE).flat_map_iter(view).collect()
    };
    let (gradients, frequencies) = (made(gradients), made(frequencies));
    let view = |name: &str, values: Vec<f64>| View::dense(name, values.len() / labels.len(), values);
    let views =
        vec![view("pixels", pixels)?, view("gradients", gradients)?, view("frequencies", frequencies)?];
    Ok((Views::new(views)?, labels.into_iter().map(usize::from).collect()))
}

/// The first `count` items, of these sizes, of an IDX file.
fn idx(files: &mut Files, name: &str, count: usize, sizes: &[usize]) -> Result<Vec<u8>> {
    let packed = format!("{name}.gz");
    let file = if files.folder.join(&packed).is_file() { packed } else { name.to_owned() };
    let path = files.path(&file)?;
    let fail = |reason: &str| Error::Data(format!("{}: {reason}", path.display()));
    let bytes = std::fs::read(&path).map_err(|error| fail(&format!("cannot be read: {error}")))?;
    files.note(&file, &daimc_io::sha256(&bytes));
    let header = 4 + 4 * (1 + sizes.len());
    let wanted = header + count * sizes.iter().product::<usize>();
    let mut content = vec![0; wanted];
    let whole = if Path::new(&file).extension().is_some_and(|extension| extension == "gz") {
        flate2::read::GzDecoder::new(&bytes[..]).read_exact(&mut content)
    } else {
        (&bytes[..]).read_exact(&mut content)
    };
    whole.map_err(|_| fail(&format!("holds less than {count} items; fetch the file again")))?;
    // Unsigned bytes (8), the number of dimensions, and these, the first being the number of items.
    let expected: Vec<u8> = [0, 0, 8, 1 + sizes.len() as u8].into();
    let dimensions: Vec<u8> = sizes.iter().flat_map(|&size| (size as u32).to_be_bytes()).collect();
    if content[..4] != expected || content[8..header] != dimensions {
        return Err(fail("is no IDX file of Fashion-MNIST; fetch the file again"));
    }
    content.drain(..header);
    Ok(content)
}

/// Histograms of the directions of gradients in cells of 7 × 7 pixels, weighted by their lengths and shared between the two
/// nearest directions; those of four neighbouring cells are brought to length 1 together.
fn gradients(image: &[f64]) -> Vec<f64> {
    let at = |y: usize, x: usize| image[y.min(SIDE - 1) * SIDE + x.min(SIDE - 1)];
    let mut cells = vec![[0.0; DIRECTIONS]; CELLS * CELLS];
    for y in 0..SIDE {
        for x in 0..SIDE {
            let across = at(y, x + 1) - at(y, x.saturating_sub(1));
            let down = at(y + 1, x) - at(y.saturating_sub(1), x);
            // Opposite directions are the same.
            let turn = down.atan2(across).rem_euclid(std::f64::consts::PI) / std::f64::consts::PI;
            let place = turn * DIRECTIONS as f64;
            let (first, share) = (place.floor(), place.fract());
            let cell = &mut cells[y * CELLS / SIDE * CELLS + x * CELLS / SIDE];
            let length = across.hypot(down);
            cell[first as usize % DIRECTIONS] += (1.0 - share) * length;
            cell[(first as usize + 1) % DIRECTIONS] += share * length;
        }
    }
    let mut out = Vec::with_capacity((CELLS - 1) * (CELLS - 1) * 4 * DIRECTIONS);
    for y in 0..CELLS - 1 {
        for x in 0..CELLS - 1 {
            let block = [(y, x), (y, x + 1), (y + 1, x), (y + 1, x + 1)].map(|(y, x)| cells[y * CELLS + x]);
            let length = block.iter().flatten().map(|value| value * value).sum::<f64>().sqrt();
            out.extend(block.iter().flatten().map(|value| if length > 0.0 { value / length } else { 0.0 }));
        }
    }
    out
}

/// Magnitudes of the Fourier coefficients of low frequencies; those of opposite frequencies are equal, so that half is enough.
fn frequencies(image: &[f64]) -> Vec<f64> {
    let wave = |frequency: f64, place: usize| {
        let (sin, cos) = (2.0 * std::f64::consts::PI * frequency * place as f64 / SIDE as f64).sin_cos();
        (cos, -sin)
    };
    let mut out = Vec::with_capacity(FREQUENCIES * (2 * FREQUENCIES - 1));
    for across in 0..FREQUENCIES {
        let rows: Vec<(f64, f64)> = image
            .chunks_exact(SIDE)
            .map(|row| {
                row.iter().enumerate().fold((0.0, 0.0), |sum, (x, pixel)| {
                    let (re, im) = wave(across as f64, x);
                    (sum.0 + pixel * re, sum.1 + pixel * im)
                })
            })
            .collect();
        for down in 0..2 * FREQUENCIES - 1 {
            let down = down as f64 - (FREQUENCIES - 1) as f64;
            let sum = rows.iter().enumerate().fold((0.0_f64, 0.0_f64), |sum, (y, row)| {
                let (re, im) = wave(down, y);
                (sum.0 + row.0 * re - row.1 * im, sum.1 + row.0 * im + row.1 * re)
            });
            out.push(sum.0.hypot(sum.1));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(pixel: impl Fn(usize, usize) -> f64) -> Vec<f64> {
        (0..SIDE * SIDE).map(|at| pixel(at / SIDE, at % SIDE)).collect()
    }

    #[test]
    fn a_vertical_edge_has_one_direction() {
        let found = gradients(&image(|_, x| f64::from(u8::from(x > 10))));
        assert_eq!(found.len(), 9 * 4 * DIRECTIONS);
        for (at, value) in found.iter().enumerate() {
            assert!(*value == 0.0 || at % DIRECTIONS == 0, "{at}: {value}");
        }
        // Blocks that contain the edge have length 1.
        let square: f64 = found[..4 * DIRECTIONS].iter().map(|value| value * value).sum();
        assert!((square - 1.0).abs() < 1e-12);
        assert!(gradients(&image(|_, _| 0.5)).iter().all(|value| *value == 0.0));
    }

    #[test]
    fn magnitudes_do_not_depend_on_the_phase() {
        let wave = |start: f64| {
            image(|y, x| {
                (2.0 * std::f64::consts::PI * (3.0 * x as f64 + 2.0 * y as f64 + start) / SIDE as f64).cos()
            })
        };
        let (one, other) = (frequencies(&wave(0.0)), frequencies(&wave(5.0)));
        assert_eq!(one.len(), FREQUENCIES * (2 * FREQUENCIES - 1));
        let place = 3 * (2 * FREQUENCIES - 1) + FREQUENCIES - 1 + 2;
        for (at, (a, b)) in one.iter().zip(&other).enumerate() {
            let expected = if at == place { (SIDE * SIDE) as f64 / 2.0 } else { 0.0 };
            assert!((a - expected).abs() < 1e-9 && (b - expected).abs() < 1e-9, "{at}: {a} {b}");
        }
    }
}
