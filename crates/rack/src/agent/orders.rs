//! Duties of servers as numbered orders in type bytes, and their translation into a server's own classes.

use super::message::{OrderedDuty, OrderedPart};
use headway_policy::rack::{Bouncing, ControlPlane, Duty, Part, ServerId};
use headway_policy::{BitSet, ClassId};

/// The byte of UNKNOWN.
const UNKNOWN: u8 = 255;

/// The orders of a rack's servers, as the control plane last decided.
#[derive(Clone, Debug)]
pub struct DutyOrders {
    bouncing: Bouncing,
    servers: Vec<OrderedDuty>,
    /// The revision of the layout behind the orders.
    revisions: u64,
    last_number: u64,
}

impl DutyOrders {
    /// Orders each of `servers` servers to serve first come first served, until a control plane decides. Numbers begin behind `first`, so that a restarted
    /// control plane never repeats its old ones.
    #[must_use]
    pub fn new(servers: usize, bouncing: Bouncing, first: u64) -> Self {
        let initial = OrderedDuty {
            number: first + 1,
            bouncing,
            parts: Vec::new(),
            ascending: Vec::new(),
        };
        Self {
            bouncing,
            servers: vec![initial; servers],
            revisions: 0,
            last_number: first + 1,
        }
    }

    /// Takes the control plane's duties. `type_bytes` are the known types' bytes, by class.
    pub fn follow(&mut self, control: &ControlPlane, type_bytes: &[u8]) {
        let is_new_layout = control.revisions() != self.revisions;
        self.revisions = control.revisions();
        for (number, order) in self.servers.iter_mut().enumerate() {
            let duty = control.duty(ServerId(number as u16));
            let next = in_type_bytes(&duty, type_bytes, self.bouncing);
            let same = (&order.parts, &order.ascending) == (&next.parts, &next.ascending);
            // A new layout under [`Bouncing::All`] reissues unchanged duties too, since their servers hand requests back as well.
            if same && !(is_new_layout && self.bouncing == Bouncing::All) {
                continue;
            }
            self.last_number += 1;
            let number = self.last_number;
            *order = OrderedDuty { number, ..next };
        }
    }

    /// A server's order, unless the server has already this one in force.
    ///
    /// # Panics
    /// When there is no such server.
    #[must_use]
    pub fn unless(&self, server: ServerId, in_force: u64) -> Option<OrderedDuty> {
        let order = &self.servers[server.index()];
        (order.number != in_force).then(|| order.clone())
    }
}

/// A duty in type bytes. Types that never appeared are left out; UNKNOWN, the class behind all of them, is 255.
fn in_type_bytes(duty: &Duty, type_bytes: &[u8], bouncing: Bouncing) -> OrderedDuty {
    let unknown = duty.ascending.last().map(|class| class.index());
    let byte = |class: usize| match type_bytes.get(class) {
        Some(&byte) => Some(byte),
        None => (Some(class) == unknown).then_some(UNKNOWN),
    };
    let parts = duty.parts.iter().map(|part| OrderedPart {
        types: part.classes.iter().filter_map(byte).collect(),
        workers: part.cores as u16,
    });
    let ascending = duty.ascending.iter().map(|class| class.index());
    OrderedDuty {
        number: 0,
        bouncing,
        parts: parts.collect(),
        ascending: ascending.filter_map(byte).collect(),
    }
}

impl OrderedDuty {
    /// The duty of a server that has declared `declared` classes, named by the first type bytes. The server sees all other bytes as UNKNOWN, which
    /// belongs to the longest group that has one of them.
    #[must_use]
    pub fn for_classes(&self, declared: usize) -> Duty {
        let is_unknown = |byte: u8| usize::from(byte) >= declared;
        let bytes_of = |part: &OrderedPart| {
            let types = part.types;
            (0..=u8::MAX).filter(move |&byte| types.contains(byte))
        };
        let of_unknown = self
            .parts
            .iter()
            .rposition(|part| bytes_of(part).any(is_unknown));
        let mut parts: Vec<Part> = Vec::new();
        // Workers of groups that have no class of this server.
        let mut spare = 0;
        for (number, part) in self.parts.iter().enumerate() {
            let known = bytes_of(part).filter(|&byte| !is_unknown(byte));
            let mut classes: BitSet = known.map(usize::from).collect();
            if Some(number) == of_unknown {
                classes.insert(declared);
            }
            let cores = usize::from(part.workers) + spare;
            if classes.is_empty() {
                spare = cores;
            } else {
                spare = 0;
                parts.push(Part { classes, cores });
            }
        }
        if let Some(last) = parts.last_mut() {
            last.cores += spare;
        }
        Duty {
            parts,
            ascending: self.ranked(declared),
        }
    }

    /// Every class once, UNKNOWN last.
    fn ranked(&self, declared: usize) -> Vec<ClassId> {
        if self.ascending.is_empty() {
            return Vec::new();
        }
        let mut ranked: Vec<usize> = Vec::with_capacity(declared + 1);
        let told = self.ascending.iter().map(|&byte| usize::from(byte));
        for class in told.chain(0..declared) {
            if class < declared && !ranked.contains(&class) {
                ranked.push(class);
            }
        }
        ranked.push(declared);
        let classes = ranked.into_iter().map(|class| ClassId(class as u16));
        classes.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(types: &[u8], workers: u16) -> OrderedPart {
        OrderedPart {
            types: types.iter().copied().collect(),
            workers,
        }
    }

    fn order(parts: Vec<OrderedPart>, ascending: &[u8]) -> OrderedDuty {
        OrderedDuty {
            number: 1,
            bouncing: Bouncing::Longer,
            parts,
            ascending: ascending.to_vec(),
        }
    }

    #[test]
    fn types_that_a_server_does_not_declare_are_its_unknown() {
        let order = order(
            vec![part(&[1, 9], 2), part(&[7], 3), part(&[0, 8, 255], 4)],
            &[9, 1, 7, 0, 8, 255],
        );
        let duty = order.for_classes(2);
        let parts: Vec<_> = duty
            .parts
            .iter()
            .map(|part| (part.classes.iter().collect::<Vec<_>>(), part.cores))
            .collect();
        // The middle group has none of the server's classes: the next one has its workers.
        assert_eq!(parts, [(vec![1], 2), (vec![0, 2], 7)]);
        assert_eq!(duty.ascending, [1, 0, 2].map(ClassId));
    }

    #[test]
    fn workers_of_groups_behind_all_others_are_not_lost() {
        let order = order(vec![part(&[0], 1), part(&[], 3)], &[]);
        let duty = order.for_classes(1);
        assert_eq!((duty.parts.len(), duty.parts[0].cores), (1, 4));
        assert!(duty.ascending.is_empty());
    }
}
