//! The data of a run: some views of a data set, with some instances hidden, and the classes.

use daimc::source::Buffer;
use daimc::{View, Views, simulate};

use crate::harness::Result;

/// Data with classes.
#[derive(Debug)]
pub struct Dataset {
    /// The views.
    pub views: Views<'static>,
    /// The class of each instance; `None` if it is unknown.
    pub classes: Vec<Option<usize>>,
    /// The number of clusters that every method looks for.
    pub clusters: usize,
}

impl Dataset {
    /// The presence of each instance in each view after a random share of the present ones is removed.
    pub(crate) fn present(&self, rate: f64, seed: u64) -> Result<Vec<Vec<bool>>> {
        let views = &self.views;
        let shown = |view: usize| (0..views.instances()).map(|i| views.is_present(view, i)).collect();
        let shown: Vec<Vec<bool>> = (0..views.len()).map(shown).collect();
        if rate == 0.0 {
            return Ok(shown);
        }
        let rate = if shown.iter().flatten().all(|shown| *shown) { possible(rate, views) } else { rate };
        Ok(simulate::missing_within(&shown, &vec![rate; views.len()], seed)?)
    }
}

/// All or some views of a data set.
pub struct Sample<'a> {
    /// Its name in results.tsv.
    pub name: String,
    pub data: &'a Dataset,
    /// The indices of the views; `None`: all. Instances that are in none of them are dropped.
    pub views: Option<Vec<usize>>,
}

impl Sample<'_> {
    /// Hides a random share of the present instances of every view and calls `work` with the views and the class of each
    /// instance. The mask depends on the data set, not on the selected views.
    pub fn with<T>(
        &self,
        rate: f64,
        seed: u64,
        work: impl FnOnce(&Views<'_>, &[Option<usize>]) -> Result<T>,
    ) -> Result<T> {
        let classes = &self.data.classes;
        let masked = self.data.views.masked(&self.data.present(rate, seed)?)?;
        let Some(chosen) = &self.views else { return work(&masked, classes) };
        let (some, instances) = select(&masked, chosen)?;
        let classes: Vec<Option<usize>> = instances.into_iter().map(|i| classes[i]).collect();
        work(&some, &classes)
    }

    /// The names of its views.
    pub fn view_names(&self) -> Vec<&str> {
        let names: Vec<&str> = self.data.views.iter().map(View::name).collect();
        match &self.views {
            None => names,
            Some(chosen) => chosen.iter().map(|&view| names[view]).collect(),
        }
    }
}

/// The largest possible share up to rounding: half of an odd number of instances cannot be removed from both of two views.
fn possible(rate: f64, views: &Views<'_>) -> f64 {
    let count = views.instances();
    let most = (count - count.div_ceil(views.len())) as f64 / count as f64;
    if rate > most && rate - most < 1.0 / count as f64 { most } else { rate }
}

/// Some of the views with the instances that are present in them, and the previous index of each instance.
fn select<'a>(views: &Views<'a>, chosen: &[usize]) -> daimc::Result<(Views<'a>, Vec<usize>)> {
    let mut parts = Vec::with_capacity(chosen.len());
    for (number, view) in views.iter().enumerate().filter(|(number, _)| chosen.contains(number)) {
        let mut buffer = Buffer::default();
        let rows = views.block(number, 0..views.instances(), &mut buffer)?.index;
        // The ID of a row is the index of its instance; rows without an instance are masked.
        let mut ids: Vec<String> = (0..view.rows()).map(|row| format!("no instance {row}")).collect();
        let mut present = vec![false; view.rows()];
        for instance in 0..views.instances() {
            if let Some(row) = rows.row(instance) {
                ids[row] = instance.to_string();
                present[row] = true;
            }
        }
        parts.push(view.clone().ids(ids)?.mask(&present)?);
    }
    let (some, _) = Views::join(parts)?;
    let instances = (0..some.instances()).map(|i| some.ids().get(i).parse().unwrap_or_default()).collect();
    Ok((some, instances))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data() -> Dataset {
        let view = |name: &str| View::dense(name, 1, (0..7).map(f64::from).collect::<Vec<_>>()).unwrap();
        let views = Views::new(vec![view("a"), view("b")]).unwrap();
        Dataset { views, classes: (0..7).map(Some).collect(), clusters: 7 }
    }

    fn sample(data: &Dataset, views: Option<Vec<usize>>) -> Sample<'_> {
        Sample { name: "seven".into(), data, views }
    }

    #[test]
    fn half_of_an_odd_number_can_be_missing_from_two_views() {
        let data = data();
        let left =
            |rate| sample(&data, None).with(rate, 1, |views, _| Ok([0, 1].map(|view| views.present(view))));
        assert_eq!(left(0.5).unwrap(), [4, 4]);
        assert_eq!(left(0.3).unwrap(), [5, 5]);
        assert!(left(0.7).is_err());
    }

    #[test]
    fn instances_in_none_of_the_selected_views_are_dropped_and_the_others_keep_their_classes() {
        let data = data();
        let (all, one) = (sample(&data, None), sample(&data, Some(vec![1])));
        let shown = all.with(0.5, 3, |views, _| {
            Ok((0..7).filter(|&i| views.is_present(1, i)).map(Some).collect::<Vec<_>>())
        });
        let classes = one.with(0.5, 3, |views, classes| {
            assert_eq!((views.len(), views.instances()), (1, classes.len()));
            Ok(classes.to_vec())
        });
        assert_eq!(classes.unwrap(), shown.unwrap());
    }
}
