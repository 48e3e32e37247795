//! Who may touch a job that can be suspended, and can go on in a thread of its own meanwhile: *at home*.
//!
//! A job has a token, which one thread holds. While the job is suspended, a rescuer without the token may send it home; the holder of the token then finds it there.

use crate::atomic::{AtomicU8, Ordering};
use crate::thread;

const TOKEN: u8 = 0;
const NOBODY: u8 = 1;
const RESCUER: u8 = 2;
const HOME: u8 = 3;

/// Who may touch a job: at first the holder of its token.
#[derive(Debug)]
pub struct JobHolder(AtomicU8);

impl Default for JobHolder {
    fn default() -> Self {
        JobHolder(AtomicU8::new(TOKEN))
    }
}

/// What the holder of a job's token finds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FoundJob {
    /// The job is its own.
    Ready,
    /// It was sent home, and is the caller's for a look: whether the turn there is over. If not, the caller calls [`is_home`](JobHolder::is_home) and leaves it alone.
    SentHome,
    /// It is being sent home at this moment, or looked at there. The caller leaves it alone.
    OnItsWay,
}

/// What a rescuer takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TakenJob {
    /// A job that is suspended, and goes home by this.
    Suspended,
    /// One that went home before, for a look: it may have been suspended there.
    SentBefore,
}

impl JobHolder {
    /// The job is suspended, and may go home from now on. Called by the holder of its token.
    #[inline]
    pub fn may_go_home(&self) {
        self.0.store(NOBODY, Ordering::Release);
    }

    /// The job goes on at home. Called by whoever sent it, or looked at it there, last of all.
    #[inline]
    pub fn is_home(&self) {
        self.0.store(HOME, Ordering::Release);
    }

    /// Takes the job up. Called by the holder of its token. It waits while a rescuer has the job, a microsecond.
    #[inline]
    pub fn take_up(&self) -> FoundJob {
        // A job that may not go home never left the token's holder.
        if self.0.load(Ordering::Relaxed) == TOKEN || self.claim(NOBODY, TOKEN) {
            return FoundJob::Ready;
        }
        self.take_up_from_home()
    }

    #[cold]
    fn take_up_from_home(&self) -> FoundJob {
        if self.claim(HOME, TOKEN) {
            return FoundJob::SentHome;
        }
        while self.0.load(Ordering::Acquire) == RESCUER {
            thread::yield_now();
        }
        FoundJob::OnItsWay
    }

    /// Takes a job that may go home, or went. Called by a rescuer, which then calls [`is_home`](Self::is_home).
    pub fn take_to_send(&self) -> Option<TakenJob> {
        let (before, taken) = match self.0.load(Ordering::Relaxed) {
            NOBODY => (NOBODY, TakenJob::Suspended),
            HOME => (HOME, TakenJob::SentBefore),
            _ => return None,
        };
        self.claim(before, RESCUER).then_some(taken)
    }

    /// Whether the job is suspended and may go home, as seen by a thread that has no right to it.
    pub fn is_nobodys(&self) -> bool {
        self.0.load(Ordering::Acquire) == NOBODY
    }

    /// Whether the job went home, likewise.
    pub fn went_home(&self) -> bool {
        self.0.load(Ordering::Relaxed) == HOME
    }

    #[inline(always)]
    fn claim(&self, before: u8, then: u8) -> bool {
        let claimed = self
            .0
            .compare_exchange(before, then, Ordering::Acquire, Ordering::Relaxed);
        claimed.is_ok()
    }
}
