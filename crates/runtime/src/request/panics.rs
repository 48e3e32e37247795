//! Panics of code that is not the server's own: caught whole, payload included.

use std::any::Any;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Code panicked; the panic hook has said why.
#[derive(Debug)]
pub(crate) struct Panicked;

/// Runs the code and stops a panic here. What the code shares with others may be half changed, as behind a poisoned lock.
#[inline]
pub(crate) fn catch<T>(code: impl FnOnce() -> T) -> Result<T, Panicked> {
    catch_unwind(AssertUnwindSafe(code)).map_err(|payload| {
        discard(payload);
        Panicked
    })
}

/// Drops the payload. Its destructor is the user's code and may panic again; the payload of that panic is leaked, so that this ends.
#[cold]
fn discard(payload: Box<dyn Any + Send>) {
    if let Err(again) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        mem::forget(again);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::panic::panic_any;

    use super::*;

    struct Grenade;

    impl Drop for Grenade {
        fn drop(&mut self) {
            panic_any(Grenade);
        }
    }

    #[test]
    fn a_payload_that_panics_when_it_is_dropped_is_caught_as_well() {
        assert!(catch(|| panic_any(Grenade)).is_err());
        assert_eq!(catch(|| 7).unwrap(), 7);
    }
}
