//! Lines on standard error, without the standard library's lock.
//!
//! Code that may be suspended holds that lock while it prints, so threads that see to suspended code must not wait for it.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;

/// Writes the line and its end, whoever holds the standard library's lock. Nobody is left to be told if standard error is closed.
pub fn write_line(line: &str) {
    let Ok(descriptor) = io::stderr().as_fd().try_clone_to_owned() else {
        return;
    };
    let _ = File::from(descriptor).write_all(format!("{line}\n").as_bytes());
}
