//! The memory of a table is compared with the available memory. The limit is global: no other tests belong here.

use std::fs::File;
use std::io::Write;
use std::path::Path;

use daimc_io::{Disk, Error, Matching, Reading, memory, read, read_labels, read_stored};

/// The memory limit of this process.
const LIMIT: u64 = 100_000_000;

fn short_of_memory<T>(result: Result<T, Error>) {
    match result {
        Err(Error::Memory { available, .. }) => assert!(available.is_some_and(|bytes| bytes < LIMIT)),
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("it was read"),
    }
}

/// A compressed file of `start` and `times` copies of `row`.
fn compressed(path: &Path, start: &str, row: &str, rows: usize) {
    let mut out = zstd::Encoder::new(File::create(path).unwrap(), 1).unwrap();
    out.write_all(start.as_bytes()).unwrap();
    let many = row.repeat(1000);
    for _ in 0..rows / 1000 {
        out.write_all(many.as_bytes()).unwrap();
    }
    out.finish().unwrap();
    assert!(path.metadata().unwrap().len() < 200_000);
}

#[test]
#[cfg(target_os = "linux")]
fn tables_larger_than_the_available_memory_are_refused_before_allocation() {
    memory::limit(LIMIT);
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);

    let table = path("table.csv.zst");
    compressed(&table, "id,a,b,c,d\n", "i,1,2,3,4\n", 12_000_000);
    short_of_memory(read(&table, None, Reading::default()));
    let error = read(&table, None, Reading::default()).unwrap_err().to_string();
    assert!(error.contains("MB is available") && error.contains("--memory"), "{error}");

    let names = path("names.csv.zst");
    compressed(&names, "id,a\n", "a long name of an instance,1\n", 3_000_000);
    short_of_memory(read(&names, None, Reading::default()));

    let labels = path("labels.csv.zst");
    compressed(&labels, "id,class\n", "a,b\n", 5_000_000);
    short_of_memory(read_labels(&labels, None, &Matching::default()));

    let matrix = path("matrix.mtx.zst");
    compressed(
        &matrix,
        "%%MatrixMarket matrix coordinate real general\n9 9 20000000\n",
        "1 1 1\n",
        20_000_000,
    );
    short_of_memory(read(&matrix, None, Reading::default()));

    // The header is enough, and the whole file.
    let triangle = path("triangle.mtx.zst");
    compressed(&triangle, "%%MatrixMarket matrix array real symmetric\n5000 5000\n", "1\n", 1000);
    let on_disk = read_stored(&triangle, None, Reading::default(), &Disk::new(folder.path()));
    for error in [on_disk.map(|_| ()), read(&triangle, None, Reading::default()).map(|_| ())] {
        let error = error.unwrap_err();
        assert_eq!(error.kind(), daimc::ErrorKind::Failed);
        let message = error.to_string();
        assert!(message.contains("triangle.mtx.zst") && message.contains("as .npy or .npz"), "{message}");
    }

    // A sparse file of the right length.
    let array = path("array.npy");
    let header = "{'descr': '<f8', 'fortran_order': False, 'shape': (50000000, 1), }";
    let mut file = File::create(&array).unwrap();
    file.write_all(b"\x93NUMPY\x01\x00").unwrap();
    file.write_all(&(header.len() as u16).to_le_bytes()).unwrap();
    file.write_all(header.as_bytes()).unwrap();
    file.set_len(10 + header.len() as u64 + 400_000_000).unwrap();
    short_of_memory(read(&array, None, Reading::default()));

    memory::limit(u64::MAX);
    compressed(&table, "id,a,b,c,d\n", "i,1,2,3,4\n", 1_000_000);
    assert_eq!(read(&table, None, Reading::default()).unwrap().rows, 1_000_000);
}
