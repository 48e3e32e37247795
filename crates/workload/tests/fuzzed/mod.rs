//! The properties of parsing any workload file. Checked on the corpus by `cargo test`, and by the
//! fuzz target, which includes this file.

use headway_workload::{Generator, Offered, Workload};

/// Arrivals drawn from each workload: enough to leave the first entries of every table.
const DRAWS: usize = 100;

/// A text is a workload that makes sense, can be drawn from and reads back as written; or an
/// error that says something.
pub(crate) fn workload_file(text: &[u8]) {
    let Ok(text) = std::str::from_utf8(text) else {
        return;
    };
    match Workload::from_toml_str(text, "fuzzed.toml") {
        Ok(workload) => sound(&workload),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

fn sound(workload: &Workload) {
    workload.check().expect("what was read makes sense");
    let written = workload.to_toml();
    let read = Workload::from_toml_str(&written, "fuzzed.toml");
    assert_eq!(
        &read.unwrap_or_else(|e| panic!("{e}\n{written}")),
        workload,
        "{written}"
    );

    let classes = workload.class_names().len();
    let mut before_ns = 0;
    for arrival in Generator::new(workload, Offered::Rate(1e6), 1).take(DRAWS) {
        assert!(arrival.at_ns >= before_ns, "time goes forward");
        assert!(usize::from(arrival.class) < classes);
        assert!(arrival.service_ns >= 1);
        before_ns = arrival.at_ns;
    }
}
