//! Slots allocated once, owned through tokens.
//!
//! A request crosses threads (dispatcher, worker, dispatcher again) several times, and its buffer must not be copied,
//! locked or counted. So the pool hands out one token per slot, and the token's holder *owns* the slot. A token moves
//! between threads as a `u32` in a ring, and safe code can neither copy nor forge it.
#![expect(
    unsafe_code,
    reason = "the unique token stands for the borrow the compiler cannot see"
)]

use std::cell::UnsafeCell;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::slot::Slot;

/// The low bits of a token are the slot's number, the others the pool's.
const INDEX_BITS: u32 = 18;

/// The most slots a pool can have: 528 MiB of them.
pub const MAX_SLOTS: usize = 1 << INDEX_BITS;

/// The most pools with distinct tokens.
const MAX_POOLS: u32 = 1 << (u32::BITS - INDEX_BITS);

/// Why a pool cannot be made.
#[derive(thiserror::Error, PartialEq, Eq)]
pub enum PoolError {
    /// More slots than a token can number.
    #[error("a pool of {slots} slots is more than {MAX_SLOTS}; use several pools")]
    TooLarge {
        /// The slots asked for.
        slots: usize,
    },
    /// The allocator has no room for the slots.
    #[error("there is no memory for {slots} slots of {} bytes", size_of::<Slot>())]
    NoMemory {
        /// The slots asked for.
        slots: usize,
    },
    /// All numbers for pools are in use: by pools, or by lost tokens such as those of requests that a server abandoned.
    #[error(
        "this process has {} pools of which a slot is still in use, or was never given back; drop servers only once they have answered what they took",
        MAX_POOLS - 1
    )]
    TooMany,
}

headway_words::debug_is_display!(PoolError);

/// The right to use one slot of one pool: neither copied nor cloned, made only by [`SlotPool::new`].
///
/// Dropping a token loses its slot until the process ends; give it back to a [`FreeList`].
///
/// ```
/// let (pool, mut free) = headway_net::pool::SlotPool::new(1)?;
/// let mut id = free.take().expect("one slot is free");
/// pool.get_mut(&mut id).set_len(10);
/// assert_eq!(pool.get(&id).payload().len(), 10);
/// free.give(id);
/// # Ok::<(), headway_net::pool::PoolError>(())
/// ```
///
/// A slot that was given back is unusable:
///
/// ```compile_fail,E0382
/// let (pool, mut free) = headway_net::pool::SlotPool::new(1)?;
/// let id = free.take().expect("one slot is free");
/// free.give(id);
/// pool.get(&id);
/// # Ok::<(), headway_net::pool::PoolError>(())
/// ```
#[derive(Debug, PartialEq, Eq)]
#[must_use = "a dropped token loses its slot; give it back to a free list"]
pub struct SlotId(NonZeroU32);

impl SlotId {
    /// Turns the token into a number, to pass it through a ring of atomics.
    #[inline]
    pub fn into_raw(self) -> u32 {
        self.0.get()
    }

    /// Turns the number back into the token.
    ///
    /// # Safety
    ///
    /// `raw` came from [`into_raw`](SlotId::into_raw), has not been turned back since, and that call happens
    /// before this one (the ring's release store and acquire load see to it).
    #[inline]
    pub unsafe fn from_raw(raw: u32) -> SlotId {
        // SAFETY: `into_raw` returns no zero.
        SlotId(unsafe { NonZeroU32::new_unchecked(raw) })
    }
}

/// A slot's position, without the right to use the slot.
#[derive(Clone, Copy, Debug)]
pub struct Prefetch(u32);

impl Prefetch {
    /// The position of this token's slot.
    #[inline]
    pub fn of(token: &SlotId) -> Self {
        Self(token.0.get())
    }

    /// The position for a token's number from [`SlotId::into_raw`].
    #[inline]
    pub fn of_raw(raw: u32) -> Self {
        Self(raw)
    }
}

/// Slots in one allocation, reachable only with their tokens.
#[derive(Debug)]
pub struct SlotPool {
    /// The first number of this pool's tokens.
    first_raw: u32,
    slots: Box<[UnsafeCell<Slot>]>,
    /// Shared with its free lists.
    _tag: Arc<Tag>,
}

// SAFETY: a slot is reached only through its token. Tokens are unique (made once each by `new`, under a tag that no
// other pool has, nor any token of an earlier one, see `Tag`; `from_raw` is unsafe), so `&mut SlotId` excludes every other access, and moving a token to
// another thread synchronises by Rust's rules for moves, or by those of `from_raw`.
unsafe impl Sync for SlotPool {}

impl SlotPool {
    /// Allocates and touches `slots` slots; all their tokens are in the free list.
    ///
    /// # Errors
    ///
    /// [`PoolError`] when tokens cannot number the slots or the pool, or there is no memory for the slots.
    pub fn new(slots: usize) -> Result<(SlotPool, FreeList), PoolError> {
        if slots > MAX_SLOTS {
            return Err(PoolError::TooLarge { slots });
        }
        let tag = Arc::new(Tag::take(slots)?);
        let first_raw = tag.first_raw();
        let tokens = (0..slots as u32)
            .rev()
            .filter_map(|index| NonZeroU32::new(first_raw | index))
            .map(SlotId)
            .collect();
        let mut room = Vec::new();
        room.try_reserve_exact(slots)
            .map_err(|_| PoolError::NoMemory { slots })?;
        room.extend((0..slots).map(|_| UnsafeCell::new(Slot::EMPTY)));
        let free = FreeList {
            tokens,
            tag: Arc::clone(&tag),
        };
        let pool = SlotPool {
            first_raw,
            slots: room.into_boxed_slice(),
            _tag: tag,
        };
        Ok((pool, free))
    }

    /// Number of slots.
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Whether the pool has no slots.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// The token's slot, to read.
    ///
    /// # Panics
    ///
    /// If the token is another pool's.
    #[inline]
    pub fn get<'a>(&'a self, id: &'a SlotId) -> &'a Slot {
        // SAFETY: changing the slot takes `&mut` of the token borrowed here.
        unsafe { &*self.slot_ptr(id) }
    }

    /// The token's slot, to change.
    ///
    /// # Panics
    ///
    /// If the token is another pool's.
    #[inline]
    pub fn get_mut<'a>(&'a self, id: &'a mut SlotId) -> &'a mut Slot {
        // SAFETY: every access takes a borrow of the token, which is unique and borrowed here exclusively.
        unsafe { &mut *self.slot_ptr(id) }
    }

    /// Prefetches the first cache line of the slot at this position, for writing. The token's holder sees no change.
    ///
    /// A worker reads a request's metadata and then overwrites it with the response's. A fetch for reading would move the line between cores, and
    /// the write would need a second transfer for ownership.
    #[inline]
    pub fn prefetch(&self, place: Prefetch) {
        let index = place.0.wrapping_sub(self.first_raw) as usize;
        if let Some(slot) = self.slots.get(index) {
            fetch_for_writing(slot.get().cast_const().cast());
        }
    }

    /// The index of the token's slot. A single bounds check also finds another pool's token: it differs by its tag,
    /// and so by more than any index.
    #[inline]
    pub(crate) fn slot_ptr(&self, id: &SlotId) -> *mut Slot {
        let index = id.0.get().wrapping_sub(self.first_raw) as usize;
        self.slots[index].get()
    }
}

/// A hint to the processor; without effect on other architectures.
#[inline]
fn fetch_for_writing(line: *const u8) {
    // SAFETY: a prefetch neither reads nor writes as far as the program can tell, whatever the address.
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    unsafe {
        core::arch::asm!("prefetchw [{}]", in(reg) line, options(nostack, preserves_flags, readonly));
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = line;
}

/// The number of a pool, common to its tokens and different from other pools'.
///
/// The number is free for another pool when this pool and its free lists are gone, and every token was in one of these lists. A token
/// elsewhere could open the later pool, so the number of its pool is never reused.
#[derive(Debug)]
struct Tag {
    number: u32,
    tokens: usize,
    /// Tokens dropped with a free list of this pool.
    dropped: AtomicUsize,
}

/// The free numbers.
static FREE_TAGS: Mutex<FreeTags> = Mutex::new(FreeTags {
    // No token is zero.
    never_used: 1,
    used: Vec::new(),
});

struct FreeTags {
    never_used: u32,
    used: Vec<u32>,
}

impl FreeTags {
    fn lock() -> MutexGuard<'static, Self> {
        FREE_TAGS.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&mut self) -> Option<u32> {
        if let Some(number) = self.used.pop() {
            return Some(number);
        }
        let number = self.never_used;
        (number < MAX_POOLS).then(|| {
            self.never_used += 1;
            number
        })
    }
}

impl Tag {
    /// Takes a number for a pool with this many tokens.
    fn take(tokens: usize) -> Result<Self, PoolError> {
        let number = FreeTags::lock().take().ok_or(PoolError::TooMany)?;
        Ok(Self {
            number,
            tokens,
            dropped: AtomicUsize::new(0),
        })
    }

    fn first_raw(&self) -> u32 {
        self.number << INDEX_BITS
    }

    fn is_of(&self, id: &SlotId) -> bool {
        id.0.get() >> INDEX_BITS == self.number
    }
}

impl Drop for Tag {
    fn drop(&mut self) {
        // The last of the pool and its free lists, which share this value, is gone.
        if *self.dropped.get_mut() == self.tokens {
            FreeTags::lock().used.push(self.number);
        }
    }
}

/// Tokens of unused slots, last in first out: the next slot is the most likely one to be in the cache.
///
/// Owned by one thread; other threads send tokens back to it.
#[derive(Debug)]
pub struct FreeList {
    tokens: Vec<SlotId>,
    tag: Arc<Tag>,
}

impl Drop for FreeList {
    fn drop(&mut self) {
        // A list takes tokens of any pool.
        let own = self
            .tokens
            .drain(..)
            .filter(|id| self.tag.is_of(id))
            .count();
        self.tag.dropped.fetch_add(own, Ordering::Relaxed);
    }
}

impl FreeList {
    /// The slot given back last, if any is free.
    #[inline]
    pub fn take(&mut self) -> Option<SlotId> {
        self.tokens.pop()
    }

    /// Gives a slot back.
    #[inline]
    pub fn give(&mut self, id: SlotId) {
        self.tokens.push(id);
    }

    /// Number of free slots.
    #[inline]
    pub fn len(&self) -> usize {
        self.tokens.len()
    }

    /// Whether no slot is free.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.tokens.is_empty()
    }

    /// Moves `count` of the free slots (all, if fewer) into a second list, for another owner. Either list has capacity
    /// for all slots that were free, so giving back never allocates.
    #[must_use = "the list owns the slots that were split off"]
    pub fn split_off(&mut self, count: usize) -> FreeList {
        let total = self.tokens.capacity();
        let keep = self.tokens.len().saturating_sub(count);
        let mut tokens = Vec::with_capacity(total);
        tokens.extend(self.tokens.drain(keep..));
        FreeList {
            tokens,
            tag: Arc::clone(&self.tag),
        }
    }

    /// The tokens in the order in which [`take`](FreeList::take) would return them.
    #[inline]
    pub(crate) fn next(&self) -> impl Iterator<Item = &SlotId> {
        self.tokens.iter().rev()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn every_slot_has_one_token() {
        let (pool, mut free) = SlotPool::new(100).unwrap();
        let tokens: Vec<SlotId> = std::iter::from_fn(|| free.take()).collect();
        let places: HashSet<*mut Slot> = tokens.iter().map(|id| pool.slot_ptr(id)).collect();
        assert_eq!((tokens.len(), places.len(), pool.len()), (100, 100, 100));
    }

    #[test]
    fn a_token_survives_being_a_number() {
        let (pool, mut free) = SlotPool::new(2).unwrap();
        let mut id = free.take().unwrap();
        pool.get_mut(&mut id).index = 7;
        let raw = id.into_raw();
        // SAFETY: the number was a token two lines above and is turned back once.
        let id = unsafe { SlotId::from_raw(raw) };
        assert_eq!(pool.get(&id).index, 7);
        assert_ne!(pool.get(&free.take().unwrap()).index, 7);
    }

    #[test]
    #[should_panic(expected = "out of bounds")]
    fn another_pools_token_opens_nothing() {
        let (pool, _free) = SlotPool::new(4).unwrap();
        let (_other, mut foreign) = SlotPool::new(4).unwrap();
        let _ = pool.get(&foreign.take().unwrap());
    }

    #[test]
    #[should_panic(expected = "out of bounds")]
    fn an_earlier_pools_token_opens_nothing_either() {
        let (_other, mut foreign) = SlotPool::new(4).unwrap();
        let (pool, _free) = SlotPool::new(4).unwrap();
        let _ = pool.get(&foreign.take().unwrap());
    }

    #[test]
    fn a_process_makes_any_number_of_pools_one_after_another() {
        for _ in 0..2 * MAX_POOLS {
            let (pool, mut free) = SlotPool::new(3).unwrap();
            let (mut half, token) = (free.split_off(1), free.take().unwrap());
            drop(pool);
            half.give(token);
        }
    }

    #[test]
    fn a_number_is_used_again_only_without_its_tokens() {
        let first = |slots| {
            let (pool, mut free) = SlotPool::new(slots).unwrap();
            let token = free.take().unwrap();
            (pool, free, token)
        };
        let (pool, free, lost) = first(2);
        let (other, mut other_free, foreign) = first(2);
        let (number, other_number) = (pool.first_raw, other.first_raw);
        // Foreign tokens do not stand for the one that is missing.
        other_free.give(lost);
        let _kept = foreign;
        drop((pool, free));
        drop((other, other_free));
        let later: Vec<_> = (0..64).map(|_| SlotPool::new(1).unwrap()).collect();
        for (pool, _) in &later {
            assert!(![number, other_number].contains(&pool.first_raw));
        }
    }

    #[test]
    fn too_many_slots_are_refused() {
        let slots = MAX_SLOTS + 1;
        assert_eq!(
            SlotPool::new(slots).unwrap_err(),
            PoolError::TooLarge { slots }
        );
    }

    #[test]
    fn lists_split_and_take_back_without_allocating() {
        let (_pool, mut free) = SlotPool::new(10).unwrap();
        let mut half = free.split_off(4);
        assert_eq!((free.len(), half.len()), (6, 4));
        let capacity = half.tokens.capacity();
        while let Some(id) = free.take() {
            half.give(id);
        }
        assert_eq!((half.len(), half.tokens.capacity()), (10, capacity));
        assert_eq!(half.split_off(99).len(), 10);
    }

    #[test]
    fn slots_travel_between_threads_with_their_tokens() {
        const ROUNDS: u32 = 10_000;
        let (pool, mut free) = SlotPool::new(8).unwrap();
        let (to_worker, from_dispatcher) = mpsc::channel::<SlotId>();
        let (to_dispatcher, from_worker) = mpsc::channel::<SlotId>();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for mut id in from_dispatcher {
                    pool.get_mut(&mut id).index += 1;
                    to_dispatcher.send(id).unwrap();
                }
            });
            for round in 0..ROUNDS {
                let mut id = free.take().unwrap();
                pool.get_mut(&mut id).index = round;
                to_worker.send(id).unwrap();
                let id = from_worker.recv().unwrap();
                assert_eq!(pool.get(&id).index, round + 1);
                free.give(id);
            }
            drop(to_worker);
        });
        assert_eq!(free.len(), 8);
    }
}
