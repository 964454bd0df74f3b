//! Who holds rows, and their part of V, and answers.

use std::ops::Range;
use std::sync::Arc;

use super::message::{Clusters, Nearest, Reply, Request, Table, ViewShare, decode, encode, unfit};
use crate::blocks::Blocks;
use crate::cluster_sums::ClusterSums;
use crate::confidence::confidence;
use crate::consolidate::restart_some;
use crate::kmeans;
use crate::lens::{Lens, Parts};
use crate::missingness::Lacking;
use crate::neighbours;
use crate::place::Place;
use crate::prepared::Prepared;
use crate::scale::ColumnSums;
use crate::scan::Scan;
use crate::schema::Presence;
use crate::shard::{Shard, VStep, leading};
use crate::source::{Buffer, Source};
use crate::sweep::{Cpu, Sweep};
use crate::views::index;
use crate::{Error, Matrix, Result, Stop, ViewOf};

/// Answers for the rows of a source, which are `range` of `total` instances: one of [`aligned`](crate::aligned). `exchange` hands
/// over the last answer (none at first) and returns the next request, or nothing if there will be none. The rows of V stay here
/// from request to request.
///
/// # Errors
/// When the range is not of whole leaves. Errors of single requests are handed over instead.
pub fn serve(
    source: &dyn Source,
    range: Range<usize>,
    total: usize,
    mut exchange: impl FnMut(Option<Result<Vec<u8>>>) -> Option<Vec<u8>>,
) -> Result<()> {
    let wrong = |reason: String| Error::Unsuitable { what: "range", value: format!("{range:?}"), reason };
    if range.len() != source.instances() {
        return Err(wrong(format!("there are {} instances", source.instances())));
    }
    let blocks = Blocks::some(range.clone(), total)
        .ok_or_else(|| wrong(format!("not whole leaves of {total} instances; take ranges from `aligned`")))?;
    let mut holder = Holder { blocks, exchange: &mut exchange };
    let mut request = holder.next(None);
    while let Some(next) = request {
        request = holder.raw(source, next);
    }
    Ok(())
}

/// Answers go out and requests come in.
struct Holder<'e> {
    blocks: Blocks,
    exchange: &'e mut dyn FnMut(Option<Result<Vec<u8>>>) -> Option<Vec<u8>>,
}

impl Holder<'_> {
    /// Answers, and takes the next request. Bytes that are none are answered here.
    fn next(&mut self, answer: Option<Result<Reply>>) -> Option<Request> {
        let mut answer = answer.map(|answer| answer.and_then(|reply| encode(&reply)));
        loop {
            match decode((self.exchange)(answer).as_deref()?) {
                Ok(request) => return Some(request),
                Err(error) => answer = Some(Err(error)),
            }
        }
    }

    /// Answers about rows as they were given; the next request is one to start over with, or none.
    fn raw(&mut self, source: &dyn Source, mut request: Request) -> Option<Request> {
        let scan = Scan::part(source, self.blocks, &Stop::new());
        loop {
            let answer = match request {
                Request::Reset => Ok(Reply::Done),
                Request::Describe => Ok(describe(&scan)),
                Request::Prepare(preparations) => match Prepared::new(source, &preparations) {
                    Err(error) => Err(error),
                    Ok(prepared) => return self.prepared(&prepared),
                },
                other => about(&scan, Table::Views, other),
            };
            request = self.next(Some(answer))?;
        }
    }

    /// Answers about rows that are prepared.
    fn prepared(&mut self, prepared: &Prepared<'_>) -> Option<Request> {
        let mut request = self.next(Some(Ok(Reply::Done)))?;
        loop {
            let scan = Scan::part(prepared, self.blocks, &Stop::new());
            let answer = match request {
                over @ (Request::Reset | Request::Prepare(_)) => return Some(over),
                Request::Lenses { latent, lenses } => match see(scan, latent, &lenses) {
                    Err(error) => Err(error),
                    Ok(sweep) => {
                        request = self.seen(Seen { sweep, v: None, labels: Vec::new(), told: None })?;
                        continue;
                    }
                },
                other => about(&scan, Table::Views, other),
            };
            request = self.next(Some(answer))?;
        }
    }

    /// Answers about rows that are seen as the fit sees them, and about V.
    fn seen(&mut self, mut seen: Seen<'_>) -> Option<Request> {
        let mut request = self.next(Some(Ok(Reply::Done)))?;
        loop {
            let answer = match request {
                over @ (Request::Reset | Request::Prepare(_) | Request::Lenses { .. }) => return Some(over),
                other => seen.answer(other),
            };
            request = self.next(Some(answer))?;
        }
    }
}

fn see<'a>(scan: Scan<'a>, latent: usize, lenses: &[Parts]) -> Result<Arc<Sweep<'a>>> {
    if lenses.len() != scan.schema().len() {
        return Err(unfit("they are of other views"));
    }
    let lenses = lenses.iter().enumerate().map(|(view, parts)| Lens::placed(&scan, view, parts));
    let lenses = lenses.collect::<Result<_>>()?;
    Ok(Arc::new(Sweep::new(scan, lenses, latent)))
}

fn describe(scan: &Scan<'_>) -> Reply {
    let view = |own: ViewOf<'_>| ViewShare {
        name: own.name().into(),
        features: own.features(),
        layout: own.layout(),
        feature_names: own.names().map(<[String]>::to_vec),
        missing_cells: own.missing_cells(),
        entries: own.entries(),
        presence: Presence::from_fn(scan.instances(), |i| own.shows(i)),
    };
    let views = scan.schema().views().map(view).collect();
    Reply::Described(vec![(scan.blocks().first(), scan.instances(), views)])
}

/// What can be asked of any rows.
fn about(scan: &Scan<'_>, own: Table, request: Request) -> Result<Reply> {
    match request {
        Request::Columns { table, view, measure } if table == own => {
            ColumnSums::share(scan, view, &measure).map(Reply::Columns)
        }
        Request::Norms { table, view, scaling, pilot, limits } if table == own => {
            Lens::norms_of(scan, view, scaling, pilot, limits).map(Reply::Norms)
        }
        Request::Rows { table, view, instances } if table == own => {
            let (here, first) = own_of(scan.blocks(), &instances);
            let (mut room, mut rows) = (Buffer::default(), Buffer::default());
            rows.copy(&scan.pick(view, &here, &mut room)?, here.len(), scan.schema().view(view).features());
            Ok(Reply::Rows(if here.is_empty() { Vec::new() } else { vec![(first, rows)] }))
        }
        Request::Range { table, view, instances, along: None } if table == own => {
            let (here, first) = own_range(scan.blocks(), &instances);
            let (mut room, mut rows) = (Buffer::default(), Buffer::default());
            if !here.is_empty() {
                let features = scan.schema().view(view).features();
                rows.copy(&scan.read(view, here.clone(), &mut room)?, here.len(), features);
            }
            Ok(some_rows(first, &here, rows))
        }
        _ => Err(unfit("they are asked for what they do not know yet")),
    }
}

/// Rows of instances that are held, if there are any, by the first of them.
fn some_rows(first: u32, here: &Range<usize>, rows: Buffer) -> Reply {
    Reply::Rows(if here.is_empty() { Vec::new() } else { vec![(first, rows)] })
}

/// Those of successive instances that are held, counted from the first that is; and the first of them, counted from the first
/// of all.
fn own_range(blocks: &Blocks, instances: &Range<usize>) -> (Range<usize>, u32) {
    let (first, end) = (blocks.first(), blocks.first() + blocks.instances());
    let (start, end) = (instances.start.clamp(first, end), instances.end.clamp(first, end));
    (start - first..end.max(start) - first, index(start))
}

/// Those of some instances, in increasing order, that are held, counted from the first that is; and the first of them, counted
/// from the first of all.
fn own_of(blocks: &Blocks, instances: &[u32]) -> (Vec<u32>, u32) {
    let (first, end) = (index(blocks.first()), index(blocks.first() + blocks.instances()));
    let held = instances.iter().filter(|&&i| (first..end).contains(&i));
    let here: Vec<u32> = held.map(|i| i - first).collect();
    let least = here.first().map_or(0, |i| i + first);
    (here, least)
}

impl Nearest {
    /// The numbers of the clusters of rows of V, and how clear they are.
    fn assign(&self, rows: &Scan<'_>) -> Result<(Vec<usize>, Vec<f64>)> {
        let lens = Lens::placed(rows, 0, &self.lens)?;
        let found = kmeans::assign(rows, 0, &lens, &self.centres)?;
        let number = |label: u32| self.numbers.get(label as usize).copied();
        let labels = found.labels.into_iter().map(number).collect::<Option<_>>();
        Ok((labels.ok_or_else(|| unfit("clusters have no numbers"))?, found.confidence))
    }
}

/// Rows as a fit sees them, and their V once there is one.
struct Seen<'a> {
    sweep: Arc<Sweep<'a>>,
    v: Option<Matrix>,
    /// The clusters of the last of Lloyd's iterations.
    labels: Vec<u32>,
    /// The clusters that were told, and how clear they are.
    told: Option<(Vec<usize>, Vec<f64>)>,
}

impl Seen<'_> {
    fn answer(&mut self, request: Request) -> Result<Reply> {
        let (sweep, stop) = (self.sweep.clone(), Stop::new());
        let empty = || Matrix::zeros(sweep.scan.instances(), sweep.latent());
        match request {
            Request::Begin(votes) => {
                let mut v = empty();
                let statistics = votes.begin(&sweep, &mut v)?;
                self.v = Some(v);
                Ok(Reply::Statistics(statistics))
            }
            Request::Start(all) => {
                let (first, columns) = (sweep.scan.blocks().first(), all.columns());
                let own = first * columns..(first + sweep.scan.instances()) * columns;
                let own = all.values().get(own).ok_or_else(|| unfit("V has too few rows"))?.to_vec();
                self.start(Matrix::new(sweep.scan.instances(), columns, own)?)
            }
            Request::Sweep { factors, step } => {
                // Without V, which went with the holder before: the bases bring it back.
                let (v, step) = match (self.v.take(), step) {
                    (Some(v), step) => (v, step),
                    (None, VStep::Update { .. }) => (empty(), VStep::Settle { after: None }),
                    (None, settle) => (empty(), settle),
                };
                let mut shard = Cpu::begun(sweep, v);
                let statistics = shard.sweep(&factors, step, &stop);
                self.v = Some(shard.into_latent());
                statistics.map(Reply::Statistics)
            }
            Request::Rescale(scale) => {
                self.latent_mut()?.scale_columns(&scale);
                Ok(Reply::Done)
            }
            Request::Leading(scale) => {
                let labels = leading(self.latent()?, &scale);
                Ok(Reply::Labels(vec![(index(sweep.scan.blocks().first()), labels)]))
            }
            Request::Range { table: Table::Views, view, instances, along: Some(directions) } => {
                let (here, first) = own_range(sweep.scan.blocks(), &instances);
                let seen = sweep.lenses.get(view).filter(|lens| lens.features() == directions.rows());
                let lens = seen.ok_or_else(|| unfit("directions are not those of a view"))?;
                if here.is_empty() {
                    return Ok(some_rows(first, &here, Buffer::default()));
                }
                let rows = neighbours::along((&sweep.scan, view, lens), here.clone(), &directions)?;
                Ok(some_rows(first, &here, rows))
            }
            request @ (Request::Columns { table: Table::Latent, .. }
            | Request::Norms { table: Table::Latent, .. }
            | Request::Rows { table: Table::Latent, .. }
            | Request::Range { table: Table::Latent, .. }) => {
                self.with_rows(|rows, _| about(rows, Table::Latent, request))
            }
            Request::ColumnTotals => {
                self.with_rows(|rows, _| kmeans::ColumnTotals::share(rows).map(Reply::ColumnTotals))
            }
            Request::Leaders { lens, totals } => self.with_rows(|rows, _| {
                let lens = Lens::placed(rows, 0, &lens)?;
                kmeans::leaders(rows, &lens, &totals).map(Reply::Members)
            }),
            Request::Refine { lens, centres, first } => self.with_rows(|rows, labels| {
                if first {
                    labels.clear();
                }
                let lens = Lens::placed(rows, 0, &lens)?;
                let (members, moved) = kmeans::refine(rows, &lens, &centres, labels)?;
                Ok(Reply::Refined(members, moved))
            }),
            other => self.about_clusters(other),
        }
    }

    /// Answers about clusters of the instances.
    fn about_clusters(&mut self, request: Request) -> Result<Reply> {
        let (sweep, stop) = (self.sweep.clone(), Stop::new());
        match request {
            Request::Members(clusters) => {
                let (labels, _) = self.assigned(&clusters)?;
                let (v, count) = (self.latent()?, clusters.count());
                Ok(Reply::ClusterSums(ClusterSums::share(v, &labels, count, *sweep.scan.blocks())))
            }
            Request::Restart { clusters, sizes } => {
                let (labels, _) = self.assigned(&clusters)?;
                self.start(restart_some(&labels, &sizes))
            }
            Request::Labels { clusters, instances } => {
                let (here, first) = own_of(sweep.scan.blocks(), &instances);
                let (labels, _) = self.assigned(&clusters)?;
                let labels: Vec<u32> = here.iter().map(|&i| index(labels[i as usize])).collect();
                Ok(Reply::Labels(if here.is_empty() { Vec::new() } else { vec![(first, labels)] }))
            }
            Request::Lacking(clusters) => {
                let (labels, _) = self.assigned(&clusters)?;
                Ok(Reply::Lacking(Lacking::of(sweep.scan.schema(), &labels, clusters.count())))
            }
            Request::Adopt { labels, confidence } => {
                let own = sweep.scan.blocks().first()..sweep.scan.blocks().first() + sweep.scan.instances();
                let (labels, confidence) = labels
                    .get(own.clone())
                    .zip(confidence.get(own))
                    .ok_or_else(|| unfit("there are clusters of too few instances"))?;
                let labels = labels.iter().map(|&label| label as usize).collect();
                self.told = Some((labels, confidence.to_vec()));
                Ok(Reply::Done)
            }
            Request::Means { lens, clusters } => {
                let (labels, _) = self.told(clusters, 0..sweep.scan.instances())?;
                self.with_rows(|rows, _| {
                    let lens = Lens::placed(rows, 0, &lens)?;
                    kmeans::members(rows, &lens, &labels, clusters).map(Reply::Members)
                })
            }
            Request::Place { clusters, reproducibility, from } => {
                let (v, blocks) = (self.latent()?, sweep.scan.blocks());
                let mut leaves = blocks.leaf_ranges();
                let range = leaves.find(|leaf| leaf.start == blocks.first() + from);
                let own = range.and_then(|range| Blocks::some(range, blocks.total()));
                let own = own.ok_or_else(|| unfit("they hold no such instances"))?;
                let rows = from * v.columns()..(from + own.instances()) * v.columns();
                let latent = Matrix::new(own.instances(), v.columns(), v.values()[rows].to_vec())?;
                let (labels, margins) = match &clusters {
                    Clusters::Nearest(nearest) => {
                        let rows = Place::rows(&latent)?;
                        nearest.assign(&Scan::part(&rows, own, &stop))?
                    }
                    Clusters::Told(count) => self.told(*count, from..from + own.instances())?,
                };
                Ok(Reply::Place { latent, labels, confidence: confidence(margins, reproducibility) })
            }
            other => about(&sweep.scan, Table::Views, other),
        }
    }

    /// Takes these rows of V.
    fn start(&mut self, v: Matrix) -> Result<Reply> {
        let mut shard = Cpu::of(self.sweep.clone());
        let statistics = shard.start(v, &Stop::new())?;
        self.v = Some(shard.into_latent());
        Ok(Reply::Statistics(statistics))
    }

    fn latent(&self) -> Result<&Matrix> {
        self.v.as_ref().ok_or_else(|| unfit("they have no V yet"))
    }

    fn latent_mut(&mut self) -> Result<&mut Matrix> {
        self.v.as_mut().ok_or_else(|| unfit("they have no V yet"))
    }

    /// The numbers of the clusters of the instances, and how clear they are.
    fn assigned(&mut self, clusters: &Clusters) -> Result<(Vec<usize>, Vec<f64>)> {
        match clusters {
            Clusters::Nearest(nearest) => self.with_rows(|rows, _| nearest.assign(rows)),
            Clusters::Told(count) => self.told(*count, 0..self.sweep.scan.instances()),
        }
    }

    /// The clusters of some instances, counted from the first that is held, that were told, which are so many.
    fn told(&self, count: usize, some: Range<usize>) -> Result<(Vec<usize>, Vec<f64>)> {
        let told = self.told.as_ref().filter(|(labels, _)| labels.iter().all(|label| *label < count));
        let (labels, confidence) = told.ok_or_else(|| unfit("they were told no such clusters"))?;
        Ok((labels[some.clone()].to_vec(), confidence[some].to_vec()))
    }

    /// Works with the rows of V, as data, and with the clusters of the last of Lloyd's iterations.
    fn with_rows<T>(&mut self, work: impl FnOnce(&Scan<'_>, &mut Vec<u32>) -> Result<T>) -> Result<T> {
        let mut labels = std::mem::take(&mut self.labels);
        let rows = Place::rows(self.latent()?)?;
        let rows = Scan::part(&rows, *self.sweep.scan.blocks(), &Stop::new());
        let done = work(&rows, &mut labels);
        self.labels = labels;
        done
    }
}
