//! A handler that overflows its fiber's stack is reported by its class's name, not as a bare segmentation fault.

use std::sync::OnceLock;

use headway_fiber::report_overflows;

/// By class number. A signal handler reads them, so they are never changed: a process' first server with fibers names the classes.
static CLASSES: OnceLock<Box<[String]>> = OnceLock::new();

/// Reports overflows from now on.
pub(crate) fn report(classes: &[String]) {
    CLASSES.get_or_init(|| classes.into());
    // Refused, an overflow is what it is without: a segmentation fault.
    let _ = report_overflows(name);
}

fn name(class: u64) -> Option<&'static str> {
    CLASSES
        .get()?
        .get(usize::try_from(class).ok()?)
        .map(String::as_str)
}
