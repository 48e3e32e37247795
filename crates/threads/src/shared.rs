//! What the kthreads of one runtime share.
#![expect(unsafe_code, reason = "fibers are destroyed when nothing has them")]

use std::io;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use headway_fiber::{Stack, Stacks, Strand};
use headway_kthread::{CoreSource, SleeperBarrier};
use headway_machine::{Clock, Topology};
use headway_policy::host::Patience;

use crate::head::{Uthread, UthreadHead, join};
use crate::join::wake_foreign;
use crate::kernel::{KthreadState, WaitingThreads};
use crate::schedule::ready;
use crate::sync::{AtomicUsize, Ordering};

/// A runtime. It lives as long as a kthread of it, a thread, or a handle of one.
pub(crate) struct Shared {
    pub(crate) source: Arc<dyn CoreSource>,
    pub(crate) clock: Clock,
    /// Between a thread that is put into a queue and a look whether kthreads sleep.
    barrier: SleeperBarrier,
    pub(crate) patience: Patience,
    /// Threads that somebody outside of the kthreads made ready.
    pub(crate) injected: WaitingThreads,
    /// The kthreads that look for work: no other is woken meanwhile.
    pub(crate) searching: AtomicUsize,
    kthreads: OnceLock<Box<[KthreadState]>>,
    /// The hyper-thread sibling of each core.
    siblings: Vec<Option<usize>>,
    stacks: Stacks,
    fibers: Mutex<Fibers>,
}

/// All fibers of a runtime.
#[derive(Default)]
struct Fibers {
    all: Vec<Uthread>,
    /// Those that no thread and no kthread has.
    free: Vec<Uthread>,
    closed: bool,
    /// After the runtime ended: the fibers that threads or their handles still have.
    outlived: usize,
}

// SAFETY: a thread may be resumed and destroyed anywhere.
unsafe impl Send for Shared {}
// SAFETY: as above; the rest is locked or atomic.
unsafe impl Sync for Shared {}

impl Shared {
    pub(crate) fn new(
        source: Arc<dyn CoreSource>,
        patience: Patience,
        stack_bytes: usize,
    ) -> io::Result<Arc<Shared>> {
        let shared = Arc::new(Shared {
            clock: Clock::global(),
            barrier: SleeperBarrier::new(),
            patience,
            injected: WaitingThreads::default(),
            searching: AtomicUsize::new(0),
            kthreads: OnceLock::new(),
            siblings: siblings(),
            stacks: Stacks::new(stack_bytes, 0)?,
            fibers: Mutex::default(),
            source,
        });
        let kthreads = (0..shared.source.kthreads()).map(|index| KthreadState::new(index, &shared));
        let kthreads = kthreads.collect();
        shared.kthreads.get_or_init(|| kthreads);
        Ok(shared)
    }

    #[inline(always)]
    pub(crate) fn kthreads(&self) -> &[KthreadState] {
        self.kthreads.get().map_or(&[], |kthreads| kthreads)
    }

    /// The kthread that has the hyper-thread sibling of this one's core.
    pub(crate) fn sibling_of(&self, kthread: usize) -> Option<usize> {
        let core = self.source.orders(kthread).core() as usize;
        let sibling = self.siblings.get(core).copied().flatten()?;
        let has_it = |&other: &usize| self.source.orders(other).core() as usize == sibling;
        (0..self.kthreads().len()).find(has_it)
    }

    /// A thread became ready: wakes a kthread, unless one looks for work already.
    #[inline]
    pub(crate) fn notify(&self) {
        self.barrier.after_work();
        if self.searching.load(Ordering::Relaxed) == 0 {
            self.source.notify();
        }
    }

    /// Makes a thread ready from outside of the kthreads.
    pub(crate) fn inject(&self, thread: Uthread) {
        match thread.head().bound.get() {
            0 => self.injected.push(thread),
            bound => self.kthreads()[bound - 1].push_bound(thread),
        }
        self.notify();
    }

    /// A fiber without a thread, and up to `more` into the kthread's own list.
    pub(crate) fn take_free(&self, more: usize, own: &mut Vec<Uthread>) -> io::Result<Uthread> {
        let mut fibers = self.fibers();
        let rest = fibers.free.len().saturating_sub(more);
        own.extend(fibers.free.drain(rest..));
        if let Some(thread) = own.pop() {
            return Ok(thread);
        }
        let stack = self.stacks.take()?;
        let thread = Uthread(Strand::new(stack, UthreadHead::new(self)));
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

    /// Ends the runtime, after its kthreads have ended: who waits outside for a thread that has not ended learns that it never will. Its stack stays.
    pub(crate) fn close(self: &Arc<Shared>) {
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
        drop(fibers);
        for waiter in waiting {
            wake_joiner(waiter);
        }
    }

    fn fibers(&self) -> std::sync::MutexGuard<'_, Fibers> {
        self.fibers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Wakes who waits for the end of a thread, by the word of [`join`].
fn wake_joiner(word: usize) {
    match word {
        join::NOBODY | join::DETACHED => {}
        foreign if foreign & join::FOREIGN != 0 => wake_foreign(foreign),
        // SAFETY: a thread that waits, maybe in another runtime.
        thread => ready(unsafe { Uthread::from_word(thread) }),
    }
}

fn destroy(thread: Uthread) -> Stack {
    thread.0.wait_until_idle();
    // SAFETY: free, so nobody has the handle any more.
    unsafe { thread.0.destroy() }
}

/// The hyper-thread sibling of each core, as far as the machine says.
fn siblings() -> Vec<Option<usize>> {
    let Ok(topology) = Topology::read("/sys") else {
        return Vec::new();
    };
    let cores = topology.cores();
    let most = cores.iter().map(|core| core.id + 1).max().unwrap_or(0);
    let mut siblings = vec![None; most];
    for core in cores {
        siblings[core.id] = core.siblings.iter().copied().find(|&id| id != core.id);
    }
    siblings
}
