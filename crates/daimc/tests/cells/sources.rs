//! The source and the partition of the rows do not change the result.

use std::ops::Range;

use daimc::source::{Buffer, MISSING, RandomAccess, ReadError, Source};
use daimc::{
    Bases, Cpu, Daimc, Descent, Ids, Layout, Matrix, Neighbours, Preparation, Prepared, Presence, Preset,
    Scale, Scaling, Schema, Shard, Shards, Solver, Statistics, Stop, VStep, ViewSchema, ViewWeights, aligned,
};

use crate::data::{Table, tables, views};
use crate::made::{assert_same, start};

/// Rows that are not in memory, with an unknown number of missing cells.
struct Stream {
    schema: Schema,
    tables: Vec<Table>,
    random: bool,
}

impl Stream {
    fn new(tables: Vec<Table>, random: bool) -> Self {
        let n = tables[0].present.len();
        let view = |(number, table): (usize, &Table)| {
            let layout = if table.single { Layout::DenseF32 } else { Layout::DenseF64 };
            ViewSchema::new(format!("view {number}"), table.features, layout)
                .presence(Presence::from_fn(n, |i| table.present[i]))
        };
        let schema = Schema::new(Ids::Numbers(n), tables.iter().enumerate().map(view).collect()).unwrap();
        Self { schema, tables, random }
    }

    fn some(&self, view: usize, instances: impl Iterator<Item = usize>, buffer: &mut Buffer) {
        let table = &self.tables[view];
        buffer.f32.clear();
        buffer.f64.clear();
        buffer.index.clear();
        let mut rows = 0;
        for i in instances {
            buffer.index.push(if table.present[i] { rows } else { MISSING });
            if table.present[i] {
                rows += 1;
                buffer.f32.extend(table.row(i).iter().map(|x| *x as f32));
                buffer.f64.extend(table.row(i));
            }
        }
    }
}

impl Source for Stream {
    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn read(&self, view: usize, instances: Range<usize>, buffer: &mut Buffer) -> Result<(), ReadError> {
        self.some(view, instances, buffer);
        Ok(())
    }

    fn random_access(&self) -> Option<&dyn RandomAccess> {
        self.random.then_some(self)
    }
}

impl RandomAccess for Stream {
    fn pick(&self, view: usize, instances: &[u32], buffer: &mut Buffer) -> Result<(), ReadError> {
        self.some(view, instances.iter().map(|&i| i as usize), buffer);
        Ok(())
    }
}

fn off(clusters: usize) -> Daimc {
    Daimc::new(clusters).neighbours(Neighbours::Off).max_iterations(10)
}

/// Some rows lack all cells, though the mask says that they are present.
fn with_empty_rows() -> Vec<Table> {
    let mut tables = tables(700, &[(7, false), (5, true), (4, false)], 4, [0.2, 0.15], 11);
    for i in (50..690).step_by(13) {
        let row = i * 7..(i + 1) * 7;
        tables[0].values[row].fill(f64::NAN);
        tables[0].present[i] = true;
        tables[2].present[i] = true;
        tables[2].values[i * 4] = 1.0;
    }
    tables
}

#[test]
fn rows_that_are_read_give_the_model_of_rows_in_memory() {
    let tables = with_empty_rows();
    let memory = views(&tables);
    for random in [false, true] {
        let stream = Stream::new(tables.clone(), random);
        for preset in [Preset::Default, Preset::Paper] {
            for scale in [Scale::Auto, Scale::None, Scale::Unit, Scale::MinMax, Scale::ZScoreUnit] {
                let fit = off(4).preset(preset).scale(scale).neighbours(Neighbours::Off).max_iterations(5);
                let (there, here) = (fit.fit(&stream).unwrap(), fit.fit(&memory).unwrap());
                assert_same(&there, &here);
                assert_eq!(there.missing_cells, here.missing_cells);
                assert_eq!(there.missingness, here.missingness);
                let model = &here.model;
                assert_eq!(model, &there.model);
                assert_eq!(model.transform(&stream).unwrap(), model.transform(&memory).unwrap());
                for view in &model.views {
                    let of = |source: &dyn Source| here.misfit(source, &view.name).unwrap();
                    assert_eq!(of(&stream), of(&memory));
                }
                assert_eq!(here.explain(&stream).unwrap(), here.explain(&memory).unwrap());
            }
        }
        let learned = off(4).view_weights(ViewWeights::Learned).runs(2);
        assert_same(&learned.fit(&stream).unwrap(), &learned.fit(&memory).unwrap());
    }
}

#[test]
fn a_row_that_lacks_all_cells_is_a_missing_row() {
    let tables = with_empty_rows();
    let masked: Vec<Table> = tables
        .iter()
        .map(|table| {
            let present = (0..700).map(|i| table.shows(i)).collect();
            // The values of missing rows do not matter.
            let value = |(at, x): (usize, &f64)| if table.shows(at / table.features) { *x } else { 0.5 };
            let values = table.values.iter().enumerate().map(value).collect();
            Table { values, present, ..table.clone() }
        })
        .collect();
    assert!((0..700).any(|i| tables[0].present[i] && !masked[0].present[i]));
    let (found, expected) = (off(4).fit(&views(&tables)).unwrap(), off(4).fit(&views(&masked)).unwrap());
    assert_same(&found, &expected);
    assert_eq!(found.missing_cells, expected.missing_cells);
    let model = &expected.model;
    assert_eq!(model.transform(&views(&tables)).unwrap(), model.transform(&views(&masked)).unwrap());
}

#[test]
fn where_nothing_is_missing_nothing_changes() {
    let whole = tables(500, &[(7, false), (5, true)], 4, [0.3, 0.0], 5);
    let memory = views(&whole);
    assert_eq!((memory.missing_cells(0), memory.missing_cells(1)), (Some(0), Some(0)));
    for scale in [Scale::Auto, Scale::MinMax, Scale::ZScoreUnit] {
        let fit = off(4).scale(scale);
        let found = fit.fit(&memory).unwrap();
        assert!(found.missing_cells.iter().all(|own| own.cells() == 0 && own.share() == 0.0));
        // With and without the pass that counts missing cells, and with prepared rows, the bits are the same.
        assert_same(&fit.fit(&Stream::new(whole.clone(), false)).unwrap(), &found);
        let prepared = found.model.prepare(&memory).unwrap();
        assert_same(&fit.fit(&prepared).unwrap(), &found);
    }
}

#[test]
fn threads_make_no_difference() {
    let tables = tables(3000, &[(40, true), (9, false)], 5, [0.3, 0.1], 7);
    let views = views(&tables);
    for solver in [Solver::Coordinate, Solver::Multiplicative] {
        let fit = Daimc::new(5).solver(solver).max_iterations(8).runs(2);
        let one = fit.clone().threads(1).fit(&views).unwrap();
        for threads in [2, 7] {
            assert_same(&fit.clone().threads(threads).fit(&views).unwrap(), &one);
        }
    }
}

const TOTAL: usize = 60_000;
const LATENT: usize = 4;

/// Some iterations, and V solved to optimality; V and the bases to the last bit.
fn descend(shard: &mut dyn Shard, squares: &[f64], v: &Matrix) -> (Vec<u64>, Vec<u64>, u64) {
    let stop = Stop::new();
    let fit = Daimc::new(LATENT);
    let first = shard.start(v.clone(), &stop).unwrap();
    let mut descent = Descent::new(fit.options(), squares.to_vec(), Bases::Fitted, first).unwrap();
    for _ in 0..3 {
        let step = VStep::Update { solver: Solver::Coordinate, passes: 2 };
        let statistics = shard.sweep(descent.solve().unwrap(), step, &stop).unwrap();
        assert_eq!(Statistics::from_bytes(&statistics.to_bytes()).unwrap(), statistics);
        descent.absorb(statistics).unwrap();
    }
    let last = shard.sweep(descent.factors(), VStep::Solve { after: Some(2) }, &stop).unwrap();
    let objective = descent.absorb(last).unwrap();
    let bits = |values: &[f64]| values.iter().map(|value| value.to_bits()).collect::<Vec<u64>>();
    let bases = descent.factors().bases.iter().flat_map(|basis| bits(basis.values())).collect();
    (bits(shard.latent().values()), bases, objective.loss.to_bits())
}

#[test]
fn shards_give_the_bits_of_one() {
    let all = tables(TOTAL, &[(9, true), (6, false)], LATENT, [0.3, 0.1], 3);
    let part = |range: &Range<usize>| {
        let some = |table: &Table| Table {
            values: table.values[range.start * table.features..range.end * table.features].to_vec(),
            present: table.present[range.clone()].to_vec(),
            ..table.clone()
        };
        views(&all.iter().map(some).collect::<Vec<_>>())
    };
    let whole = part(&(0..TOTAL));
    let model = off(LATENT).max_iterations(1).restarts(1).fit(&whole).unwrap().model;
    let scalings: Vec<Scaling> = model.views.iter().map(|view| view.scaling.clone()).collect();
    let preparations: Vec<Preparation> = model.views.iter().map(|view| view.preparation.clone()).collect();
    let v = start(&(0..TOTAL).collect::<Vec<_>>(), LATENT, 2);
    let prepared = Prepared::new(&whole, &preparations).unwrap();
    let mut one = Cpu::new(&prepared, &scalings, LATENT).unwrap();
    let squares = one.squares();
    let expected = descend(&mut one, &squares, &v);
    for parts in [2, 3] {
        let ranges = aligned(TOTAL, parts);
        assert_eq!(ranges.len(), parts);
        let sources: Vec<_> = ranges.iter().map(part).collect();
        let sources: Vec<_> = sources.iter().map(|own| Prepared::new(own, &preparations).unwrap()).collect();
        let cpu = |(own, range): (_, &Range<usize>)| {
            Cpu::part(own, range.clone(), TOTAL, &scalings, LATENT).unwrap()
        };
        let held = sources.iter().map(|own| own as &dyn Source).zip(&ranges).map(cpu);
        let mut shards = Shards::new(held.collect());
        for threads in [1, 7] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let found = pool.install(|| descend(&mut shards, &squares, &v));
            assert!(found == expected, "{parts} shards, {threads} threads");
        }
    }
}

#[test]
fn preparations_that_do_not_fit_are_refused() {
    let views = views(&tables(20, &[(3, false)], 2, [0.0, 0.2], 1));
    let refused = |preparations: &[Preparation]| Prepared::new(&views, preparations).map(|_| ()).unwrap_err();
    assert!(refused(&[]).to_string().contains("one for each view"));
    assert!(refused(&[Preparation::new(vec![1.0; 2])]).to_string().contains("one for each feature"));
    assert!(refused(&[Preparation::new(vec![f64::NAN; 3])]).to_string().contains("finite"));
    assert!(Prepared::new(&views, &[Preparation::default()]).is_ok());
}
