//! A kthread's loop between threads: it runs the next, steals, waits for a core.

use headway_fiber::{Attached, LeftStrand};
use headway_machine::thread::fork;
use headway_policy::WorkerId;
use headway_policy::host::Idleness;
use headway_sync::atomic::Ordering;
use headway_sync::hint::spin_loop;

use crate::slices::UthreadSlices;

use crate::head::Uthread;
use crate::kernel::KthreadRunner;

/// The epoch of a kthread's only assignment.
pub(crate) const EPOCH: u64 = 1;

/// A kthread with a core, between two threads of the user.
struct KthreadLoop<'a> {
    kthread: &'a KthreadRunner,
    slices: &'a UthreadSlices<'a>,
    idleness: Idleness,
    searching: bool,
}

/// Runs threads until the runtime ends. The calling thread is the kthread.
pub(crate) fn run_kthread(kthread: &KthreadRunner) {
    fork::is_worker();
    let attached = Attached::new();
    attached.begin(EPOCH);
    let slices = UthreadSlices::new(kthread, &attached);
    slices.watch();
    let mut this = KthreadLoop {
        kthread,
        slices: &slices,
        idleness: Idleness::default(),
        searching: false,
    };
    let source = &kthread.shared().source;
    this.entered(source.enter(kthread.index));
    while !kthread.closing.load(Ordering::Acquire) {
        this.turn();
    }
    this.stop_searching();
    kthread.give_all_free();
    source.exit();
}

impl KthreadLoop<'_> {
    fn turn(&mut self) {
        let kthread = self.kthread;
        if kthread.must_leave() {
            return self.leave();
        }
        kthread.fire_timers(kthread);
        let next = match self.look_for_packets_in_turn() {
            Some(thread) => Some(thread),
            None => kthread.next(),
        };
        if next.is_none() && kthread.own.wants_packets.get() {
            return;
        }
        match next.or_else(|| kthread.steal()) {
            Some(thread) => self.run(thread),
            None if self.poll_packets() => self.idleness.found_work(),
            None => self.wait(),
        }
    }

    /// A regular look for packets, even while threads are ready.
    fn look_for_packets_in_turn(&self) -> Option<Uthread> {
        if !self.kthread.own.wants_packets.replace(false) {
            return None;
        }
        self.poll_packets();
        self.kthread.next_in_turn()
    }

    /// Takes the waiting packets; returns whether there were any.
    fn poll_packets(&self) -> bool {
        let packets = self.kthread.shared().packets.as_ref();
        packets.is_some_and(|packets| packets.poll(self.kthread.index))
    }

    fn run(&mut self, thread: Uthread) {
        self.idleness.found_work();
        // While it searched, new work woke nobody: what it leaves in any queue needs another kthread.
        if self.stop_searching() && self.kthread.shared().has_waiting() {
            self.kthread.shared().notify();
        }
        thread.head().kthread.set((&raw const *self.kthread).cast());
        self.kthread.pass(1);
        self.slices.begin();
        #[expect(unsafe_code, reason = "runs threads of the user")]
        // SAFETY: this is the kernel thread's own code, and the thread came from a queue.
        let left = unsafe { thread.0.run() };
        self.kthread.pass(1);
        if let LeftStrand::Preempted(strand) = left {
            self.kthread.push(Uthread(strand));
        }
    }

    fn wait(&mut self) {
        let shared = self.kthread.shared();
        if !self.searching {
            self.searching = true;
            shared.searching.fetch_add(1, Ordering::AcqRel);
        }
        let now_ns = shared.clock.now_ns();
        let is_daemons = shared.source.is_daemons_core(self.kthread.index);
        let patience = shared.patience.on_core(is_daemons);
        match self.idleness.found_nothing(now_ns, patience) {
            Some(_) => spin_loop(),
            None => self.leave(),
        }
    }

    /// Gives the core back, and waits for the next one.
    fn leave(&mut self) {
        self.stop_searching();
        let kthread = self.kthread;
        kthread.show_next_timer();
        let grant = kthread.own.grant.get();
        let source = &kthread.shared().source;
        let grant = source.leave(kthread.index, grant, &mut || kthread.finds_nothing());
        self.entered(grant);
    }

    fn entered(&mut self, grant: headway_kthread::Grant) {
        self.kthread.own.grant.set(grant);
        self.idleness.found_work();
        let sibling = self.kthread.shared().sibling_of(self.kthread.index);
        let sibling = sibling.map(|index| WorkerId(index as u16));
        self.kthread.own.sibling.set(sibling);
    }

    /// Returns whether it was the last searching kthread.
    fn stop_searching(&mut self) -> bool {
        let searched = std::mem::take(&mut self.searching);
        searched
            && self
                .kthread
                .shared()
                .searching
                .fetch_sub(1, Ordering::AcqRel)
                == 1
    }
}
