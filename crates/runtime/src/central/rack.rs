//! What a dispatcher does behind a rack's switch: drops clones that cannot start at once, hands requests back, takes duties.

use std::sync::Arc;

use headway_net::datapath::Tx;
use headway_net::header::{CloneRole, Flag};
use headway_net::pool::SlotId;
use headway_net::slot::{Peer, Slot};
use headway_policy::rack::{Agent, Bouncing};
use headway_policy::server::role::{Ingress, Shed};
use headway_policy::{BitSet, ClassId, Shape};

use super::waiting::{Waiting, describe};
use crate::queue::token::job_of;
use crate::request::intake::Intake;
use crate::request::server_queue::ServerQueue;
use crate::threads::control::ServerControl;
use crate::threads::rack::PreparedOrder;
use crate::threads::rules::RulesReceiver;

/// A dispatcher's agent, with the order that it goes by.
pub(super) struct RackSide {
    agent: Agent,
    orders: RulesReceiver<PreparedOrder>,
    /// Of the order in force, as far as there is one.
    number: u64,
    bouncing: Bouncing,
    switch: Peer,
    /// UNKNOWN included.
    classes: usize,
    /// Where it says how many requests it has, and its number there.
    queue: Arc<ServerQueue>,
    dispatcher: usize,
    /// Withdrawn requests that the switch wants kept; empty between calls.
    kept: Vec<SlotId>,
}

/// A dispatcher's waiting requests, and the way back to the switch.
pub(super) struct Returning<'a, I> {
    pub(super) ingress: &'a mut I,
    pub(super) intake: &'a mut Intake,
    pub(super) waiting: &'a mut [Option<Waiting>],
    pub(super) in_flight: &'a mut usize,
    pub(super) tx: &'a mut dyn Tx,
    pub(super) now_ns: u64,
}

impl RackSide {
    /// For a server of this shape, which holds at most as many requests as it has `buffers`; the dispatcher of this number in `queue`.
    pub(super) fn new(
        shape: &Shape,
        buffers: usize,
        orders: RulesReceiver<PreparedOrder>,
        queue: Arc<ServerQueue>,
        dispatcher: usize,
    ) -> Box<Self> {
        Box::new(Self {
            queue,
            dispatcher,
            agent: Agent::new(&shape.ascending()),
            orders,
            number: 0,
            bouncing: Bouncing::Off,
            switch: Peer::NOBODY,
            classes: shape.queues(),
            kept: Vec::with_capacity(buffers),
        })
    }

    /// The dispatcher has so many requests.
    #[inline]
    pub(super) fn has(&self, requests: usize) {
        self.queue.set(self.dispatcher, requests);
    }

    /// Whether there is an order that was not looked at.
    #[inline]
    pub(super) fn has_news(&self, control: &ServerControl) -> bool {
        self.orders.are_new(control)
    }

    /// A request arrives, and others did just now that are not placed yet if `others_came`. Hands back the waiting requests that give way to
    /// it. `false`: the request is a clone that would have to wait, and is dropped. Out of line: most servers are behind no switch.
    #[inline(never)]
    pub(super) fn admits<I: Ingress>(
        &mut self,
        slot: &SlotId,
        others_came: bool,
        mut returning: Returning<'_, I>,
    ) -> bool {
        let request = returning.intake.pool.get(slot);
        let class = ClassId(request.class);
        if self.is_clone(request) && (others_came || !returning.ingress.would_start(class)) {
            return false;
        }
        let evicted = self.agent.arrived(class);
        if self.bouncing != Bouncing::Off && !evicted.is_empty() {
            self.hand_back(&evicted, &mut returning);
        }
        true
    }

    /// Whether the switch sent the request as a clone.
    fn is_clone(&self, request: &Slot) -> bool {
        flag_of(request).clone_role() == CloneRole::Clone && request.peer == self.switch
    }

    /// Carries out the last order, if there is a new one.
    #[cold]
    pub(super) fn take_order<I: Ingress>(
        &mut self,
        control: &ServerControl,
        mut returning: Returning<'_, I>,
    ) {
        let Self {
            agent,
            orders,
            number,
            bouncing,
            switch,
            ..
        } = self;
        let mut returns_all = false;
        orders.adopt(control, |prepared| {
            let order = &prepared.order;
            // Changed rules are announced by the same number.
            if order.number == *number {
                return true;
            }
            *number = order.number;
            *bouncing = order.bouncing;
            *switch = order.switch;
            returns_all = order.bouncing == Bouncing::All;
            agent.instructed(&order.duty);
            returning.ingress.assign(returning.now_ns, &prepared.shares);
            true
        });
        if returns_all {
            self.hand_back(&BitSet::range(0, self.classes), &mut returning);
        }
        returning.intake.tally.order.set(self.number);
    }

    /// Hands back all requests of these types that wait and were not begun, but for those that the switch wants kept.
    #[cold]
    pub(super) fn hand_back<I: Ingress>(
        &mut self,
        classes: &BitSet,
        returning: &mut Returning<'_, I>,
    ) {
        let Returning {
            ingress,
            intake,
            waiting,
            in_flight,
            tx,
            now_ns,
        } = returning;
        for class in classes.iter() {
            while let Some(job) = ingress.withdraw(ClassId(class as u16)) {
                let waited = waiting[job.index()].take();
                let Waiting { slot, .. } = waited.expect("what is withdrawn waits");
                let request = intake.pool.get(&slot);
                if request.peer != self.switch || flag_of(request).is_bounced() {
                    self.kept.push(slot);
                    continue;
                }
                **in_flight -= 1;
                intake.hand_back(slot, &mut **tx, *now_ns);
            }
            for slot in self.kept.drain(..) {
                let (id, slot) = job_of(slot);
                let job = describe(id, intake.pool.get(&slot));
                match ingress.arrived(*now_ns, job) {
                    Ok(()) => {
                        let suspended = false;
                        waiting[id.index()] = Some(Waiting { slot, suspended });
                    }
                    // It left the queue that it comes back to, so there is room.
                    Err(Shed) => unreachable!("a queue takes back what was withdrawn from it"),
                }
            }
        }
    }
}

/// The flag of a request, which is at least a header long.
#[inline]
fn flag_of(slot: &Slot) -> Flag {
    Flag::from_bits(slot.payload()[1])
}
