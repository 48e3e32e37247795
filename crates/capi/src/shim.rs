//! The link to the shim (`shim/`), if the program has it. The server tells it the mechanism of interruption, and it reports unsafe combinations.
#![expect(unsafe_code, reason = "looks up and calls a function of the shim")]

use std::ffi::{CStr, c_char, c_int, c_void};
use std::mem;
use std::ptr;

use crate::status::{CallFailure, HEADWAY_E_START};

unsafe extern "C" {
    fn dlsym(handle: *mut c_void, symbol: *const c_char) -> *mut c_void;
}

type ShimStart = unsafe extern "C" fn(stays: c_int, by_signal: c_int) -> *const c_char;

/// Tells the shim how the server interrupts requests. Fails if an allocator before the shim is unsafe under that mechanism.
pub(crate) fn tell(roams: bool, by_signal: bool) -> Result<(), CallFailure> {
    // SAFETY: looks among all that is loaded (RTLD_DEFAULT is null) for a name that ends with a NUL.
    let found = unsafe { dlsym(ptr::null_mut(), c"__headway_shim_start".as_ptr()) };
    if found.is_null() {
        return Ok(());
    }
    // SAFETY: the symbol has this type (shim/callers.c).
    let why = unsafe {
        let start = mem::transmute::<*mut c_void, ShimStart>(found);
        start(c_int::from(!roams), c_int::from(by_signal))
    };
    if why.is_null() {
        return Ok(());
    }
    // SAFETY: a string of the shim's, which stays.
    let why = unsafe { CStr::from_ptr(why) }.to_string_lossy();
    Err(CallFailure::new(HEADWAY_E_START, why))
}
