//! Files are short enough to be read in one sitting.

use crate::assert_tidy;
use crate::tree;

const LINES: usize = 600;

#[test]
fn no_source_file_is_too_long() {
    let faults: Vec<String> = tree::files(&["rs", "c", "h", "cpp", "hpp", "cc", "py", "sh"])
        .into_iter()
        .filter_map(|path| {
            let lines = tree::read(&path).lines().count();
            let what = format!("{lines} lines, and {LINES} at most; part it by its concerns");
            (lines > LINES).then(|| format!("{path}:{LINES}: {what}"))
        })
        .collect();
    assert_tidy(&faults);
}
