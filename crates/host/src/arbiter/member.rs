//! What the daemon knows of an application. It believes none of it because the application says so.

use crate::memory::SharedLines;
use crate::peer::HostPeer;
use crate::topology::mask;
use headway_kthread::Grant;
use headway_policy::BitSet;
use headway_policy::host::{
    AppId, AppKind, AppShape, Counters, HostView, Kthread, KthreadId, Usage,
};
use nix::sched::CpuSet;
use std::sync::atomic::Ordering;

/// An application that wants to be admitted.
pub struct Newcomer<P> {
    /// The number of its registration, never used again.
    pub id: u64,
    /// Its name.
    pub name: String,
    /// What it is entitled to.
    pub shape: AppShape,
    /// How its cores reach it.
    pub work: NewcomerWork,
    /// Its process.
    pub peer: P,
    /// The cores on which its threads ran before, and will when it goes.
    pub home: CpuSet,
}

/// How an application uses cores.
pub enum NewcomerWork {
    /// Kthreads that show their queues and heed orders.
    Kthreads {
        /// Their lines.
        lines: SharedLines,
        /// Whether they look at their orders by themselves, so that no signal is needed.
        probes: bool,
        /// Whether they may hold cores already: the daemon is new, and they are not.
        resumed: bool,
    },
    /// A program that knows nothing: all its threads are confined to its cores.
    Program,
}

/// An application that was admitted.
pub(super) struct Member<P> {
    pub(super) id: u64,
    pub(super) name: String,
    pub(super) shape: AppShape,
    pub(super) work: MemberWork,
    pub(super) peer: P,
    pub(super) home: CpuSet,
    pub(super) usage: Usage,
    pub(super) cpu_at_start_ns: u64,
    pub(super) counts: MemberCounts,
}

/// What happened to an application.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MemberCounts {
    pub(super) grants: u64,
    pub(super) revocations: u64,
    pub(super) evictions: u64,
    pub(super) wants: u64,
    /// Time of cores that it had and gave back, ns.
    pub(super) core_ns: u64,
}

pub(super) enum MemberWork {
    Kthreads(KthreadsBook),
    Program(ProgramBook),
}

pub(super) struct KthreadsBook {
    pub(super) lines: SharedLines,
    pub(super) probes: bool,
    pub(super) kthreads: Vec<KthreadBook>,
    /// How many of its wants were heard.
    pub(super) wants: u64,
}

/// What the daemon keeps of a kthread, since its lines may say anything.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct KthreadBook {
    /// The last grant.
    pub(super) grant: Grant,
    /// The thread, once it is known to belong to the process.
    pub(super) tid: Option<u32>,
    /// The core to which the thread is confined.
    pub(super) pinned: Option<usize>,
    /// It was moved to the shared core, with what nobody else wants of it.
    pub(super) demoted: bool,
    /// Packets before it, as the data plane counts them, where it has one.
    pub(super) packets: Option<Counters>,
}

#[derive(Debug, Default)]
pub(super) struct ProgramBook {
    pub(super) cores: BitSet,
    pub(super) threads: usize,
    /// Threads may have been made while the others were moved.
    pub(super) moved: bool,
    pub(super) looked_ns: u64,
}

impl KthreadsBook {
    pub(super) fn new(lines: SharedLines, probes: bool) -> Self {
        let kthreads = vec![KthreadBook::default(); lines.kthreads()];
        Self {
            lines,
            probes,
            kthreads,
            wants: 0,
        }
    }

    /// The kthread's thread, if what its line says is a thread of the process. One that it was before, and that has another's core, is
    /// confined to the `shared` one.
    pub(super) fn thread(
        &mut self,
        kthread: KthreadId,
        peer: &impl HostPeer,
        shared: usize,
    ) -> Option<u32> {
        let said = self.lines.line(kthread.index()).tid();
        let book = &mut self.kthreads[kthread.index()];
        if said != book.tid {
            if let Some(before) = book.tid {
                peer.pin(before, &mask([shared]));
            }
            book.tid = said.filter(|&tid| peer.owns(tid));
            book.pinned = None;
        }
        book.tid
    }

    /// Whether the kthread has left the core that it was granted last.
    pub(super) fn has_left(&self, kthread: KthreadId) -> bool {
        self.lines.line(kthread.index()).left() >= self.kthreads[kthread.index()].grant
    }

    fn look_at(&self, kthread: KthreadId) -> Kthread {
        let line = self.lines.line(kthread.index());
        let interrupted = u64::from(line.is_interrupted());
        Kthread {
            run: Counters {
                head: line.run_head.load(Ordering::Relaxed),
                tail: line
                    .run_tail
                    .load(Ordering::Relaxed)
                    .wrapping_add(interrupted),
            },
            ingress: self.kthreads[kthread.index()].packets.unwrap_or(Counters {
                head: line.ingress_head.load(Ordering::Relaxed),
                tail: line.ingress_tail.load(Ordering::Relaxed),
            }),
        }
    }

    fn shared(&self) -> Counters {
        let line = self.lines.app();
        Counters {
            head: line.shared_head.load(Ordering::Relaxed),
            tail: line.shared_tail.load(Ordering::Relaxed),
        }
    }

    /// What waits in all queues together, as far as it can be believed.
    pub(super) fn waiting(&self) -> u64 {
        /// More than any queue holds.
        const MOST: u64 = 1 << 20;
        let waits = |queue: Counters| queue.tail.saturating_sub(queue.head).min(MOST);
        let kthreads = (0..self.kthreads.len()).map(|kthread| {
            let seen = self.look_at(KthreadId(kthread as u16));
            waits(seen.run) + waits(seen.ingress)
        });
        kthreads.sum::<u64>() + waits(self.shared())
    }
}

impl<P: HostPeer> Member<P> {
    pub(super) fn is_batch(&self) -> bool {
        self.shape.kind == AppKind::Batch
    }

    /// Threads, or entries, that could run and wait for a core.
    pub(super) fn waiting(&self) -> u64 {
        match &self.work {
            MemberWork::Kthreads(book) => book.waiting(),
            MemberWork::Program(book) => book.threads.saturating_sub(book.cores.len()) as u64,
        }
    }

    /// Adds what the application did for `span_ns` with so much waiting.
    pub(super) fn use_up(&mut self, span_ns: u64) {
        let waited_ns = self.waiting().saturating_mul(span_ns);
        let cpu_ns = self.peer.cpu_ns().saturating_sub(self.cpu_at_start_ns);
        let ran_ns = cpu_ns.saturating_sub(self.usage.busy_ns);
        self.usage.busy_ns += ran_ns;
        let runnable_ns = waited_ns.saturating_add(ran_ns);
        self.usage.runnable_ns = self.usage.runnable_ns.saturating_add(runnable_ns);
    }
}

/// The applications as the allocator sees them.
pub(super) struct MembersView<'a, P> {
    pub(super) members: &'a [Option<Member<P>>],
}

impl<P: HostPeer> HostView for MembersView<'_, P> {
    fn kthread(&self, app: AppId, kthread: KthreadId) -> Kthread {
        match self.members[app.index()]
            .as_ref()
            .map(|member| &member.work)
        {
            Some(MemberWork::Kthreads(book)) => book.look_at(kthread),
            // A program shows no queue: something waits at any two looks while it has more threads than cores.
            Some(MemberWork::Program(book)) => {
                let waits = book.threads > book.cores.len();
                let run = Counters {
                    head: u64::from(!waits),
                    tail: 1,
                };
                Kthread {
                    run,
                    ..Kthread::default()
                }
            }
            None => Kthread::default(),
        }
    }

    fn shared(&self, app: AppId) -> Counters {
        match self.members[app.index()]
            .as_ref()
            .map(|member| &member.work)
        {
            Some(MemberWork::Kthreads(book)) => book.shared(),
            _ => Counters::default(),
        }
    }

    fn interrupted(&self, app: AppId) -> BitSet {
        match self.members[app.index()]
            .as_ref()
            .map(|member| &member.work)
        {
            Some(MemberWork::Kthreads(book)) => (0..book.kthreads.len())
                .filter(|&kthread| book.lines.line(kthread).is_interrupted())
                .collect(),
            _ => BitSet::EMPTY,
        }
    }

    fn usage(&self, app: AppId) -> Usage {
        let member = self.members[app.index()].as_ref();
        member.map_or(Usage::default(), |member| member.usage)
    }
}
