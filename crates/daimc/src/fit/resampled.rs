//! Reproducibility: how well clusters are found again in parts of the data.

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

use super::Daimc;
use super::chance::{Sampled, if_available};
use super::explore::by_latent;
use super::search;
use daimc_core::metrics::matching;
use daimc_core::scan::Scan;
use daimc_core::source::Buffer;
use daimc_core::subset::Subset;
use daimc_core::watch::{Stage, Watch};
use daimc_core::{Result, Stop};

/// The number of parts that are fitted, and the share of the sample's instances in each.
const PARTS: usize = 6;
const SHARE: f64 = 0.8;

impl Daimc {
    /// The mean share of instances that keep their cluster when only a part of the sample is fitted, with a quick fit, compared
    /// with the given clusters of the sample. `None` if no part can be fitted or the fit was stopped.
    pub(super) fn reproducibility(
        &self,
        sampled: &Sampled,
        own: &[usize],
        stop: &Stop,
    ) -> Result<Option<f64>> {
        let watch = self.watch.begin(Stage::Reproducibility);
        let fitted = watch.pieces(PARTS);
        let shares = (0..PARTS).into_par_iter().map(|number| {
            let share = self.in_part(sampled, own, number, stop);
            fitted();
            share
        });
        let Some(shares) = if_available(shares.collect::<Result<Vec<_>>>())? else { return Ok(None) };
        let shares: Vec<f64> = shares.into_iter().flatten().collect();
        Ok((!shares.is_empty()).then(|| shares.iter().sum::<f64>() / shares.len() as f64))
    }

    /// The share for one part; `None` for a part in which a view has no instances.
    fn in_part(&self, sampled: &Sampled, own: &[usize], number: usize, stop: &Stop) -> Result<Option<f64>> {
        let mut rng = ChaCha8Rng::seed_from_u64(self.options.seed);
        rng.set_stream(u64::MAX / 9 + number as u64);
        let mut part: Vec<u32> = (0..daimc_core::index::index(own.len())).collect();
        part.shuffle(&mut rng);
        part.truncate((SHARE * own.len() as f64) as usize);
        part.sort_unstable();
        let views = &sampled.views;
        let shown = |view: usize| part.iter().any(|&i| views.is_present(view, i as usize));
        if part.len() <= self.options.clusters || !(0..views.len()).all(shown) {
            return Ok(None);
        }
        let all = Scan::new(views, stop);
        let mut buffers: Vec<Buffer> = sampled.scalings.iter().map(|_| Buffer::default()).collect();
        let rows = Subset::pick(&all, &part, &mut buffers)?;
        let fit = self.quick(self.options.seed.wrapping_add(1 + number as u64));
        let (sweep, v) = fit.latent_of(&Scan::new(&rows, stop), &sampled.scalings)?;
        let quiet = Watch::default().within(stop);
        let search = || search::nearest(&sweep, &fit.options, Vec::new(), true, &quiet);
        let nearest = sampled.mixture.then(search).transpose()?;
        let found = by_latent(&sweep, v, nearest.as_deref(), &fit.options, &quiet)?;
        let given: Vec<usize> = part.iter().map(|&i| own[i as usize]).collect();
        Ok(Some(staying(&given, &found)?))
    }
}

/// The share of instances that keep their cluster, under the best matching of the clusters.
fn staying(given: &[usize], found: &[usize]) -> Result<f64> {
    let pairs = matching(given, found)?;
    let stays = |(own, other): (&usize, &usize)| pairs.contains(&(*own, *other));
    Ok(given.iter().zip(found).filter(|(own, other)| stays((own, other))).count() as f64 / given.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synthetic::Synthetic;
    use daimc_core::{View, Views};

    #[test]
    fn instances_stay_under_other_names() {
        assert_eq!(staying(&[0, 0, 1, 1, 2], &[2, 2, 0, 0, 1]).unwrap(), 1.0);
        assert_eq!(staying(&[0, 0, 1, 1], &[0, 0, 0, 1]).unwrap(), 0.75);
        assert_eq!(staying(&[0, 0, 0, 0], &[0, 1, 2, 3]).unwrap(), 0.25);
    }

    #[test]
    fn clusters_are_found_again_and_those_of_noise_are_not() {
        let data = Synthetic::new(150, 3).noise(0.5).seed(1);
        let planted = vec![data.dense::<f64>("a", 10).unwrap(), data.dense::<f64>("b", 20).unwrap()];
        let noise = |name: &str, seed: u64| {
            let mut values: Vec<f64> = (0..1500).map(|i| f64::from(i) / 1500.0).collect();
            values.shuffle(&mut ChaCha8Rng::seed_from_u64(seed));
            View::dense(name.to_owned(), 10, values).unwrap()
        };
        let of = |views: Vec<View<'static>>| {
            let fit = Daimc::new(3).fit(&Views::new(views).unwrap()).unwrap();
            let mean = fit.confidence.iter().sum::<f64>() / 150.0;
            (fit.model.reproducibility.unwrap(), mean)
        };
        let (found, confidence) = of(planted);
        assert!(found > 0.95 && confidence > 0.9, "{found} {confidence}");
        let (found, confidence) = of(vec![noise("a", 1), noise("b", 2)]);
        assert!(found < 0.75 && confidence < 0.75, "{found} {confidence}");
    }
}
