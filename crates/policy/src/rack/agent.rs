//! What a server is told by the control plane, and what its agent makes of it (Pallas § 4.3, § 4.4).

use crate::{BitSet, ClassId};
use alloc::vec::Vec;

/// One group's part of a server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Part {
    /// The group's types. UNKNOWN counts as one, of the longest group.
    pub classes: BitSet,
    /// Cores that are the group's here.
    pub cores: usize,
}

/// A server's role: the groups it serves, shortest first. One group, or none: c-FCFS over all cores. Several: each has its
/// cores reserved and may use those of longer ones while they are idle, as under DARC.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Duty {
    /// Its groups, by ascending execution time.
    pub parts: Vec<Part>,
    /// All types by execution time as last measured, UNKNOWN last. Empty: the order stays as it was.
    pub ascending: Vec<ClassId>,
}

impl Duty {
    /// Everything the server serves.
    #[must_use]
    pub fn classes(&self) -> BitSet {
        let all = self.parts.iter().map(|part| part.classes);
        all.fold(BitSet::EMPTY, |all, classes| all.union(&classes))
    }
}

/// What servers send back to the switch once their role changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Bouncing {
    /// Nothing.
    Off,
    /// What is longer than a request that arrives, and no longer the server's to serve ([`Agent`]; the paper's).
    Longer,
    /// That, and at the change itself everything that is not begun: what piled up where a group was short of cores is
    /// spread over all it has now (ours).
    All,
}

/// Decides what a server sends back to the switch: when a request of its duty arrives while longer ones that are not (any
/// more) of its duty are queued, those are bounced, to be scheduled by the new tables. The trip costs a long request less
/// than its presence costs the short one.
#[derive(Clone, Debug)]
pub struct Agent {
    duty: BitSet,
    /// Place of each type by execution time, ascending.
    rank: Vec<u16>,
    /// Types outside the duty of which requests may be queued here.
    strangers: BitSet,
    /// Place of the longest of these; 0 also where there is none, as nothing is shorter than that.
    longest_stranger: u16,
    seen: BitSet,
}

impl Agent {
    /// Serves whatever comes. `ascending` lists all types by execution time, UNKNOWN last.
    #[must_use]
    pub fn new(ascending: &[ClassId]) -> Self {
        let mut agent = Self {
            duty: BitSet::range(0, ascending.len()),
            rank: alloc::vec![0; ascending.len()],
            strangers: BitSet::EMPTY,
            longest_stranger: 0,
            seen: BitSet::EMPTY,
        };
        agent.reorder(ascending);
        agent
    }

    fn reorder(&mut self, ascending: &[ClassId]) {
        for (place, class) in ascending.iter().enumerate() {
            self.rank[class.index()] = place as u16;
        }
    }

    /// The control plane changed the server's duty. Types keep their order where the duty tells none.
    pub fn instructed(&mut self, duty: &Duty) {
        self.reorder(&duty.ascending);
        self.duty = duty.classes();
        self.keep(self.seen.difference(&self.duty));
    }

    /// A request arrives. What is to be bounced before it is queued: all waiting requests of these types.
    #[inline]
    pub fn arrived(&mut self, class: ClassId) -> BitSet {
        self.seen.insert(class.index());
        let rank = self.rank[class.index()];
        if !self.duty.contains(class.index()) {
            self.strangers.insert(class.index());
            self.longest_stranger = self.longest_stranger.max(rank);
            return BitSet::EMPTY;
        }
        // Clones of shorter types are strangers too, for as long as the duty lasts, and never evicted.
        if self.longest_stranger > rank {
            self.evict(class)
        } else {
            BitSet::EMPTY
        }
    }

    #[cold]
    fn evict(&mut self, class: ClassId) -> BitSet {
        let evicted: BitSet = self
            .strangers
            .iter()
            .filter(|&other: &usize| self.rank[other] > self.rank[class.index()])
            .collect();
        self.keep(self.strangers.difference(&evicted));
        evicted
    }

    fn keep(&mut self, strangers: BitSet) {
        let places = strangers.iter().map(|class| self.rank[class]);
        self.longest_stranger = places.max().unwrap_or(0);
        self.strangers = strangers;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHORT: ClassId = ClassId(0);
    const LONG: ClassId = ClassId(1);

    fn serves(class: ClassId) -> Duty {
        Duty {
            parts: alloc::vec![Part {
                classes: [class.index()].into_iter().collect(),
                cores: 1,
            }],
            ascending: Vec::new(),
        }
    }

    #[test]
    fn the_duty_says_which_types_are_long_now() {
        let mut agent = Agent::new(&[SHORT, LONG]);
        // Service times swap: what was declared long is the short type now, and keeps this server.
        agent.instructed(&Duty {
            ascending: alloc::vec![LONG, SHORT],
            ..serves(LONG)
        });
        assert!(
            agent.arrived(SHORT).is_empty(),
            "late, and not in the way yet"
        );
        assert_eq!(agent.arrived(LONG), [0].into_iter().collect());
        // A duty that tells no order leaves it.
        agent.instructed(&serves(LONG));
        assert!(agent.arrived(SHORT).is_empty());
        assert_eq!(agent.arrived(LONG), [0].into_iter().collect());
    }

    #[test]
    fn a_short_request_evicts_longs_once_the_role_changed() {
        let mut agent = Agent::new(&[SHORT, LONG]);
        agent.instructed(&serves(LONG));
        assert!(agent.arrived(LONG).is_empty());
        agent.instructed(&serves(SHORT));
        assert!(
            agent.arrived(LONG).is_empty(),
            "late, and not yet in anyone's way"
        );
        assert_eq!(agent.arrived(SHORT), [1].into_iter().collect());
        assert!(agent.arrived(SHORT).is_empty(), "once is enough");
    }

    #[test]
    fn nothing_is_evicted_by_a_longer_one_or_from_its_own_server() {
        let mut agent = Agent::new(&[SHORT, LONG]);
        assert!(agent.arrived(LONG).is_empty() && agent.arrived(SHORT).is_empty());
        agent.instructed(&serves(LONG));
        assert!(agent.arrived(LONG).is_empty(), "the short ones may finish");
    }

    #[test]
    fn of_several_strangers_those_are_evicted_that_are_longer() {
        let middle = ClassId(2);
        let mut agent = Agent::new(&[SHORT, middle, LONG]);
        agent.instructed(&serves(middle));
        assert!(agent.arrived(LONG).is_empty() && agent.arrived(SHORT).is_empty());
        assert_eq!(agent.arrived(middle), [1].into_iter().collect());
        assert!(
            agent.arrived(middle).is_empty(),
            "only the short one is left"
        );
        agent.instructed(&serves(SHORT));
        assert_eq!(
            agent.arrived(SHORT),
            [1, 2].into_iter().collect(),
            "all seen and no longer served"
        );
    }
}
