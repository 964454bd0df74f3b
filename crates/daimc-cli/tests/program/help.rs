//! Help in three lengths.

use crate::common::Folder;

/// The long names of the options in a help text, in order.
fn options(help: &str) -> Vec<String> {
    let name = |line: &str| {
        let indent = line.len() - line.trim_start().len();
        // The explanation of an option is indented further.
        let (_, long) = line.split_once("--").filter(|_| (2..=6).contains(&indent))?;
        Some(long.chars().take_while(|sign| sign.is_ascii_alphanumeric() || *sign == '-').collect())
    };
    help.lines().filter_map(name).collect()
}

#[test]
fn the_help_of_fit_has_the_common_options_and_help_all_has_every_option() {
    let folder = Folder::new();
    let [short, long, all] = ["-h", "--help", "--help-all"].map(|flag| folder.good(&format!("fit {flag}")));
    assert_eq!(options(&short), options(&long));
    assert!((12..=20).contains(&options(&short).len()), "{:?}", options(&short));
    for help in [&short, &long] {
        assert_eq!(help.trim_end().lines().last(), Some("More options: daimc fit --help-all"));
        assert!(!help.contains("Matching IDs:") && !help.contains("--beta"), "{help}");
    }
    assert!(short.len() < long.len() && long.len() < all.len());
    for heading in ["Reading files:", "Matching IDs:", "Model:", "Large data and devices:", "Output:"] {
        assert!(all.lines().any(|line| line == heading), "{heading}\n{all}");
    }
    let known = options(&all);
    assert!(options(&short).iter().all(|option| known.contains(option)));
    // The manual has all options as well.
    let manual = folder.good("man fit").replace("\\-", "-");
    for option in known.iter().filter(|option| *option != "help-all") {
        assert!(manual.contains(&format!("--{option}")), "{option}");
    }
    for option in ["id-regex", "beta", "online", "embedding", "tf32", "config"] {
        assert!(known.iter().any(|own| own == option), "{option}: {known:?}");
    }
}

#[test]
fn commands_without_rare_options_have_no_help_all() {
    let folder = Folder::new();
    assert!(!folder.good("demo --help").contains("--help-all"));
    assert!(folder.good("predict --help").contains("More options: daimc predict --help-all"));
    assert!(folder.good("predict --help-all").contains("--duplicates"));
}
