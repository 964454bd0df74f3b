//! Which instances are looked at one by one when there are too many for all.

/// At most `limit` instances, the same ones every time: each cluster in proportion to its size, but small clusters with
/// enough to be seen. They come in a mixed order, so that no cluster is drawn over the others.
pub(super) fn stratified(labels: &[usize], clusters: usize, limit: usize) -> Vec<usize> {
    let mut members: Vec<Vec<usize>> = vec![Vec::new(); clusters];
    for (instance, &label) in labels.iter().enumerate() {
        members[label].push(instance);
    }
    let mut chosen = Vec::with_capacity(limit.min(labels.len()));
    let least = limit / (4 * clusters.max(1));
    let shared = limit - least * clusters;
    for mut members in members {
        let quota = least + (shared as f64 * members.len() as f64 / labels.len() as f64) as usize;
        if quota < members.len() && labels.len() > limit {
            members.select_nth_unstable_by_key(quota, |&instance| mix(instance));
            members.truncate(quota);
        }
        chosen.extend(members);
    }
    chosen.sort_unstable_by_key(|&instance| mix(instance));
    chosen
}

/// A number that looks random but always belongs to the same instance (the last steps of `SplitMix64`).
fn mix(instance: usize) -> u64 {
    let z = (instance as u64).wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
