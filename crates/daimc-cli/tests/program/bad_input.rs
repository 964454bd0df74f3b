//! Bad input: one message with the problem, its place and the remedy; exit code 3 for data, 2 for usage.

use crate::common::{Folder, python};

/// Fits a.tsv, and b.csv as given.
fn with_b(content: impl AsRef<[u8]>) -> (Folder, String) {
    let folder = Folder::small();
    folder.file("b.csv", content);
    let message = folder.bad(3, "fit --view a=a.tsv --view b=b.csv -k 2 -o out");
    assert_eq!(folder.list("."), ["a.tsv", "b.csv", "truth.csv"], "nothing is written");
    (folder, message)
}

#[test]
fn ragged_rows_are_named_by_line() {
    let (_, message) = with_b("id,p,q\ns0,1,2\ns1,1\n");
    assert!(
        message.starts_with("b.csv, line 3") && message.contains('2') && message.contains('3'),
        "{message}"
    );
}

#[test]
fn text_among_numbers_is_named_by_line_and_column() {
    let (_, message) = with_b("id,p,q\ns0,1,2\ns1,high,2\n");
    assert!(message.starts_with("b.csv, line 3, column 2") && message.contains("'high'"), "{message}");
}

#[test]
fn a_partly_missing_row_is_named_by_line_and_column_where_it_is_an_error() {
    let folder = Folder::small();
    folder.file("b.csv", "id,p,q\ns0,1,2\ns1,9,\ns2,2,3\n");
    let message = folder.bad(3, "fit --view a=a.tsv --view b=b.csv -k 2 -o out --nan error");
    assert!(message.starts_with("b.csv, line 3, column 3") && message.contains("--nan model"), "{message}");
    let output = folder.run("fit --view a=a.tsv --view b=b.csv -k 2 -o out --nan mean");
    assert!(output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("1 value imputed"));
}

#[test]
fn duplicate_ids_are_named() {
    let (_, message) = with_b("id,p,q\ns0,1,2\ns1,1,2\ns0,3,4\n");
    assert!(message.contains("b.csv") && message.contains("s0") && message.contains('4'), "{message}");
}

#[test]
fn views_without_common_ids_are_refused() {
    let (_, message) = with_b("id,p,q\nx0,1,2\nx1,1,2\n");
    assert!(message.contains("s0") && message.contains("x0"), "{message}");
}

#[test]
fn empty_files_and_files_without_rows_are_refused() {
    assert!(with_b("").1.starts_with("b.csv"));
    assert!(with_b("id,p,q\n").1.starts_with("b.csv"));
}

#[test]
fn a_missing_file_is_named() {
    let folder = Folder::small();
    let message = folder.bad(3, "fit --view a=a.tsv --view b=nowhere.csv -k 2 -o out");
    assert!(message.starts_with("nowhere.csv"), "{message}");
}

#[test]
fn more_clusters_than_instances_are_refused() {
    let folder = Folder::small();
    let message = folder.bad(3, "fit --view a=a.tsv -k 13 -o out");
    assert!(message.contains("12") && message.contains("13"), "{message}");
}

#[test]
fn masks_of_the_wrong_shape_are_refused() {
    let folder = Folder::small();
    let fit = "fit --view a=a.tsv --view b=b.csv -k 2 -o out --mask mask.tsv";
    for (mask, what) in [
        ("id\ta\ns0\t1\n", "b"),
        ("id\ta\tb\ns0\t1\t1\n", "s1"),
        ("id\ta\tb\ns0\t1\t2\n", "line 2, column 3"),
        ("id\ta\tb\tc\ns0\t1\t1\t1\n", "c"),
        ("id\ta\tb\nother\t1\t1\n", "'s0'"),
    ] {
        folder.file("mask.tsv", mask);
        let message = folder.bad(3, fit);
        assert!(message.contains("mask.tsv") && message.contains(what), "{mask}: {message}");
    }
}

#[test]
fn usage_that_makes_no_sense_has_its_own_exit_code() {
    let folder = Folder::small();
    for (arguments, what) in [
        ("fit --view a=a.tsv -o out", "-k"),
        ("fit --view a=a.tsv -k 0 -o out", "at least 1"),
        ("fit --view a=a.tsv -k 2 --latent 0 -o out", "at least 1"),
        ("fit --view a=a.tsv -k 2 -o out --scale c=unit", "the views are a"),
        ("fit -k 2 -o out", "--view"),
        ("fit --view a=a.tsv --view a=b.csv -k 2 -o out", "this name"),
        ("fit --view a=a.tsv -k 2 -o out --alpha -1", "alpha"),
        ("fit --view a=a.tsv -k 2 -o out --beta nan", "beta"),
        ("fit --view a=a.tsv -k 2 -o out --scale huge", "auto"),
        ("fit --view a=a.tsv -k 2 -o out --threads 0", "threads"),
        ("fit --view a=a.tsv -k 2 -o out --max-iter 0", "max"),
        ("fit --view a=a.tsv -k 2 -o out --runs 0", "runs"),
        ("fit --view a=a.tsv -k 2 -o out --transpose=b", "--transpose"),
        ("fit --view a= -k 2 -o out", "path"),
        ("simulate --view a=a.tsv --missing 2 -o m", "2"),
        ("simulate --view a=a.tsv --missing half -o m", "half"),
        ("man nothing", "nothing"),
    ] {
        let message = folder.bad(2, arguments);
        assert!(message.contains(what), "{arguments}: {message}");
    }
    // clap formats its own errors.
    for arguments in ["fit --nan zero", "fit -k two", "", "fly", "evaluate out/labels.tsv"] {
        assert_eq!(folder.run(arguments).status.code(), Some(2), "{arguments}");
    }
}

#[test]
fn truths_and_models_that_do_not_fit_are_refused() {
    let folder = Folder::small();
    folder.file("truth.csv", "id,class\nz,1\n");
    let message = folder.bad(3, "fit --view a=a.tsv -k 2 -o out --truth truth.csv");
    assert!(message.contains("truth.csv") && message.contains('z'), "{message}");
    folder.good("fit --view a=a.tsv -k 2 -o out");
    assert!(folder.bad(3, "evaluate out/labels.tsv --truth truth.csv").contains("no ID in common"));
    let predict = "predict out/model.safetensors --view";
    assert!(folder.bad(3, &format!("{predict} b=b.csv")).contains("no view 'b': it has a"));
    assert!(folder.bad(3, &format!("{predict} a=b.csv")).contains("none of its features"));
    folder.file("new.tsv", "id\tx\tz\nn\t1\t2\n");
    assert!(folder.bad(3, &format!("{predict} a=new.tsv")).contains("new.tsv: feature 'y' is missing"));
    assert!(folder.bad(3, "predict a.tsv --view a=a.tsv").contains("a.tsv"));
    folder.file("a.tsv", "id\tx\ty\tz\ns0\t1\t2\t3\n");
    assert!(folder.bad(3, "report out").contains("has changed"));
    assert!(folder.bad(3, "report nowhere").contains("summary.json"));
}

#[test]
fn truncated_and_inconsistent_files_are_rejected_in_every_format() {
    let Some(python) = python() else { return };
    let folder = Folder::new();
    let script = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python/round_trip.py");
    assert!(std::process::Command::new(python).arg(script).arg(folder.path("")).status().unwrap().success());
    for name in
        ["a.tsv.gz", "a.csv.zst", "a.npy", "both.npz::a", "both.mat::X{1}", "a.parquet", "a.sparse.mtx"]
    {
        let file = name.split("::").next().unwrap();
        let whole = std::fs::read(folder.path(file)).unwrap();
        folder.file(file, &whole[..whole.len() * 2 / 3]);
        let message = folder.bad(3, &format!("inspect --view v={name}"));
        assert!(message.starts_with(file), "{message}");
        folder.file(file, &whole);
    }
    // A header that claims a million million values.
    let mut npy = std::fs::read(folder.path("a.npy")).unwrap();
    let header = String::from_utf8_lossy(&npy[..128]).into_owned();
    let at = header.find("(90, 12)").unwrap();
    npy.splice(at..at + 8, *b"(1000000000000, 12)");
    npy.drain(
        npy.iter().position(|&byte| byte == b'\n').unwrap() - 11
            ..npy.iter().position(|&b| b == b'\n').unwrap(),
    );
    folder.file("lie.npy", npy);
    assert!(folder.bad(3, "inspect --view lie.npy").starts_with("lie.npy"));
    folder.file("lie.mtx", "%%MatrixMarket matrix coordinate real general\n9 9 1000000000000\n1 1 1\n");
    assert!(folder.bad(3, "inspect --view lie.mtx").starts_with("lie.mtx"));
    // A missing variable: the message lists the existing ones.
    let message = folder.bad(3, "inspect --view both.mat::Z");
    assert!(message.contains('Z') && message.contains('X'), "{message}");
    let message = folder.bad(3, "inspect --view both.npz::c");
    assert!(message.contains('a') && message.contains('b'), "{message}");
}

#[test]
fn files_that_are_read_are_not_written() {
    let folder = Folder::small();
    let before = (folder.text("a.tsv"), folder.text("b.csv"));
    folder.good("fit --view a=a.tsv -k 2 -o out");
    for arguments in [
        "predict out/model.safetensors --view a=a.tsv -o a.tsv",
        "simulate --view a=a.tsv --missing 0 -o . --force",
        "report out -o a.tsv",
    ] {
        assert!(folder.bad(2, arguments).contains("this is an input file"), "{arguments}");
    }
    for arguments in [
        "simulate --view mask=a.tsv --missing 0 -o m",
        "simulate --view x,y=a.tsv --view x_y=a.tsv --missing 0 -o m",
    ] {
        assert!(folder.bad(2, arguments).contains("written twice"), "{arguments}");
        assert!(folder.list("m").is_empty());
    }
    assert!(folder.bad(2, "demo -o .").contains("not empty"));
    assert!(folder.bad(2, "demo --files .").contains("--force"));
    assert_eq!((folder.text("a.tsv"), folder.text("b.csv")), before);
}

#[test]
fn options_are_named_as_on_the_command_line() {
    let folder = Folder::small();
    for (option, value) in [
        ("--top-features", "0"),
        ("--latent", "0"),
        ("--runs", "0"),
        ("--max-iter", "0"),
        ("--tol", "-1"),
        ("--alpha", "nan"),
        ("--beta", "-2"),
        ("--scale", "big"),
    ] {
        let message = folder.bad(2, &format!("fit --view a=a.tsv -k 2 -o out {option} {value}"));
        assert!(
            message.starts_with(option) && !message.contains('_') && !message.contains(" = "),
            "{message}"
        );
    }
    let message = folder.bad(3, "fit --view a=a.tsv -k 13 -o out");
    assert!(message.starts_with("-k 13: "), "{message}");
    let message = folder.bad(2, "fit --view a=a.tsv -k 2 --latent 3 --runs 2 -o out");
    assert!(message.starts_with("--runs 2: "), "{message}");
    let message = folder.bad(2, "select --view a=a.tsv -k 2..3 --resamples 1");
    assert!(message.starts_with("--resamples 1: "), "{message}");
    let message = folder.bad(2, "select --view a=a.tsv -k 2..3 --hidden 2");
    assert!(message.starts_with("--hidden 2: "), "{message}");
}
