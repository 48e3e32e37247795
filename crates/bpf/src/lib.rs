//! BPF programs written in C. clang compiles them when they are needed first, so that no binary is part of the source.
//!
//! | concern | file |
//! |---|---|
//! | from C to an object | [`Compiler`] |
//! | objects that were compiled before | [`objects`] |
//! | calls of the kernel's own functions | [`with_kernel_calls`] |
//! | what the kernel keeps beside a packet, in C | [`KERNEL_BUFFER`] |
//! | what a machine lacks for such programs | [`missing`] |

mod cache;
mod compiler;
mod kernel_buffer;
mod kernel_calls;
mod support;

pub use cache::objects;
pub use compiler::{Compiler, ObjectError};
pub use kernel_buffer::{KERNEL_BUFFER, KERNEL_CONTEXT};
pub use kernel_calls::with_kernel_calls;
pub use support::missing;
