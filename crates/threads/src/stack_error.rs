//! The error of a stack that cannot be mapped.

use std::io;

/// The error where no stack can be mapped. Each takes two mappings, so that the system's limit of them is often the reason.
#[cold]
pub(crate) fn without_stack(source: &io::Error) -> io::Error {
    let what = format!(
        "cannot map a stack for a thread: {source}; lower stack_bytes or raise vm.max_map_count"
    );
    io::Error::new(source.kind(), what)
}
