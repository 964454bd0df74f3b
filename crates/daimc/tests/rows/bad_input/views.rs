//! Views that are refused.

use super::*;

#[test]
fn no_view_is_refused() {
    refused!(Views::new(Vec::new()), Error::NoViews, "no view");
    refused!(Views::join(Vec::new()), Error::NoViews, "no view");
}

#[test]
fn values_that_do_not_fill_rows_are_refused() {
    refused!(View::dense("a", 3, vec![0.0; 7]), Error::Shape { expected: 3, found: 1, .. }, "view 'a'");
    refused!(View::dense("a", 3, vec![0.0_f32; 2]), Error::Shape { expected: 3, found: 2, .. }, "view 'a'");
}

#[test]
fn views_of_different_length_are_refused() {
    let views = vec![View::dense("a", 1, vec![0.0; 4]).unwrap(), View::dense("b", 1, vec![0.0; 5]).unwrap()];
    refused!(Views::new(views), Error::Shape { expected: 4, found: 5, .. }, "view 'b'", "rows", "4", "5");
}

#[test]
fn a_mask_ids_or_names_of_another_length_are_refused() {
    let view = || View::dense("a", 2, vec![0.0; 6]).unwrap();
    refused!(view().mask(&[true; 2]), Error::Shape { expected: 3, found: 2, .. }, "view 'a'", "mask");
    refused!(view().ids(strings(&["x"])), Error::Shape { expected: 3, found: 1, .. }, "view 'a'", "IDs");
    let names = view().feature_names(strings(&["x"; 3]));
    refused!(names, Error::Shape { expected: 2, found: 3, .. }, "view 'a'", "feature names");
}

#[test]
fn a_view_without_features_is_refused() {
    refused!(View::dense("a", 0, Vec::<f64>::new()), Error::NoFeatures { .. }, "view 'a'");
    refused!(View::dense("a", 0, vec![1.0]), Error::NoFeatures { .. }, "view 'a'");
    let sparse = View::sparse("a", 0, vec![0, 0, 0], Vec::new(), Vec::<f32>::new());
    refused!(sparse.and_then(|view| Views::new(vec![view])), Error::NoFeatures { .. }, "view 'a'");
}

#[test]
fn two_views_of_one_name_are_refused() {
    let views = || vec![named("a", &["x", "y"]), named("b", &["x", "y"]), named("a", &["x", "y"])];
    refused!(Views::new(views()), Error::DuplicateView { .. }, "'a'");
    refused!(Views::join(views()), Error::DuplicateView { .. }, "'a'");
}

#[test]
fn an_id_that_occurs_twice_is_refused() {
    let views = || vec![named("a", &["x", "y", "z", "y"])];
    let words = ["view 'a'", "'y'", "row 1", "row 3"];
    let [view, id, first, second] = words;
    refused!(Views::new(views()), Error::DuplicateId { first: 1, second: 3, .. }, view, id, first, second);
    refused!(Views::join(views()), Error::DuplicateId { first: 1, second: 3, .. }, view, id, first, second);
    let late = vec![named("first", &["x", "y"]), named("a", &["x", "y", "z", "y"])];
    refused!(Views::join(late), Error::DuplicateId { first: 1, second: 3, .. }, view, id, first, second);
}

#[test]
fn joining_a_view_without_ids_is_refused() {
    let views = vec![named("a", &["x", "y"]), View::dense("b", 1, vec![0.0; 2]).unwrap()];
    refused!(Views::join(views), Error::NoIds { .. }, "view 'b'", "IDs");
}

#[test]
fn ids_that_disagree_are_refused() {
    let views = vec![named("a", &["x", "y", "z"]), named("b", &["x", "z", "y"])];
    refused!(Views::new(views), Error::Unsuitable { what: "ids", .. }, "view 'b'", "row 1", "'y'", "z");
}

#[test]
fn a_view_that_shows_no_instance_is_refused() {
    let empty = named("b", &["x", "y"]).mask(&[false, false]).unwrap();
    refused!(Views::new(vec![named("a", &["x", "y"]), empty.clone()]), Error::EmptyView { .. }, "view 'b'");
    refused!(Views::join(vec![named("a", &["x", "y"]), empty]), Error::EmptyView { .. }, "view 'b'");
    refused!(Views::new(vec![named("a", &[])]), Error::EmptyView { .. }, "view 'a'");
    refused!(Views::join(vec![named("a", &[])]), Error::EmptyView { .. }, "view 'a'");
    let gone = View::dense("a", 2, vec![f64::NAN; 6]).unwrap().missing_where_nan();
    refused!(Views::new(vec![gone]), Error::EmptyView { .. }, "view 'a'");
}

#[test]
fn an_instance_in_no_view_is_refused() {
    let mask = |name: &str, present: &[bool]| named(name, &["v", "w", "x", "y"]).mask(present).unwrap();
    let views = vec![mask("a", &[true, false, true, false]), mask("b", &[true, false, false, false])];
    refused!(Views::new(views), Error::SeenInNoView { row: 1, count: 2, .. }, "'w'", "row 1", "2 such");
}

#[test]
fn an_instance_that_every_joined_view_marks_as_missing_is_dropped_and_accounted_for() {
    let one = named("a", &["x", "y"]).mask(&[true, false]).unwrap();
    let (views, account) = Views::join(vec![one, named("b", &["x", "z"])]).unwrap();
    assert_eq!((views.instances(), account.dropped), (2, strings(&["y"])));
}

#[test]
fn a_value_that_is_not_finite_is_named() {
    let names = || strings(&["red", "green", "blue"]);
    for (bad, shown) in [(f64::NAN, "NaN"), (f64::INFINITY, "inf"), (f64::NEG_INFINITY, "-inf")] {
        let mut values = vec![1.0; 12];
        values[7] = bad;
        // A missing cell of a dense view is NaN.
        let [dense, single, sparse_single, sparse] = layouts("colour", 3, &values);
        let dense = if bad.is_nan() { vec![] } else { vec![dense, single] };
        for view in dense.into_iter().chain([sparse_single, sparse]) {
            let view = view.ids(strings(&["p", "q", "r", "s"])).unwrap().feature_names(names()).unwrap();
            let missing = view.clone().mask(&[true, true, false, true]).unwrap();
            let error = Views::new(vec![view]).unwrap_err();
            let Error::NotFinite { view, row: 2, id, column: 1, feature, value } = &error else {
                panic!("{error:?}");
            };
            assert_eq!((&view[..], &id[..], &feature[..]), ("colour", "r", "green"));
            assert!(value.is_nan() == bad.is_nan() && (bad.is_nan() || *value == bad));
            refused!(Err::<(), _>(error), _, "'colour'", "row 2", "'r'", "column 1", "'green'", shown);

            let other = View::dense("other", 1, vec![1.0, 2.0, 3.0, 4.0]).unwrap();
            let views = Views::new(vec![missing, other]).unwrap();
            for daimc in fits(2) {
                sound(&daimc.scale(Scale::ZScoreUnit), &views);
            }
        }
    }
}

#[test]
fn a_value_that_is_not_finite_is_named_by_the_row_of_its_own_view() {
    let a = named("a", &["x", "y", "z"]);
    let b = View::dense("b", 2, vec![0.0, 0.0, 0.0, f64::INFINITY, 0.0, 0.0]).unwrap();
    let b = b.ids(strings(&["z", "y", "new"])).unwrap();
    let error = Views::join(vec![a, b]).map(|_| ()).unwrap_err();
    refused!(
        Err::<(), _>(error),
        Error::NotFinite { row: 1, column: 1, .. },
        "'b'",
        "row 1",
        "'y'",
        "column 1"
    );
}

#[test]
fn rows_of_nan_are_missing_and_a_single_nan_is_a_missing_cell() {
    let nan = f64::NAN;
    let b = || View::dense("b", 1, vec![1.0, 2.0, 3.0]).unwrap();
    for declared in [false, true] {
        let views = |values: Vec<f64>| {
            let a = View::dense("a", 2, values).unwrap();
            Views::new(vec![if declared { a.missing_where_nan() } else { a }, b()]).unwrap()
        };
        let whole = views(vec![1.0, 2.0, nan, nan, 3.0, 4.0]);
        assert!(!whole.is_present(0, 1));
        assert_eq!((whole.present(0), whole.missing_cells(0)), (2, Some(0)));
        let some = views(vec![1.0, 2.0, nan, nan, 3.0, nan]);
        assert_eq!((some.present(0), some.missing_cells(0), some.missing_cells(1)), (2, Some(1), Some(0)));
    }
    let nothing = View::dense("a", 2, vec![nan; 6]).unwrap();
    refused!(Views::new(vec![nothing, b()]), Error::EmptyView { .. }, "'a'");
    let alone = View::dense("a", 2, vec![1.0, 2.0, nan, nan, 3.0, 4.0]).unwrap();
    refused!(Views::new(vec![alone]), Error::SeenInNoView { row: 1, .. }, "1");
}

#[test]
fn a_broken_sparse_matrix_is_refused() {
    let sparse = |offsets: &[usize], columns: &[u32]| {
        View::sparse("s", 4, offsets.to_vec(), columns.to_vec(), vec![1.0; 3])
    };
    assert_eq!(sparse(&[0, 1, 1, 3], &[0, 0, 3]).unwrap().rows(), 3);
    let view = "view 's'";
    refused!(sparse(&[0, 1, 3], &[0, 1]), Error::Shape { expected: 3, found: 2, .. }, view, "column");
    refused!(
        sparse(&[1, 2, 3], &[0, 1, 2]),
        Error::Shape { expected: 0, found: 1, .. },
        view,
        "first offset"
    );
    refused!(sparse(&[], &[0, 1, 2]), Error::Shape { .. }, view, "offset");
    refused!(sparse(&[0, 1, 2], &[0, 1, 2]), Error::Shape { expected: 3, found: 2, .. }, view, "last offset");
    refused!(sparse(&[0, 1, 4], &[0, 1, 2]), Error::Shape { expected: 3, found: 4, .. }, view, "last offset");
    refused!(sparse(&[0, 2, 1, 3], &[0, 1, 2]), Error::Sparse { row: 1, .. }, view, "row 1", "offsets");
    let huge = sparse(&[0, 1, usize::MAX, 3], &[0, 1, 2]);
    refused!(huge, Error::Sparse { row: 1, .. }, view, "row 1", "offsets");
    refused!(sparse(&[0, 1, 3], &[0, 2, 1]), Error::Sparse { row: 1, .. }, view, "row 1", "increasing");
    refused!(sparse(&[0, 1, 3], &[0, 2, 2]), Error::Sparse { row: 1, .. }, view, "row 1", "at most once");
    refused!(sparse(&[0, 2, 3], &[0, 4, 1]), Error::Sparse { row: 0, .. }, view, "row 0", "features");
}
