//! Room for a command on its stack, where the system gives the first thread less than commands take.

use std::process::ExitCode;
use std::thread;

use nix::sys::resource::{Resource, getrlimit};

/// A few times what commands take: the definition of the command line alone takes between 256 and 512 KiB.
const LEAST_BYTES: u64 = 2 << 20;
/// The stack of a thread for a command: as large as the first one's is by default.
const STACK_BYTES: usize = 8 << 20;

/// Runs a command in this thread, or in one of its own under a limit (`ulimit -s`) that leaves too little room.
pub(crate) fn with_room(command: fn() -> ExitCode) -> ExitCode {
    let limit = getrlimit(Resource::RLIMIT_STACK);
    if limit.is_ok_and(|(bytes, _)| bytes >= LEAST_BYTES) {
        return command();
    }
    let thread = thread::Builder::new()
        .stack_size(STACK_BYTES)
        .spawn(command);
    let ended = match thread {
        Ok(thread) => thread.join(),
        Err(error) => {
            eprintln!(
                "error: the stack may not be larger than {LEAST_BYTES} bytes, and there is no thread with more: {error}; raise the limit (`ulimit -s`)"
            );
            return ExitCode::FAILURE;
        }
    };
    ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}
