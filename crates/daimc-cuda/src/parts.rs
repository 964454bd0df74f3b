//! Rows shared out in parts: over several cards, and on each as many as find room; the others go through it in every sweep.

use std::ops::Range;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::thread::ScopedJoinHandle;

use daimc::accelerator::{Links, Load, Multiplier, NearestOthers, Resident, refused};
use daimc::{Error, Factors, Matrix, Result, Shard, Statistics, Stop, Totals, VStep};

use crate::card::Card;
use crate::links::CardLinks;
use crate::rows::Rows;
use crate::shard::{CardShard, Held};
use crate::{Precision, kernels, nearest};

/// The rows of all instances, in parts.
pub struct Parts<'a> {
    load: Load<'a>,
    precision: Precision,
    /// Those of each card, one after the other.
    shares: Vec<Share<'a>>,
}

/// What one card has.
struct Share<'a> {
    parts: Vec<Part<'a>>,
    /// The same card, with a stream that brings rows while it works.
    loader: Card,
    card: Tidied,
}

/// A card that gives back the memory that it keeps for us, once all else is dropped: other libraries may wait for it.
struct Tidied(Arc<Card>);

impl Drop for Tidied {
    fn drop(&mut self) {
        // An error of the card has been or will be told by whoever works there.
        let _ = self.0.free();
    }
}

/// Some successive instances.
struct Part<'a> {
    load: Load<'a>,
    /// With their rows, if these stay on the card.
    held: Arc<Held>,
    stays: bool,
}

/// Bytes of the Gram matrices of all presence patterns, at most.
const MOST_GRAMS: usize = 1 << 30;

/// Bytes of the rows of a part, about, where they do not all find room.
const PART: usize = 1 << 30;

/// Parts of a card, at most: each of them takes a while to set off.
const MOST_PARTS: usize = 4096;

/// Bytes for whatever does not grow with the instances.
const APART: usize = 256 << 20;

impl<'a> Parts<'a> {
    /// Takes the rows, on each card at most so many bytes of them.
    pub fn new(
        cards: &[Arc<Card>],
        load: Load<'a>,
        precision: Precision,
        memory: Option<usize>,
    ) -> Result<Self> {
        check(&load, &cards[0].name)?;
        let n = load.instances();
        let cards = &cards[..cards.len().min(n.max(1))];
        let share = |(number, card): (usize, &Arc<Card>)| {
            let own = load.some(n * number / cards.len()..n * (number + 1) / cards.len());
            Share::new(card, &own, precision, memory)
        };
        let shares = at_once(cards.iter().enumerate().collect(), share)?;
        Ok(Self { load, precision, shares })
    }

    fn parts(&self) -> impl Iterator<Item = &Part<'a>> {
        self.shares.iter().flat_map(|share| &share.parts)
    }
}

/// Fails if no card takes such rows.
fn check(load: &Load<'_>, name: &str) -> Result<()> {
    let (instances, latent) = (load.instances(), load.latent());
    let refuse = |reason: String| Err(refused(name, reason));
    if latent > kernels::MOST_COLUMNS {
        return refuse(format!(
            "a V of {latent} columns is too wide for a card, which takes {}; use the processor",
            kernels::MOST_COLUMNS
        ));
    }
    if i32::try_from(instances).is_err() {
        return refuse(format!("{instances} instances are more than a card counts; use the processor"));
    }
    let sparse = |view: &daimc::ViewOf<'_>| !load.is_in_memory() && !view.layout().is_dense();
    if let Some(view) = load.schema().views().find(sparse) {
        return refuse(format!(
            "view '{}' is sparse and not in memory, where it would have to be; use the processor",
            view.name()
        ));
    }
    let patterns = load.patterns().len();
    if grams(load) > MOST_GRAMS {
        return refuse(format!(
            "{patterns} different sets of views with {latent} columns of V are too many for a card; use the processor"
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

/// Calls `work` with each of some things, with several at the same time.
fn at_once<T: Send, R: Send>(all: Vec<T>, work: impl Fn(T) -> Result<R> + Sync) -> Result<Vec<R>> {
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

/// Bytes that instances take.
struct Size {
    /// The row of each view, with its missing cells, on average.
    rows: Vec<f64>,
    /// Of any instance: its row of V with its numbers in lists, and what a sweep makes of it.
    latent: f64,
    working: f64,
}

impl Size {
    /// Rows that lie on the card as they are needed take nothing.
    fn new(card: &Card, load: &Load<'_>) -> Self {
        let (schema, latent) = (load.schema(), load.latent());
        let of_view = |(number, view): (usize, daimc::ViewOf<'_>)| {
            let row = if Rows::stay(card, load, number) {
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

    /// The rows of an instance.
    fn of(&self, load: &Load<'_>, instance: usize) -> f64 {
        let shown = self.rows.iter().enumerate().filter(|(view, _)| load.shows(*view, instance));
        shown.map(|(_, row)| row).sum()
    }
}

/// Where parts end, and how many of them, from the first on, stay on the card.
#[derive(Debug, PartialEq)]
struct Cut {
    ends: Vec<usize>,
    staying: usize,
}

impl Cut {
    /// Of instances whose rows take these bytes, on a card with room for so many; `None` if that is too little.
    fn new(rows: &[f64], size: &Size, bytes: f64) -> Option<Self> {
        let n = rows.len() as f64;
        if rows.iter().sum::<f64>() + n * (size.latent + size.working) <= bytes {
            return Some(Self { ends: vec![rows.len()], staying: 1 });
        }
        // Two parts are on the card at the same time: one is worked with, the next is on its way. They take half of what V
        // leaves, at most.
        let left = bytes - n * size.latent;
        let (most, most_instances) = ((PART as f64).min(left / 8.0), left / (4.0 * size.working));
        let (mut ends, mut all, mut own, mut count) = (Vec::new(), Vec::new(), 0.0, 0.0);
        for (i, row) in rows.iter().enumerate() {
            if count > 0.0 && (own + row > most || count + 1.0 > most_instances) {
                ends.push(i);
                all.push((own, count));
                (own, count) = (0.0, 0.0);
            }
            own += row;
            count += 1.0;
            if ends.len() >= MOST_PARTS {
                return None;
            }
        }
        ends.push(rows.len());
        all.push((own, count));
        let largest = |of: fn(&(f64, f64)) -> f64| all.iter().map(of).fold(0.0, f64::max);
        let rest = left - 2.0 * largest(|part| part.0) - largest(|part| part.1) * size.working;
        let mut taken = 0.0;
        let stays = |part: &&(f64, f64)| {
            taken += part.0;
            taken <= rest
        };
        let staying = all.iter().take_while(stays).count();
        (rest >= 0.0).then_some(Self { ends, staying })
    }
}

impl<'a> Share<'a> {
    fn new(card: &Arc<Card>, load: &Load<'a>, precision: Precision, memory: Option<usize>) -> Result<Self> {
        let loader = card.beside()?;
        let free = card.free()?.min(memory.unwrap_or(usize::MAX));
        let (size, n) = (Size::new(card, load), load.instances());
        let features: usize = load.schema().views().map(|view| view.features()).sum();
        let apart = APART + 24 * features * load.latent() + grams(load) / 2 * 3;
        let rows: Vec<f64> = (0..n).map(|i| size.of(load, i)).collect();
        let Some(cut) = Cut::new(&rows, &size, free as f64 - apart as f64) else {
            let (latent, free) = (n as f64 * size.latent / 1e9, free as f64 / 1e9);
            let reason = format!(
                "V takes {latent:.1} GB, and {free:.1} GB are free for it and parts of the rows; use the processor"
            );
            return Err(refused(&card.name, reason));
        };
        drop(rows);
        let starts = std::iter::once(0).chain(cut.ends.iter().copied());
        let ranges = starts.zip(&cut.ends).map(|(start, end)| start..*end).enumerate();
        let part = |(number, range): (usize, Range<usize>)| {
            let (stays, load) = (number < cut.staying, load.some(range));
            let held = if stays {
                Held::new(card, card, &load, precision)?
            } else {
                Held::without_rows(card, card, &load)?
            };
            Ok(Part { load, held: Arc::new(held), stays })
        };
        let parts = ranges.map(part).collect::<Result<_>>()?;
        Ok(Self { parts, loader, card: Tidied(card.clone()) })
    }

    /// Lets each shard work with its rows, and adds up what they return. Where something fails, `give_up` is called with the
    /// shards that were not reached.
    fn each(
        &self,
        precision: Precision,
        shards: &mut [CardShard],
        work: impl Fn(usize, &mut CardShard) -> Result<Totals>,
        give_up: impl Fn(&CardShard) -> Result<()>,
    ) -> Result<Totals> {
        std::thread::scope(|scope| {
            // Nothing is kept between the two: while a part is worked with, one more is on the card.
            let (send, receive) = sync_channel(0);
            let passing = self.parts.iter().filter(|part| !part.stays);
            if passing.clone().next().is_some() {
                scope.spawn(move || {
                    for part in passing {
                        let rows = Held::new(&self.card.0, &self.loader, &part.load, precision);
                        let failed = rows.is_err();
                        if send.send(rows).is_err() || failed {
                            break;
                        }
                    }
                });
            }
            let (mut totals, mut failure): (Option<Totals>, _) = (None, None);
            for (number, (part, shard)) in self.parts.iter().zip(shards).enumerate() {
                if failure.is_some() {
                    give_up(shard)?;
                    continue;
                }
                let worked = if part.stays {
                    work(number, shard)
                } else {
                    // The other side ends only after it has told what failed.
                    match receive.recv().unwrap_or(Err(Error::Interrupted)) {
                        Ok(rows) => {
                            shard.over(Arc::new(rows));
                            let worked = work(number, shard);
                            shard.over(part.held.clone());
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

impl<'a> Resident<'a> for Parts<'a> {
    fn shard(self: Arc<Self>) -> Result<Box<dyn Shard + 'a>> {
        let of = |share: &Share<'a>| {
            share.parts.iter().map(|part| CardShard::new(part.held.clone())).collect::<Result<Vec<_>>>()
        };
        let shards = self.shares.iter().map(of).collect::<Result<_>>()?;
        Ok(Box::new(PartsShard { shards, parts: self }))
    }

    fn nearest(&self, view: usize, count: usize, stop: &Stop) -> Result<Option<NearestOthers>> {
        let (share, instances) = (&self.shares[0], self.load.instances());
        let card = &share.card.0;
        let _turn = card.turn();
        let mut parts = self.parts();
        if let (Some(part), None) = (parts.next().filter(|part| part.stays), parts.next()) {
            return nearest::nearest(card, &part.held.views[view], instances, count, stop);
        }
        // All rows of the view have to be there, beside the parts that stay.
        let of_view = self.load.schema().view(view);
        let (shown, features) = (of_view.present(), of_view.features());
        let rows = shown * features.next_multiple_of(4) * of_view.layout().bytes();
        let needed = rows + nearest::bytes(card, shown, features, instances, count) + APART;
        if !of_view.layout().is_dense() || needed > card.free()? {
            return Ok(None);
        }
        let rows = Rows::new(card, &self.load, view, self.precision)?;
        nearest::nearest(card, &rows, instances, count, stop)
    }

    fn multiplier(&self, links: &Links<'_>, width: usize) -> Result<Option<Box<dyn Multiplier>>> {
        let found = CardLinks::new(&self.shares[0].card.0, links, width)?;
        Ok(found.map(|links| Box::new(links) as Box<dyn Multiplier>))
    }
}

/// V of all instances, in the parts that their rows are in.
struct PartsShard<'a> {
    shards: Vec<Vec<CardShard>>,
    parts: Arc<Parts<'a>>,
}

impl PartsShard<'_> {
    fn each(
        &mut self,
        work: impl Fn(usize, usize, &mut CardShard) -> Result<Totals> + Sync,
        give_up: impl Fn(&CardShard) -> Result<()> + Sync,
    ) -> Result<Statistics> {
        let precision = self.parts.precision;
        let pairs = self.parts.shares.iter().zip(&mut self.shards).enumerate().collect();
        let all = at_once(pairs, |(number, (share, shards)): (usize, (&Share<'_>, &mut Vec<CardShard>))| {
            let _turn = share.card.0.turn();
            share.each(precision, shards, |part, shard| work(number, part, shard), &give_up)
        })?;
        let mut all = all.into_iter();
        let mut totals = all.next().unwrap_or_default();
        all.for_each(|own| totals.add(&own));
        Ok(Statistics::of_all(totals))
    }

    /// The rows of V of each part.
    fn cut<'v>(&self, v: &'v Matrix) -> Result<Vec<Vec<&'v [f64]>>> {
        let (rows, columns) = (self.instances(), self.parts.load.latent());
        if (v.rows(), v.columns()) != (rows, columns) {
            let reason = format!("V must be {rows} × {columns}, instances × latent");
            let value = format!("{} × {}", v.rows(), v.columns());
            return Err(Error::Unsuitable { what: "V", value, reason });
        }
        let mut rest = v.values();
        let mut cut = |part: &Part<'_>| rest.split_off(..part.load.instances() * columns).unwrap_or_default();
        let share = |share: &Share<'_>| share.parts.iter().map(&mut cut).collect();
        Ok(self.parts.shares.iter().map(share).collect())
    }
}

impl Shard for PartsShard<'_> {
    fn instances(&self) -> usize {
        self.parts.load.instances()
    }

    fn start(&mut self, v: Matrix, stop: &Stop) -> Result<Statistics> {
        let v = self.cut(&v)?;
        self.each(|share, part, shard| shard.start(v[share][part], stop), |_| Ok(()))
    }

    fn hold(&mut self, v: Matrix, _: &Stop) -> Result<()> {
        let all = self.cut(&v)?.into_iter().flatten();
        let mut shards = self.shards.iter_mut().flatten().zip(all);
        shards.try_for_each(|(shard, v)| shard.hold(v))
    }

    fn sweep(&mut self, factors: &Factors, step: VStep, stop: &Stop) -> Result<Statistics> {
        self.each(|_, _, shard| shard.sweep(factors, step, stop), |shard| shard.rescale(factors))
    }

    fn latent(&self) -> Matrix {
        let mut v = Matrix::zeros(self.instances(), self.parts.load.latent());
        let mut rest = v.values_mut();
        for (part, shard) in self.parts.parts().zip(self.shards.iter().flatten()) {
            let size = part.load.instances() * self.parts.load.latent();
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
    fn rows_stay_as_far_as_there_is_room() {
        let size = Size { rows: vec![4096.0], latent: 320.0, working: 640.0 };
        let n = 100_000;
        // The first half has long rows, as where a view shows these alone.
        let rows: Vec<f64> = (0..n).map(|i| if i < n / 2 { 8000.0 } else { 192.0 }).collect();
        let all: f64 = rows.iter().sum::<f64>() + n as f64 * 960.0;
        assert_eq!(Cut::new(&rows, &size, all), Some(Cut { ends: vec![n], staying: 1 }));
        for bytes in [0.95 * all, 0.5 * all, n as f64 * 360.0] {
            let Cut { ends, staying } = Cut::new(&rows, &size, bytes).unwrap();
            assert!(ends.is_sorted() && ends.last() == Some(&n) && staying < ends.len());
            let parts: Vec<&[f64]> =
                [0].iter().chain(&ends).zip(&ends).map(|(start, end)| &rows[*start..*end]).collect();
            let bytes_of = |part: &&[f64]| part.iter().sum::<f64>();
            let largest = parts.iter().map(bytes_of).fold(0.0, f64::max);
            let longest = parts.iter().map(|part| part.len()).max().unwrap_or(0);
            let stay: f64 = parts[..staying].iter().map(bytes_of).sum();
            let taken = n as f64 * 320.0 + 2.0 * largest + longest as f64 * 640.0 + stay;
            assert!(taken <= bytes && taken + bytes_of(&parts[staying]) > bytes, "{taken} of {bytes}");
        }
        assert_eq!(Cut::new(&rows, &size, n as f64 * 319.0), None);
        // Rows that lie on the card take nothing, but what is made of them does.
        let Cut { ends, staying } = Cut::new(&vec![0.0; n], &size, n as f64 * 500.0).unwrap();
        assert!(ends.len() > 1 && staying == ends.len());
    }

    fn card() -> Option<Arc<Card>> {
        Card::open(0).map_err(|reason| eprintln!("skipped: {reason}")).ok().map(Arc::new)
    }

    /// Views that lack rows and cells, and how a fit scales them.
    fn data(n: usize) -> (Views<'static>, Vec<Scaling>) {
        let data = Synthetic::new(n, 5).noise(0.5).seed(1);
        let mut present = simulate::missing(n, &[0.2, 0.3], 3).unwrap();
        // The second half is not in the first view at all.
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
    fn parts_give_the_v_of_the_whole() {
        let Some(card) = card() else { return };
        let (views, scalings) = data(4000);
        let load = || Load::new(&views, &scalings, 5).unwrap();
        let squares: Vec<f64> = (0..2).map(|view| load().view(view).squares()).collect();
        let whole = Parts::new(from_ref(&card), load(), Precision::Single, None).unwrap();
        assert!(whole.parts().count() == 1 && whole.parts().all(|part| part.stays));
        let size = Size::new(&card, &load());
        let rows: f64 = (0..4000).map(|i| size.of(&load(), i)).sum();
        let apart = APART + 24 * 100 * 5 + grams(&load()) / 2 * 3;
        let with = |rest: f64| apart + (4000.0 * size.latent + rest) as usize;
        let (some, little) = (with(0.7 * (rows + 4000.0 * size.working)), with(0.4 * rows));
        let shared =
            |cards: &[Arc<Card>], memory| Parts::new(cards, load(), Precision::Single, memory).unwrap();
        let others = [
            shared(from_ref(&card), Some(some)),
            shared(from_ref(&card), Some(little)),
            shared(&[card.clone(), Arc::new(Card::open(0).unwrap())], None),
        ];
        let staying =
            |parts: &Parts<'_>| (parts.parts().count(), parts.parts().filter(|part| part.stays).count());
        let (all, resident) = staying(&others[0]);
        assert!(resident > 0 && resident < all, "{resident} of {all}");
        let (all, resident) = staying(&others[1]);
        assert!(resident < all && all > 2, "{resident} of {all}");
        assert_eq!(staying(&others[2]), (2, 2));
        let stop = Stop::new();
        let first = Matrix::from_fn(4000, 5, |i, k| ((i * 7 + k * 3) % 11) as f64 / 11.0 + 0.01);
        let mut whole = Arc::new(whole).shard().unwrap();
        let mut others: Vec<_> = others.into_iter().map(|parts| Arc::new(parts).shard().unwrap()).collect();
        let begun = whole.start(first.clone(), &stop).unwrap();
        others.iter_mut().for_each(|shard| drop(shard.start(first.clone(), &stop).unwrap()));
        let daimc = Daimc::new(5);
        let mut descent = Descent::new(daimc.options(), squares, Bases::Fitted, begun).unwrap();
        let update = VStep::Update { solver: Solver::Coordinate, passes: 2 };
        for step in [update, VStep::Settle { after: Some(2) }, update] {
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
        // What is stopped leaves V at its scale.
        let factors = descent.solve().unwrap().clone();
        stop.set();
        assert!(matches!(whole.sweep(&factors, update, &stop), Err(Error::Interrupted)));
        for shard in &mut others {
            assert!(matches!(shard.sweep(&factors, update, &stop), Err(Error::Interrupted)));
            assert_eq!(shard.latent(), whole.latent());
        }
    }
}
