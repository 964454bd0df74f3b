//! The numbers of the clusters. K-means and graph cuts number them arbitrarily; a result has them by size, the largest as number
//! 0, so that numbers have a meaning and do not depend on the start.

use std::cmp::Reverse;

use daimc_core::Matrix;

/// Numbers clusters by size; of two equal ones, the one with the earlier first instance comes first, and clusters without
/// instances come last. Returns the former numbers of the clusters, in the new order.
pub(crate) fn by_size(labels: &mut [usize], clusters: usize) -> Vec<usize> {
    let mut sizes = vec![0_usize; clusters];
    let mut first = vec![labels.len(); clusters];
    for (i, &label) in labels.iter().enumerate() {
        sizes[label] += 1;
        first[label] = first[label].min(i);
    }
    let order = order(&sizes, &first);
    let numbers = numbers(&order);
    labels.iter_mut().for_each(|label| *label = numbers[*label]);
    order
}

/// The clusters by size, given their sizes and the first instance of each.
pub(crate) fn order(sizes: &[usize], first: &[usize]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..sizes.len()).collect();
    order.sort_by_key(|&cluster| (Reverse(sizes[cluster]), first[cluster]));
    order
}

/// The number of each cluster in an order.
pub(crate) fn numbers(order: &[usize]) -> Vec<usize> {
    let mut numbers = vec![0; order.len()];
    order.iter().enumerate().for_each(|(number, &cluster)| numbers[cluster] = number);
    numbers
}

/// The columns of a matrix, one for each cluster, in the order of the clusters.
pub(crate) fn columns(matrix: &Matrix, order: &[usize]) -> Matrix {
    Matrix::from_fn(matrix.rows(), order.len(), |row, number| matrix[(row, order[number])])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_comes_first_and_of_equal_ones_that_of_the_first_instance() {
        let mut labels = [3, 1, 4, 1, 3, 1, 0];
        let order = by_size(&mut labels, 6);
        assert_eq!(order, [1, 3, 4, 0, 2, 5]);
        assert_eq!(labels, [1, 0, 2, 0, 1, 0, 3]);
        assert_eq!(by_size(&mut labels, 6), [0, 1, 2, 3, 4, 5], "a second call changes nothing");
        let matrix = Matrix::from_fn(2, 6, |row, cluster| (10 * row + cluster) as f64);
        assert_eq!(columns(&matrix, &order).row(1), [11.0, 13.0, 14.0, 10.0, 12.0, 15.0]);
    }
}
