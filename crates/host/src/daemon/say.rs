//! What the daemon's threads say.

use headway_machine::stderr;

/// Prints a line, and goes on where standard error is closed or full.
pub(crate) fn say(what: std::fmt::Arguments<'_>) {
    stderr::write_line(&what.to_string());
}
