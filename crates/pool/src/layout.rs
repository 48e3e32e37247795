//! Who is the dispatcher of a pool.

/// Which thread hears of arrivals and ends, and places jobs at workers: the part of a policy that is its dispatcher. What a worker takes next of what is
/// placed, and whether a running job goes on, is its own question in either layout.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum PoolLayout {
    /// Whoever has an event: a thread that submits, a worker whose job ends. They take turns under the pool's lock.
    #[default]
    Inline,
    /// A thread of its own, beside the workers. Threads that submit leave their event behind and go on. It parks where there is nothing to hear.
    Dedicated,
}

impl PoolLayout {
    /// As a status says it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Inline => "inline",
            Self::Dedicated => "dedicated",
        }
    }
}
