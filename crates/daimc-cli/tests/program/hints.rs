//! Tips for common mistakes.

use crate::common::Folder;

fn stderr(folder: &Folder, arguments: &str) -> String {
    let output = folder.run(arguments);
    assert!(!output.status.success(), "{arguments}");
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn a_wrong_command_line_gets_a_tip() {
    let folder = Folder::small();
    let tips = [
        ("fit --view a=a.tsv -k 2..5 -o out", "`daimc select -k 2..5` recommends one"),
        (
            "fit --view a=a.tsv -k 2 -o out --transpose a",
            "tip: name views after an equals sign: --transpose=a",
        ),
        ("fit --view a=a.tsv -k 2 -o out --no-ids a", "tip: name views after an equals sign: --no-ids=a"),
        ("fit a.tsv -k 2 -o out", "tip: a file of data is a view: --view NAME=a.tsv"),
        (
            "predict --model out --view a=a.tsv",
            "tip: the model comes without an option: `daimc predict FOLDER",
        ),
        ("fit --view a=a.tsv -k 2 -o out --top-features 0", "daimc: --top-features must be at least 1"),
        ("predict a.tsv --view a=a.tsv", "name the folder of a fit, or the model.safetensors in it"),
        ("report a.tsv", "daimc: a.tsv: is a file: name the folder of the fit"),
    ];
    for (arguments, tip) in tips {
        let message = stderr(&folder, arguments);
        assert!(message.contains(tip), "{arguments}\n{message}");
    }
    // The suggestion of clap is kept here.
    assert!(stderr(&folder, "fit --veiw a=a.tsv").contains("'--view'"));
}

#[test]
fn the_folder_of_a_fit_is_accepted_as_its_labels() {
    let folder = Folder::small();
    folder.good("fit --view a=a.tsv --view b=b.csv -k 2 -o out");
    assert_eq!(
        folder.good("evaluate out --truth truth.csv"),
        folder.good("evaluate out/labels.tsv --truth truth.csv")
    );
}

#[test]
#[cfg(unix)]
fn a_tilde_is_the_home_folder() {
    let folder = Folder::small();
    let mut command = assert_cmd::Command::cargo_bin("daimc").unwrap();
    let arguments = ["fit", "--view", "a=~/a.tsv", "--truth=~/truth.csv", "-k", "2", "-o", "out"];
    command.current_dir(folder.path("")).env("HOME", folder.path("")).args(arguments).assert().success();
    assert!(folder.path("out/report.html").exists());
}
