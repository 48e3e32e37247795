//! What the daemon's threads say.

use std::io::Write as _;

/// Prints a line, and ignores a closed standard error.
pub(crate) fn say(what: std::fmt::Arguments<'_>) {
    let _ = writeln!(std::io::stderr(), "{what}");
}
