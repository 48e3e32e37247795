//! What the repository says of itself is so: links, commands and their output, the list of unsafe modules,
//! the table of imports, files that need each other, generated tables, the length of files; that traits have no default methods, and
//! that a type's name stands for one thing.
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

/// Fails with all faults, if there are any.
fn assert_tidy(faults: &[String]) {
    assert!(
        faults.is_empty(),
        "{} to tidy:\n{}",
        faults.len(),
        faults.join("\n")
    );
}
