//! Partitions of the instances: over several GPUs, and on each GPU into partitions that stay in its memory and others that are copied
//! to it in every sweep.

use std::ops::Range;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::thread::ScopedJoinHandle;

use daimc::accelerator::{Links, Load, Multiplier, NearestOthers, Resident, refused};
use daimc::{Error, Factors, Matrix, Result, Shard, Statistics, Stop, Totals, VStep};

use crate::gpu::Gpu;
use crate::links::GpuLinks;
use crate::rows::ViewRows;
use crate::shard::{GpuShard, ResidentRows};
use crate::{Precision, kernels, nearest};

/// The rows of all instances, in partitions.
pub struct Partitions<'a> {
    load: Load<'a>,
    precision: Precision,
    /// The partitions of each GPU, in the order of the instances.
    per_gpu: Vec<GpuPartitions<'a>>,
}

/// The partitions of one GPU.
struct GpuPartitions<'a> {
    partitions: Vec<Partition<'a>>,
    /// The same GPU with a stream that copies rows while kernels run.
    loader: Gpu,
    gpu: TrimOnDrop,
}

/// Returns the memory of the pool to the driver, for other libraries, after all other fields are dropped.
struct TrimOnDrop(Arc<Gpu>);

impl Drop for TrimOnDrop {
    fn drop(&mut self) {
        // Errors are reported by the calls that use the GPU.
        let _ = self.0.free();
    }
}

/// Consecutive instances.
struct Partition<'a> {
    load: Load<'a>,
    /// With the rows, if the partition is resident.
    rows: Arc<ResidentRows>,
    /// Whether the rows stay in GPU memory between sweeps.
    resident: bool,
}

/// Maximum bytes of the Gram matrices of all presence patterns.
const MAX_GRAM_BYTES: usize = 1 << 30;

/// Approximate bytes of the rows of a partition, if the data does not fit in GPU memory.
const PARTITION_BYTES: usize = 1 << 30;

/// Maximum number of partitions per GPU: each adds latency.
const MAX_PARTITIONS: usize = 4096;

/// Bytes of everything that does not grow with the number of instances.
const OVERHEAD: usize = 256 << 20;

impl<'a> Partitions<'a> {
    /// Divides the instances over GPUs and copies rows there. `memory` limits the bytes on each GPU.
    pub fn new(
        gpus: &[Arc<Gpu>],
        load: Load<'a>,
        precision: Precision,
        memory: Option<usize>,
    ) -> Result<Self> {
        check(&load, &gpus[0].name)?;
        let n = load.instances();
        let gpus = &gpus[..gpus.len().min(n.max(1))];
        let partitions = |(number, gpu): (usize, &Arc<Gpu>)| {
            let own = load.some(n * number / gpus.len()..n * (number + 1) / gpus.len());
            GpuPartitions::new(gpu, &own, precision, memory)
        };
        let per_gpu = in_parallel(gpus.iter().enumerate().collect(), partitions)?;
        Ok(Self { load, precision, per_gpu })
    }

    fn partitions(&self) -> impl Iterator<Item = &Partition<'a>> {
        self.per_gpu.iter().flat_map(|own| &own.partitions)
    }
}

/// Fails if GPUs do not support such data.
fn check(load: &Load<'_>, name: &str) -> Result<()> {
    let (instances, latent) = (load.instances(), load.latent());
    let refuse = |reason: String| Err(refused(name, reason));
    if latent > kernels::MAX_COLUMNS {
        return refuse(format!(
            "V has {latent} columns, and at most {} are supported; use the CPU",
            kernels::MAX_COLUMNS
        ));
    }
    if i32::try_from(instances).is_err() {
        return refuse(format!("{instances} instances are more than 32-bit indices can number; use the CPU"));
    }
    let sparse = |view: &daimc::ViewOf<'_>| !load.is_in_memory() && !view.layout().is_dense();
    if let Some(view) = load.schema().views().find(sparse) {
        return refuse(format!(
            "view '{}' is sparse and not in memory, which is not supported; use the CPU",
            view.name()
        ));
    }
    let patterns = load.patterns().len();
    if grams(load) > MAX_GRAM_BYTES {
        return refuse(format!(
            "{patterns} presence patterns with {latent} columns of V take too much memory; use the CPU"
        ));
    }
    Ok(())
}

/// Bytes of the Gram matrices of all presence patterns.
fn grams(load: &Load<'_>) -> usize {
    let (lanes, entries) = kernels::latent_shape(load.latent());
    let size = lanes * entries;
    load.patterns().len().saturating_mul(8 * size * (size + 1))
}

/// Calls `work` with each item, in parallel.
fn in_parallel<T: Send, R: Send>(all: Vec<T>, work: impl Fn(T) -> Result<R> + Sync) -> Result<Vec<R>> {
    if all.len() == 1 {
        return all.into_iter().map(work).collect();
    }
    let work = &work;
    std::thread::scope(|scope| {
        let threads: Vec<_> = all.into_iter().map(|one| scope.spawn(move || work(one))).collect();
        let joined = threads.into_iter().map(ScopedJoinHandle::join);
        joined.map(|result| result.unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect()
    })
}

/// Bytes of GPU memory per instance.
struct InstanceBytes {
    /// The row of each view with its missing cells, on average.
    rows: Vec<f64>,
    /// The row of V and the indices of the instance.
    latent: f64,
    /// Temporary buffers of a sweep.
    working: f64,
}

impl InstanceBytes {
    /// Rows that can be used in place take no memory.
    fn new(gpu: &Gpu, load: &Load<'_>) -> Self {
        let (schema, latent) = (load.schema(), load.latent());
        let of_view = |(number, view): (usize, daimc::ViewOf<'_>)| {
            let row = if ViewRows::in_place(gpu, load, number) {
                0
            } else if view.layout().is_dense() {
                view.features().next_multiple_of(4) * view.layout().bytes()
            } else {
                3 * view.bytes_per_row()
            };
            let cells = 24 * view.missing_cells().unwrap_or(0);
            (row as f64) * (1.0 + 1.0 / 64.0) + cells as f64 / view.present().max(1) as f64
        };
        let rows: Vec<f64> = schema.views().enumerate().map(of_view).collect();
        let latent_bytes = 16 * latent + 8 * rows.len() + 8;
        Self { rows, latent: latent_bytes as f64, working: 32.0 * latent.next_multiple_of(8) as f64 }
    }

    /// Bytes of the rows of an instance.
    fn of(&self, load: &Load<'_>, instance: usize) -> f64 {
        let shown = self.rows.iter().enumerate().filter(|(view, _)| load.shows(*view, instance));
        shown.map(|(_, row)| row).sum()
    }
}

/// Ends of the partitions of a GPU. The first `resident` ones stay in its memory.
#[derive(Debug, PartialEq)]
struct PartitionPlan {
    ends: Vec<usize>,
    resident: usize,
}

impl PartitionPlan {
    /// Divides instances whose rows take `rows` bytes each, on a GPU with `bytes` free bytes; `None` if these do not suffice.
    fn new(rows: &[f64], size: &InstanceBytes, bytes: f64) -> Option<Self> {
        let n = rows.len() as f64;
        if rows.iter().sum::<f64>() + n * (size.latent + size.working) <= bytes {
            return Some(Self { ends: vec![rows.len()], resident: 1 });
        }
        // Two partitions that are not resident share GPU memory: one is processed while the next is copied. They take at most half
        // of the memory that V leaves.
        let left = bytes - n * size.latent;
        let (max_bytes, max_instances) =
            ((PARTITION_BYTES as f64).min(left / 8.0), left / (4.0 * size.working));
        let (mut ends, mut all, mut own, mut count) = (Vec::new(), Vec::new(), 0.0, 0.0);
        for (i, row) in rows.iter().enumerate() {
            if count > 0.0 && (own + row > max_bytes || count + 1.0 > max_instances) {
                ends.push(i);
                all.push((own, count));
                (own, count) = (0.0, 0.0);
            }
            own += row;
            count += 1.0;
            if ends.len() >= MAX_PARTITIONS {
                return None;
            }
        }
        ends.push(rows.len());
        all.push((own, count));
        let largest = |of: fn(&(f64, f64)) -> f64| all.iter().map(of).fold(0.0, f64::max);
        let rest = left - 2.0 * largest(|part| part.0) - largest(|part| part.1) * size.working;
        let mut used = 0.0;
        let fits = |part: &&(f64, f64)| {
            used += part.0;
            used <= rest
        };
        let resident = all.iter().take_while(fits).count();
        (rest >= 0.0).then_some(Self { ends, resident })
    }
}

impl<'a> GpuPartitions<'a> {
    fn new(gpu: &Arc<Gpu>, load: &Load<'a>, precision: Precision, memory: Option<usize>) -> Result<Self> {
        let loader = gpu.with_new_stream()?;
        let free = gpu.free()?.min(memory.unwrap_or(usize::MAX));
        let (size, n) = (InstanceBytes::new(gpu, load), load.instances());
        let features: usize = load.schema().views().map(|view| view.features()).sum();
        let overhead = OVERHEAD + 24 * features * load.latent() + grams(load) / 2 * 3;
        let rows: Vec<f64> = (0..n).map(|i| size.of(load, i)).collect();
        let Some(plan) = PartitionPlan::new(&rows, &size, free as f64 - overhead as f64) else {
            let (latent, free) = (n as f64 * size.latent / 1e9, free as f64 / 1e9);
            let reason = format!(
                "V takes {latent:.1} GB, and only {free:.1} GB are free for V and a part of the rows; use the CPU"
            );
            return Err(refused(&gpu.name, reason));
        };
        drop(rows);
        let starts = std::iter::once(0).chain(plan.ends.iter().copied());
        let ranges = starts.zip(&plan.ends).map(|(start, end)| start..*end).enumerate();
        let partition = |(number, range): (usize, Range<usize>)| {
            let (resident, load) = (number < plan.resident, load.some(range));
            let rows = if resident {
                ResidentRows::new(gpu, gpu, &load, precision)?
            } else {
                ResidentRows::without_rows(gpu, gpu, &load)?
            };
            Ok(Partition { load, rows: Arc::new(rows), resident })
        };
        let partitions = ranges.map(partition).collect::<Result<_>>()?;
        Ok(Self { partitions, loader, gpu: TrimOnDrop(gpu.clone()) })
    }

    /// Calls `work` with each shard while its rows are in GPU memory, and adds the results. After an error, calls `give_up` with the
    /// remaining shards.
    fn each(
        &self,
        precision: Precision,
        shards: &mut [GpuShard],
        work: impl Fn(usize, &mut GpuShard) -> Result<Totals>,
        give_up: impl Fn(&GpuShard) -> Result<()>,
    ) -> Result<Totals> {
        std::thread::scope(|scope| {
            // No queue between the two threads: while a partition is processed, only one more is in GPU memory.
            let (send, receive) = sync_channel(0);
            let streamed = self.partitions.iter().filter(|part| !part.resident);
            if streamed.clone().next().is_some() {
                scope.spawn(move || {
                    for part in streamed {
                        let rows = ResidentRows::new(&self.gpu.0, &self.loader, &part.load, precision);
                        let failed = rows.is_err();
                        if send.send(rows).is_err() || failed {
                            break;
                        }
                    }
                });
            }
            let (mut totals, mut failure): (Option<Totals>, _) = (None, None);
            for (number, (part, shard)) in self.partitions.iter().zip(shards).enumerate() {
                if failure.is_some() {
                    give_up(shard)?;
                    continue;
                }
                let worked = if part.resident {
                    work(number, shard)
                } else {
                    // The loading thread sends its error before it ends.
                    match receive.recv().unwrap_or(Err(Error::Interrupted)) {
                        Ok(rows) => {
                            shard.set_rows(Arc::new(rows));
                            let worked = work(number, shard);
                            shard.set_rows(part.rows.clone());
                            worked
                        }
                        Err(error) => give_up(shard).and(Err(error)),
                    }
                };
                match worked {
                    Ok(own) => match &mut totals {
                        Some(totals) => totals.add(&own),
                        None => totals = Some(own),
                    },
                    Err(error) => failure = Some(error),
                }
            }
            drop(receive);
            failure.map_or_else(|| Ok(totals.unwrap_or_default()), Err)
        })
    }
}

impl<'a> Resident<'a> for Partitions<'a> {
    fn shard(self: Arc<Self>) -> Result<Box<dyn Shard + 'a>> {
        let of = |own: &GpuPartitions<'a>| {
            own.partitions.iter().map(|part| GpuShard::new(part.rows.clone())).collect::<Result<Vec<_>>>()
        };
        let shards = self.per_gpu.iter().map(of).collect::<Result<_>>()?;
        Ok(Box::new(PartitionedShard { shards, partitions: self }))
    }

    fn nearest(&self, view: usize, count: usize, stop: &Stop) -> Result<Option<NearestOthers>> {
        let (gpu, instances) = (&self.per_gpu[0].gpu.0, self.load.instances());
        let _lock = gpu.lock();
        let mut partitions = self.partitions();
        if let (Some(part), None) = (partitions.next().filter(|part| part.resident), partitions.next()) {
            return nearest::nearest(gpu, &part.rows.views[view], instances, count, stop);
        }
        // All rows of the view must be in GPU memory, in addition to resident partitions.
        let of_view = self.load.schema().view(view);
        let (shown, features) = (of_view.present(), of_view.features());
        let rows = shown * features.next_multiple_of(4) * of_view.layout().bytes();
        let needed = rows + nearest::bytes(gpu, shown, features, instances, count) + OVERHEAD;
        if !of_view.layout().is_dense() || needed > gpu.free()? {
            return Ok(None);
        }
        let rows = ViewRows::new(gpu, &self.load, view, self.precision)?;
        nearest::nearest(gpu, &rows, instances, count, stop)
    }

    fn multiplier(&self, links: &Links<'_>, width: usize) -> Result<Option<Box<dyn Multiplier>>> {
        let found = GpuLinks::new(&self.per_gpu[0].gpu.0, links, width)?;
        Ok(found.map(|links| Box::new(links) as Box<dyn Multiplier>))
    }
}

/// V of all instances, in the same partitions as the rows.
struct PartitionedShard<'a> {
    shards: Vec<Vec<GpuShard>>,
    partitions: Arc<Partitions<'a>>,
}

impl PartitionedShard<'_> {
    fn each(
        &mut self,
        work: impl Fn(usize, usize, &mut GpuShard) -> Result<Totals> + Sync,
        give_up: impl Fn(&GpuShard) -> Result<()> + Sync,
    ) -> Result<Statistics> {
        let precision = self.partitions.precision;
        let pairs = self.partitions.per_gpu.iter().zip(&mut self.shards).enumerate().collect();
        let all = in_parallel(
            pairs,
            |(number, (own, shards)): (usize, (&GpuPartitions<'_>, &mut Vec<GpuShard>))| {
                let _lock = own.gpu.0.lock();
                own.each(precision, shards, |part, shard| work(number, part, shard), &give_up)
            },
        )?;
        let mut all = all.into_iter();
        let mut totals = all.next().unwrap_or_default();
        all.for_each(|own| totals.add(&own));
        Ok(Statistics::of_all(totals))
    }

    /// Divides the rows of V into those of each partition.
    fn divide<'v>(&self, v: &'v Matrix) -> Result<Vec<Vec<&'v [f64]>>> {
        let (rows, columns) = (self.instances(), self.partitions.load.latent());
        if (v.rows(), v.columns()) != (rows, columns) {
            let reason = format!("V must be {rows} × {columns}, instances × latent");
            let value = format!("{} × {}", v.rows(), v.columns());
            return Err(Error::Unsuitable { what: "V", value, reason });
        }
        let mut rest = v.values();
        let mut own =
            |part: &Partition<'_>| rest.split_off(..part.load.instances() * columns).unwrap_or_default();
        let of_gpu = |all: &GpuPartitions<'_>| all.partitions.iter().map(&mut own).collect();
        Ok(self.partitions.per_gpu.iter().map(of_gpu).collect())
    }
}

impl Shard for PartitionedShard<'_> {
    fn instances(&self) -> usize {
        self.partitions.load.instances()
    }

    fn start(&mut self, v: Matrix, stop: &Stop) -> Result<Statistics> {
        let v = self.divide(&v)?;
        self.each(|gpu, part, shard| shard.start(v[gpu][part], stop), |_| Ok(()))
    }

    fn hold(&mut self, v: Matrix, _: &Stop) -> Result<()> {
        let all = self.divide(&v)?.into_iter().flatten();
        let mut shards = self.shards.iter_mut().flatten().zip(all);
        shards.try_for_each(|(shard, v)| shard.hold(v))
    }

    fn sweep(&mut self, factors: &Factors, step: VStep, stop: &Stop) -> Result<Statistics> {
        self.each(|_, _, shard| shard.sweep(factors, step, stop), |shard| shard.rescale(factors))
    }

    fn latent(&self) -> Matrix {
        let mut v = Matrix::zeros(self.instances(), self.partitions.load.latent());
        let mut rest = v.values_mut();
        for (part, shard) in self.partitions.partitions().zip(self.shards.iter().flatten()) {
            let size = part.load.instances() * self.partitions.load.latent();
            shard.latent(rest.split_off_mut(..size).unwrap_or_default());
        }
        v
    }
}

#[cfg(test)]
mod tests {
    use std::slice::from_ref;

    use daimc::synthetic::Synthetic;
    use daimc::{Bases, Daimc, Descent, Neighbours, Scale, Scaling, Solver, View, Views, simulate};

    use super::*;

    #[test]
    fn as_many_partitions_as_fit_are_resident() {
        let size = InstanceBytes { rows: vec![4096.0], latent: 320.0, working: 640.0 };
        let n = 100_000;
        // The first half has long rows, as if a large view had these instances only.
        let rows: Vec<f64> = (0..n).map(|i| if i < n / 2 { 8000.0 } else { 192.0 }).collect();
        let all: f64 = rows.iter().sum::<f64>() + n as f64 * 960.0;
        assert_eq!(PartitionPlan::new(&rows, &size, all), Some(PartitionPlan { ends: vec![n], resident: 1 }));
        for bytes in [0.95 * all, 0.5 * all, n as f64 * 360.0] {
            let PartitionPlan { ends, resident } = PartitionPlan::new(&rows, &size, bytes).unwrap();
            assert!(ends.is_sorted() && ends.last() == Some(&n) && resident < ends.len());
            let parts: Vec<&[f64]> =
                [0].iter().chain(&ends).zip(&ends).map(|(start, end)| &rows[*start..*end]).collect();
            let bytes_of = |part: &&[f64]| part.iter().sum::<f64>();
            let largest = parts.iter().map(bytes_of).fold(0.0, f64::max);
            let longest = parts.iter().map(|part| part.len()).max().unwrap_or(0);
            let stay: f64 = parts[..resident].iter().map(bytes_of).sum();
            let taken = n as f64 * 320.0 + 2.0 * largest + longest as f64 * 640.0 + stay;
            assert!(taken <= bytes && taken + bytes_of(&parts[resident]) > bytes, "{taken} of {bytes}");
        }
        assert_eq!(PartitionPlan::new(&rows, &size, n as f64 * 319.0), None);
        // Rows that are used in place take no memory, but the buffers of a sweep do.
        let PartitionPlan { ends, resident } =
            PartitionPlan::new(&vec![0.0; n], &size, n as f64 * 500.0).unwrap();
        assert!(ends.len() > 1 && resident == ends.len());
    }

    fn gpu() -> Option<Arc<Gpu>> {
        Gpu::open(0).map_err(|reason| eprintln!("skipped: {reason}")).ok().map(Arc::new)
    }

    /// Views with missing rows and cells, and their scalings in a fit.
    fn data(n: usize) -> (Views<'static>, Vec<Scaling>) {
        let data = Synthetic::new(n, 5).noise(0.5).seed(1);
        let mut present = simulate::missing(n, &[0.2, 0.3], 3).unwrap();
        // The first view lacks the second half.
        (n / 2..n).for_each(|i| (present[0][i], present[1][i]) = (false, true));
        let views: Vec<View<'static>> = vec![
            data.dense::<f32>("dense", 40).unwrap().mask(&present[0]).unwrap(),
            data.sparse::<f64>("sparse", 60, 0.2).unwrap().mask(&present[1]).unwrap(),
        ];
        let views = Views::new(views).unwrap();
        let fit =
            Daimc::new(5).scale(Scale::ZScore).neighbours(Neighbours::Off).assess(false).max_iterations(1);
        let scalings = fit.fit(&views).unwrap().model.views.into_iter().map(|view| view.scaling).collect();
        (views, scalings)
    }

    #[test]
    fn v_does_not_depend_on_the_partitions() {
        let Some(gpu) = gpu() else { return };
        let (views, scalings) = data(4000);
        let load = || Load::new(&views, &scalings, 5).unwrap();
        let squares: Vec<f64> = (0..2).map(|view| load().view(view).squares()).collect();
        let whole = Partitions::new(from_ref(&gpu), load(), Precision::Single, None).unwrap();
        assert!(whole.partitions().count() == 1 && whole.partitions().all(|part| part.resident));
        let size = InstanceBytes::new(&gpu, &load());
        let rows: f64 = (0..4000).map(|i| size.of(&load(), i)).sum();
        let overhead = OVERHEAD + 24 * 100 * 5 + grams(&load()) / 2 * 3;
        let with = |rest: f64| overhead + (4000.0 * size.latent + rest) as usize;
        let (some, little) = (with(0.7 * (rows + 4000.0 * size.working)), with(0.4 * rows));
        let shared =
            |gpus: &[Arc<Gpu>], memory| Partitions::new(gpus, load(), Precision::Single, memory).unwrap();
        let others = [
            shared(from_ref(&gpu), Some(some)),
            shared(from_ref(&gpu), Some(little)),
            shared(&[gpu.clone(), Arc::new(Gpu::open(0).unwrap())], None),
        ];
        let counts = |parts: &Partitions<'_>| {
            (parts.partitions().count(), parts.partitions().filter(|part| part.resident).count())
        };
        let (all, resident) = counts(&others[0]);
        assert!(resident > 0 && resident < all, "{resident} of {all}");
        let (all, resident) = counts(&others[1]);
        assert!(resident < all && all > 2, "{resident} of {all}");
        assert_eq!(counts(&others[2]), (2, 2));
        let stop = Stop::new();
        let first = Matrix::from_fn(4000, 5, |i, k| ((i * 7 + k * 3) % 11) as f64 / 11.0 + 0.01);
        let mut whole = Arc::new(whole).shard().unwrap();
        let mut others: Vec<_> = others.into_iter().map(|parts| Arc::new(parts).shard().unwrap()).collect();
        let begun = whole.start(first.clone(), &stop).unwrap();
        others.iter_mut().for_each(|shard| drop(shard.start(first.clone(), &stop).unwrap()));
        let daimc = Daimc::new(5);
        let mut descent = Descent::new(daimc.options(), squares, Bases::Fitted, begun).unwrap();
        let update = VStep::Update { solver: Solver::Coordinate, passes: 2 };
        for step in [update, VStep::Solve { after: Some(2) }, update] {
            let factors = descent.solve().unwrap().clone();
            let own = whole.sweep(&factors, step, &stop).unwrap();
            for shard in &mut others {
                let other = shard.sweep(&factors, step, &stop).unwrap().whole().unwrap();
                assert_eq!(shard.latent(), whole.latent());
                let own = own.clone().whole().unwrap();
                for (a, b) in own.cross.iter().chain(&own.gram).zip(other.cross.iter().chain(&other.gram)) {
                    let apart: f64 = a.values().iter().zip(b.values()).map(|(a, b)| (a - b).powi(2)).sum();
                    let length: f64 = a.values().iter().map(|a| a * a).sum();
                    assert!(apart <= 1e-12 * length, "{apart} {length}");
                }
            }
            descent.absorb(own).unwrap();
        }
        // An interrupted sweep applies the scale to V and nothing else.
        let factors = descent.solve().unwrap().clone();
        stop.set();
        assert!(matches!(whole.sweep(&factors, update, &stop), Err(Error::Interrupted)));
        for shard in &mut others {
            assert!(matches!(shard.sweep(&factors, update, &stop), Err(Error::Interrupted)));
            assert_eq!(shard.latent(), whole.latent());
        }
    }
}
