//! C++ exceptions: `make soak` compiles `throws.cc` to a library and preloads it. Fibers keep the state of exceptions where the program has found
//! its functions at its start, so the library cannot come later.

use std::ffi::c_void;
use std::sync::OnceLock;

use headway_fiber::{shield, unshield};

type Meanwhile<'a> = &'a mut dyn FnMut();

type Throws = unsafe extern "C" fn(
    id: u64,
    meanwhile: extern "C" fn(*mut c_void),
    with: *mut c_void,
    hold: extern "C" fn(),
    release: extern "C" fn(),
) -> i32;

/// Whether the library is preloaded. The first call looks for it, so it must come before any code that is interrupted.
pub(crate) fn loaded() -> bool {
    library().is_some()
}

fn library() -> Option<Throws> {
    static THROWS: OnceLock<Option<Throws>> = OnceLock::new();
    *THROWS.get_or_init(|| {
        // SAFETY: the name ends in a zero byte.
        let throws = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"headway_test_throws".as_ptr()) };
        // SAFETY: throws.cc gives the function this type, and a preloaded library stays.
        (!throws.is_null()).then(|| unsafe { std::mem::transmute::<*mut c_void, Throws>(throws) })
    })
}

/// Throws and catches in C++, and calls `meanwhile` six times with exceptions in flight. In between it is not interrupted.
///
/// # Panics
/// An exception was not found again, or the library is not preloaded.
pub(crate) fn throws(id: u64, mut meanwhile: &mut dyn FnMut()) {
    extern "C" fn call(with: *mut c_void) {
        // SAFETY: what is passed below.
        unsafe { (*with.cast::<Meanwhile<'_>>())() };
    }

    extern "C" fn hold() {
        shield();
    }

    extern "C" fn release() {
        unshield();
    }

    let throws = library().expect("the caller has asked for it");
    let with: *mut Meanwhile<'_> = &raw mut meanwhile;
    // SAFETY: the reference lives until it returns.
    let right = unsafe { throws(id, call, with.cast(), hold, release) };
    assert!(right == 1, "an exception of C++'s was lost");
}
