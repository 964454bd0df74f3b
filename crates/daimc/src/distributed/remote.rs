//! Rows that others hold, as a fit sees them.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use super::message::{Reply, Request, Table, ViewShare, decode, encode, unfit};
use crate::scale::Observed;
use crate::schema::Presence;
use crate::shard::{Shard, VStep};
use crate::source::{Buffer, RandomAccess, ReadError, Rows, Source};
use crate::statistics::{Factors, Statistics};
use crate::text::quoted;
use crate::views::index;
use crate::{Error, Ids, Layout, Matrix, Result, Schema, Stop, ViewSchema};

/// A request, on its way to everybody who holds rows.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Ask<'a> {
    /// Requests are numbered from 1.
    pub number: u64,
    /// The request, for [`serve`](super::serve).
    pub request: &'a [u8],
    /// Earlier requests that a holder must have answered, in this order. Whoever takes the place of one that was lost answers
    /// them first: its rows of V then come back from the bases.
    pub setup: &'a [u64],
}

/// Carries a request to all holders and returns their merged replies.
type Carrier<'a> = &'a mut (dyn FnMut(&Ask<'_>) -> Result<Vec<u8>> + Send);

/// All who hold rows, as whoever goes over rows sees them.
pub(crate) trait Holders: Sync {
    /// Asks everybody.
    fn ask(&self, request: Request) -> Result<Reply>;

    /// Asks everybody to do something.
    fn tell(&self, request: Request) -> Result<()> {
        match self.ask(request)? {
            Reply::Done => Ok(()),
            _ => Err(unfit("it answers another request")),
        }
    }
}

/// All who hold rows, and what they were asked.
pub(crate) struct Team<'a>(Mutex<Course<'a>>);

struct Course<'a> {
    carrier: Carrier<'a>,
    number: u64,
    /// Requests that a new holder has to answer, by kind: the preparation, the lenses, the clusters, and what V was made by.
    prepare: Option<u64>,
    lenses: Option<u64>,
    adopted: Option<u64>,
    latent: Vec<u64>,
    /// How often all rows of a view were gone over.
    views_read: usize,
}

impl<'a> Team<'a> {
    pub fn new(carrier: Carrier<'a>) -> Self {
        let (latent, number, views_read) = (Vec::new(), 0, 0);
        let [prepare, lenses, adopted] = [None; 3];
        Self(Mutex::new(Course { carrier, number, prepare, lenses, adopted, latent, views_read }))
    }

    /// How often all rows of a view were gone over.
    pub fn views_read(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).views_read
    }
}

impl Holders for Team<'_> {
    fn ask(&self, request: Request) -> Result<Reply> {
        let mut course = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        course.number += 1;
        let first = [course.prepare, course.lenses, course.adopted];
        let setup: Vec<u64> = first.into_iter().flatten().chain(course.latent.iter().copied()).collect();
        let ask = Ask { number: course.number, request: &encode(&request)?, setup: &setup };
        let reply = decode(&(course.carrier)(&ask)?)?;
        course.keep(&request);
        Ok(reply)
    }
}

impl Course<'_> {
    /// Remembers what the state of the holders follows from. A sweep makes V anew, from whatever it was.
    fn keep(&mut self, request: &Request) {
        let number = self.number;
        match request {
            Request::Prepare(_) => {
                (self.prepare, self.lenses, self.adopted) = (Some(number), None, None);
                self.latent.clear();
            }
            Request::Lenses { lenses, .. } => {
                (self.lenses, self.adopted) = (Some(number), None);
                self.latent.clear();
                self.views_read += lenses.len();
            }
            Request::Begin(_) | Request::Start(_) | Request::Sweep { .. } => self.latent = vec![number],
            Request::Rescale(_) | Request::Restart { .. } => self.latent.push(number),
            Request::Adopt { .. } => self.adopted = Some(number),
            Request::Columns { table: Table::Views, .. } | Request::Norms { table: Table::Views, .. } => {
                self.views_read += 1;
            }
            // Rows that are gathered come some at a time.
            Request::Range { table: Table::Views, instances, .. } if instances.start == 0 => {
                self.views_read += 1;
            }
            _ => {}
        }
    }
}

/// The rows of one table, which others hold: single rows are fetched.
pub(crate) struct Remote<'t> {
    holders: &'t dyn Holders,
    table: Table,
    schema: Schema,
}

impl<'t> Remote<'t> {
    /// The views, of so many instances.
    pub fn views(holders: &'t dyn Holders, instances: usize) -> Result<Self> {
        let mut shares: Vec<(usize, usize, Vec<ViewShare>)> = holders.ask(Request::Describe)?.try_into()?;
        shares.sort_by_key(|(first, ..)| *first);
        let mut next = 0;
        for (first, count, _) in &shares {
            if *first != next {
                return Err(unfit("nobody holds some of the instances, or two hold the same"));
            }
            next += count;
        }
        if next != instances {
            return Err(unfit("nobody holds some of the instances"));
        }
        let count = shares.first().map_or(0, |(.., views)| views.len());
        if shares.iter().any(|(.., views)| views.len() != count) {
            return Err(unfit("some hold other views than others"));
        }
        let views = (0..count).map(|view| whole(&shares, view, instances)).collect::<Result<_>>()?;
        Ok(Self { holders, table: Table::Views, schema: Schema::new(Ids::Numbers(instances), views)? })
    }

    /// The same views once they are prepared.
    pub fn prepared(&self, observed: &[Observed]) -> Result<Self> {
        let view = |(view, Observed { missing, empty, .. }): (usize, &Observed)| {
            let own = ViewSchema::clone(&self.schema.view(view));
            own.without(self.schema.instances(), empty).holes(missing.cells())
        };
        let views = observed.iter().enumerate().map(view).collect();
        let schema = Schema::new(self.schema.shared_ids(), views)?;
        Ok(Self { holders: self.holders, table: self.table, schema })
    }

    /// V, as data.
    pub fn latent(holders: &'t dyn Holders, instances: usize, columns: usize) -> Result<Self> {
        let view = ViewSchema::new("V", columns, Layout::DenseF64).holes(0);
        let schema = Schema::new(Ids::Numbers(instances), vec![view])?;
        Ok(Self { holders, table: Table::Latent, schema })
    }

    fn fetch(&self, view: usize, instances: Vec<u32>, buffer: &mut Buffer) -> Result<()> {
        let request = Request::Rows { table: self.table, view, instances };
        let mut rows: Vec<(u32, Buffer)> = self.holders.ask(request)?.try_into()?;
        rows.sort_by_key(|(first, _)| *first);
        buffer.clear();
        rows.iter_mut().for_each(|(_, rows)| buffer.append(rows));
        Ok(())
    }
}

/// One view, of all instances.
fn whole(shares: &[(usize, usize, Vec<ViewShare>)], view: usize, instances: usize) -> Result<ViewSchema> {
    let first = &shares[0].2[view];
    let mut holes = Some(0);
    for own in shares.iter().map(|(.., views)| &views[view]) {
        let differ = |what: &str| {
            let name = quoted(&first.name);
            Err(unfit(&format!("parts of view {name} differ in {what}; give them alike")))
        };
        if own.name != first.name {
            return differ("their names");
        }
        if own.features != first.features {
            return differ("the number of features");
        }
        if own.feature_names != first.feature_names {
            return differ("the names of features");
        }
        if own.layout != first.layout {
            return differ("how they are stored (single or double precision, dense or sparse)");
        }
        holes = holes.zip(own.missing_cells).map(|(all, own)| all + own);
    }
    let entries = shares.iter().map(|(.., views)| views[view].entries).sum();
    let mut bits = vec![0_u64; instances.div_ceil(64)];
    for (start, count, views) in shares {
        let shown = (0..*count).filter(|&i| views[view].presence.shows(i)).map(|i| start + i);
        shown.for_each(|i| bits[i / 64] |= 1 << (i % 64));
    }
    let presence = Presence::from_fn(instances, |i| bits[i / 64] >> (i % 64) & 1 == 1);
    let whole = ViewSchema::new(&first.name, first.features, first.layout);
    let mut whole = whole.presence(presence).stored(entries);
    if let Some(names) = &first.feature_names {
        whole = whole.feature_names(names.clone());
    }
    Ok(match holes {
        Some(cells) => whole.holes(cells),
        None => whole,
    })
}

impl Source for Remote<'_> {
    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn read(
        &self,
        view: usize,
        instances: Range<usize>,
        buffer: &mut Buffer,
    ) -> std::result::Result<(), ReadError> {
        Ok(self.fetch(view, instances.map(index).collect(), buffer)?)
    }

    fn random_access(&self) -> Option<&dyn RandomAccess> {
        Some(self)
    }
}

impl RandomAccess for Remote<'_> {
    fn pick(
        &self,
        view: usize,
        instances: &[u32],
        buffer: &mut Buffer,
    ) -> std::result::Result<(), ReadError> {
        Ok(self.fetch(view, instances.to_vec(), buffer)?)
    }
}

/// All who hold rows, as one shard.
pub(crate) struct Held<'t> {
    pub holders: &'t dyn Holders,
    pub instances: usize,
    pub latent: usize,
}

impl Shard for Held<'_> {
    fn instances(&self) -> usize {
        self.instances
    }

    fn start(&mut self, v: Matrix, stop: &Stop) -> Result<Statistics> {
        stop.check()?;
        self.holders.ask(Request::Start(v))?.try_into()
    }

    fn sweep(&mut self, factors: &Factors, step: VStep, stop: &Stop) -> Result<Statistics> {
        stop.check()?;
        self.holders.ask(Request::Sweep { factors: factors.clone(), step })?.try_into()
    }

    /// What cannot be had is told by the next request, which cannot be either.
    fn latent(&self) -> Matrix {
        let rows = || -> Result<Matrix> {
            let (remote, mut buffer) =
                (Remote::latent(self.holders, self.instances, self.latent)?, Buffer::default());
            remote.fetch(0, (0..index(self.instances)).collect(), &mut buffer)?;
            match buffer.block(Layout::DenseF64, 0..0).rows {
                Rows::DenseF64(values) => Matrix::new(self.instances, self.latent, values.to_vec()),
                _ => Err(Error::Interrupted),
            }
        };
        rows().unwrap_or_default()
    }

    fn leading(&self, scale: &[f64]) -> Vec<u32> {
        let labels = || -> Result<Vec<(u32, Vec<u32>)>> {
            self.holders.ask(Request::Leading(scale.to_vec()))?.try_into()
        };
        let mut labels = labels().unwrap_or_default();
        labels.sort_by_key(|(first, _)| *first);
        labels.into_iter().flat_map(|(_, own)| own).collect()
    }
}
