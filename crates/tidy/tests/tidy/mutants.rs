//! The faults that `make world-mutants` puts into the engines fit the code that is there. The worlds themselves take an hour.

use crate::assert_tidy;
use crate::tree;
use toml::{Table, Value};

const MUTANTS: &str = "crates/world/mutants/mutants.toml";

#[test]
fn each_mutants_text_stands_once_in_its_file() {
    let mutants: Table = tree::read(MUTANTS).parse().expect("it is TOML");
    let mutants = mutants["mutant"].as_array().expect("a list of mutants");
    assert!(!mutants.is_empty());
    let faults: Vec<String> = mutants.iter().filter_map(fault).collect();
    assert_tidy(&faults);
}

fn fault(mutant: &Value) -> Option<String> {
    let text = |key: &str| mutant[key].as_str().expect("text");
    let (name, file) = (text("name"), text("file"));
    let found = tree::read(file).matches(text("find")).count();
    (found != 1).then(|| {
        format!("{MUTANTS}: the text of \"{name}\" stands {found} times in {file}; give it the text that stands there once")
    })
}
