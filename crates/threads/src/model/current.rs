//! The thread for which the calling thread of loom stands.

use std::cell::Cell;

loom::thread_local! {
    static CURRENT: Cell<Option<usize>> = Cell::new(None);
}

/// The thread, as a word.
pub(crate) fn word() -> Option<usize> {
    CURRENT.with(Cell::get)
}

pub(crate) fn set(word: Option<usize>) {
    CURRENT.with(|current| current.set(word));
}
