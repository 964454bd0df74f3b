//! Products with the matrix of a graph, from which its leading eigenvectors are computed.

use std::sync::{Arc, Mutex, PoisonError};

use daimc::Result;
use daimc::accelerator::{Links, Multiplier};

use crate::gpu::{Argument, Gpu, Memory};
use crate::sums::{add_parts, parts};

/// The matrix of a graph and two blocks of vectors on a GPU.
pub struct GpuLinks {
    gpu: Arc<Gpu>,
    offsets: Memory<i64>,
    columns: Memory<i32>,
    weights: Memory<f32>,
    roots: Memory<f64>,
    background: f64,
    rows: usize,
    width: usize,
    blocks: Mutex<[Memory<f32>; 2]>,
}

impl GpuLinks {
    /// Copies the matrix to the GPU; `None` if it does not fit.
    pub fn new(gpu: &Arc<Gpu>, links: &Links<'_>, width: usize) -> Result<Option<Self>> {
        let Links { offsets, columns, weights, roots, background } = *links;
        let rows = roots.len();
        let bytes = 16 * rows + 8 * columns.len() + 8 * rows * width;
        if bytes + bytes / 8 > gpu.free()? || i32::try_from(rows).is_err() {
            return Ok(None);
        }
        Ok(Some(Self {
            offsets: gpu.copy(&offsets.iter().map(|&at| at as i64).collect::<Vec<_>>())?,
            columns: gpu.copy(&columns.iter().map(|&other| other as i32).collect::<Vec<_>>())?,
            weights: gpu.copy(weights)?,
            roots: gpu.copy(roots)?,
            background,
            rows,
            width,
            blocks: Mutex::new([gpu.allocate(rows * width)?, gpu.allocate(rows * width)?]),
            gpu: gpu.clone(),
        }))
    }

    /// Threads per row.
    fn lanes(&self) -> usize {
        if self.width <= 16 { 16 } else { 32 }
    }

    /// `Y ← a S X + b X + c Y`.
    fn step(&self, x: &Memory<f32>, y: &Memory<f32>, [a, b, c]: [f64; 3]) -> Result<()> {
        let (gpu, width, lanes) = (&*self.gpu, self.width, self.lanes());
        let (part, count) = parts(self.rows);
        let (partial, sums) = (gpu.allocate::<f64>(count * width)?, gpu.allocate::<f64>(width)?);
        let kernel = gpu.kernel("links", "root_sums", 0)?;
        let arguments = [
            x.at(),
            self.roots.at(),
            Argument::long(self.rows),
            Argument::int(width),
            Argument::int(lanes),
            Argument::long(part),
            partial.at(),
        ];
        gpu.launch(&kernel, (count, 1, 1), (256, 1), &arguments)?;
        add_parts(gpu, &partial, width, count, sums.at())?;
        let kernel = gpu.kernel("links", "times", 0)?;
        let arguments = [
            self.offsets.at(),
            self.columns.at(),
            self.weights.at(),
            self.roots.at(),
            sums.at(),
            Argument::Double(self.background),
            Argument::long(self.rows),
            Argument::int(width),
            Argument::int(lanes),
            x.at(),
            Argument::Double(a),
            Argument::Double(b),
            Argument::Double(c),
            y.at(),
        ];
        gpu.launch(&kernel, ((self.rows * lanes).div_ceil(256), 1, 1), (256, 1), &arguments)
    }
}

impl Multiplier for GpuLinks {
    fn multiply(&self, x: &mut [f32], y: &mut [f32], steps: &[[f64; 3]]) -> Result<()> {
        let gpu = &*self.gpu;
        let _lock = gpu.lock();
        let mut blocks = self.blocks.lock().unwrap_or_else(PoisonError::into_inner);
        gpu.write(x, &mut blocks[0])?;
        if steps.first().is_some_and(|step| step[2] != 0.0) {
            gpu.write(y, &mut blocks[1])?;
        }
        for (number, step) in steps.iter().enumerate() {
            let from = number % 2;
            self.step(&blocks[from], &blocks[1 - from], *step)?;
        }
        match steps.len() {
            0 => Ok(()),
            odd if odd % 2 == 1 => gpu.read_into(&blocks[1], y),
            _ => gpu.read_into(&blocks[0], x),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `Y ← a S X + b X + c Y`, by the definition.
    fn literal(links: &Links<'_>, width: usize, x: &[f32], [a, b, c]: [f64; 3], y: &mut [f32]) {
        let (n, roots) = (links.roots.len(), links.roots);
        for k in 0..width {
            let at = |i: usize| i * width + k;
            let all: f64 = (0..n).map(|j| roots[j] * f64::from(x[at(j)])).sum();
            for i in 0..n {
                let entries = links.offsets[i]..links.offsets[i + 1];
                let linked: f64 = entries
                    .map(|e| (links.columns[e] as usize, f64::from(links.weights[e])))
                    .map(|(j, weight)| weight * roots[j] * f64::from(x[at(j)]))
                    .sum();
                let product = roots[i] * (linked + links.background * all);
                y[at(i)] = (a * product + b * f64::from(x[at(i)]) + c * f64::from(y[at(i)])) as f32;
            }
        }
    }

    #[test]
    fn products_match_their_definition() {
        let gpu = match Gpu::open(0) {
            Ok(gpu) => Arc::new(gpu),
            Err(reason) => return eprintln!("skipped: {reason}"),
        };
        let n = 1501;
        let (mut offsets, mut columns, mut weights) = (vec![0], Vec::new(), Vec::new());
        for i in 0..n {
            // Some rows have no entries.
            for step in 1..=i % 7 {
                columns.push(((i * 31 + step * 97) % n) as u32);
                weights.push(((i + step) % 5) as f32 / 5.0);
            }
            offsets.push(columns.len());
        }
        let roots: Vec<f64> = (0..n).map(|i| 0.1 + (i % 11) as f64 / 20.0).collect();
        let links = Links {
            offsets: &offsets,
            columns: &columns,
            weights: &weights,
            roots: &roots,
            background: 1e-3,
        };
        let steps = [[0.3, -0.2, 0.5], [0.5, 0.1, -1.0], [0.0, 0.7, 0.2], [0.4, 0.0, 0.0]];
        for (width, count) in [(1, 4), (16, 1), (16, 4), (21, 3), (70, 2)] {
            let matrix = GpuLinks::new(&gpu, &links, width).unwrap().unwrap();
            let block = |seed: usize| -> Vec<f32> {
                (0..n * width).map(|i| ((i * 37 + seed) % 101) as f32 / 50.0 - 1.0).collect()
            };
            let (mut x, mut y, mut own, mut other) = (block(1), block(2), block(1), block(2));
            matrix.multiply(&mut x, &mut y, &steps[..count]).unwrap();
            for (number, step) in steps[..count].iter().enumerate() {
                if number % 2 == 0 {
                    literal(&links, width, &own, *step, &mut other);
                } else {
                    literal(&links, width, &other, *step, &mut own);
                }
            }
            let (found, expected) = if count % 2 == 1 { (&y, &other) } else { (&x, &own) };
            for (found, expected) in found.iter().zip(expected) {
                assert!((found - expected).abs() < 1e-5 * (1.0 + expected.abs()), "{found} {expected}");
            }
            if count == 1 {
                assert_eq!(x, own);
            }
        }
    }
}
