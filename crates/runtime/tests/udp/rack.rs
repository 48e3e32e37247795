//! A server behind a rack's switch: duties, clones and requests handed back. The test is the switch.

use crate::common::{FOREVER, ServeOnLoopback, gated, loopback, wait_until};
use crate::{both_layouts, builder};
use headway_machine::thread::uninterrupted;
use headway_net::header::{CloneRole, Flag, Header, Status};
use headway_policy::ClassId;
use headway_policy::rack::{Bouncing, Duty, Part};
use headway_runtime::{DutyError, DutyOrder, Layout, RackLink, Server, StartError};
use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const SHORT: u8 = 0;
const LONG: u8 = 1;

/// The switch's end of a server, whose long requests wait until the gate is opened.
struct Switch {
    server: Server,
    link: RackLink,
    socket: UdpSocket,
    gate: Arc<AtomicBool>,
    orders: u64,
}

impl Switch {
    fn before_server(layout: Layout) -> Self {
        let gate = Arc::new(AtomicBool::new(false));
        let server = builder()
            .directed()
            .workers(1)
            .layout(layout)
            .serving(gated(&gate));
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_read_timeout(Some(FOREVER)).unwrap();
        socket.connect(server.local_addr().unwrap()).unwrap();
        let link = server.rack_link().expect("it stands behind a switch");
        Self {
            server,
            link,
            socket,
            gate,
            orders: 0,
        }
    }

    /// Gives the server one group's types, and waits until its dispatcher goes by that.
    fn order(&mut self, classes: &[usize], bouncing: Bouncing) {
        self.orders += 1;
        let part = Part {
            classes: classes.iter().copied().collect(),
            cores: 1,
        };
        let order = DutyOrder {
            number: self.orders,
            duty: Duty {
                parts: vec![part],
                ascending: [0, 1, 2].map(ClassId).to_vec(),
            },
            bouncing,
            switch: self.socket.local_addr().unwrap().into(),
        };
        self.link.instruct(&order).unwrap();
        let in_force = || self.link.counts().in_force == self.orders;
        wait_until("the order is in force", in_force);
    }

    fn send(&self, class: u8, flag: Flag, index: u32) {
        send(&self.socket, class, flag, index);
    }

    fn accepted(&self, requests: u64) {
        let accepted = || {
            let classes = self.server.stats().classes;
            classes.iter().map(|class| class.accepted).sum::<u64>()
        };
        wait_until("all are accepted", || accepted() == requests);
    }

    fn receive(&self) -> (Header, Vec<u8>) {
        receive(&self.socket)
    }
}

fn send(socket: &UdpSocket, class: u8, flag: Flag, index: u32) {
    let header = Header {
        class,
        flag,
        index,
        time_ns: 77,
    };
    let datagram = [&header.encode()[..], b"body"].concat();
    socket.send(&datagram).unwrap();
}

fn receive(socket: &UdpSocket) -> (Header, Vec<u8>) {
    let mut buffer = [0; 4096];
    let length = uninterrupted(|| socket.recv(&mut buffer)).expect("a packet in time");
    let (header, body) = Header::parse(&buffer[..length]).unwrap();
    (header, body.to_vec())
}

#[test]
fn a_clone_that_cannot_start_at_once_is_dropped() {
    both_layouts(|layout| {
        let mut switch = Switch::before_server(layout);
        let clone = Flag::REQUEST.with_clone_role(CloneRole::Clone);
        switch.order(&[0, 1, 2], Bouncing::Longer);
        // The only worker is free: the clone starts.
        switch.send(SHORT, clone, 1);
        let (header, _) = switch.receive();
        assert_eq!(header.flag.status(), Status::Ok, "{layout:?}");
        assert_eq!(header.flag.clone_role(), CloneRole::Clone);
        // It is busy: a clone is shed at once, an original waits.
        switch.send(LONG, Flag::REQUEST, 2);
        switch.accepted(2);
        switch.send(SHORT, clone, 3);
        if layout == Layout::Dedicated {
            let (header, _) = switch.receive();
            assert_eq!((header.index, header.flag.status()), (3, Status::Shed));
            assert_eq!(header.flag.clone_role(), CloneRole::Clone);
            assert_eq!(switch.link.counts().clones_dropped, 1);
        }
        switch.gate.store(true, Ordering::Release);
        let stats = switch.server.shutdown(FOREVER).unwrap();
        assert_eq!(stats.shed, switch.link.counts().clones_dropped);
        assert_eq!(stats.answered + stats.shed, 3, "{layout:?}");
    });
}

#[test]
fn nobody_but_the_switch_has_its_clones_dropped_or_its_requests_handed_back() {
    let mut switch = Switch::before_server(Layout::Dedicated);
    let other = UdpSocket::bind("127.0.0.1:0").unwrap();
    other.set_read_timeout(Some(FOREVER)).unwrap();
    other.connect(switch.server.local_addr().unwrap()).unwrap();
    switch.order(&[0, 1, 2], Bouncing::Longer);
    send(&other, LONG, Flag::REQUEST, 1);
    send(&other, LONG, Flag::REQUEST, 2);
    switch.accepted(2);
    let clone = Flag::REQUEST.with_clone_role(CloneRole::Clone);
    send(&other, SHORT, clone, 3);
    switch.order(&[0], Bouncing::All);
    switch.send(SHORT, Flag::REQUEST, 4);
    switch.accepted(4);
    switch.gate.store(true, Ordering::Release);
    let mut answered: Vec<u32> = (0..3).map(|_| receive(&other).0.index).collect();
    answered.sort_unstable();
    assert_eq!(answered, [1, 2, 3]);
    let stats = switch.server.shutdown(FOREVER).unwrap();
    assert_eq!((stats.answered, stats.shed, stats.handed_back), (4, 0, 0));
}

/// Follows requests from the switch to their execution and their response.
#[test]
fn a_short_request_has_waiting_longs_handed_back_once_the_duty_changed() {
    let mut switch = Switch::before_server(Layout::Dedicated);
    switch.order(&[1, 2], Bouncing::Longer);
    for index in 0..4 {
        switch.send(LONG, Flag::REQUEST, index);
    }
    // One of them was handed back too often: it is to be kept.
    switch.send(LONG, Flag::REQUEST.with_bounced(true), 4);
    switch.accepted(5);
    switch.order(&[0], Bouncing::Longer);
    assert_eq!(switch.link.counts().handed_back, 0, "in nobody's way yet");
    switch.send(SHORT, Flag::REQUEST, 5);
    for index in 1..4 {
        let (header, body) = switch.receive();
        assert!(header.flag.is_bounced(), "{header:?}");
        assert_eq!((header.class, header.index), (LONG, index));
        assert_eq!(
            (header.time_ns, &body[..]),
            (77, &b"body"[..]),
            "as it came"
        );
    }
    switch.gate.store(true, Ordering::Release);
    let mut served: Vec<u32> = (0..3).map(|_| switch.receive().0.index).collect();
    served.sort_unstable();
    assert_eq!(
        served,
        [0, 4, 5],
        "the one that runs, the kept one, the short"
    );
    let stats = switch.server.shutdown(FOREVER).unwrap();
    assert_eq!((stats.received, stats.answered), (6, 3));
    assert_eq!((stats.handed_back, stats.abandoned), (3, 0));
    assert!(stats.classes.iter().all(|class| class.pending() == 0));
}

#[test]
fn a_new_duty_hands_all_that_waits_back_where_that_is_asked_for() {
    both_layouts(|layout| {
        let mut switch = Switch::before_server(layout);
        switch.order(&[1, 2], Bouncing::All);
        // More than go back in one batch.
        for index in 0..200 {
            switch.send(LONG, Flag::REQUEST, index);
            if index % 50 == 49 && layout == Layout::Dedicated {
                switch.accepted(u64::from(index) + 1);
            }
        }
        if layout == Layout::Inline {
            // The only worker is at a request, so nobody looks at the order until that is done.
            switch.gate.store(true, Ordering::Release);
        }
        switch.order(&[0], Bouncing::All);
        switch.gate.store(true, Ordering::Release);
        let (mut served, mut back) = (0, 0);
        for _ in 0..200 {
            if switch.receive().0.flag.is_bounced() {
                back += 1;
            } else {
                served += 1;
            }
        }
        assert_eq!(served + back, 200);
        if layout == Layout::Dedicated {
            assert_eq!(served, 1, "the one that ran");
        }
        let stats = switch.server.shutdown(FOREVER).unwrap();
        assert_eq!((stats.answered, stats.handed_back), (served, back));
    });
}

/// The reservation of a duty holds: with one worker of two reserved for shorts, a short starts while longs wait.
#[test]
fn several_groups_have_workers_reserved() {
    let gate = Arc::new(AtomicBool::new(false));
    let server = builder()
        .directed()
        .layout(Layout::Dedicated)
        .serving(gated(&gate));
    let link = server.rack_link().unwrap();
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(FOREVER)).unwrap();
    socket.connect(server.local_addr().unwrap()).unwrap();
    let part = |classes: &[usize]| Part {
        classes: classes.iter().copied().collect(),
        cores: 1,
    };
    let order = DutyOrder {
        number: 1,
        duty: Duty {
            parts: vec![part(&[0]), part(&[1, 2])],
            ascending: Vec::new(),
        },
        bouncing: Bouncing::Longer,
        switch: socket.local_addr().unwrap().into(),
    };
    link.instruct(&order).unwrap();
    wait_until("the order is in force", || link.counts().in_force == 1);
    for index in 0..10 {
        send(&socket, LONG, Flag::REQUEST, index);
    }
    send(&socket, SHORT, Flag::REQUEST, 10);
    assert_eq!(receive(&socket).0.index, 10);
    gate.store(true, Ordering::Release);
    assert_eq!(server.shutdown(FOREVER).unwrap().answered, 11);
}

/// Who asks gets two more bytes; nobody else does, and no server without a switch tells.
#[test]
fn a_response_says_how_many_requests_there_are_where_the_switch_asks() {
    both_layouts(|layout| {
        let switch = Switch::before_server(layout);
        let asking = Flag::REQUEST.with_queue(true);
        for index in 0..3 {
            switch.send(LONG, asking, index);
        }
        switch.send(LONG, Flag::REQUEST, 3);
        if layout == Layout::Dedicated {
            switch.accepted(4);
        }
        // Once this one is accepted, the dispatcher has said that it had the others.
        switch.send(LONG, Flag::REQUEST, 4);
        if layout == Layout::Dedicated {
            switch.accepted(5);
        }
        switch.gate.store(true, Ordering::Release);
        let mut said = [None; 5];
        for _ in 0..5 {
            let (header, body) = switch.receive();
            assert_eq!(header.flag.has_queue(), header.index < 3, "{layout:?}");
            let (_, queue) = body.split_at(body.len() - if header.index < 3 { 2 } else { 0 });
            let queue = queue.try_into().ok().map(u16::from_be_bytes);
            said[header.index as usize] = queue;
        }
        let [first, second, third] = [0, 1, 2].map(|index| said[index].expect("it was asked"));
        if layout == Layout::Dedicated {
            assert!((3..=4).contains(&first), "{first} waited");
        }
        // The dispatcher may not have noticed yet that others were answered.
        assert!(second <= 4 && third <= 4, "{said:?}");
        assert_eq!(switch.server.shutdown(FOREVER).unwrap().answered, 5);
    });
    let alone = builder().serving(gated(&Arc::new(AtomicBool::new(true))));
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(FOREVER)).unwrap();
    socket.connect(alone.local_addr().unwrap()).unwrap();
    send(&socket, SHORT, Flag::REQUEST.with_queue(true), 1);
    assert!(!receive(&socket).0.flag.has_queue());
}

#[test]
fn orders_and_policies_that_cannot_be_carried_out_are_refused() {
    let server = builder().directed().serving(gated(&Arc::default()));
    let link = server.rack_link().unwrap();
    let part = Part {
        classes: [7].into_iter().collect(),
        cores: 1,
    };
    let order = DutyOrder {
        number: 1,
        duty: Duty {
            parts: vec![part],
            ascending: Vec::new(),
        },
        bouncing: Bouncing::Off,
        switch: loopback().into(),
    };
    let no_such = DutyError::NoSuchClass {
        class: 7,
        classes: 3,
    };
    assert_eq!(link.instruct(&order), Err(no_such));
    assert_eq!(link.counts().in_force, 0);
    drop(server);

    let steered = builder().policy("d-fcfs").behind_switch();
    let refused = steered.service(gated(&Arc::default()));
    let refused = refused.listen_udp(loopback()).start().err();
    assert!(matches!(refused, Some(StartError::NoDispatcher { .. })));

    let alone = builder().serving(gated(&Arc::default()));
    assert!(alone.rack_link().is_none());
    assert!(alone.shutdown(Duration::from_secs(5)).is_ok());
}
