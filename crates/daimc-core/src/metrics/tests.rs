use super::*;
use proptest::collection::vec;
use proptest::prelude::*;

const PERFECT: Scores =
    Scores { ac: 1.0, nmi: 1.0, nmi_max: 1.0, nmi_sqrt: 1.0, ari: 1.0, purity: 1.0, f: 1.0 };

fn fields(scores: Scores) -> [f64; 7] {
    [scores.ac, scores.nmi, scores.nmi_max, scores.nmi_sqrt, scores.ari, scores.purity, scores.f]
}

fn close(left: Scores, right: Scores) -> bool {
    fields(left).iter().zip(fields(right)).all(|(left, right)| (left - right).abs() < 1e-12)
}

#[track_caller]
fn assert_scores(truth: &[usize], labels: &[usize], expected: Scores) {
    let found = scores(truth, labels).unwrap();
    assert!(close(found, expected), "{found:?}, not {expected:?}");
}

// The expected values of the next four tests come from scikit-learn 1.9.1 (normalized_mutual_info_score,
// adjusted_rand_score, pair_confusion_matrix, contingency_matrix) and scipy's linear_sum_assignment.

#[test]
fn agrees_with_scikit_learn_on_as_many_clusters_as_classes() {
    assert_scores(
        &[0, 0, 0, 0, 1, 1, 1, 2, 2, 2],
        &[5, 5, 5, 9, 9, 9, 9, 7, 7, 5],
        Scores {
            ac: 0.8,
            nmi: 0.596_161_820_419_468_5,
            nmi_max: 0.586_860_018_476_517_3,
            nmi_sqrt: 0.596_236_720_301_402_6,
            ari: 0.391_143_911_439_114_37,
            purity: 0.8,
            f: 0.56,
        },
    );
}

#[test]
fn agrees_with_scikit_learn_on_more_clusters_than_classes() {
    let truth: Vec<usize> = (0..300).map(|i| i % 4).collect();
    let labels: Vec<usize> = (0..300).map(|i| (i % 4) * 2 + (i * i % 7) / 3).collect();
    assert_scores(
        &truth,
        &labels,
        Scores {
            ac: 0.713_333_333_333_333_4,
            nmi: 0.822_331_302_445_300_7,
            nmi_max: 0.698_270_493_350_788_7,
            nmi_sqrt: 0.835_625_809_409_204_8,
            ari: 0.680_169_286_577_992_7,
            purity: 1.0,
            f: 0.738_636_363_636_363_6,
        },
    );
}

#[test]
fn agrees_with_scikit_learn_on_fewer_clusters_than_classes() {
    let truth: Vec<usize> = (0..500).map(|i| i % 7).collect();
    let labels: Vec<usize> = (0..500).map(|i| ((i % 7) + (i * i % 5)) / 4).collect();
    assert_scores(
        &truth,
        &labels,
        Scores {
            ac: 0.256,
            nmi: 0.232_220_576_152_463_78,
            nmi_max: 0.175_068_987_054_935_15,
            nmi_sqrt: 0.245_680_464_450_446_42,
            ari: 0.084_798_772_315_259_42,
            purity: 0.256,
            f: 0.276_621_572_212_065_8,
        },
    );
}

#[test]
fn agrees_with_scikit_learn_on_unrelated_labels() {
    let truth: Vec<usize> = (0..1000).map(|i| i % 5).collect();
    let labels: Vec<usize> = (0..1000).map(|i| i * i % 11).collect();
    assert_scores(
        &truth,
        &labels,
        Scores {
            ac: 0.186,
            nmi: 7.436_646_092_865_446e-5,
            nmi_max: 7.103_510_747_869_088e-5,
            nmi_sqrt: 7.444_837_519_754_478e-5,
            ari: -0.004_315_939_851_146_231,
            purity: 0.205,
            f: 0.181_494_221_317_873_27,
        },
    );
}

#[test]
fn one_cluster_on_both_sides_is_perfect() {
    assert_eq!(scores(&[3; 5], &[8; 5]).unwrap(), PERFECT);
    assert_eq!(scores(&[3], &[8]).unwrap(), PERFECT);
}

#[test]
fn all_singletons_on_both_sides_are_perfect() {
    assert_eq!(scores(&[0, 1, 2, 3], &[9, 6, 7, 8]).unwrap(), PERFECT);
}

#[test]
fn one_cluster_on_one_side_carries_no_information() {
    let split_labels =
        Scores { ac: 1.0 / 3.0, nmi: 0.0, nmi_max: 0.0, nmi_sqrt: 0.0, ari: 0.0, purity: 1.0, f: 1.0 / 3.0 };
    let split_truth = Scores { purity: 1.0 / 3.0, ..split_labels };
    let (one, three) = ([0; 6], [0, 1, 2, 0, 1, 2]);
    assert_eq!(scores(&one, &three).unwrap(), split_labels);
    assert_eq!(scores(&three, &one).unwrap(), split_truth);
}

#[test]
fn independent_labels_score_no_information_and_a_negative_ari() {
    let expected = Scores { ac: 0.5, nmi: 0.0, nmi_max: 0.0, nmi_sqrt: 0.0, ari: -0.5, purity: 0.5, f: 0.0 };
    assert_eq!(scores(&[0, 0, 1, 1], &[0, 1, 0, 1]).unwrap(), expected);
}

#[test]
fn huge_names_cost_no_memory() {
    let (small, huge) = ([0, 1, 1, 2], [usize::MAX, 0, 0, usize::MAX - 1]);
    assert_eq!(scores(&small, &huge).unwrap(), PERFECT);
}

#[test]
fn a_label_per_instance_needs_no_dense_table() {
    let many: Vec<usize> = (0..50_000).collect();
    assert_eq!(scores(&many, &many).unwrap(), PERFECT);

    let halves: Vec<usize> = many.iter().map(|instance| instance % 2).collect();
    let found = scores(&halves, &many).unwrap();
    assert!((found.ac - 2.0 / 50_000.0).abs() < 1e-12);
}

#[test]
fn individual_metrics_are_those_of_scores() {
    let (truth, labels) = ([0, 0, 1, 1, 2], [0, 1, 1, 1, 0]);
    let individually = Scores {
        ac: accuracy(&truth, &labels).unwrap(),
        nmi: nmi(&truth, &labels, Normalisation::Arithmetic).unwrap(),
        nmi_max: nmi(&truth, &labels, Normalisation::Max).unwrap(),
        nmi_sqrt: nmi(&truth, &labels, Normalisation::Geometric).unwrap(),
        ari: ari(&truth, &labels).unwrap(),
        purity: purity(&truth, &labels).unwrap(),
        f: pairwise_f(&truth, &labels).unwrap(),
    };
    assert_eq!(scores(&truth, &labels).unwrap(), individually);
}

#[test]
fn unequal_lengths_are_an_error() {
    let error = scores(&[0, 1, 2], &[0, 1]).unwrap_err();
    assert_eq!(error.to_string(), "labels: expected 3 values, found 2");
}

#[test]
fn no_instances_are_an_error() {
    let error = scores(&[], &[]).unwrap_err();
    assert!(matches!(error, Error::EmptyInput { .. }));
}

#[test]
fn float_is_exact_up_to_two_to_the_53() {
    let largest = (1_u128 << 53) - 1;
    assert!((float(largest) - 9_007_199_254_740_991.0).abs() < 0.5);
    assert!((float(1 << 100) / 2_f64.powi(100) - 1.0).abs() < 1e-15);
}

#[test]
fn an_assignment_without_columns_leaves_every_row_unmatched() {
    assert_eq!(best_assignment(2, 0, |_, _| 0), [None, None]);
    assert_eq!(best_assignment(0, 2, |_, _| 0), []);
}

/// The best total by exhaustive search: for each row in turn, every free column and none.
fn exhaustive(weights: &[Vec<i64>], taken: u32, unmatched: usize) -> i64 {
    let Some((row, rest)) = weights.split_first() else {
        return 0;
    };
    let skipped = (unmatched > 0).then(|| exhaustive(rest, taken, unmatched - 1));
    (0..row.len())
        .filter(|col| taken & (1 << col) == 0)
        .map(|col| row[col] + exhaustive(rest, taken | (1 << col), unmatched))
        .chain(skipped)
        .max()
        .unwrap()
}

fn weights() -> impl Strategy<Value = Vec<Vec<i64>>> {
    (1_usize..6, 1_usize..6).prop_flat_map(|(rows, cols)| vec(vec(-20_i64..20, cols), rows))
}

/// Two labellings of the same instances.
fn labellings() -> impl Strategy<Value = (Vec<usize>, Vec<usize>)> {
    (1_usize..6, 1_usize..6)
        .prop_flat_map(|(classes, clusters)| vec((0..classes, 0..clusters), 1..40))
        .prop_map(|pairs| pairs.into_iter().unzip())
}

proptest! {
    #[test]
    fn assignments_are_one_to_one_and_the_best(weights in weights()) {
        let (rows, cols) = (weights.len(), weights[0].len());
        let assigned = best_assignment(rows, cols, |row, col| weights[row][col]);

        let mut used: Vec<usize> = assigned.iter().copied().flatten().collect();
        used.sort_unstable();
        used.dedup();
        prop_assert_eq!(used.len(), rows.min(cols));

        let total: i64 = assigned
            .iter()
            .zip(&weights)
            .filter_map(|(col, row)| Some(row[(*col)?]))
            .sum();
        prop_assert_eq!(total, exhaustive(&weights, 0, rows.saturating_sub(cols)));
    }

    #[test]
    fn accuracy_by_groups_is_that_of_the_whole_table((truth, labels) in labellings()) {
        let mut weights = vec![vec![0_i64; 5]; 5];
        for (&class, &cluster) in truth.iter().zip(&labels) {
            weights[class][cluster] += 1;
        }
        let best = u128::try_from(exhaustive(&weights, 0, 0)).unwrap();
        let expected = float(best) / float(truth.len().try_into().unwrap());
        prop_assert!((accuracy(&truth, &labels).unwrap() - expected).abs() < 1e-12);
    }

    #[test]
    fn scores_are_in_range((truth, labels) in labellings()) {
        let scores = scores(&truth, &labels).unwrap();
        let from_zero = Scores { ari: scores.ari.max(0.0), ..scores };
        for score in fields(from_zero) {
            prop_assert!((0.0..=1.0).contains(&score));
        }
        prop_assert!(scores.ari >= -1.0);
        prop_assert!(scores.ac <= scores.purity);
    }

    #[test]
    fn renaming_changes_not_a_bit((truth, labels) in labellings()) {
        let rename = |names: &[usize]| -> Vec<usize> {
            names.iter().map(|name| usize::MAX - 7 * name).collect()
        };
        let renamed = scores(&rename(&truth), &rename(&labels)).unwrap();
        prop_assert_eq!(scores(&truth, &labels).unwrap(), renamed);
        prop_assert_eq!(scores(&truth, &rename(&truth)).unwrap(), PERFECT);
    }

    #[test]
    fn all_but_purity_are_symmetric((truth, labels) in labellings()) {
        let forth = scores(&truth, &labels).unwrap();
        let back = scores(&labels, &truth).unwrap();
        let back = Scores { purity: forth.purity, ..back };
        prop_assert!(close(forth, back));
    }

    #[test]
    fn pairs_are_those_counted_one_by_one((truth, labels) in labellings()) {
        let (mut both, mut either) = (0_u32, 0_u32);
        for second in 0..truth.len() {
            for first in 0..second {
                let in_truth = truth[first] == truth[second];
                let in_labels = labels[first] == labels[second];
                both += u32::from(in_truth && in_labels);
                either += u32::from(in_truth) + u32::from(in_labels);
            }
        }
        let expected = if either == 0 { 1.0 } else { f64::from(2 * both) / f64::from(either) };
        prop_assert!((pairwise_f(&truth, &labels).unwrap() - expected).abs() < 1e-12);
    }
}
