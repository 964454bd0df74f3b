//! Tables of text are read in all usual formats, and errors are reported.

use std::io::Write;

use crate::common::{Folder, names, refused, table, values};
use daimc_io::{Cells, Precision, Reading, read};
use flate2::Compression;
use flate2::write::GzEncoder;

const NO_IDS: Reading =
    Reading { transpose: false, no_ids: true, precision: None, decimal_comma: false, drop: &[] };
const TRANSPOSE: Reading =
    Reading { transpose: true, no_ids: false, precision: None, decimal_comma: false, drop: &[] };

fn gzip(text: &str) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(text.as_bytes()).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn every_separator_is_detected() {
    let folder = Folder::new();
    for separator in [",", "\t", ";", "|", " ", "   "] {
        let text = "id,a,b\nx,1,2.5\ny,-3e2,4\n".replace(',', separator);
        let table = table(&folder.file("t.txt", text));
        assert_eq!(table.ids, names(&["x", "y"]), "{separator:?}");
        assert_eq!(table.features, names(&["a", "b"]));
        assert_eq!(values(&table), [1.0, 2.5, -300.0, 4.0]);
        assert_eq!(table.lines, Some(vec![2, 3]));
    }
}

#[test]
fn blanks_within_ids_are_no_separators() {
    let folder = Folder::new();
    let table = table(&folder.file("t.csv", "name,a,b\nsample 1,1,2\nsample 2,3,4\n"));
    assert_eq!(table.ids, names(&["sample 1", "sample 2"]));
}

#[test]
fn a_header_is_detected() {
    let folder = Folder::new();
    let read = |text: &str| table(&folder.file("t.csv", text));
    assert_eq!(read("x,1,NA\ny,2,3\n").features, None);
    assert_eq!(read("x,1,NA\ny,2,3\n").rows, 2);
    assert_eq!(read("sample,1,2\ny,2,3\n").features, names(&["1", "2"]));
    assert_eq!(read(",0,1\ny,2,3\n").features, names(&["0", "1"]));
    assert_eq!(read("x,a,1\ny,2,3\n").features, names(&["a", "1"]));
}

#[test]
fn r_writes_no_title_above_row_names() {
    let folder = Folder::new();
    let table = table(&folder.file("t.txt", "\"a\" \"b\"\n\"x\" 1 2\n\"y\" NA 4\n"));
    assert_eq!(table.ids, names(&["x", "y"]));
    assert_eq!(table.features, names(&["a", "b"]));
    assert!(values(&table)[2].is_nan());
}

#[test]
fn every_word_for_a_missing_value_is_known() {
    let folder = Folder::new();
    let words =
        ["", "NA", "na", "NaN", "nan", "N/A", "#N/A", "<NA>", "null", "NULL", "None", "-", ".", "?", " NA "];
    for word in words {
        let table = table(&folder.file("t.csv", format!("id,a,b\nx,{word},1\ny,2,{word}\n")));
        let values = values(&table);
        assert!(values[0].is_nan() && values[3].is_nan(), "{word:?}");
        assert_eq!(values[1..3], [1.0, 2.0]);
    }
}

#[test]
fn infinity_is_kept_for_the_views_to_refuse() {
    let folder = Folder::new();
    let table = table(&folder.file("t.csv", "id,a,b\nx,inf,-Inf\ny,1,+2\n"));
    assert_eq!(values(&table), [f64::INFINITY, f64::NEG_INFINITY, 1.0, 2.0]);
}

#[test]
fn marks_comments_and_line_ends_do_not_matter() {
    let folder = Folder::new();
    let plain = "id,a,b\nx,1,2\ny,3,4";
    let variants = [
        plain.to_string(),
        format!("{plain}\n"),
        format!("{plain}\n\n  \n\n"),
        format!("\u{feff}{plain}"),
        format!("# made by hand\n# on a Monday\n{plain}"),
        plain.replace('\n', "\r\n"),
        format!("{}\r\n\r\n", plain.replace('\n', "\r\n")),
        plain.replace(',', " , "),
    ];
    for text in variants {
        let table = table(&folder.file("t.csv", &text));
        assert_eq!(
            (table.rows, table.ids, table.features.clone()),
            (2, names(&["x", "y"]), names(&["a", "b"])),
            "{text:?}"
        );
    }
    let table = table(&folder.file("t.tsv", "# from a tool\n#OTU ID\ts1\ts2\no1\t1\t2\no2\t3\t4\n"));
    assert_eq!(table.features, names(&["s1", "s2"]));
}

#[test]
fn quoted_fields_hold_separators_quotes_and_lines() {
    let folder = Folder::new();
    let table = table(&folder.file("t.csv", "id,\"a,b\",\"c\nd\"\n\"x \"\"y\"\"\",\"1\",2\nz,3,4\n"));
    assert_eq!(table.features, names(&["a,b", "c\nd"]));
    assert_eq!(table.ids, names(&["x \"y\"", "z"]));
    assert_eq!(table.lines, Some(vec![3, 4]));
}

#[test]
fn features_in_rows_are_transposed() {
    let folder = Folder::new();
    let path = folder.file("t.tsv", "gene\ts1\ts2\ts3\ng1\t1\t2\t3\ng2\t4\t5\t6\n");
    let table = read(&path, None, TRANSPOSE).unwrap();
    assert_eq!((table.rows, table.columns, table.transposed), (3, 2, true));
    assert_eq!(table.ids, names(&["s1", "s2", "s3"]));
    assert_eq!(table.features, names(&["g1", "g2"]));
    assert_eq!(values(&table), [1.0, 4.0, 2.0, 5.0, 3.0, 6.0]);
    // Instances may have numbers for IDs.
    let path = folder.file("t.tsv", "symbol\t11\t12\ng1\t1\t2\n");
    assert_eq!(read(&path, None, TRANSPOSE).unwrap().ids, names(&["11", "12"]));
}

#[test]
fn without_ids_the_first_column_holds_values() {
    let folder = Folder::new();
    let table = read(&folder.file("t.csv", "a,b\n1,2\n3,4\n"), None, NO_IDS).unwrap();
    assert_eq!((table.ids, table.features), (None, names(&["a", "b"])));
    let table = read(&folder.file("t.csv", "1\n2\n3\n"), None, NO_IDS).unwrap();
    assert_eq!((table.rows, table.columns), (3, 1));
}

#[test]
fn f32_is_parsed_as_f32() {
    let folder = Folder::new();
    let how = Reading { precision: Some(Precision::F32), ..Reading::default() };
    let table = read(&folder.file("t.csv", "id,a,b\nx,0.1,16777217\n"), None, how).unwrap();
    assert!(matches!(&table.cells, Cells::DenseF32(values) if values[..] == [0.1_f32, 16_777_216.0]));
}

#[test]
fn compressed_text_is_read_under_any_name() {
    let folder = Folder::new();
    let (first, second) = ("id,a,b\nx,1,2\n", "y,3,4\n");
    let whole = format!("{first}{second}");
    let contents = [
        gzip(&whole),
        // bgzip and `cat a.gz b.gz` write several members.
        [gzip(first), gzip(second)].concat(),
        zstd::encode_all(whole.as_bytes(), 0).unwrap(),
        [zstd::encode_all(first.as_bytes(), 0).unwrap(), zstd::encode_all(second.as_bytes(), 0).unwrap()]
            .concat(),
        whole.into_bytes(),
    ];
    for content in contents {
        for name in ["t.csv.gz", "t.csv.zst", "t.csv"] {
            assert_eq!(values(&table(&folder.file(name, &content))), [1.0, 2.0, 3.0, 4.0]);
        }
    }
}

#[test]
fn compressed_text_that_was_cut_off_is_refused() {
    let folder = Folder::new();
    let text: String = std::iter::once("id,a\n".into())
        .chain((0..20_000).map(|i: u32| format!("i{i},{}\n", f64::from(i).sin())))
        .collect();
    for (name, whole) in
        [("t.csv.gz", gzip(&text)), ("t.csv.zst", zstd::encode_all(text.as_bytes(), 0).unwrap())]
    {
        for kept in [whole.len() / 2, whole.len() - 3] {
            assert_eq!(
                refused(&folder.file(name, &whole[..kept]), Reading::default()),
                format!(
                    "{name}: the compressed data end too early: the file was cut off, copy or download it again"
                )
            );
        }
        let mut damaged = whole.clone();
        damaged[whole.len() / 2..whole.len() / 2 + 50].fill(0xaa);
        let error = refused(&folder.file(name, &damaged), Reading::default());
        assert!(error.contains("the compressed data are damaged"), "{error}");
    }
}

#[test]
fn a_row_of_another_length_is_refused_with_both_lengths() {
    let folder = Folder::new();
    let refused = |text: &str| refused(&folder.file("t.csv", text), Reading::default());
    let advice = "look for a missing separator, or for one within a value that should be in quotes";
    assert_eq!(
        refused("id,a,b\nx,1,2\ny,3\nz,5,6\n"),
        format!("t.csv, line 3: 2 fields where the header has 3: {advice}")
    );
    // The number of fields explains the text where a number should be.
    assert_eq!(
        refused("id,a,b\nSmith, J,1,2\ny,3,4\nz,5,6\n"),
        format!("t.csv, line 2: 4 fields where the header has 3: {advice}")
    );
    assert_eq!(
        refused("x,1,2\ny,3,4\nz,5,6,7\n"),
        format!("t.csv, line 3: 4 fields where the first row has 3: {advice}")
    );
    // Lines are counted within quotes, too.
    assert_eq!(
        refused("id,\"a\nb\",c\n\"x\n\ny\",1,2\nz,1\n"),
        format!("t.csv, line 6: 2 fields where the header has 3: {advice}")
    );
}

#[test]
fn a_separator_at_the_end_of_each_row_is_no_row_name() {
    let folder = Folder::new();
    let error = refused(&folder.file("t.csv", "id,a\nx,1,\ny,2,\n"), Reading::default());
    assert!(error.starts_with("t.csv, line 2: 3 fields where the header has 2"), "{error}");
}

#[test]
fn text_among_numbers_is_refused_with_its_place() {
    let folder = Folder::new();
    let refused = |text: &str, how| refused(&folder.file("t.csv", text), how);
    let advice =
        "write NA or nothing where a value is missing, and leave out features that are text (--drop)";
    assert_eq!(
        refused("id,height,sex\nx,1.8,0\ny,1.7,male\n", Reading::default()),
        format!("t.csv, line 3, column 3: 'male' is not a number (feature 'sex' of instance 'y'): {advice}")
    );
    assert_eq!(
        refused("gene,s1,s2\ng1,1,2\n\"g\n2\",1,2x\n", TRANSPOSE),
        format!("t.csv, line 4, column 3: '2x' is not a number (feature 'g\\n2' of instance 's2'): {advice}")
    );
    assert_eq!(
        refused("1,2\n3,x\n", NO_IDS),
        format!("t.csv, line 2, column 2: 'x' is not a number: {advice}")
    );
    assert_eq!(
        refused("id;a;b\nx;1,5;2,5\ny;1,0;2,0\n", Reading::default()),
        "t.csv, line 2, column 2: '1,5' is not a number (feature 'a' of instance 'x'): if that is a decimal comma, \
         read the file with --decimal ,"
    );
}

#[test]
fn files_without_rows_are_refused() {
    let folder = Folder::new();
    let refused = |text: &str| refused(&folder.file("t.csv", text), Reading::default());
    for text in ["", "\n\n", "\u{feff}", "# nothing\n"] {
        assert_eq!(refused(text), "t.csv: the file is empty: a row per instance is expected, below a header");
    }
    for text in ["id,a,b", "id,a,b\n\n"] {
        assert_eq!(
            refused(text),
            "t.csv: there is a header but no row below it: a row per instance is expected"
        );
    }
}

#[test]
fn one_column_is_likely_a_wrong_separator() {
    let folder = Folder::new();
    let error = refused(&folder.file("t.csv", "id:a:b\nx:1:2\n"), Reading::default());
    assert_eq!(
        error,
        "t.csv, line 1: only one column is found: separate columns by tab, comma, semicolon, | or blanks (where the one \
         column holds values, say that there are no IDs: --no-ids)"
    );
}

#[test]
fn what_is_not_utf8_is_refused() {
    let folder = Folder::new();
    let refused = |text: &[u8]| refused(&folder.file("t.csv", text), Reading::default());
    let reason = "the text is not UTF-8: save the file in this encoding";
    assert_eq!(refused(b"id,a\nx,1\nGr\xf6sse,2\n"), format!("t.csv, line 3, column 1: {reason}"));
    assert_eq!(refused(b"id,Gr\xf6sse\nx,1\n"), format!("t.csv, line 1, column 2: {reason}"));
    assert_eq!(refused(b"id,a\nx,\xb5\n"), format!("t.csv, line 2, column 2: {reason}"));
    assert_eq!(refused(b"\xff\xfei\0d\0"), "t.csv: the text is UTF-16: save the file in UTF-8");
    assert!(refused(b"PAR1\0\0,\0").contains("this is not text"));
}

#[test]
fn broken_quotes_are_refused_where_they_open() {
    let folder = Folder::new();
    let refused = |text: &str| refused(&folder.file("t.csv", text), Reading::default());
    assert_eq!(
        refused("id,a,b\nx,1,2\ny,\"3,4\nz,5,6\n"),
        "t.csv, line 3, column 2: a quote is opened and never closed: close it or remove it"
    );
    assert_eq!(
        refused("id,a,b\nx,1,2\ny,\"3\"4,5\nz,5,6\n"),
        "t.csv, line 3, column 2: text follows a closing quote: put the whole field in quotes and double those within"
    );
    // Also in a long text.
    let many = "i,1,2\n".repeat(300_000);
    let error = refused(&format!("id,a,b\nx,1,2\ny,\"3,4\n{many}"));
    assert!(error.starts_with("t.csv, line 3, column 2: a quote is opened"), "{error}");
}

#[test]
fn empty_lines_and_empty_ids_among_rows_are_refused() {
    let folder = Folder::new();
    let refused = |text: &str| refused(&folder.file("t.csv", text), Reading::default());
    assert_eq!(
        refused("id,a\nx,1\n\ny,2\n"),
        "t.csv, line 3: the line is empty, but rows follow: delete it, or write NA for what is missing"
    );
    assert_eq!(
        refused("id,a\nx,1\n,2\n"),
        "t.csv, line 3, column 1: the ID is empty: give the row an ID or delete it"
    );
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let folder = Folder::new();
    let path = folder.file("t.csv", "").with_file_name("other.csv");
    assert!(refused(&path, Reading::default()).starts_with("other.csv: cannot be read: No such file"));
}

#[test]
fn decimal_commas_are_read_on_request() {
    let folder = Folder::new();
    let path = folder.file("a.csv", "id;x;y\na;1,5;2\nb;-0,25;NA\n");
    assert!(refused(&path, Reading::default()).contains("--decimal ,"));
    let comma = Reading { decimal_comma: true, ..Reading::default() };
    let table = read(&path, None, comma).unwrap();
    let found = values(&table);
    assert_eq!(found[..3], [1.5, 2.0, -0.25]);
    assert!(found[3].is_nan());
    // Commas do not separate then, and the first row is no header.
    let path = folder.file("b.txt", "a 1,5 2,5\nb 3,5 4,5\n");
    assert_eq!(values(&read(&path, None, comma).unwrap()), [1.5, 2.5, 3.5, 4.5]);
    let path = folder.file("c.csv", "id;x\na;1.234,5\nb;1\n");
    assert!(refused(&path, comma).contains("separator of thousands"));
    let path = folder.file("d.csv", "id;x\na;1.5\nb;1\n");
    assert!(refused(&path, comma).contains("write all decimals alike"));
}

#[test]
fn columns_of_text_are_listed_and_can_be_dropped() {
    let folder = Folder::new();
    let path = folder.file("a.tsv", "id\tx\tGene Symbol\tchr\ty\na\t1\tTP53\tchr1\t2\nb\t3\tKRAS\tchr2\t4\n");
    let error = refused(&path, Reading::default());
    assert_eq!(
        error,
        "a.tsv, line 2, column 3: 'TP53' is not a number (feature 'Gene Symbol' of instance 'a'): these columns hold text, \
         leave out what is no value: --drop 'Gene Symbol,chr'"
    );
    let drop: Vec<String> = ["chr", "Gene Symbol", "z"].map(String::from).into();
    let how = Reading { drop: &drop, ..Reading::default() };
    let table = read(&path, None, how).unwrap();
    assert_eq!((values(&table), table.features), (vec![1.0, 2.0, 3.0, 4.0], names(&["x", "y"])));
    assert_eq!(table.dropped, ["Gene Symbol", "chr"]);
    let path = folder.file("b.tsv", "id\tx\tchr\ty\na\t1\tchr1\t2\nb\t3\tchr2\toops\n");
    let drop = ["chr".to_owned()];
    let error = refused(&path, Reading { drop: &drop, ..Reading::default() });
    assert!(
        error.starts_with("b.tsv, line 3, column 4: 'oops' is not a number (feature 'y' of instance 'b')"),
        "{error}"
    );
    let drop = ["x", "chr", "y"].map(String::from);
    assert!(
        refused(&path, Reading { drop: &drop, ..Reading::default() }).contains("--drop removes every column")
    );
}

#[test]
fn empty_cells_that_spreadsheets_write_around_a_table_are_ignored() {
    let folder = Folder::new();
    let path = folder.file("a.csv", "id;x;y;;\na;1;2;;\nb;3;;;\n;;;;\n;;;;\n");
    let table = table(&path);
    assert_eq!((table.rows, table.columns, table.features), (2, 2, names(&["x", "y"])));
    let path = folder.file("b.csv", "id,x,,\na,1,,\n,,,\nb,2,,\n");
    assert!(
        refused(&path, Reading::default()).starts_with("b.csv, line 3: the line is empty, but rows follow")
    );
    let mut text = String::from("id,x,\n");
    text.extend((0..60).map(|i| format!("s{i},1,\n")));
    let path = folder.file("c.csv", text + "t,1,2\n");
    assert!(
        refused(&path, Reading::default())
            .starts_with("c.csv, line 62, column 3: there is a value in a column without")
    );
}

#[test]
fn tables_of_feature_counts_have_genes_in_rows() {
    let folder = Folder::new();
    let text = "# Program:featureCounts v2.0.3; Command:\"featureCounts\" \"-a\" \"x.gtf\"\n\
                Geneid\tChr\tStart\tEnd\tStrand\tLength\ts1.bam\ts2.bam\n\
                g1\t1;1\t11;20\t15;30\t+;+\t16\t5\t0\ng2\tX\t7\t9\t-\t3\t1\t8\n";
    let path = folder.file("counts.txt", text);
    for how in [Reading::default(), TRANSPOSE] {
        let table = read(&path, None, how).unwrap();
        assert_eq!(values(&table), [5.0, 1.0, 0.0, 8.0]);
        assert_eq!((table.ids, table.features), (names(&["s1.bam", "s2.bam"]), names(&["g1", "g2"])));
        assert!(
            table.transposed && table.remarks[0].contains("Chr, Start, End, Strand, Length"),
            "{:?}",
            table.remarks
        );
    }
}

#[test]
fn gct_files_have_features_in_rows() {
    let folder = Folder::new();
    let old = "#1.2\n2\t3\nName\tDescription\ts1\ts2\ts3\ng1\tna\t1\t2\t3\ng2\t\"a, b\"\t4\t\t6\n";
    let new = "#1.3\r\n2\t3\t2\t1\r\nid\tsymbol\tchr\ts1\ts2\ts3\r\nkind\tna\tna\tx\ty\tz\r\n\
               g1\tA\t1\t1\t2\t3\r\ng2\tB\t2\t4\tNA\t6\r\n";
    for text in [old, new] {
        let path = folder.file("a.gct", text);
        for how in [Reading::default(), TRANSPOSE] {
            let table = read(&path, None, how).unwrap();
            let found = values(&table);
            assert_eq!((found[0], found[1], found[2], found[4], found[5]), (1.0, 4.0, 2.0, 3.0, 6.0));
            assert!(found[3].is_nan());
            assert_eq!((table.ids, table.features), (names(&["s1", "s2", "s3"]), names(&["g1", "g2"])));
        }
    }
    let wrong = |text: &str| refused(&folder.file("a.gct", text), Reading::default());
    let error = wrong(&old.replace("2\t3\nName", "3\t3\nName"));
    assert!(error.contains("3 rows, but there are 2"), "{error}");
    let error = wrong(&old.replace("2\t3\nName", "2\t4\nName"));
    assert!(error.starts_with("a.gct, line 3: 5 titles, but line 2 says 4 columns"), "{error}");
    let error = wrong(&old.replace("2\t3\nName", "two\nName"));
    assert!(error.starts_with("a.gct, line 2: two numbers are expected"), "{error}");
    let error = wrong(&old.replace("\t6\n", "\tx\n"));
    assert!(
        error.starts_with("a.gct, line 5, column 5: 'x' is not a number (feature 'g2' of instance 's3')"),
        "{error}"
    );
    for length in 0..old.len() - 1 {
        let _ = read(&folder.file("a.gct", &old[..length]), None, Reading::default());
    }
    assert!(wrong(&old[..8]).contains("goes on"));
    assert!(
        wrong("#1.3\n1\t18446744073709551615\t18446744073709551615\t0\nid\ts1\na\t1\n").contains("titles")
    );
}

#[test]
fn duplicate_names_are_made_unique_and_numbers_as_ids_are_reported() {
    let folder = Folder::new();
    let found = table(&folder.file("a.csv", "id,x,x,y,x.1,x\na,1,2,3,4,5\nb,1,2,3,4,5\n"));
    assert_eq!(found.features, names(&["x", "x.2", "y", "x.1", "x.3"]));
    assert!(
        found.remarks[0].starts_with("has 2 features whose names occur before ('x'"),
        "{:?}",
        found.remarks
    );
    let found = table(&folder.file("b.csv", "age,x\n1.5,1\n2.5,2\n"));
    assert!(found.remarks[0].contains("such as '1.5'") && found.remarks[0].ends_with("--no-ids"));
    let found = table(&folder.file("c.csv", "id,x\n1,1\n2,2\n"));
    assert!(found.remarks.is_empty() && found.dropped.is_empty());
}
