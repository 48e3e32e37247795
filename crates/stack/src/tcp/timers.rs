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

#[derive(Debug, Clone, Copy)]
struct TimerPlace {
    level: usize,
    slot: usize,
    index: usize,
    tick: u64,
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
    places: Vec<Option<TimerPlace>>,
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

    /// Has a timer fire at this time, up to a tick later. One that is set for an earlier time stays: who is called too early asks again.
    pub(crate) fn set(&mut self, id: u32, at_ns: u64) {
        let tick = (at_ns >> TICK_SHIFT) + 1;
        let tick = tick.clamp(self.tick + 1, self.tick + (1 << 35));
        let at = id as usize;
        if at >= self.places.len() {
            self.places.resize(at + 1, None);
        }
        match self.places[at] {
            Some(place) if place.tick <= tick => return,
            Some(_) => self.clear(id),
            None => {}
        }
        self.insert(TimerEntry { id, tick });
    }

    /// Removes a timer, if it is set.
    pub(crate) fn clear(&mut self, id: u32) {
        let Some(place) = self.places.get_mut(id as usize).and_then(Option::take) else {
            return;
        };
        let WheelLevel { occupied, slots } = &mut self.levels[place.level];
        let slot = &mut slots[place.slot];
        slot.swap_remove(place.index);
        if slot.is_empty() {
            *occupied &= !(1 << place.slot);
        }
        if let Some(moved) = slot.get(place.index)
            && let Some(moved) = &mut self.places[moved.id as usize]
        {
            moved.index = place.index;
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
        self.places[entry.id as usize] = Some(TimerPlace {
            level,
            slot,
            index: entries.len(),
            tick: entry.tick,
        });
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
                self.places[entry.id as usize] = None;
                if entry.tick <= self.tick {
                    fired.push(entry.id);
                } else {
                    self.insert(entry);
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
        wheel.set(7, begun_ns + 1_000_000_000);
        wheel.advance(begun_ns + 900_000_000, &mut fired);
        assert_eq!(fired, [0; 0]);
        wheel.advance(begun_ns + 1_001_000_000, &mut fired);
        assert_eq!(fired, [7]);
        assert_eq!(wheel.next_ns(), None);
    }

    proptest! {
        #[test]
        fn timers_fire_within_a_tick_and_never_early(
            steps in prop::collection::vec((0..40u32, 0..4u8, 0..1u64 << 34), 1..200)
        ) {
            let (mut wheel, mut set, mut now) = (TimerWheel::new(), HashMap::new(), 0);
            for (id, what, span) in steps {
                match what {
                    0 | 1 => {
                        let at = now + span;
                        wheel.set(id, at);
                        let earliest = set.entry(id).or_insert(at);
                        *earliest = at.min(*earliest);
                    }
                    2 => {
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
