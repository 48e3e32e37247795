//! BPF programs written in C. clang compiles them when they are needed, so that no binary is part of the source.
//!
//! | concern | file |
//! |---|---|
//! | from C to an object | [`Compiler`] |
//! | what a machine lacks for such programs | [`missing`] |

mod compiler;
mod support;

pub use compiler::{Compiler, ObjectError};
pub use support::missing;
