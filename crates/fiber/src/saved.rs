//! Where the registers of code lie that waits for a switch back.

/// The registers of a side that waits, on its stack. Written as the switch leaves that side, and read as it comes back.
///
/// The frame pointer lies below the return address, so a walk along frame pointers goes on here.
#[repr(C)]
pub(crate) struct Saved {
    pub(crate) rbp: usize,
    pub(crate) rip: usize,
    pub(crate) rbx: usize,
    pub(crate) rsp: usize,
}
