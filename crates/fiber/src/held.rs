//! Requests to yield that met a no-preempt section: the time of their arrival, and the kind of section that delayed them.

use std::cell::Cell;

/// The kind of section that keeps a job from yielding.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(u32)]
pub enum Section {
    /// A [`NoPreempt`](crate::NoPreempt) section, or one of C's by name; also one that was open to the end of the job.
    #[default]
    NoPreempt = 0,
    /// A mutex of POSIX threads, by the shim.
    Mutex = 1,
    /// A readers-writer lock of POSIX threads, by the shim.
    RwLock = 2,
    /// An allocator: the shim's, or [`NoPreemptAlloc`](crate::NoPreemptAlloc).
    Allocator = 3,
    /// Another lock or initialisation, by the shim: a spin lock, `pthread_once`, a static variable of C++.
    Other = 4,
}

impl Section {
    /// Every kind, in the order of their numbers.
    pub const ALL: [Self; 5] = [
        Self::NoPreempt,
        Self::Mutex,
        Self::RwLock,
        Self::Allocator,
        Self::Other,
    ];

    /// Its name, for reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::NoPreempt => "no_preempt",
            Self::Mutex => "mutex",
            Self::RwLock => "rwlock",
            Self::Allocator => "allocator",
            Self::Other => "other",
        }
    }

    /// The kind with this number, as C code passes it.
    pub(crate) fn of(number: u32) -> Self {
        let known = Self::ALL.get(number as usize);
        known.copied().unwrap_or(Self::Other)
    }
}

/// A request to yield that could not be granted at once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Held {
    /// When the first probe met it in a section: a reading of the time-stamp counter, or of the clock that the thread was
    /// [given](crate::Attached::set_clock).
    pub since_tsc: u64,
    /// The last section whose end the request waited for.
    pub section: Section,
}

/// A fiber's record of a held request. All of it is written on cold paths only.
#[derive(Default)]
pub(crate) struct HeldNote {
    since_tsc: Cell<u64>,
    section: Cell<Section>,
}

impl HeldNote {
    /// Records that a probe met a request to yield in a section.
    #[cold]
    pub(crate) fn met(&self, is_held: &Cell<bool>, now_tsc: u64) {
        if !is_held.replace(true) {
            self.since_tsc.set(now_tsc);
            self.section.set(Section::default());
        }
    }

    /// Records the end of a section for which a request waited.
    pub(crate) fn ended(&self, section: Section) {
        self.section.set(section);
    }

    /// Copies the record of a fiber within this one.
    #[cold]
    pub(crate) fn set(&self, held: Held) {
        self.since_tsc.set(held.since_tsc);
        self.section.set(held.section);
    }

    /// The recorded request.
    #[cold]
    pub(crate) fn get(&self) -> Held {
        Held {
            since_tsc: self.since_tsc.get(),
            section: self.section.get(),
        }
    }
}
