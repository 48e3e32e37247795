//! Structs that begin with their size: a program of an earlier version knows fewer fields, and the rest count as 0.
#![expect(unsafe_code, reason = "reads and writes structs of C programs")]

use std::ffi::c_void;
use std::mem::{MaybeUninit, size_of};
use std::ptr;

use crate::status::CallFailure;

/// A struct of the interface.
///
/// # Safety
/// `repr(C)`, begins with a `usize`, its size; may have all bytes 0. No field lies across a multiple of its alignment.
pub(crate) unsafe trait Versioned {
    /// Its name in C.
    const NAME: &'static str;
}

/// The size that a caller wrote into its struct, if this version supports it.
///
/// # Safety
/// `from` is null or points to a `T` of that size.
unsafe fn size_of_theirs<T: Versioned>(from: *const T) -> Result<usize, CallFailure> {
    let name = T::NAME;
    if from.is_null() {
        return Err(CallFailure::argument(format!("{name} is null")));
    }
    // SAFETY: every version of the struct begins with its size.
    let size = unsafe { from.cast::<usize>().read() };
    if size < size_of::<usize>() {
        return Err(CallFailure::argument(format!(
            "{name}.size is {size}: set it to sizeof(struct {name})"
        )));
    }
    // Every version's fields fill whole words, so another size would cut a field in half.
    if !size.is_multiple_of(align_of::<T>()) {
        return Err(CallFailure::argument(format!(
            "{name}.size is {size}, which no version of the struct has: set it to sizeof(struct {name})"
        )));
    }
    if size > size_of::<T>() {
        return Err(CallFailure::argument(format!(
            "{name} has {size} bytes, this library knows {}: the program was compiled with a later headway.h",
            size_of::<T>()
        )));
    }
    Ok(size)
}

/// A copy of the caller's struct, with 0 in the fields that it lacks.
///
/// # Safety
/// `from` is null or points to as many readable bytes as its first field says.
pub(crate) unsafe fn read<T: Versioned>(from: *const T) -> Result<T, CallFailure> {
    let mut own = MaybeUninit::<T>::zeroed();
    // SAFETY: the caller's promise; ours is at least as large, and may be all 0.
    unsafe {
        let size = size_of_theirs(from)?;
        ptr::copy_nonoverlapping(from.cast::<u8>(), own.as_mut_ptr().cast::<u8>(), size);
        Ok(own.assume_init())
    }
}

/// Writes as much of `own` as the caller's struct has room for; its size stays.
///
/// # Safety
/// `into` is null or points to as many writable bytes as its first field says.
pub(crate) unsafe fn write<T: Versioned>(own: &T, into: *mut T) -> Result<(), CallFailure> {
    // SAFETY: the caller's promise.
    unsafe {
        let size = size_of_theirs(into)?;
        let past_size = size_of::<usize>();
        let from: *const c_void = ptr::from_ref(own).cast();
        ptr::copy_nonoverlapping(
            from.byte_add(past_size).cast::<u8>(),
            into.byte_add(past_size).cast::<u8>(),
            size - past_size,
        );
    }
    Ok(())
}
