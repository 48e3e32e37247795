//! Padding against false sharing.

/// A value on cache lines of its own: 128 bytes, since x86 prefetches lines in pairs.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Padded<T>(
    /// The value.
    pub T,
);

impl<T> std::ops::Deref for Padded<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.0
    }
}
