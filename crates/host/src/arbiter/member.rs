//! The daemon's record of an application. It relies on no unchecked claim of the application.

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
    /// Its entitlement to cores.
    pub shape: AppShape,
    /// The way in which its cores reach it.
    pub work: NewcomerWork,
    /// Its process.
    pub peer: P,
    /// The cores on which its threads ran before, and to which they return when it goes.
    pub home: CpuSet,
}

/// How an application uses cores.
pub enum NewcomerWork {
    /// It has kthreads, which show their queues and obey orders.
    Kthreads {
        /// Their lines.
        lines: SharedLines,
        /// Whether they look at their orders by themselves, so that no signal is needed.
        probes: bool,
        /// Whether they may hold cores already, granted by an earlier daemon.
        resumed: bool,
    },
    /// A program without support for the daemon, which confines all its threads to its cores.
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

impl<P: HostPeer> Member<P> {
    /// Returns its remaining threads to the cores that they ran on before.
    pub(super) fn go_home(&mut self) {
        match &mut self.work {
            MemberWork::Kthreads(book) => go_home(book, &self.peer, &self.home),
            MemberWork::Program(_) => self.peer.let_all_go(&self.home),
        }
    }
}

/// Returns the remaining threads to the cores that they ran on before.
fn go_home(book: &mut KthreadsBook, peer: &impl HostPeer, home: &CpuSet) {
    for kthread in 0..book.kthreads.len() {
        if let Some(tid) = book.kthreads[kthread].tid {
            peer.pin(tid, home);
            if book.kthreads[kthread].demoted {
                peer.demote(tid, false);
            }
        }
    }
}

/// An application's counts.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MemberCounts {
    pub(super) grants: u64,
    pub(super) revocations: u64,
    pub(super) evictions: u64,
    pub(super) wants: u64,
    /// Core time of finished grants, ns.
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
    /// The number of its requests for a core that the daemon has read.
    pub(super) wants: u64,
    /// Cores that it was granted and may not use, as of the last look.
    pub(super) unusable: Vec<usize>,
    /// Whether it ever had one.
    pub(super) had_unusable: bool,
}

/// The daemon's own record of a kthread, since the kthread's lines may hold any value.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct KthreadBook {
    /// The last grant.
    pub(super) grant: Grant,
    /// The thread, once it is known to belong to the process.
    pub(super) tid: Option<u32>,
    /// The core to which the thread is confined.
    pub(super) pinned: Option<usize>,
    /// Whether it may run on idle time only: it was moved to the shared core, perhaps by an earlier arbiter.
    pub(super) demoted: bool,
    /// Its waiting packets by the data plane's count; `None` without a data plane.
    pub(super) packets: Option<Counters>,
}

#[derive(Debug, Default)]
pub(super) struct ProgramBook {
    pub(super) cores: BitSet,
    pub(super) threads: usize,
    /// Whether threads may have been created during a move.
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
            unusable: Vec::new(),
            had_unusable: false,
        }
    }

    /// Learns the threads of an application that another arbiter served, which may have moved some to the idle time of the shared core.
    pub(super) fn resume(&mut self, peer: &impl HostPeer, shared: usize) {
        for kthread in 0..self.kthreads.len() {
            self.thread(KthreadId(kthread as u16), peer, shared);
            self.kthreads[kthread].demoted = true;
        }
    }

    /// The kthread's thread, if its line names a thread of the process. When the line names a new thread, the earlier one is confined
    /// to the `shared` core.
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

    /// The entries of all queues together, capped at a plausible number.
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

    /// The number of threads or entries that wait for a core.
    pub(super) fn waiting(&self) -> u64 {
        match &self.work {
            MemberWork::Kthreads(book) => book.waiting(),
            MemberWork::Program(book) => book.threads.saturating_sub(book.cores.len()) as u64,
        }
    }

    /// Adds `span_ns` of waiting and the CPU time since the last call to the usage.
    pub(super) fn use_up(&mut self, span_ns: u64) {
        let waited_ns = self.waiting().saturating_mul(span_ns);
        let cpu_ns = self.peer.cpu_ns().saturating_sub(self.cpu_at_start_ns);
        let ran_ns = cpu_ns.saturating_sub(self.usage.busy_ns);
        self.usage.busy_ns += ran_ns;
        let runnable_ns = waited_ns.saturating_add(ran_ns);
        self.usage.runnable_ns = self.usage.runnable_ns.saturating_add(runnable_ns);
    }
}

/// The allocator's view of the applications.
pub(super) struct MembersView<'a, P> {
    pub(super) members: &'a [Option<Member<P>>],
    /// The time of the kthreads' timers, ns.
    pub(super) timers_ns: u64,
}

impl<P: HostPeer> HostView for MembersView<'_, P> {
    fn kthread(&self, app: AppId, kthread: KthreadId) -> Kthread {
        match self.members[app.index()]
            .as_ref()
            .map(|member| &member.work)
        {
            Some(MemberWork::Kthreads(book)) => book.look_at(kthread),
            // A program shows no queue. It counts as waiting at every look while it has more threads than cores.
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
            // Only the kthread itself takes a time that it showed back: woken in its place, others would find nothing, and it would be due for ever.
            Some(MemberWork::Kthreads(book)) => (0..book.kthreads.len())
                .filter(|&kthread| {
                    let line = book.lines.line(kthread);
                    let is_due = |at_ns| at_ns <= self.timers_ns;
                    line.is_interrupted() || line.wake_at_ns().is_some_and(is_due)
                })
                .collect(),
            _ => BitSet::EMPTY,
        }
    }

    fn usage(&self, app: AppId) -> Usage {
        let member = self.members[app.index()].as_ref();
        member.map_or(Usage::default(), |member| member.usage)
    }
}
