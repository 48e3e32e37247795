//! What the daemon's threads say.

use headway_machine::stderr;

/// Prints a line, and goes on where standard error is closed or full.
pub(crate) fn say(what: std::fmt::Arguments<'_>) {
    stderr::write_line(&what.to_string());
}

/// Prints a line from a thread of its own: the pass thread waits for nobody who reads standard error.
pub(super) fn say_aside(what: String) {
    // Without a thread nobody is told here; the status says it too.
    let _ = std::thread::Builder::new().spawn(move || stderr::write_line(&what));
}
