//! Checks that the repository's statements about itself are true: links, commands and their output, the list of unsafe modules, the
//! table of imports, generated tables. Checks its rules too: no circles among files, short files, no default methods in traits, and
//! one meaning for each type's name.
//!
//! Each test collects every fault, as `file:line: what is wrong; what to do`, and fails once with all of them.

mod circles;
mod command_lines;
mod contracts;
mod document;
mod examples;
mod generated;
mod lengths;
mod links;
mod names;
mod outputs;
mod rooms;
mod shell;
mod tree;
mod unsafe_modules;

/// Fails with all faults if there are any.
fn assert_tidy(faults: &[String]) {
    assert!(
        faults.is_empty(),
        "{} to tidy:\n{}",
        faults.len(),
        faults.join("\n")
    );
}
