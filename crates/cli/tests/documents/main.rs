//! Checks what the documents say of the command: it accepts their command lines, and prints what they show.
//! The tests of the crate `tidy` check the rest of what they say.

mod command_lines;
#[path = "../../../tidy/tests/tidy/document.rs"]
mod document;
mod examples;
#[path = "../../../tidy/tests/tidy/faults.rs"]
mod faults;
mod generated;
mod outputs;
mod shell;
#[path = "../../../tidy/tests/tidy/tree.rs"]
mod tree;

use faults::assert_tidy;
