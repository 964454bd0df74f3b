//! `--device`, on machines with and without a GPU.

use crate::common::Folder;

const FIT: &str = "fit --view a=a.tsv --view b=b.csv -k 2 --no-assess --force";

#[test]
fn the_cpu_is_the_default_and_the_choice_of_auto_for_a_quick_fit() {
    let folder = Folder::small();
    folder.good(&format!("{FIT} -o plain"));
    let message = folder.run(&format!("{FIT} --device auto -o auto"));
    let message = String::from_utf8(message.stderr).unwrap();
    assert!(message.contains("device: cpu (it needs less than 2 seconds"), "{message}");
    assert_eq!(folder.text("plain/labels.tsv"), folder.text("auto/labels.tsv"));
    let (plain, auto) = (folder.json("plain/summary.json"), folder.json("auto/summary.json"));
    assert_eq!(plain["device"], serde_json::json!({"name": "cpu"}));
    assert!(auto["device"]["reason"].as_str().unwrap().contains("not worth"), "{auto}");
    assert_eq!((&plain["options"]["device"], &auto["options"]["device"]), (&().into(), &"auto".into()));
    // The summary repeats it, and a file may ask for it.
    folder.good("fit --config auto/summary.json -o again");
    assert_eq!(folder.json("again/summary.json")["options"]["device"], "auto");
    folder.file("fit.toml", "view = [\"a=a.tsv\"]\nk = 2\ndevice = \"auto\"\ntf32 = true\n");
    folder.good("fit --config fit.toml -o file");
    assert_eq!(folder.json("file/summary.json")["options"]["tf32"], true);
}

#[test]
fn a_missing_gpu_is_an_error_before_anything_is_read() {
    let folder = Folder::small();
    // No machine has this many GPUs.
    let message = folder.bad(1, &format!("{FIT} --device cuda:1000 -o out"));
    assert!(message.starts_with("cuda:1000: "), "{message}");
    assert!(folder.list("out").is_empty());
}

#[test]
fn invalid_devices_are_errors() {
    let folder = Folder::small();
    let message = folder.run(&format!("{FIT} --device gpu -o out"));
    assert_eq!(message.status.code(), Some(2));
    let message = String::from_utf8(message.stderr).unwrap();
    assert!(
        message.contains("must be cpu, cuda, cuda:1 (the second GPU), cuda:0,1 (the first two) or auto"),
        "{message}"
    );
    let message = folder.bad(2, &format!("{FIT} --tf32 -o out"));
    assert!(message.contains("add --device cuda or auto"), "{message}");
    let message = folder.bad(2, &format!("{FIT} --online --device auto -o out"));
    assert!(message.contains("--online runs on the CPU only"), "{message}");
}
