//! A thread that looks often while something happens, and rarely otherwise: it must not begin to sleep for long over what just happened.

use crate::atomic::{AtomicBool, Ordering, fence};

/// Whether something happened since the last look, and whether the thread looks often. What happens often is noted by a load; once after each look by a barrier, too.
#[derive(Debug)]
pub struct LookAlert {
    happened: AtomicBool,
    looks_often: AtomicBool,
}

impl Default for LookAlert {
    fn default() -> Self {
        LookAlert {
            happened: AtomicBool::new(false),
            looks_often: AtomicBool::new(true),
        }
    }
}

impl LookAlert {
    /// Notes that something happened. Returns whether the thread looks rarely: then the caller wakes it.
    #[inline]
    #[must_use]
    pub fn note(&self) -> bool {
        !self.happened.load(Ordering::Relaxed) && self.note_first()
    }

    #[cold]
    fn note_first(&self) -> bool {
        // A swap, as in `take`: one of the two comes first, and the other sees it.
        self.happened.swap(true, Ordering::AcqRel);
        // Either this finds that the thread looks rarely, or the thread finds, before it sleeps, that something happened.
        fence(Ordering::SeqCst);
        !self.looks_often.load(Ordering::Relaxed)
    }

    /// Begins a look. Returns whether something happened since the last one.
    pub fn take(&self) -> bool {
        self.happened.swap(false, Ordering::AcqRel)
    }

    /// The thread looks often from now on, or rarely.
    pub fn look_often(&self, often: bool) {
        self.looks_often.store(often, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    /// Whether something happened since the last look began: a thread that looks rarely must not sleep then.
    pub fn must_look(&self) -> bool {
        self.happened.load(Ordering::Relaxed)
    }
}
