//! C++ exceptions: in binaries that `make soak` builds, which links `throws.cc`.

/// Whether this binary has them.
pub(crate) const LINKED: bool = cfg!(headway_cxx);

/// Throws and catches in C++, and calls `meanwhile` six times with exceptions in flight. In between it is not interrupted.
///
/// # Panics
/// An exception was not found again.
#[cfg(headway_cxx)]
pub(crate) fn throws(id: u64, mut meanwhile: &mut dyn FnMut()) {
    use std::ffi::c_void;

    use headway_fiber::{shield, unshield};

    type Meanwhile<'a> = &'a mut dyn FnMut();

    unsafe extern "C" {
        fn headway_test_throws(
            id: u64,
            meanwhile: extern "C" fn(*mut c_void),
            with: *mut c_void,
            hold: extern "C" fn(),
            release: extern "C" fn(),
        ) -> i32;
    }

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

    // SAFETY: the types that C++ gives them; the reference lives until it returns.
    let right = unsafe {
        let with: *mut Meanwhile<'_> = &raw mut meanwhile;
        headway_test_throws(id, call, with.cast(), hold, release)
    };
    assert!(right == 1, "an exception of C++'s was lost");
}

#[cfg(not(headway_cxx))]
pub(crate) fn throws(_: u64, _: &mut dyn FnMut()) {
    unreachable!("not linked");
}
