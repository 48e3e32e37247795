//! Requests as policies see them, and the slab their queues are threaded through.

use crate::ClassId;
use alloc::vec::Vec;

/// A request in flight: an index below the job capacity, unique among the live ones. The engine
/// hands it out (in the live server it is the buffer the request lies in).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord)]
pub struct JobId(pub u32);

/// A worker: an index below [`MAX_WORKERS`](crate::server::MAX_WORKERS).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord)]
pub struct WorkerId(pub u16);

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
index!(JobId, WorkerId);

/// A request as a policy sees it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Job {
    /// Its identity while it lives.
    pub id: JobId,
    /// What the classifier said.
    pub class: ClassId,
    /// Connection or flow hash, for steering that keeps a flow on one queue.
    pub flow: u32,
    /// When it reached the server, ns.
    pub arrived_ns: u64,
    /// Its whole service time, ns, where that is known beforehand (a simulation, a client that
    /// says it); 0 where it is not.
    pub size_ns: u64,
    /// Service it received before its last interruption, ns.
    pub attained_ns: u64,
    /// Whether its handler has said that it is long (SYNERGY § 5.1), whatever its class says.
    pub said_long: bool,
}

impl Job {
    /// A request of flow 0 of which nothing else is known.
    #[must_use]
    pub fn new(id: JobId, class: ClassId, arrived_ns: u64) -> Self {
        Self {
            id,
            class,
            flow: 0,
            arrived_ns,
            size_ns: 0,
            attained_ns: 0,
            said_long: false,
        }
    }

    /// Service it still wants, where its size is known; 0 once it had more than that.
    #[inline]
    #[must_use]
    pub fn remaining_ns(&self) -> u64 {
        self.size_ns.saturating_sub(self.attained_ns)
    }
}

const NIL: u32 = u32::MAX;

/// A job and its place, on a cache line of its own.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Node {
    job: Job,
    /// Order of admission, over all queues.
    sequence: u64,
    next: u32,
}

/// The jobs that wait, in a slab sized once; queues are lists threaded through it, so that
/// queueing never allocates.
pub struct Jobs {
    nodes: Vec<Node>,
    admitted: u64,
}

impl Jobs {
    /// Room for job ids below `capacity`.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        let mut jobs = Self {
            nodes: Vec::new(),
            admitted: 0,
        };
        jobs.grow(capacity);
        jobs
    }

    /// Makes room for job ids below `capacity`. Allocates: an engine in virtual time may call it
    /// between events, a live one sizes the slab at the start.
    pub fn grow(&mut self, capacity: usize) {
        let vacant = Node {
            job: Job::new(JobId(NIL), ClassId(0), 0),
            sequence: 0,
            next: NIL,
        };
        if capacity > self.nodes.len() {
            self.nodes.resize(capacity, vacant);
        }
    }

    /// The job behind an id that is or was queued here.
    ///
    /// # Panics
    /// When the id is beyond the capacity.
    #[inline]
    #[must_use]
    pub fn get(&self, id: JobId) -> &Job {
        &self.nodes[id.index()].job
    }

    /// Keeps a job that is not in a [`List`].
    #[inline]
    pub(crate) fn put(&mut self, job: Job) {
        self.nodes[job.id.index()].job = job;
    }
}

/// One first-come-first-served queue through a [`Jobs`] slab.
#[derive(Clone, Debug)]
pub(crate) struct List {
    head: u32,
    tail: u32,
    len: u32,
}

impl List {
    pub(crate) const EMPTY: Self = Self {
        head: NIL,
        tail: NIL,
        len: 0,
    };

    #[inline]
    pub(crate) fn push_back(&mut self, jobs: &mut Jobs, job: Job) {
        let index = job.id.0;
        jobs.nodes[index as usize] = Node {
            job,
            sequence: jobs.admitted,
            next: NIL,
        };
        jobs.admitted += 1;
        // Where the last link is: a choice of address, not a branch.
        let link = match self.tail {
            NIL => &mut self.head,
            tail => &mut jobs.nodes[tail as usize].next,
        };
        *link = index;
        self.tail = index;
        self.len += 1;
    }

    #[inline]
    pub(crate) fn push_front(&mut self, jobs: &mut Jobs, job: Job) {
        let index = job.id.0;
        jobs.nodes[index as usize] = Node {
            job,
            sequence: 0,
            next: self.head,
        };
        self.head = index;
        if self.tail == NIL {
            self.tail = index;
        }
        self.len += 1;
    }

    #[inline]
    pub(crate) fn pop_front<'a>(&mut self, jobs: &'a Jobs) -> Option<&'a Job> {
        let node = self.node(jobs)?;
        self.head = node.next;
        self.tail = if node.next == NIL { NIL } else { self.tail };
        self.len -= 1;
        Some(&node.job)
    }

    #[inline]
    pub(crate) fn front<'a>(&self, jobs: &'a Jobs) -> Option<&'a Job> {
        self.node(jobs).map(|node| &node.job)
    }

    /// When the head was admitted relative to every other job of the slab.
    #[inline]
    pub(crate) fn front_sequence(&self, jobs: &Jobs) -> u64 {
        self.node(jobs).map_or(u64::MAX, |node| node.sequence)
    }

    /// A walk from the head on.
    pub(crate) fn cursor(&self) -> Cursor {
        Cursor { at: self.head }
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.len as usize
    }

    #[inline]
    fn node<'a>(&self, jobs: &'a Jobs) -> Option<&'a Node> {
        (self.head != NIL).then(|| &jobs.nodes[self.head as usize])
    }
}

/// A place in a [`List`] that does not change meanwhile.
pub(crate) struct Cursor {
    at: u32,
}

impl Cursor {
    /// When the job here was admitted relative to every other; the end comes after all.
    pub(crate) fn sequence(&self, jobs: &Jobs) -> u64 {
        jobs.nodes
            .get(self.at as usize)
            .map_or(u64::MAX, |node| node.sequence)
    }

    /// The job here; goes on to the next.
    pub(crate) fn advance<'a>(&mut self, jobs: &'a Jobs) -> Option<&'a Job> {
        let node = jobs.nodes.get(self.at as usize)?;
        self.at = node.next;
        Some(&node.job)
    }
}
