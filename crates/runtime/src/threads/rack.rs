//! A server behind a rack's switch: what its agent tells the dispatchers, and what they count.
//!
//! Orders lie in mailboxes beside those of changed [rules](crate::threads::rules), and are announced as these are.

use std::sync::Arc;

use headway_net::slot::Peer;
use headway_policy::ClassId;
use headway_policy::rack::{Bouncing, Duty};
use headway_policy::server::role::{GroupShares, Share};

use crate::stats::tally::Tally;
use crate::threads::control::ServerControl;
use crate::threads::rules::RulesSender;

/// What a rack's control plane wants of a server.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DutyOrder {
    /// Tells orders apart: above 0. One with the number of the last is carried out already.
    pub number: u64,
    /// The groups to serve, in the server's own classes. A server with a policy of its own does not heed it.
    pub duty: Duty,
    /// Which waiting requests go back to the switch.
    pub bouncing: Bouncing,
    /// The switch. Requests from anybody else are never handed back, and never dropped as clones.
    pub switch: Peer,
}

/// Why an order is none.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DutyError {
    /// A group has a class that the server does not have.
    #[error("the order names class {class}: the server has {classes}, UNKNOWN included")]
    NoSuchClass {
        /// The class.
        class: usize,
        /// Those of the server.
        classes: usize,
    },
    /// The order by execution time does not list every class once.
    #[error("the order ranks classes, and not each of the {classes} of the server once")]
    Ranks {
        /// Those of the server.
        classes: usize,
    },
}

headway_words::debug_is_display!(DutyError);

/// What a server behind a switch did there.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RackCounts {
    /// The number of the order that every dispatcher has carried out; 0 before the first.
    pub in_force: u64,
    /// Clones that were dropped, since they could not start at once: answered as shed.
    pub clones_dropped: u64,
    /// Requests handed back to the switch.
    pub handed_back: u64,
}

/// An order as the dispatchers take it: nothing is allocated there.
pub(crate) struct PreparedOrder {
    pub(crate) order: DutyOrder,
    pub(crate) shares: GroupShares,
}

/// Puts an order into the mailboxes of all dispatchers.
pub(crate) type SetDuty = Arc<dyn Fn(&DutyOrder) + Send + Sync>;

/// That of dispatchers with these mailboxes.
pub(crate) fn set_duty(mailboxes: Vec<RulesSender<PreparedOrder>>) -> SetDuty {
    Arc::new(move |order| {
        for mailbox in &mailboxes {
            mailbox.put(PreparedOrder {
                order: order.clone(),
                shares: group_shares(&order.duty),
            });
        }
    })
}

/// A duty, as a policy is told.
fn group_shares(duty: &Duty) -> GroupShares {
    let parts = duty.parts.iter();
    let shares = parts.map(|part| Share {
        classes: part.classes,
        workers: part.cores,
    });
    GroupShares {
        shares: shares.collect(),
        ascending: duty.ascending.clone(),
    }
}

/// Gives orders to a server [behind a switch](crate::Builder::behind_switch), from any thread.
#[derive(Clone)]
pub struct RackLink {
    pub(crate) control: Arc<ServerControl>,
    pub(crate) set_duty: SetDuty,
    /// Those of the dispatchers.
    pub(crate) tallies: Vec<Arc<Tally>>,
    /// UNKNOWN included.
    pub(crate) classes: usize,
}

impl RackLink {
    /// The server's dispatchers go by this order from their next turns on.
    ///
    /// # Errors
    /// [`DutyError`], and nothing changes.
    pub fn instruct(&self, order: &DutyOrder) -> Result<(), DutyError> {
        check(&order.duty, self.classes)?;
        (self.set_duty)(order);
        self.control.announce_rules();
        Ok(())
    }

    /// What the server did with its orders so far.
    #[must_use]
    pub fn counts(&self) -> RackCounts {
        let sum = |count: fn(&Tally) -> u64| self.tallies.iter().map(|tally| count(tally)).sum();
        let in_force = self.tallies.iter().map(|tally| tally.order.get());
        RackCounts {
            in_force: in_force.min().unwrap_or(0),
            clones_dropped: sum(|tally| tally.clones_dropped.get()),
            handed_back: sum(Tally::handed_back),
        }
    }
}

fn check(duty: &Duty, classes: usize) -> Result<(), DutyError> {
    let named = duty.parts.iter().flat_map(|part| part.classes.iter());
    let ranked = duty.ascending.iter().map(|class| class.index());
    if let Some(class) = named.chain(ranked).find(|&class| class >= classes) {
        return Err(DutyError::NoSuchClass { class, classes });
    }
    let mut ranked = duty.ascending.clone();
    ranked.sort_unstable();
    let all = (0..classes).map(|class| ClassId(class as u16));
    if ranked.is_empty() || ranked.into_iter().eq(all) {
        Ok(())
    } else {
        Err(DutyError::Ranks { classes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use headway_policy::rack::Part;

    fn duty(classes: &[usize], ascending: &[u16]) -> Duty {
        let part = Part {
            classes: classes.iter().copied().collect(),
            cores: 1,
        };
        Duty {
            parts: vec![part],
            ascending: ascending.iter().copied().map(ClassId).collect(),
        }
    }

    #[test]
    fn orders_name_the_servers_classes_each_once() {
        assert_eq!(check(&duty(&[0, 2], &[1, 0, 2]), 3), Ok(()));
        assert_eq!(check(&duty(&[0], &[]), 3), Ok(()));
        let no_such = DutyError::NoSuchClass {
            class: 3,
            classes: 3,
        };
        assert_eq!(check(&duty(&[3], &[]), 3), Err(no_such));
        assert_eq!(check(&duty(&[0], &[0, 1, 3]), 3), Err(no_such));
        let ranks = DutyError::Ranks { classes: 3 };
        assert_eq!(check(&duty(&[0], &[0, 1]), 3), Err(ranks));
        assert_eq!(check(&duty(&[0], &[0, 1, 1]), 3), Err(ranks));
    }
}
