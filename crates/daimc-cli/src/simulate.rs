//! `daimc simulate`: removes instances from views, complete or not.

use std::collections::{HashMap, HashSet};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use daimc::text::{plain, quoted};
use daimc_io::{Cells, Csr, Table};

use crate::data::Data;
use crate::failure::{Failure, Result};
use crate::folder::{Folder, spare_inputs};
use crate::tsv::field;

#[derive(Args)]
pub struct Arguments {
    #[command(flatten)]
    data: Data,

    /// Share of instances to remove from every view, 0 to 1; for one view only: `--missing rna=0.3`. Every instance keeps at least
    /// one view
    #[arg(long, value_name = "[VIEW=]SHARE", required = true)]
    missing: Vec<String>,

    /// Folder for mask.tsv and the incomplete copies, NAME.tsv, or for sparse views NAME.mtx with the names in separate files
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,

    /// Random seed
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    seed: u64,

    /// Replace files in a folder that is not empty
    #[arg(long)]
    force: bool,

    /// Print what was removed as JSON
    #[arg(long)]
    json: bool,
}

pub fn run(arguments: &Arguments) -> Result<()> {
    let Arguments { data, missing, output, seed, force, json } = arguments;
    crate::use_threads(None)?;
    let mut folder = Folder::begin(output, *force)?;
    let (tables, _) = data.read()?;
    let rates = rates(missing, &tables)?;
    let Instances { ids, place, shown } = instances(&tables, data.mask.as_deref())?;
    let present = match daimc::simulate::missing_within(&shown, &rates, *seed) {
        Err(daimc::Error::Simulation { reason }) => {
            return Err(Failure::Usage(format!("--missing: {reason}")));
        }
        present => present?,
    };

    let mut names: Vec<String> = Vec::new();
    for (name, table) in &tables {
        let end = if matches!(table.cells, Cells::DenseF32(_) | Cells::DenseF64(_)) { "tsv" } else { "mtx" };
        let file = format!("{}.{end}", file_name(name));
        if file == "mask.tsv" || names.contains(&file) {
            let reason = "would be written twice: give the views other names with --view NAME=PATH";
            return Err(Failure::Usage(format!("{}: {reason}", output.join(file).display())));
        }
        names.push(file);
    }
    for file in names.iter().map(String::as_str).chain(["mask.tsv"]) {
        spare_inputs(&output.join(file), tables.iter().map(|(_, table)| table.path.as_path()))?;
    }

    folder.write("mask.tsv", |out| mask(out, &tables, &ids, &present))?;
    for ((name, table), (present, place)) in tables.iter().zip(present.iter().zip(&place)) {
        let shown: Vec<usize> = (0..table.rows).filter(|&row| present[place[row]]).collect();
        let file = file_name(name);
        match &table.cells {
            Cells::DenseF32(values) => {
                folder.write(&format!("{file}.tsv"), |out| dense(out, table, values, &shown))?;
            }
            Cells::DenseF64(values) => {
                folder.write(&format!("{file}.tsv"), |out| dense(out, table, values, &shown))?;
            }
            Cells::SparseF32(csr) => sparse(&mut folder, &file, table, csr, &shown)?,
            Cells::SparseF64(csr) => sparse(&mut folder, &file, table, csr, &shown)?,
            Cells::Stored(_) => return Err(Failure::Failed("the data do not fit into memory".into())),
        }
    }
    folder.finish()?;
    print(&tables, &shown, &present, output, *json)
}

/// The share to remove from each view.
fn rates(missing: &[String], tables: &[(String, Table)]) -> Result<Vec<f64>> {
    let mut rates = vec![0.0; tables.len()];
    for text in missing {
        let (view, share) =
            text.split_once('=').map_or((None, text.as_str()), |(view, share)| (Some(view), share));
        let wrong = |reason| Failure::Usage(format!("--missing {}: {reason}", quoted(text)));
        let share = share.parse().ok().filter(|share| (0.0..1.0).contains(share));
        let share: f64 = share.ok_or_else(|| wrong("the share must be a number from 0 to below 1"))?;
        let Some(view) = view else {
            rates.fill(share);
            continue;
        };
        let Some(place) = tables.iter().position(|(name, _)| name == view) else {
            return Err(wrong("there is no view of this name"));
        };
        rates[place] = share;
    }
    Ok(rates)
}

/// The instances of all views.
struct Instances {
    /// In order of first appearance.
    ids: Vec<String>,
    /// For each view, the instance of each row.
    place: Vec<Vec<usize>>,
    /// For each view, the presence of each instance.
    shown: Vec<Vec<bool>>,
}

fn instances(tables: &[(String, Table)], mask: Option<&str>) -> Result<Instances> {
    let rows = daimc_io::shown(tables, mask.map(Path::new))?;
    let mut known: HashMap<String, usize> = HashMap::new();
    let (mut ids, mut place) = (Vec::new(), Vec::new());
    for (view, table) in tables {
        let own = (0..table.rows).map(|row| {
            let id = id(table, row);
            *known.entry(id.clone()).or_insert_with(|| {
                ids.push(id);
                ids.len() - 1
            })
        });
        let own: Vec<usize> = own.collect();
        let mut seen = HashSet::new();
        if let Some(twice) = own.iter().find(|instance| !seen.insert(**instance)) {
            let (path, view, id) = (table.path.display(), quoted(view), quoted(&ids[*twice]));
            let reason = "an instance has one row in a view, so rename or delete the others";
            return Err(Failure::Data(format!("{path}: the ID {id} occurs twice in view {view}: {reason}")));
        }
        place.push(own);
    }
    let mut shown = vec![vec![false; ids.len()]; tables.len()];
    for (view, (place, rows)) in place.iter().zip(rows).enumerate() {
        place.iter().zip(rows).for_each(|(&instance, row)| shown[view][instance] = row);
    }
    Ok(Instances { ids, place, shown })
}

fn id(table: &Table, row: usize) -> String {
    table.ids.as_ref().map_or_else(|| row.to_string(), |ids| ids[row].clone())
}

/// The file name of a view.
pub fn file_name(name: &str) -> String {
    name.chars().map(|c| if c.is_alphanumeric() || "-_.".contains(c) { c } else { '_' }).collect()
}

fn mask(
    out: &mut impl Write,
    tables: &[(String, Table)],
    ids: &[String],
    present: &[Vec<bool>],
) -> io::Result<()> {
    write!(out, "id")?;
    tables.iter().try_for_each(|(name, _)| write!(out, "\t{}", field(name)))?;
    writeln!(out)?;
    for (i, id) in ids.iter().enumerate() {
        write!(out, "{}", field(id))?;
        present.iter().try_for_each(|present| write!(out, "\t{}", u8::from(present[i])))?;
        writeln!(out)?;
    }
    Ok(())
}

fn dense<T: std::fmt::Display>(
    out: &mut impl Write,
    table: &Table,
    values: &[T],
    shown: &[usize],
) -> io::Result<()> {
    write!(out, "id")?;
    for f in 0..table.columns {
        write!(out, "\t{}", feature(table, f))?;
    }
    writeln!(out)?;
    for &row in shown {
        write!(out, "{}", field(&id(table, row)))?;
        for value in &values[row * table.columns..(row + 1) * table.columns] {
            write!(out, "\t{value}")?;
        }
        writeln!(out)?;
    }
    Ok(())
}

fn sparse<T: std::fmt::Display>(
    folder: &mut Folder,
    name: &str,
    table: &Table,
    csr: &Csr<T>,
    shown: &[usize],
) -> Result<()> {
    folder.write(&format!("{name}.mtx"), |out| {
        let entries: usize = shown.iter().map(|&row| csr.offsets[row + 1] - csr.offsets[row]).sum();
        writeln!(out, "%%MatrixMarket matrix coordinate real general")?;
        writeln!(out, "{} {} {entries}", shown.len(), table.columns)?;
        for (i, &row) in shown.iter().enumerate() {
            for at in csr.offsets[row]..csr.offsets[row + 1] {
                writeln!(out, "{} {} {}", i + 1, csr.columns[at] + 1, csr.values[at])?;
            }
        }
        Ok(())
    })?;
    folder.write(&format!("{name}.ids"), |out| {
        shown.iter().try_for_each(|&row| writeln!(out, "{}", id(table, row)))
    })?;
    folder.write(&format!("{name}.features"), |out| {
        (0..table.columns).try_for_each(|f| writeln!(out, "{}", feature(table, f)))
    })?;
    Ok(())
}

fn feature(table: &Table, f: usize) -> String {
    table.features.as_ref().map_or_else(|| format!("f{f}"), |names| field(&names[f]))
}

fn print(
    tables: &[(String, Table)],
    shown: &[Vec<bool>],
    present: &[Vec<bool>],
    output: &Path,
    json: bool,
) -> Result<()> {
    let mut out = io::stdout().lock();
    let count = |present: &Vec<bool>| present.iter().filter(|here| **here).count();
    let kept = present.iter().map(count);
    let instances = present[0].len();
    let complete = (0..instances).filter(|&i| present.iter().all(|view| view[i])).count();
    if json {
        let views = tables.iter().zip(kept).map(|((name, _), kept)| (name.clone(), kept.into()));
        let views: serde_json::Map<String, serde_json::Value> = views.collect();
        writeln!(
            out,
            "{:#}",
            serde_json::json!({"instances": instances, "kept": views, "in_every_view": complete})
        )?;
        return Ok(());
    }
    for (((name, _), kept), shown) in tables.iter().zip(kept).zip(shown) {
        writeln!(out, "  {}: {kept} of {} instances kept", plain(name), count(shown))?;
    }
    if tables.len() > 1 {
        writeln!(out, "  {complete} of {instances} instances are in every view")?;
    }
    if tables.len() == 2 && complete == 0 {
        writeln!(
            out,
            "No instance is in both views: nothing relates the clusters of one view to those of the other"
        )?;
    }
    writeln!(out, "The mask and the copies are in {}", output.display())?;
    Ok(())
}
