//! A kthread with its queues and its choice of the next thread; and the runtime that its kthreads share.
#![expect(
    unsafe_code,
    reason = "words of a run queue that are threads, fibers that are destroyed when nothing has them"
)]

use std::cell::{Cell, UnsafeCell};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use headway_fiber::{NoPreempt, Stack, Stacks};
use headway_kthread::{CoreSource, Grant, KthreadLine, OrderLine};
use headway_machine::Clock;
use headway_policy::host::Patience;
use headway_policy::server::locals::{StealAmount, victims};
use headway_policy::{Rng, WorkerId};
use headway_sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use headway_sync::barrier::AsymmetricBarrier;
use headway_sync::run_queue::RunQueueMemory;

use crate::head::{Uthread, UthreadHead, UthreadList, join};
use crate::packets::PacketPoll;
use crate::reads::ReadSections;
use crate::siblings::siblings;
use crate::spin::SpinLock;
use crate::stack_error::without_stack;
use crate::timers::Timers;

/// A kernel thread of the runtime. Only that thread touches [`KthreadOwn`], in no-preempt sections; all kthreads touch the rest.
#[repr(align(128))]
pub(crate) struct KthreadRunner {
    pub(crate) index: usize,
    pub(crate) shared: *const RuntimeShared,
    pub(crate) line: *const KthreadLine,
    pub(crate) orders: *const OrderLine,
    /// The words of its run queue, whose counters are in the line.
    words: Box<[AtomicU64; PLACES]>,
    /// Threads for which the run queue had no room.
    overflow: WaitingThreads,
    /// Threads that only this kthread may run.
    bound: WaitingThreads,
    pub(crate) timers: Timers,
    /// A counter of scheduling points, odd while a thread of the user runs.
    pub(crate) passes: AtomicU64,
    /// Reads of read-mostly cells by the thread that runs.
    pub(crate) reads: ReadSections,
    /// Whether the runtime ends.
    pub(crate) closing: AtomicBool,
    /// Whether other kthreads steal.
    steals: bool,
    pub(crate) own: KthreadOwn,
}

// SAFETY: the pointers are to memory that the runtime owns; `own` is the owner's.
unsafe impl Sync for KthreadRunner {}
// SAFETY: as above.
unsafe impl Send for KthreadRunner {}

/// The part that belongs to the kernel thread alone.
pub(crate) struct KthreadOwn {
    pub(crate) grant: Cell<Grant>,
    /// Counts scheduling points for the work of every sixty-fourth.
    turn: Cell<u32>,
    /// Whether the kthread's loop looks for packets before it runs the next thread.
    pub(crate) wants_packets: Cell<bool>,
    /// Free fibers, the last used last.
    free: UnsafeCell<Vec<Uthread>>,
    rng: UnsafeCell<Rng>,
    /// Threads that only this kthread may run, in whatever list they wait.
    pub(crate) bound_threads: Cell<usize>,
    /// The kthread on the hyper-thread sibling of this one's core.
    pub(crate) sibling: Cell<Option<WorkerId>>,
}

/// A list with its length.
#[derive(Default)]
pub(crate) struct WaitingThreads {
    length: AtomicUsize,
    list: SpinLock<UthreadList>,
}

impl WaitingThreads {
    pub(crate) fn push(&self, thread: Uthread) {
        self.list.with(|list| {
            list.push(thread);
            self.length.fetch_add(1, Ordering::Relaxed);
        });
    }

    pub(crate) fn pop(&self) -> Option<Uthread> {
        if self.is_empty() {
            return None;
        }
        self.list.with(|list| {
            let thread = list.pop()?;
            self.length.fetch_sub(1, Ordering::Relaxed);
            Some(thread)
        })
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.length.load(Ordering::Relaxed) == 0
    }
}

/// The places of a run queue: enough that few threads go through the overflow list, few enough to stay in the first-level cache.
const PLACES: usize = 256;

/// The scheduling points between two looks at a kthread's other queues and timers.
const TURNS: u32 = 64;

/// The longest sleep of a kthread while a waiting thread is bound to it.
const BOUND_LOOK_NS: u64 = 1_000_000;

/// The fibers that move between a kthread and its runtime at a time.
const FREE_BATCH: usize = 16;

impl KthreadRunner {
    pub(crate) fn new(index: usize, shared: &RuntimeShared) -> KthreadRunner {
        let line = shared.source.line(index);
        let head = line.run_head.load(Ordering::Relaxed);
        line.run_tail.store(head, Ordering::Relaxed);
        KthreadRunner {
            index,
            shared,
            line,
            orders: shared.source.orders(index),
            words: Box::new(std::array::from_fn(|_| AtomicU64::new(0))),
            overflow: WaitingThreads::default(),
            bound: WaitingThreads::default(),
            timers: Timers::default(),
            passes: AtomicU64::new(0),
            reads: ReadSections::default(),
            closing: AtomicBool::new(false),
            steals: shared.source.kthreads() > 1,
            own: KthreadOwn {
                grant: Cell::new(Grant(0)),
                turn: Cell::new(0),
                wants_packets: Cell::new(false),
                free: UnsafeCell::new(Vec::with_capacity(2 * FREE_BATCH + 1)),
                rng: UnsafeCell::new(Rng::new(index as u64)),
                bound_threads: Cell::new(0),
                sibling: Cell::new(None),
            },
        }
    }

    #[inline(always)]
    pub(crate) fn shared(&self) -> &RuntimeShared {
        // SAFETY: a runtime outlives its kthreads.
        unsafe { &*self.shared }
    }

    #[inline(always)]
    fn line(&self) -> &KthreadLine {
        // SAFETY: as above.
        unsafe { &*self.line }
    }

    #[inline(always)]
    fn queue(&self) -> RunQueueMemory<'_> {
        let line = self.line();
        RunQueueMemory {
            words: &*self.words,
            head: &line.run_head,
            tail: &line.run_tail,
        }
    }

    /// Whether the kthread must give its core back, or end.
    #[inline(always)]
    pub(crate) fn must_leave(&self) -> bool {
        // SAFETY: the line is the source's, which the runtime owns.
        let orders = unsafe { &*self.orders };
        orders.is_revoked(self.own.grant.get()) || self.closing.load(Ordering::Relaxed)
    }

    /// Counts a scheduling point.
    #[inline(always)]
    pub(crate) fn pass(&self, by: u64) {
        let passes = self.passes.load(Ordering::Relaxed);
        self.passes.store(passes + by, Ordering::Release);
    }

    /// Puts a thread that is ready at the end of the run queue. For the kthread itself, in a no-preempt section.
    #[inline(always)]
    pub(crate) fn push(&self, thread: Uthread) {
        let is_bound = thread.head().bound.get() != 0;
        if is_bound || self.queue().push(thread.word() as u64).is_err() {
            self.push_beside_the_queue(thread);
        }
        if self.steals {
            self.shared().notify();
        }
    }

    #[cold]
    fn push_beside_the_queue(&self, thread: Uthread) {
        match thread.head().bound.get() {
            0 => self.overflow.push(thread),
            bound => self.shared().kthreads()[bound - 1].bound.push(thread),
        }
    }

    /// Puts a thread that only this kthread may run into its queue, from outside.
    pub(crate) fn push_bound(&self, thread: Uthread) {
        self.bound.push(thread);
    }

    /// The thread that runs next. `None`: the kthread's own loop decides. For the kthread itself, in a no-preempt section.
    #[inline(always)]
    pub(crate) fn next(&self) -> Option<Uthread> {
        if self.must_leave() {
            return None;
        }
        let turn = self.own.turn.get().wrapping_add(1);
        self.own.turn.set(turn);
        if turn.is_multiple_of(TURNS) {
            if self.shared().packets.is_some() {
                // The kthread's loop takes them, on its own stack.
                self.own.wants_packets.set(true);
                return None;
            }
            if let Some(thread) = self.next_in_turn() {
                return Some(thread);
            }
        }
        self.pop().or_else(|| self.next_beside_the_queue())
    }

    #[inline(always)]
    fn pop(&self) -> Option<Uthread> {
        let word = self.queue().pop(self.steals)?;
        // SAFETY: `push` put it there.
        Some(unsafe { Uthread::from_word(word as usize) })
    }

    /// Gives the timers and the queues beside the run queue their turn.
    #[cold]
    pub(crate) fn next_in_turn(&self) -> Option<Uthread> {
        self.fire_timers(self);
        self.next_beside_the_queue()
    }

    #[cold]
    fn next_beside_the_queue(&self) -> Option<Uthread> {
        self.bound
            .pop()
            .or_else(|| self.overflow.pop())
            .or_else(|| self.shared().take_injected())
    }

    /// Fires the due timers of a kthread: this one, or another that is busy or sleeps. It makes their threads ready.
    pub(crate) fn fire_timers(&self, whose: &KthreadRunner) {
        if whose.timers.next_due_ns() == u64::MAX {
            return;
        }
        let now_ns = self.shared().clock.now_ns();
        while let Some(thread) = whose.timers.pop_due(now_ns) {
            self.push(thread);
        }
    }

    /// Steals a thread of another kthread. It may move more of them into its own queue.
    pub(crate) fn steal(&self) -> Option<Uthread> {
        let kthreads = self.shared().kthreads();
        // SAFETY: only this kernel thread uses it, and not while this reference lives.
        let first = unsafe { (*self.own.rng.get()).below(kthreads.len()) };
        let me = WorkerId(self.index as u16);
        for victim in victims(me, kthreads.len(), self.own.sibling.get(), first) {
            let victim = &kthreads[victim.index()];
            if let Some(thread) = self.steal_from(victim) {
                return Some(thread);
            }
        }
        None
    }

    fn steal_from(&self, victim: &KthreadRunner) -> Option<Uthread> {
        self.fire_timers(victim);
        let waiting = victim.queue().len();
        if waiting > 0 {
            let most = StealAmount::Half.of(waiting);
            victim.queue().steal(most, self.queue());
        }
        self.pop().or_else(|| victim.overflow.pop())
    }

    /// Whether no queue has a thread or packet for this kthread.
    pub(crate) fn finds_nothing(&self) -> bool {
        let shared = self.shared();
        let now_ns = shared.clock.now_ns();
        let nothing_at = |kthread: &KthreadRunner| {
            kthread.queue().is_empty()
                && kthread.overflow.is_empty()
                && kthread.timers.next_due_ns() > now_ns
        };
        !self.closing.load(Ordering::Acquire)
            && self.bound.is_empty()
            && shared.injected.is_empty()
            && !shared
                .packets
                .as_ref()
                .is_some_and(|packets| packets.has_packet())
            && shared.kthreads().iter().all(nothing_at)
    }

    /// Tells the source the latest time at which it must wake this kthread.
    pub(crate) fn show_next_timer(&self) {
        let now_ns = self.shared().clock.now_ns();
        let mut due_ns = self.timers.next_due_ns();
        if self.own.bound_threads.get() > 0 {
            // Another kthread makes a bound thread ready without waking this one.
            due_ns = due_ns.min(now_ns + BOUND_LOOK_NS);
        }
        if let Some(in_ns) = self
            .shared()
            .packets
            .as_ref()
            .and_then(|one| one.due_in_ns())
        {
            due_ns = due_ns.min(now_ns.saturating_add(in_ns));
        }
        let at_ns =
            (due_ns != u64::MAX).then(|| headway_kthread::now_ns() + due_ns.saturating_sub(now_ns));
        self.line().set_wake_at_ns(at_ns);
    }

    /// Whether this kthread has more work: waiting threads, bound threads or due timers.
    pub(crate) fn keeps_waiting(&self) -> bool {
        let shared = self.shared();
        let due_ns = self.timers.next_due_ns();
        self.has_waiting()
            || !self.bound.is_empty()
            || !shared.injected.is_empty()
            || due_ns != u64::MAX && due_ns <= shared.clock.now_ns()
    }

    /// Whether threads wait in its own queue.
    pub(crate) fn has_waiting(&self) -> bool {
        !self.queue().is_empty() || !self.overflow.is_empty()
    }

    /// Takes a free fiber. For the kthread itself, in a no-preempt section.
    #[inline(always)]
    pub(crate) fn take_free(&self) -> io::Result<Uthread> {
        // SAFETY: only this kernel thread uses it, and not while this reference lives.
        match unsafe { (*self.own.free.get()).pop() } {
            Some(thread) => Ok(thread),
            None => self.refill(),
        }
    }

    #[cold]
    fn refill(&self) -> io::Result<Uthread> {
        // SAFETY: as above.
        self.shared()
            .take_free(FREE_BATCH, unsafe { &mut *self.own.free.get() })
    }

    /// Keeps a fiber whose thread has ended. It may be the running one, since only this kthread reuses it, after the thread has left the stack. For
    /// the kthread itself, in a no-preempt section.
    #[inline(always)]
    pub(crate) fn give_free(&self, thread: Uthread) {
        // SAFETY: as above.
        let free = unsafe { &mut *self.own.free.get() };
        if free.len() == 2 * FREE_BATCH {
            self.shared().give_free(free.drain(..FREE_BATCH));
        }
        free.push(thread);
    }

    /// Returns all free fibers to the runtime.
    pub(crate) fn give_all_free(&self) {
        // SAFETY: as above.
        let free = unsafe { &mut *self.own.free.get() };
        self.shared().give_free(free.drain(..));
    }
}

/// A runtime. It lives as long as a kthread of it, a thread, or a handle of one.
pub(crate) struct RuntimeShared {
    pub(crate) source: Arc<dyn CoreSource>,
    /// The stack whose packets the kthreads take, if there is one.
    pub(crate) packets: Option<Arc<dyn PacketPoll>>,
    pub(crate) clock: Clock,
    /// The barrier between queueing a thread and checking for sleeping kthreads.
    barrier: AsymmetricBarrier,
    pub(crate) patience: Patience,
    /// The slice: the time a thread runs before its kthread checks whether it must yield, in ticks of the clock.
    pub(crate) slice_ticks: u64,
    /// Threads that were made ready from outside the kthreads.
    pub(crate) injected: WaitingThreads,
    /// The number of kthreads that look for work. While it is above 0, new work wakes no other.
    pub(crate) searching: AtomicUsize,
    kthreads: OnceLock<Box<[KthreadRunner]>>,
    /// The hyper-thread sibling of each core.
    siblings: Vec<Option<usize>>,
    stacks: Stacks,
    fibers: Mutex<RuntimeFibers>,
}

/// All fibers of a runtime.
#[derive(Default)]
struct RuntimeFibers {
    all: Vec<Uthread>,
    /// The free ones that no kthread keeps.
    free: Vec<Uthread>,
    closed: bool,
    /// After the runtime ended: the fibers that threads or their handles still have.
    outlived: usize,
}

// SAFETY: a thread may be resumed and destroyed anywhere.
unsafe impl Send for RuntimeShared {}
// SAFETY: as above; the rest is locked or atomic.
unsafe impl Sync for RuntimeShared {}

impl RuntimeShared {
    pub(crate) fn new(
        source: Arc<dyn CoreSource>,
        patience: Patience,
        slice: Duration,
        stack_bytes: usize,
        packets: Option<Arc<dyn PacketPoll>>,
    ) -> io::Result<Arc<RuntimeShared>> {
        let clock = Clock::global();
        let slice_ns = u64::try_from(slice.as_nanos()).unwrap_or(u64::MAX);
        let shared = Arc::new(RuntimeShared {
            slice_ticks: clock.ticks_in(slice_ns),
            clock,
            barrier: AsymmetricBarrier::new(),
            patience,
            injected: WaitingThreads::default(),
            searching: AtomicUsize::new(0),
            kthreads: OnceLock::new(),
            siblings: siblings(),
            stacks: Stacks::new(stack_bytes, 0)?,
            fibers: Mutex::default(),
            source,
            packets,
        });
        let kthreads =
            (0..shared.source.kthreads()).map(|index| KthreadRunner::new(index, &shared));
        let kthreads = kthreads.collect();
        shared.kthreads.get_or_init(|| kthreads);
        running().push(Arc::clone(&shared));
        Ok(shared)
    }

    #[inline(always)]
    pub(crate) fn kthreads(&self) -> &[KthreadRunner] {
        self.kthreads.get().map_or(&[], |kthreads| kthreads)
    }

    /// The kthread that has the hyper-thread sibling of this one's core.
    pub(crate) fn sibling_of(&self, kthread: usize) -> Option<usize> {
        let core = self.source.orders(kthread).core() as usize;
        let sibling = self.siblings.get(core).copied().flatten()?;
        let has_it = |&other: &usize| self.source.orders(other).core() as usize == sibling;
        (0..self.kthreads().len()).find(has_it)
    }

    /// Whether a thread that any kthread may run waits in a queue.
    pub(crate) fn has_waiting(&self) -> bool {
        !self.injected.is_empty() || self.kthreads().iter().any(KthreadRunner::has_waiting)
    }

    /// Wakes a kthread for a thread that became ready, unless one looks for work already.
    #[inline]
    pub(crate) fn notify(&self) {
        self.barrier.light();
        if self.searching.load(Ordering::Relaxed) == 0 {
            self.source.notify();
        }
    }

    /// Makes a thread ready from outside of the kthreads.
    pub(crate) fn inject(&self, thread: Uthread) {
        match thread.head().bound.get() {
            0 => {
                // Counted first, so that the arbiter never sees more threads taken than put.
                self.source.put(1);
                self.injected.push(thread);
            }
            bound => self.kthreads()[bound - 1].push_bound(thread),
        }
        self.notify();
    }

    /// Takes a thread that was made ready from outside.
    fn take_injected(&self) -> Option<Uthread> {
        self.injected.pop().inspect(|_| self.source.took(1))
    }

    /// Takes a free fiber, and moves up to `more` others into the kthread's own list.
    pub(crate) fn take_free(&self, more: usize, own: &mut Vec<Uthread>) -> io::Result<Uthread> {
        let mut fibers = self.fibers();
        let rest = fibers.free.len().saturating_sub(more);
        own.extend(fibers.free.drain(rest..));
        if let Some(thread) = own.pop() {
            return Ok(thread);
        }
        let stack = self.stacks.take().map_err(|error| without_stack(&error))?;
        let thread = Uthread::new(stack, UthreadHead::new((&raw const *self).cast()));
        fibers.all.push(thread);
        Ok(thread)
    }

    /// Keeps fibers whose threads have ended.
    pub(crate) fn give_free(&self, threads: impl Iterator<Item = Uthread>) {
        let mut fibers = self.fibers();
        for thread in threads {
            thread.head().join.store(join::FREE, Ordering::Relaxed);
            fibers.free.push(thread);
        }
    }

    /// Keeps the fiber of a thread that has ended, from outside of the kthreads: its handle was dropped there.
    pub(crate) fn give_free_outside(&self, thread: Uthread) {
        thread.0.wait_until_idle();
        let mut fibers = self.fibers();
        if !fibers.closed {
            thread.head().join.store(join::FREE, Ordering::Relaxed);
            return fibers.free.push(thread);
        }
        drop(destroy(thread));
        fibers.outlived -= 1;
        if fibers.outlived == 0 {
            drop(fibers);
            // SAFETY: `close` kept it for those fibers, the last of which is gone.
            unsafe { Arc::decrement_strong_count(self) };
        }
    }

    /// Ends the runtime, after its kthreads have ended. Returns the [`join`] words of the waiters for abandoned threads, whose stacks stay.
    pub(crate) fn close(self: &Arc<RuntimeShared>) -> Vec<usize> {
        running().retain(|runtime| !Arc::ptr_eq(runtime, self));
        let mut waiting = Vec::new();
        let mut fibers = self.fibers();
        fibers.closed = true;
        fibers.free.clear();
        for thread in std::mem::take(&mut fibers.all) {
            let state = &thread.head().join;
            match state.load(Ordering::Acquire) {
                join::FREE => drop(destroy(thread)),
                join::DONE => fibers.outlived += 1,
                _ => {
                    fibers.outlived += 1;
                    waiting.push(state.swap(join::ABANDONED, Ordering::AcqRel));
                }
            }
        }
        if fibers.outlived > 0 {
            std::mem::forget(Arc::clone(self));
        }
        waiting
    }

    fn fibers(&self) -> MutexGuard<'_, RuntimeFibers> {
        self.fibers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The runtimes whose kthreads run: their threads may read read-mostly cells.
static RUNNING: Mutex<Vec<Arc<RuntimeShared>>> = Mutex::new(Vec::new());

fn running() -> MutexGuard<'static, Vec<Arc<RuntimeShared>>> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The runtimes whose kthreads run.
pub(crate) fn running_runtimes() -> Vec<Arc<RuntimeShared>> {
    let _section = NoPreempt::enter();
    running().clone()
}

fn destroy(thread: Uthread) -> Stack {
    thread.0.wait_until_idle();
    // SAFETY: free, so no handle is left.
    unsafe { thread.0.destroy() }
}

/// The runtime of a thread.
///
/// # Safety
/// The thread has not ended, or a handle of it is there: a runtime lives while they do.
#[inline(always)]
pub(crate) unsafe fn runtime_of<'a>(thread: Uthread) -> &'a RuntimeShared {
    // SAFETY: `RuntimeShared` put its own address there; the caller's promise.
    unsafe { &*thread.head().shared.cast() }
}
