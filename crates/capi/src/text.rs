//! Strings of C programs.
#![expect(unsafe_code, reason = "reads strings of C programs")]

use std::ffi::{CStr, c_char};

use crate::status::CallFailure;

/// The string, `None` if null.
///
/// # Safety
/// `text` is null or points to a string that ends with a NUL and stays as it is for `'a`.
pub(crate) unsafe fn optional<'a>(
    text: *const c_char,
    name: &str,
) -> Result<Option<&'a str>, CallFailure> {
    if text.is_null() {
        return Ok(None);
    }
    // SAFETY: the caller's promise.
    let text = unsafe { CStr::from_ptr(text) };
    let text = text
        .to_str()
        .map_err(|_| CallFailure::argument(format!("{name} is not UTF-8")))?;
    Ok(Some(text))
}
