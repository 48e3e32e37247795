//! A hierarchical timer wheel (Varghese and Lauck 1987): a timer is set, moved and fired in constant time, however many there are.

/// The length of a tick as a power of two: 262 µs, a twentieth of the least retransmission timeout.
const TICK_SHIFT: u32 = 18;
const SLOT_BITS: u32 = 6;
const SLOTS: usize = 1 << SLOT_BITS;
/// All levels cover 48 bits of ticks; the ticks of a `u64` of nanoseconds have 46.
const LEVELS: usize = 8;

#[derive(Debug, Clone, Copy)]
struct TimerEntry {
    id: u32,
    tick: u64,
}

/// A timer's state. The wheel finds here what became of a timer, and need not ask its owner, whose memory may be in no cache.
#[derive(Debug, Clone, Copy)]
struct TimerPlace {
    /// The tick at which it is due; [`NEVER`] if it is not set.
    due: u64,
    /// The tick of its entry in the wheel, at or before `due`; [`NEVER`] without an entry.
    tick: u64,
    index: u32,
    level: u8,
    slot: u8,
}

const NEVER: u64 = u64::MAX;

impl TimerPlace {
    const UNSET: Self = Self {
        due: NEVER,
        tick: NEVER,
        index: 0,
        level: 0,
        slot: 0,
    };
}

#[derive(Debug)]
struct WheelLevel {
    occupied: u64,
    slots: [Vec<TimerEntry>; SLOTS],
}

/// One timer for each number.
#[derive(Debug)]
pub(crate) struct TimerWheel {
    levels: [WheelLevel; LEVELS],
    /// By number.
    places: Vec<TimerPlace>,
    tick: u64,
}

impl TimerWheel {
    pub(crate) fn new() -> Self {
        let level = || WheelLevel {
            occupied: 0,
            slots: [const { Vec::new() }; SLOTS],
        };
        Self {
            levels: std::array::from_fn(|_| level()),
            places: Vec::new(),
            tick: 0,
        }
    }

    /// Has a timer fire at this time, up to a tick later, or not at all. A timer that moves to a later time keeps its entry, and moves when that one's tick comes.
    pub(crate) fn set(&mut self, id: u32, at_ns: Option<u64>) {
        let at = id as usize;
        if at >= self.places.len() {
            if at_ns.is_none() {
                return;
            }
            self.places.resize(at + 1, TimerPlace::UNSET);
        }
        let due = at_ns.map_or(NEVER, |at_ns| {
            ((at_ns >> TICK_SHIFT) + 1).clamp(self.tick + 1, self.tick + (1 << 35))
        });
        let place = &mut self.places[at];
        place.due = due;
        if due < place.tick {
            self.remove_entry(id);
            self.insert(TimerEntry { id, tick: due });
        }
    }

    /// Removes a timer and its entry, if it has any.
    pub(crate) fn clear(&mut self, id: u32) {
        if let Some(place) = self.places.get_mut(id as usize) {
            place.due = NEVER;
            self.remove_entry(id);
        }
    }

    fn remove_entry(&mut self, id: u32) {
        let TimerPlace {
            tick,
            index,
            level,
            slot,
            ..
        } = self.places[id as usize];
        if tick == NEVER {
            return;
        }
        self.places[id as usize].tick = NEVER;
        let WheelLevel { occupied, slots } = &mut self.levels[usize::from(level)];
        let entries = &mut slots[usize::from(slot)];
        entries.swap_remove(index as usize);
        if entries.is_empty() {
            *occupied &= !(1 << slot);
        }
        if let Some(moved) = entries.get(index as usize) {
            self.places[moved.id as usize].index = index;
        }
    }

    fn insert(&mut self, entry: TimerEntry) {
        // The highest group of bits in which the tick differs from now.
        let differing = (entry.tick ^ self.tick) | 1;
        let level = differing.ilog2() / SLOT_BITS;
        let slot = (entry.tick >> (level * SLOT_BITS)) as usize % SLOTS;
        let level = level as usize;
        self.levels[level].occupied |= 1 << slot;
        let entries = &mut self.levels[level].slots[slot];
        let place = &mut self.places[entry.id as usize];
        place.tick = entry.tick;
        place.index = entries.len() as u32;
        (place.level, place.slot) = (level as u8, slot as u8);
        entries.push(entry);
    }

    /// The first slot that has timers, and the tick at which it begins: lower levels are always earlier.
    fn next_slot(&self) -> Option<(u64, usize, usize)> {
        let level = self.levels.iter().position(|level| level.occupied != 0)?;
        let slot = self.levels[level].occupied.trailing_zeros();
        let shift = level as u32 * SLOT_BITS;
        let upper = self.tick >> (shift + SLOT_BITS) << (shift + SLOT_BITS);
        Some((upper | u64::from(slot) << shift, level, slot as usize))
    }

    /// The time before which no timer fires.
    pub(crate) fn next_ns(&self) -> Option<u64> {
        Some(self.next_slot()?.0 << TICK_SHIFT)
    }

    /// Goes on to `now_ns` and adds the timers that fire to `fired`.
    pub(crate) fn advance(&mut self, now_ns: u64, fired: &mut Vec<u32>) {
        let target = now_ns >> TICK_SHIFT;
        while let Some((tick, level, slot)) = self.next_slot()
            && tick <= target
        {
            self.tick = self.tick.max(tick);
            self.levels[level].occupied &= !(1 << slot);
            let mut entries = std::mem::take(&mut self.levels[level].slots[slot]);
            for entry in entries.drain(..) {
                let place = &mut self.places[entry.id as usize];
                place.tick = NEVER;
                if place.due <= self.tick {
                    place.due = NEVER;
                    fired.push(entry.id);
                } else if place.due != NEVER {
                    let TimerEntry { id, .. } = entry;
                    let tick = place.due;
                    self.insert(TimerEntry { id, tick });
                }
            }
            if self.levels[level].slots[slot].is_empty() {
                // The room is used again.
                self.levels[level].slots[slot] = entries;
            }
        }
        self.tick = self.tick.max(target);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    /// 2^36 ticks are 208.5 days.
    #[test]
    fn a_timer_fires_beyond_2_to_the_36_ticks() {
        let (mut wheel, mut fired) = (TimerWheel::new(), Vec::new());
        let begun_ns = (1 << 54) - 1;
        wheel.advance(begun_ns, &mut fired);
        wheel.set(7, Some(begun_ns + 1_000_000_000));
        wheel.advance(begun_ns + 900_000_000, &mut fired);
        assert_eq!(fired, [0; 0]);
        wheel.advance(begun_ns + 1_001_000_000, &mut fired);
        assert_eq!(fired, [7]);
        assert_eq!(wheel.next_ns(), None);
    }

    proptest! {
        #[test]
        fn timers_fire_within_a_tick_of_the_time_that_was_set_last_and_never_early(
            steps in prop::collection::vec((0..40u32, 0..5u8, 0..1u64 << 34), 1..200)
        ) {
            let (mut wheel, mut set, mut now) = (TimerWheel::new(), HashMap::new(), 0);
            for (id, what, span) in steps {
                match what {
                    0 | 1 => {
                        let at = now + span;
                        wheel.set(id, Some(at));
                        set.insert(id, at);
                    }
                    2 => {
                        wheel.set(id, None);
                        set.remove(&id);
                    }
                    3 => {
                        wheel.clear(id);
                        set.remove(&id);
                    }
                    _ => {
                        now += span;
                        let mut fired = Vec::new();
                        let next = wheel.next_ns();
                        prop_assert!(set.values().all(|at| next.is_some_and(|next| next <= at + (2 << TICK_SHIFT))));
                        wheel.advance(now, &mut fired);
                        for id in fired {
                            let at = set.remove(&id);
                            prop_assert!(at.is_some_and(|at| at <= now), "{at:?} at {now}");
                        }
                        let late = set.values().all(|at| at + (2 << TICK_SHIFT) > now);
                        prop_assert!(late, "{set:?} at {now}");
                    }
                }
            }
        }
    }
}
