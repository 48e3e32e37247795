//! Indices of applications, cores and kernel threads.

/// An application: its position in [`HostShape::apps`](super::HostShape::apps).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord)]
pub struct AppId(pub u16);

/// A logical core (a hyper-thread where the machine has them): an index below [`MAX_CORES`](super::MAX_CORES).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord)]
pub struct CoreId(pub u16);

/// A kernel thread of an application, which runs on whatever core the application is given: an index
/// below its [`AppShape::most`](super::AppShape::most).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord)]
pub struct KthreadId(pub u16);

macro_rules! index {
    ($($id:ident),*) => {$(
        impl $id {
            /// As an index.
            #[inline]
            #[must_use]
            pub fn index(self) -> usize {
                self.0 as usize
            }
        }
    )*};
}
index!(AppId, CoreId, KthreadId);
