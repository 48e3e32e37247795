//! Sections in which a kthread reads read-mostly cells.

use headway_sync::atomic::{AtomicU64, Ordering, fence};

/// A kthread's sections: the low bits count the open sections, the rest the ended outermost ones. Only the kthread itself writes it.
#[derive(Debug, Default)]
pub(crate) struct ReadSections(AtomicU64);

/// One ended outermost section. It is above any depth of nesting.
const ENDED: u64 = 1 << 16;

/// A writer's view of a kthread that was reading.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OpenRead(u64);

impl ReadSections {
    /// Opens a section. Between this and the load of a cell's pointer, the reader calls
    /// [`light`](headway_sync::barrier::light).
    #[inline(always)]
    pub(crate) fn open(&self) {
        let sections = self.0.load(Ordering::Relaxed);
        // Release: a writer that sees this section also sees the ends of earlier ones.
        self.0.store(sections + 1, Ordering::Release);
    }

    /// Closes the innermost section.
    #[inline(always)]
    pub(crate) fn close(&self) {
        let sections = self.0.load(Ordering::Relaxed);
        let outermost = sections % ENDED == 1;
        let ended = if outermost { ENDED } else { 0 };
        // Release: a writer that sees the end may drop the value that was read.
        self.0.store(sections - 1 + ended, Ordering::Release);
    }

    /// Whether a section is open. For the kthread itself.
    #[inline(always)]
    pub(crate) fn any(&self) -> bool {
        !self.0.load(Ordering::Relaxed).is_multiple_of(ENDED)
    }

    /// The open section, if there is one. A writer calls this after it has replaced the pointer and called
    /// [`heavy`](headway_sync::barrier::heavy).
    pub(crate) fn look(&self) -> Option<OpenRead> {
        let sections = self.0.load(Ordering::Acquire);
        (!sections.is_multiple_of(ENDED)).then_some(OpenRead(sections / ENDED))
    }

    /// Whether the section that a writer saw has ended. Another may be open since.
    pub(crate) fn has_ended(&self, seen: OpenRead) -> bool {
        self.0.load(Ordering::Acquire) / ENDED != seen.0
    }
}

/// Readers outside of any runtime, by the phase in which they began.
#[derive(Debug, Default)]
pub(crate) struct OutsideReaders {
    phase: AtomicU64,
    reading: [AtomicU64; 2],
}

impl OutsideReaders {
    /// Begins a read, before the reader loads the pointer. Returns its phase.
    pub(crate) fn begin(&self) -> usize {
        let phase = self.phase.load(Ordering::Relaxed) as usize % 2;
        self.reading[phase].fetch_add(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        phase
    }

    pub(crate) fn end(&self, phase: usize) {
        self.reading[phase].fetch_sub(1, Ordering::Release);
    }

    /// Waits for the readers that may have loaded the old pointer, before a [`heavy`](headway_sync::barrier::heavy) barrier. One writer at a time calls this.
    /// New readers begin in the other phase, so they never delay the writer.
    pub(crate) fn wait(&self, mut pause: impl FnMut()) {
        for _ in 0..2 {
            let phase = self.phase.fetch_add(1, Ordering::Relaxed) as usize % 2;
            while self.reading[phase].load(Ordering::Acquire) > 0 {
                pause();
            }
        }
    }
}
