//! The memory of a stack.

/// Inaccessible bytes below each stack. More than a page, since C code does not touch every page of a large frame.
pub(crate) const GUARD_BYTES: usize = 64 << 10;

/// A stack's mapping, written in the stack's own highest bytes.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct Mapping {
    /// Where the guard begins.
    pub(crate) start: *mut u8,
    /// With the guard.
    pub(crate) bytes: usize,
    /// The [thread](crate::donor::Donor) whose stack it is, by its address; null for a mapping of our own.
    pub(crate) donor: *const (),
}
