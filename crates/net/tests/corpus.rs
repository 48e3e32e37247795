//! The fuzz targets' properties over their corpora.

mod fuzzed;
#[path = "../../../fuzz/replay.rs"]
mod replay;

use replay::replay;

#[test]
fn header() {
    replay("header", fuzzed::header);
}

#[test]
fn classifiers() {
    replay("classifiers", fuzzed::classifiers);
}

#[test]
fn classifier_spec() {
    replay("classifier_spec", fuzzed::spec);
}
