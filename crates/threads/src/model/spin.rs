//! The lock around a few instructions, for loom, which explores a lock that spins without end.

#[derive(Debug, Default)]
pub(crate) struct SpinLock<T>(loom::sync::Mutex<T>);

impl<T> SpinLock<T> {
    pub(crate) fn with<R>(&self, access: impl FnOnce(&mut T) -> R) -> R {
        access(&mut self.0.lock().unwrap())
    }
}
