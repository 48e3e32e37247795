//! Rules that change while the server serves: another thread builds them, and each of the server's threads adopts them where it looks at the
//! phase anyway.
//!
//! A change lies in a mailbox of each thread. Only then the number of changes is raised, which threads compare with the number that they have
//! seen: a load from the line of the phase. A mailbox that is in use is looked at again in the next turn, so no thread waits for another.

use std::sync::{Arc, Mutex, PoisonError, TryLockError};

use crate::threads::control::ServerControl;

/// The end of a mailbox that is filled with parts whose rules are to be adopted.
pub(crate) struct RulesSender<P>(Arc<Mutex<Option<P>>>);

/// A thread's end of its mailbox.
pub(crate) struct RulesReceiver<P> {
    fresh: Arc<Mutex<Option<P>>>,
    /// The change adopted last.
    seen: u32,
}

/// A mailbox, empty.
pub(crate) fn rules<P>() -> (RulesSender<P>, RulesReceiver<P>) {
    let fresh = Arc::new(Mutex::new(None));
    let sender = RulesSender(Arc::clone(&fresh));
    (sender, RulesReceiver { fresh, seen: 0 })
}

impl<P> RulesSender<P> {
    /// Puts parts in place of the last ones. They stay here until the next change: the thread that adopts their rules frees nothing.
    pub(crate) fn put(&self, parts: P) {
        let mut fresh = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let before = fresh.replace(parts);
        drop(fresh);
        drop(before);
    }
}

impl<P> RulesReceiver<P> {
    /// Whether there are rules that this thread has not adopted.
    #[inline]
    pub(crate) fn are_new(&self, control: &ServerControl) -> bool {
        control.rule_changes() != self.seen
    }

    /// Adopts the rules if they are new. `adopt` says whether it could; it is tried again at the next call otherwise.
    #[inline]
    pub(crate) fn adopt(&mut self, control: &ServerControl, adopt: impl FnOnce(&P) -> bool) {
        let changes = control.rule_changes();
        if changes != self.seen {
            self.adopt_new(changes, adopt);
        }
    }

    #[cold]
    fn adopt_new(&mut self, changes: u32, adopt: impl FnOnce(&P) -> bool) {
        let fresh = match self.fresh.try_lock() {
            Ok(fresh) => fresh,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return,
        };
        if fresh.as_ref().is_none_or(adopt) {
            self.seen = changes;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_change_is_adopted_once() {
        let control = ServerControl::new(1, None, 0);
        let (sender, mut receiver) = rules();
        receiver.adopt(&control, |_: &u32| panic!("nothing changed"));
        sender.put(7);
        assert!(!receiver.are_new(&control), "it is not announced yet");
        control.announce_rules();
        assert!(receiver.are_new(&control));
        let mut adopted = Vec::new();
        receiver.adopt(&control, |_| false);
        for _ in 0..2 {
            receiver.adopt(&control, |&rules| {
                adopted.push(rules);
                true
            });
        }
        assert_eq!(adopted, [7]);
    }

    #[test]
    fn a_mailbox_in_use_is_looked_at_again() {
        let control = ServerControl::new(1, None, 0);
        let (sender, mut receiver) = rules();
        sender.put(());
        control.announce_rules();
        let held = sender.0.lock().unwrap();
        receiver.adopt(&control, |()| panic!("it is in use"));
        drop(held);
        let mut adopted = false;
        receiver.adopt(&control, |()| {
            adopted = true;
            true
        });
        assert!(adopted);
    }
}
