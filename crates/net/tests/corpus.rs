//! The fuzz targets' properties over their corpora.

use crate::fuzzed;
use crate::replay::replay;

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
