//! Workload files of YCSB, which are not ours.

use std::path::Path;

use crate::error::{Error, Problem};
use crate::section::Document;

/// The refusal of a text that is a property file of YCSB (Cooper et al., SoCC 2010), at the line that shows it.
pub(crate) fn refusal(text: &str, path: &Path) -> Option<Error> {
    let mut offset = 0;
    for line in text.split_inclusive('\n') {
        if is_property(line) {
            let why = "this is a workload file of YCSB: it has shares of operations, and no service times; write a [[class]] for each operation, with \
                       its share and its service time";
            let document = Document { path, text };
            return Some(document.error(offset, String::new(), Problem::Conflict(why)));
        }
        offset += line.len();
    }
    None
}

/// Whether a line is one of the properties that only YCSB has.
fn is_property(line: &str) -> bool {
    const PROPORTION: &str = "proportion";
    let Some((key, value)) = line.split_once('=') else {
        return false;
    };
    let (key, value) = (key.trim(), value.trim());
    key.ends_with(PROPORTION) && key.len() > PROPORTION.len()
        || key == "workload" && value.to_ascii_lowercase().contains("ycsb")
}

#[cfg(test)]
mod tests {
    use crate::Workload;

    #[test]
    fn a_workload_file_of_ycsb_is_refused_by_name() {
        let text = "# Yahoo! Cloud System Benchmark\nrecordcount=1000\noperationcount=1000\nworkload=site.ycsb.workloads.CoreWorkload\nreadproportion=0.5\n";
        for text in [text, "recordcount=1000\n\nworkload=1\nreadproportion=0.5\n"] {
            let refused = Workload::from_toml_str(text, "workloada").unwrap_err();
            let refused = refused.to_string();
            assert!(
                refused.starts_with("workloada:4: this is a workload file of YCSB"),
                "{refused}"
            );
        }
    }
}
