//! How the threads of a pool run jobs.

use std::io;
use std::sync::Arc;

use headway_fiber::Stacks;

/// How a pool's threads run jobs.
#[derive(Clone)]
pub(crate) enum SliceSettings {
    /// On the thread's stack, to the end.
    ToTheEnd,
    /// On fibers with these stacks.
    PlainFibers(Arc<Stacks>),
}

impl SliceSettings {
    /// Fibers with stacks of so many bytes.
    ///
    /// # Errors
    /// The system has no memory for one.
    pub(crate) fn plain_fibers(stack_bytes: usize) -> io::Result<Self> {
        Ok(Self::PlainFibers(Arc::new(Stacks::new(stack_bytes, 0)?)))
    }

    pub(crate) fn interrupt(&self) -> bool {
        matches!(self, Self::PlainFibers(_))
    }
}
