//! A model of the pipeline of match-action tables: the programs' control flow with these entries, step by step, without packets.

use crate::entries::{Entry, MAX_GROUPS, MAX_TYPES, WINDOW_SHIFT};
use headway_policy::rack::Mark;
use std::collections::HashMap;

/// Slots of the register that identifies the second response of a cloned request.
const DUPLICATE_SLOTS: usize = 1 << 16;

/// The registers that a control plane reads.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PipelineRegisters {
    /// Number of requests of a type.
    pub count: u64,
    /// Moving average of its execution times, ns; 0 before the first response.
    pub execution_ns: u64,
}

/// A model of `rack_v1model.p4` and `rack_tna.p4`.
pub struct Pipeline {
    tables: HashMap<(&'static str, Vec<u64>), Vec<u64>>,
    generation: u64,
    next_turn: Vec<u64>,
    window: Vec<u64>,
    arrivals: Vec<u64>,
    answered: Vec<u64>,
    types: Vec<PipelineRegisters>,
}

impl Default for Pipeline {
    fn default() -> Self {
        Self {
            tables: HashMap::new(),
            generation: 0,
            next_turn: vec![0; MAX_GROUPS],
            window: vec![0; MAX_GROUPS],
            arrivals: vec![0; MAX_GROUPS],
            answered: vec![0; DUPLICATE_SLOTS],
            types: vec![PipelineRegisters::default(); MAX_TYPES],
        }
    }
}

/// A group's entry in `limits`.
#[derive(Clone, Copy)]
struct Limits {
    round: u64,
    threshold: u64,
    next_group: u64,
}

/// The tables that exist in two copies.
const COPIED: [&str; 3] = ["groups", "limits", "turns"];

impl Pipeline {
    /// Writes [entries that stay](crate::constant_entries).
    pub fn write(&mut self, entries: &[Entry]) {
        for entry in entries {
            let key = (entry.table, entry.keys.clone());
            self.tables.insert(key, entry.params.clone());
        }
    }

    /// The copy that may be written: packets use the other one.
    #[must_use]
    pub fn free_copy(&self) -> u8 {
        ((self.generation + 1) % 2) as u8
    }

    /// Writes the entries of the [free copy](Self::free_copy), then the generation, then the turns of groups whose round became shorter: the control
    /// plane's procedure.
    pub fn publish(&mut self, entries: &[Entry]) {
        let copy = u64::from(self.free_copy());
        self.tables
            .retain(|(table, keys), _| !COPIED.contains(table) || keys[0] != copy);
        self.write(entries);
        self.generation += 1;
        for group in 0..MAX_GROUPS {
            // An unused group keeps its turn.
            if let Some(Limits { round, .. }) = self.limits(group as u64) {
                self.next_turn[group] = self.next_turn[group].checked_rem(round).unwrap_or(0);
            }
        }
    }

    /// In the present copy.
    fn look_up(&self, table: &'static str, keys: &[u64]) -> Option<&[u64]> {
        let mut all = vec![self.generation % 2];
        all.extend(keys);
        self.tables.get(&(table, all)).map(Vec::as_slice)
    }

    fn class_of(&self, wire_type: u8) -> Option<usize> {
        let declared = self.tables.get(&("types", vec![u64::from(wire_type)]));
        let found = declared.or_else(|| self.tables.get(&("types", Vec::new())))?;
        Some(found[0] as usize)
    }

    fn limits(&self, group: u64) -> Option<Limits> {
        let params = self.look_up("limits", &[group])?;
        Some(Limits {
            round: params[0],
            threshold: params[1],
            next_group: params[2],
        })
    }

    /// Processes a request. Returns address and port of the server for each copy, the original first; an empty result means that the request is shed. A
    /// request that was `handed_back` is neither counted nor cloned.
    pub fn request(&mut self, now_ns: u64, wire_type: u8, handed_back: bool) -> Vec<Vec<u64>> {
        self.try_request(now_ns, wire_type, handed_back)
            .unwrap_or_default()
    }

    fn try_request(
        &mut self,
        now_ns: u64,
        wire_type: u8,
        handed_back: bool,
    ) -> Option<Vec<Vec<u64>>> {
        let class = self.class_of(wire_type)?;
        let group = self.look_up("groups", &[class as u64])?[0];
        let limits = self.limits(group)?;
        let mut copies = vec![self.turn(group, limits.round)?];
        if handed_back {
            return Some(copies);
        }
        self.types[class].count += 1;
        if self.is_excess(now_ns, group, limits.threshold) && limits.next_group != group {
            copies.extend(self.clone_pass(limits.next_group));
        }
        Some(copies)
    }

    /// The second pass of a copy.
    fn clone_pass(&mut self, group: u64) -> Option<Vec<u64>> {
        let round = self.limits(group)?.round;
        self.turn(group, round)
    }

    /// One access to `next_turn`.
    fn turn(&mut self, group: u64, round: u64) -> Option<Vec<u64>> {
        let next = &mut self.next_turn[group as usize];
        let turn = if *next >= round { 0 } else { *next };
        *next = if turn + 1 >= round { 0 } else { turn + 1 };
        self.look_up("turns", &[group, turn]).map(<[u64]>::to_vec)
    }

    /// One access to `window`, one to `arrivals`.
    fn is_excess(&mut self, now_ns: u64, group: u64, threshold: u64) -> bool {
        let (group, window) = (group as usize, now_ns >> WINDOW_SHIFT);
        let is_new = std::mem::replace(&mut self.window[group], window) != window;
        self.arrivals[group] = if is_new { 1 } else { self.arrivals[group] + 1 };
        self.arrivals[group] > threshold
    }

    /// Processes a server's response. Returns `false` for the slower of two, which is dropped.
    pub fn response(&mut self, wire_type: u8, index: u32, mark: Mark, execution_ns: u64) -> bool {
        if let Some(class) = self.class_of(wire_type)
            && execution_ns > 0
        {
            let average = &mut self.types[class].execution_ns;
            *average = match *average {
                0 => execution_ns,
                before => before - (before >> 3) + (execution_ns >> 3),
            };
        }
        if mark == Mark::Plain {
            return true;
        }
        let entry = u64::from(index) + 1;
        let slot = &mut self.answered[index as usize % DUPLICATE_SLOTS];
        let is_first = *slot != entry;
        *slot = if is_first { entry } else { 0 };
        is_first
    }

    /// The registers of a type.
    ///
    /// # Panics
    /// When `class` is not below [`MAX_TYPES`].
    #[must_use]
    pub fn registers(&self, class: usize) -> PipelineRegisters {
        self.types[class]
    }
}
