//! A source whose every answer is looked at before anything is made of it.

use std::collections::HashSet;
use std::ops::Range;

use super::{Block, Buffer, Csr, Index, Kind, MISSING, Rows, Source};
use crate::kernel::Scalar;
use crate::{Error, Result};

/// What is wrong with a source as a whole: no view, two of one name, a view without features or instances, an instance in
/// no view.
pub(crate) fn validate(source: &dyn Source) -> Result<()> {
    let (instances, views) = (source.instances(), source.views());
    if views == 0 {
        return Err(Error::NoViews);
    }
    let mut names = HashSet::new();
    for view in 0..views {
        countable(source, view)?;
        let name = || source.name(view).to_string();
        if !names.insert(source.name(view)) {
            return Err(Error::DuplicateView { view: name() });
        }
        if source.features(view) == 0 {
            return Err(Error::NoFeatures { view: name() });
        }
        if !(0..instances).any(|i| source.is_present(view, i)) {
            return Err(Error::EmptyView { view: name() });
        }
    }
    let unseen = |&i: &usize| !(0..views).any(|view| source.is_present(view, i));
    if let Some(row) = (0..instances).find(unseen) {
        let count = (row..instances).filter(unseen).count();
        return Err(Error::SeenInNoView { row, id: source.id(row), count });
    }
    Ok(())
}

/// Instances and features are counted in 32 bits.
fn countable(source: &dyn Source, view: usize) -> Result<()> {
    let (rows, features, limit) = (source.instances(), source.features(view), MISSING as usize - 1);
    if rows > limit {
        return Err(Error::TooManyRows { view: source.name(view).into(), rows, limit });
    }
    if features > limit {
        let what = "features (at most as many as 32 bits can count)";
        return Err(Error::Shape { view: source.name(view).into(), what, expected: limit, found: features });
    }
    Ok(())
}

/// A source by somebody else. What it says of its shape and of who is present is asked once and holds from then on; every
/// block is compared with it, so that rows which do not fit are an error and nothing else.
pub(crate) struct Checked<'a> {
    source: &'a dyn Source,
    instances: usize,
    views: Vec<Shape>,
}

struct Shape {
    features: usize,
    kind: Kind,
    /// A bit for each instance.
    present: Vec<u64>,
}

impl Shape {
    fn shows(&self, instance: usize) -> bool {
        self.present.get(instance / 64).is_some_and(|bits| bits >> (instance % 64) & 1 == 1)
    }
}

impl<'a> Checked<'a> {
    pub fn new(source: &'a dyn Source) -> Result<Self> {
        let instances = source.instances();
        let mut checked = Self { source, instances, views: Vec::new() };
        for view in 0..source.views() {
            countable(source, view)?;
            let mut buffer = Buffer::default();
            let kind = source.block(view, 0..instances.min(1), &mut buffer)?.rows.kind();
            let mut present = vec![0; instances.div_ceil(64)];
            for i in (0..instances).filter(|&i| source.is_present(view, i)) {
                present[i / 64] |= 1 << (i % 64);
            }
            checked.views.push(Shape { features: source.features(view), kind, present });
        }
        validate(&checked)?;
        Ok(checked)
    }

    /// Compares the rows of instances with what is known of the view.
    fn check<'b>(
        &self,
        view: usize,
        block: Block<'b>,
        instances: &(impl ExactSizeIterator<Item = usize> + Clone),
    ) -> Result<Block<'b>> {
        let shape = &self.views[view];
        let sound = || -> std::result::Result<(), String> {
            if block.rows.kind() != shape.kind {
                return Err("they are of another layout or type than those read before".into());
            }
            fits(&block, instances.len(), shape.features)?;
            let wrong =
                |(i, instance): &(usize, usize)| block.index.row(*i).is_some() != shape.shows(*instance);
            match instances.clone().enumerate().find(wrong) {
                None => Ok(()),
                Some((_, instance)) => {
                    let (now, before) = if shape.shows(instance) { ("no", "one") } else { ("a", "none") };
                    Err(format!("there is {now} row of instance {instance}, where {before} was promised"))
                }
            }
        };
        sound().map_err(|reason| Error::Read {
            view: self.source.name(view).into(),
            first: instances.clone().next().unwrap_or(0),
            last: instances.clone().last().unwrap_or(0),
            source: reason.into(),
        })?;
        Ok(block)
    }
}

/// Whether the rows of `count` instances are where the index of a block says, and whole.
pub(super) fn fits(block: &Block<'_>, count: usize, features: usize) -> std::result::Result<(), String> {
    let rows = match block.rows {
        Rows::DenseF32(values) => values.len() / features.max(1),
        Rows::DenseF64(values) => values.len() / features.max(1),
        Rows::SparseF32(csr) => csr.offsets.len().saturating_sub(1),
        Rows::SparseF64(csr) => csr.offsets.len().saturating_sub(1),
    };
    let few = |given: usize| Err(format!("{count} rows were asked for, and there are {given}"));
    match block.index {
        Index::From(first) if count > 0 && first.checked_add(count).is_none_or(|end| end > rows) => {
            return few(rows.saturating_sub(first));
        }
        Index::Rows(index) if index.len() < count => return few(index.len()),
        _ => {}
    }
    for row in (0..count).filter_map(|i| block.index.row(i)) {
        let whole = match block.rows {
            Rows::DenseF32(_) | Rows::DenseF64(_) => row < rows,
            Rows::SparseF32(csr) => row < rows && is_whole(csr, row, features),
            Rows::SparseF64(csr) => row < rows && is_whole(csr, row, features),
        };
        if !whole {
            return Err(format!("row {row} of the {rows} in the block is not one of {features} features"));
        }
    }
    Ok(())
}

fn is_whole<T: Scalar>(csr: Csr<'_, T>, row: usize, features: usize) -> bool {
    let range = csr.offsets[row]..csr.offsets[row + 1];
    // The largest of all, without a branch for each.
    let in_range = |columns: &[u32]| columns.iter().max().is_none_or(|&column| (column as usize) < features);
    csr.values.get(range.clone()).is_some() && csr.columns.get(range).is_some_and(in_range)
}

impl Source for Checked<'_> {
    fn instances(&self) -> usize {
        self.instances
    }

    fn views(&self) -> usize {
        self.views.len()
    }

    fn name(&self, view: usize) -> &str {
        self.source.name(view)
    }

    fn features(&self, view: usize) -> usize {
        self.views[view].features
    }

    fn is_present(&self, view: usize, instance: usize) -> bool {
        self.views[view].shows(instance)
    }

    fn id(&self, instance: usize) -> String {
        self.source.id(instance)
    }

    fn block<'b>(
        &'b self,
        view: usize,
        instances: Range<usize>,
        buffer: &'b mut Buffer,
    ) -> Result<Block<'b>> {
        self.check(view, self.source.block(view, instances.clone(), buffer)?, &instances)
    }

    fn pick<'b>(&'b self, view: usize, instances: &[u32], buffer: &'b mut Buffer) -> Result<Block<'b>> {
        let block = self.source.pick(view, instances, buffer)?;
        self.check(view, block, &instances.iter().map(|&i| i as usize))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Views;
    use crate::synthetic::Synthetic;

    #[test]
    fn what_is_sound_goes_through() {
        let data = Synthetic::new(300, 3).seed(1);
        let mask: Vec<bool> = (0..300).map(|i| i % 3 != 1).collect();
        let view = data.dense::<f64>("x", 5).unwrap().mask(&mask).unwrap();
        let views = Views::new(vec![view, data.dense::<f32>("y", 4).unwrap()]).unwrap();
        let checked = Checked::new(&views).unwrap();
        let mut buffer = Buffer::default();
        for view in 0..2 {
            assert_eq!(checked.features(view), views.features(view));
            assert!((0..301).all(|i| checked.is_present(view, i) == Source::is_present(&views, view, i)));
            checked.block(view, 64..200, &mut buffer).unwrap();
            checked.pick(view, &[3, 4, 5, 299], &mut buffer).unwrap();
        }
    }
}
