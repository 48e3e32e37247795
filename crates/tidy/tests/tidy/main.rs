//! Checks that the repository's statements about itself are true: links, the list of unsafe modules, the table of imports, test targets, lock files,
//! the commands that documents name, and the texts that mutants replace.
//! Checks its rules too: no circles among files, short files and functions, no default methods in traits, errors that print sentences, and one meaning for each type's name.
//! The tests `documents` of the command check the documents' commands, which need the command.
//!
//! Each test collects every fault, as `file:line: what is wrong; what to do`, and fails once with all of them.

mod circles;
mod contracts;
mod document;
mod errors;
mod faults;
mod fresh;
mod lengths;
mod links;
mod locks;
mod mutants;
mod names;
mod rooms;
mod targets;
mod thread_locals;
mod tree;
mod unsafe_modules;

use faults::assert_tidy;
