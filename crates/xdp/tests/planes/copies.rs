//! Requests that go to two servers.

use crate::addresses::CLIENTS_SIDE;
use crate::common::PASS;
use crate::{Planes, UnderWay};
use headway_net::header::CloneRole;
use headway_policy::rack::Mark;
use headway_xdp::CloneOrder;
use std::cell::Cell;
use std::rc::Rc;

/// The fate of the copies of one request.
pub(crate) struct CopiesOut {
    at_servers: Cell<u32>,
    answered: Cell<bool>,
}

impl CopiesOut {
    pub(crate) fn new(copies: u32) -> Self {
        Self {
            at_servers: Cell::new(copies),
            answered: Cell::new(false),
        }
    }

    /// A copy left its server.
    pub(crate) fn came_back(&self) {
        self.at_servers.set(self.at_servers.get() - 1);
    }

    /// The client got a response.
    pub(crate) fn answer(&self) {
        self.answered.set(true);
    }

    /// The client got a response or may still get one.
    pub(crate) fn others_answer(&self) -> bool {
        self.at_servers.get() > 0 || self.answered.get()
    }
}

pub(crate) fn role_of(mark: Mark) -> CloneRole {
    match mark {
        Mark::Plain => CloneRole::None,
        Mark::Original => CloneRole::Original,
        Mark::Clone => CloneRole::Clone,
    }
}

impl Planes {
    /// The request reaches the two servers that the policy chose. The program sends neither copy: it addresses the packet to the first, and
    /// orders both.
    pub(crate) fn reaches_both(&mut self, request: &UnderWay, servers: [usize; 2]) {
        let frame = request.frame.clone();
        let sent = self.user_step(CLIENTS_SIDE, &frame);
        let ran = self.xdp_run(CLIENTS_SIDE, &frame.bytes());
        let to: Vec<_> = sent.iter().map(|(to, _)| *to).collect();
        assert_eq!(to, servers.map(|server| self.family.server(server)));
        let order = CloneOrder {
            tables: (self.xdp.generation() % 2) as u32,
            servers: servers.map(|server| server as u16),
        };
        assert_eq!((ran.action, ran.order), (PASS, Some(order)));
        let mut request = request.clone();
        self.has_index(&mut request, &sent[0].1);
        let copies = Rc::new(CopiesOut::new(2));
        for (number, mark) in [Mark::Original, Mark::Clone].into_iter().enumerate() {
            let copy = UnderWay {
                server: servers[number],
                mark,
                copies: Rc::clone(&copies),
                ..request.clone()
            };
            let expected = self.expected_at_server(&copy, &sent[number].1, &frame);
            // The clone differs by the fields that the program behind writes.
            if mark == Mark::Original {
                assert_eq!(ran.bytes, expected.bytes(), "user space and XDP");
            }
            self.under_way.push(copy);
        }
    }
}
