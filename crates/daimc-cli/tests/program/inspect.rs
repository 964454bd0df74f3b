//! The estimate of distributed fits by `inspect`.

use serde_json::Value;

use crate::common::Folder;

const INSPECT: &str = "inspect --view a=a.tsv --view b=b.csv -k 2 --threads 1";

/// Two views of 40 000 instances: three leaves.
fn many() -> Folder {
    let folder = Folder::new();
    for (name, features) in [("a.csv", 4), ("b.csv", 3)] {
        let row = |i: usize| (0..features).map(|f| ((i + f) % 5).to_string()).collect::<Vec<_>>().join(",");
        let rows: Vec<String> = (0..40_000).map(|i| format!("s{i},{}\n", row(i))).collect();
        folder.file(name, rows.concat());
    }
    folder
}

fn json(folder: &Folder, arguments: &str) -> Value {
    serde_json::from_str(&folder.good(&format!("{arguments} --json"))).unwrap()
}

#[test]
fn without_workers_no_distributed_estimate_is_printed() {
    let folder = Folder::small();
    let message = folder.good(INSPECT);
    assert!(!message.contains("worker"), "{message}");
    assert!(json(&folder, INSPECT)["estimate"].get("distributed").is_none());
}

#[test]
fn no_workers_are_wrong_usage() {
    let message = Folder::small().bad(2, &format!("{INSPECT} --workers 0"));
    assert_eq!(message, "--workers 0: there must be at least one worker");
}

#[test]
fn memory_and_messages_of_a_worker_are_reported() {
    let folder = many();
    let inspect = "inspect --view a=a.csv --view b=b.csv -k 3 --threads 1 --workers";
    let two = json(&folder, &format!("{inspect} 2"))["estimate"]["distributed"].take();
    // Two of three leaves of 16 384 instances, of which the last is short.
    assert_eq!((&two["workers"], &two["instances_per_worker"]), (&2.into(), &23_616.into()));
    let number = |of: &Value, name: &str| of[name].as_f64().unwrap_or_else(|| panic!("{name}: {of}"));
    // Bases of 7 × 3 and a scale of 3; then the sums, 3 × 3 for each view, and one of missing cells: separately for the leaves of
    // the second worker, which are merged with that of the first before they are merged with each other.
    assert_eq!(number(&two, "request_bytes"), 8.0 * (7.0 * 3.0 + 3.0));
    assert_eq!(number(&two, "reply_bytes"), 2.0 * 8.0 * (7.0 * 3.0 + 3.0 + 2.0 * 10.0));
    assert_eq!(number(&two, "results_memory_bytes"), 40_000.0 * (8.0 * 3.0 + 16.0));
    let one = json(&folder, &format!("{inspect} 1"))["estimate"]["distributed"].take();
    assert!(number(&one, "worker_memory_bytes") > number(&two, "worker_memory_bytes"));
    // Two replies arrive instead of one.
    assert!(number(&one, "driver_memory_bytes") < number(&two, "driver_memory_bytes"));

    let message = folder.good(&format!("{inspect} 5"));
    assert!(
        message.contains("On 5 workers of 1 thread each, a fit of 3 clusters without neighbourhoods"),
        "{message}"
    );
    assert!(message.contains("2 workers will have none"), "{message}");
    assert!(
        message.contains("In each iteration a worker receives 0.2 kB and returns 0.4 kB at most"),
        "{message}"
    );
    assert!(!folder.good(&format!("{inspect} 3")).contains("will have none"));
}
