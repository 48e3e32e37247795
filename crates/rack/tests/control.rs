//! The control plane beside a switch: the registers that it reads, and the moment its tables take effect.

mod common;

use common::{client, server};
use headway_machine::Clock;
use headway_machine::thread::uninterrupted;
use headway_net::header::{Flag, HEADER_BYTES, Header, Status};
use headway_net::slot::Peer;
use headway_plan::RackSlo;
use headway_policy::rack::{
    Cloning, ControlPlane, ControlRules, Delta, DemandReading, Shaper, Turns,
};
use headway_policy::{ClassHint, ClassId};
use headway_rack::{
    LocalAddress, PacketSink, RackControl, RackSwitch, ReceivedPacket, ScoringTask,
    ServerAddresses, SwitchLimits, SwitchTables, UdpSwitch, keep_control, run_control,
    score_by_simulation,
};
use headway_runtime::{Pin, Server};
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

const CORES: [usize; 4] = [1; 4];
const INTERVAL_NS: u64 = 10_000_000;

/// Half shorts of 10 µs and half longs of 100 µs: shorts get one of four cores, longs three.
fn planned() -> (ControlPlane, Shaper) {
    let types = [ClassHint::new(10e3, 0.5), ClassHint::new(100e3, 0.5)];
    let rules = ControlRules {
        delta: Delta::Cores(2.0),
        interval_ns: INTERVAL_NS,
        plan_ns: 10_000_000,
        ..ControlRules::default()
    };
    let mut control = ControlPlane::new(&CORES, &types, rules);
    control.choose(&[2.0, 1.0]);
    assert_eq!(control.layout().of_group(0), 1);
    let shaper = Shaper::new(2, 4, Turns::Even, Cloning::Off, 1 << 10);
    (control, shaper)
}

/// The last packet sent.
#[derive(Default)]
struct Last(Option<(Peer, [u8; HEADER_BYTES])>);

impl PacketSink for Last {
    fn send(&mut self, _from: LocalAddress, to: Peer, header: [u8; HEADER_BYTES], _body: &[u8]) {
        self.0 = Some((to, header));
    }
}

/// Sends a request through the switch, answers it as its server, and returns that server.
fn exchange(switch: &mut RackSwitch<Shaper>, class: u8, execution_ns: u64) -> Peer {
    let request = Header {
        class,
        flag: Flag::REQUEST,
        index: 1,
        time_ns: 0,
    };
    let mut last = Last::default();
    switch.step(
        0,
        ReceivedPacket::of(client(0).into(), &request.encode()),
        &mut last,
    );
    let (to, asked) = last.0.take().expect("a server");
    let answer = Header::decode(asked).response(Status::Ok, execution_ns);
    switch.step(0, ReceivedPacket::of(to, &answer.encode()), &mut last);
    to
}

fn servers_of(switch: &mut RackSwitch<Shaper>, class: u8, execution_ns: u64) -> usize {
    let mut servers: Vec<_> = (0..12)
        .map(|_| exchange(switch, class, execution_ns))
        .collect();
    servers.sort_by_key(|peer| peer.socket_addr());
    servers.dedup();
    servers.len()
}

#[test]
fn a_change_of_the_demand_becomes_new_tables_once_the_candidates_are_scored() {
    let (control, mut shaper) = planned();
    let tables = Arc::new(SwitchTables::new(2));
    let mut rack = RackControl::new(control, Arc::clone(&tables));
    let mut generation = tables.install(0, &mut shaper);
    assert_eq!(generation, 1);
    let addresses: Vec<SocketAddr> = (0..4).map(server).collect();
    let addresses = ServerAddresses::new(&addresses).unwrap();
    let own = Peer::from(common::own());
    let mut switch = RackSwitch::new(shaper, own, addresses, SwitchLimits::new(2));
    assert_eq!(servers_of(&mut switch, 0, 10_000), 1);
    assert_eq!(servers_of(&mut switch, 1, 100_000), 3);
    tables.publish_readings(switch.policy());
    assert!(rack.look(INTERVAL_NS).is_none(), "as declared");
    assert!(rack.look(INTERVAL_NS).is_none(), "nothing came since");
    for _ in 0..1000 {
        exchange(&mut switch, 0, 10_000);
    }
    exchange(&mut switch, 1, 100_000);
    tables.publish_readings(switch.policy());
    let task = rack
        .look(INTERVAL_NS)
        .expect("shorts need more than a core");
    // 1000 × 10 µs and one of 100 µs in 10 ms, of four cores.
    assert!((task.load - 10.1 / 40.0).abs() < 1e-3, "{}", task.load);
    assert_eq!(tables.generation(), 1, "the old tables stay");
    generation = tables.install(generation, switch.policy());
    assert_eq!(servers_of(&mut switch, 0, 10_000), 1);
    let scores = score_by_simulation(&CORES, Turns::Even, None, &task);
    assert_eq!(scores.len(), task.control.candidates().len());
    assert!(scores.iter().any(|score| score.is_finite()), "{scores:?}");
    // A grouping that ignores the scores: two groups.
    rack.scored(&[2.0, 1.0]);
    assert_eq!(
        (rack.control().layout().of_group(0), tables.generation()),
        (3, 2)
    );
    assert_eq!(tables.install(generation, switch.policy()), 2);
    assert_eq!(servers_of(&mut switch, 0, 10_000), 3);
    assert_eq!(servers_of(&mut switch, 1, 100_000), 1);
    let registers = switch.policy().monitor().readings()[0];
    assert_eq!(
        registers.count,
        12 + 1000 + 12 + 12,
        "new tables leave the registers"
    );
    assert_eq!(tables.reading(ClassId(0)).count, 1012, "as published last");
}

#[test]
fn a_control_plane_takes_up_what_another_one_left() {
    let (control, mut shaper) = planned();
    let tables = Arc::new(SwitchTables::new(2));
    assert!(RackControl::take_up(Arc::clone(&tables)).is_none());
    let mut rack = RackControl::new(control, Arc::clone(&tables));
    let readings = |shorts, longs| {
        [(shorts, 10_000), (longs, 100_000), (0, 0)].map(|(count, execution_ns)| DemandReading {
            count,
            execution_ns,
        })
    };
    tables.set_readings(&readings(1000, 1));
    let task = rack
        .look(INTERVAL_NS)
        .expect("shorts need more than a core");
    assert_eq!(task.control.candidates().len(), 2);
    // The tables are published while candidates wait for scores that never arrive.
    tables.publish(&task.control);
    drop(rack);
    tables.install(0, &mut shaper);
    let mut again = RackControl::take_up(Arc::clone(&tables)).expect("there are tables");
    assert_eq!(tables.generation(), 2, "they stay in force");
    assert_eq!(again.control().layout().of_group(0), 1);
    let needed = again.control().demand().of_type(0);
    assert!(needed > 0.9, "as measured, not as declared: {needed}");
    // No request came since, but the planning that had begun is due.
    assert!(again.look(INTERVAL_NS).is_some());
    again.scored(&[2.0, 1.0]);
    assert_eq!(again.control().layout().of_group(0), 3);
    assert!(again.look(INTERVAL_NS).is_none());
}

#[test]
fn a_control_plane_that_panics_is_followed_by_another() {
    let (control, mut shaper) = planned();
    let tables = Arc::new(SwitchTables::new(2));
    let rack = RackControl::new(control, Arc::clone(&tables));
    let (stopped, scored, failures) =
        (AtomicBool::new(false), AtomicU32::new(0), AtomicU32::new(0));
    let score = |task: &ScoringTask| {
        assert!(
            scored.fetch_add(1, Ordering::AcqRel) > 0,
            "the first one fails"
        );
        vec![2.0, 1.0][..task.control.candidates().len()].to_vec()
    };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let failed = || {
                failures.fetch_add(1, Ordering::AcqRel);
            };
            keep_control(rack, Clock::global(), &stopped, score, |_| {}, failed);
        });
        let end = Instant::now() + Duration::from_secs(60);
        let (mut count, mut generation) = (0, 0);
        while tables.generation() < 2 {
            assert!(Instant::now() < end, "no new layout");
            count += 1000;
            let reading = |count, execution_ns| DemandReading {
                count,
                execution_ns,
            };
            tables.set_readings(&[
                reading(count, 10_000),
                reading(count / 1000, 100_000),
                reading(0, 0),
            ]);
            // The switch forwards packets meanwhile.
            generation = tables.install(generation, &mut shaper);
            assert!(shaper.groups() == 2 && !shaper.round_of(0).is_empty());
            std::thread::sleep(Duration::from_millis(5));
        }
        stopped.store(true, Ordering::Release);
    });
    assert_eq!(failures.load(Ordering::Acquire), 1);
    tables.install(1, &mut shaper);
    assert_eq!(shaper.round_of(0).len(), 3, "shorts have three of four");
}

#[test]
fn uneven_servers_are_scored_too_and_what_cannot_be_leaves_all_alike() {
    let types = [ClassHint::new(10e3, 0.9), ClassHint::new(100e3, 0.1)];
    let cores = [4, 1, 2];
    let rules = ControlRules {
        plan_ns: 10_000_000,
        ..ControlRules::default()
    };
    let control = ControlPlane::new(&cores, &types, rules);
    let task = ScoringTask { control, load: 0.8 };
    let scores = score_by_simulation(&cores, Turns::Even, None, &task);
    assert!(
        scores.iter().all(|score| *score >= 1.0),
        "slowdowns: {scores:?}"
    );
    assert!(scores.iter().any(|score| score.is_finite()), "{scores:?}");
    assert_eq!(
        scores,
        score_by_simulation(&cores, Turns::Even, None, &task),
        "by seed"
    );
    let none = score_by_simulation(&[], Turns::Even, None, &task);
    assert_eq!(none, [f64::INFINITY; 2]);
}

#[test]
fn with_an_slo_candidates_are_scored_by_the_bound_that_they_use_most() {
    let types = [ClassHint::new(10e3, 0.9), ClassHint::new(100e3, 0.1)];
    let cores = [4, 4];
    let control = ControlPlane::new(&cores, &types, ControlRules::default());
    let task = ScoringTask {
        control,
        load: 0.85,
    };
    let scores = |slo: &str| {
        let slo = RackSlo {
            slo: slo.parse().unwrap(),
            declared: vec!["short".into(), "long".into()],
        };
        score_by_simulation(&cores, Turns::Even, Some(&slo), &task)
    };
    let overall = scores("overall.slowdown.p99<=10");
    let p99s = score_by_simulation(&cores, Turns::Even, None, &task);
    // Without an SLO, a trial that is certain to lose ends early.
    for (of_slo, p99) in overall.iter().zip(p99s).filter(|(_, p99)| p99.is_finite()) {
        assert!((of_slo - p99 / 10.0).abs() < 1e-9, "{of_slo}, {p99}");
    }
    let [short, long] = [
        "class.short.slowdown.p99<=10",
        "class.long.slowdown.p99<=10",
    ]
    .map(scores);
    let both = scores("class.*.slowdown.p99<=10");
    for (number, both) in both.iter().enumerate() {
        assert_eq!(*both, short[number].max(long[number]), "the tighter one");
    }
    assert!(
        short[1] < short[0],
        "shorts gain by a group of their own: {short:?}"
    );
}

/// A server of one worker whose shorts and longs take their time.
fn spinning() -> Server {
    Server::builder()
        .policy("c-fcfs")
        .class("short", Duration::from_micros(10))
        .class("long", Duration::from_micros(100))
        .workers(1)
        .pin(Pin::Off)
        .handler(|call| {
            let us = if call.class() == ClassId(0) { 10 } else { 100 };
            let begin = Instant::now();
            while begin.elapsed() < Duration::from_micros(us) {
                std::hint::spin_loop();
            }
            call.reply(&[]);
        })
        .listen_udp("127.0.0.1:0".parse().unwrap())
        .start()
        .expect("a server")
}

/// Switch, servers and control plane on loopback: longs alone, then shorts alone, until the control plane has given the shorts most of the cores.
#[test]
fn a_live_rack_follows_its_workload_without_losing_a_request() {
    let servers: Vec<Server> = (0..4).map(|_| spinning()).collect();
    let addresses = servers.iter().map(|server| server.local_addr().unwrap());
    let addresses: Vec<SocketAddr> = addresses.collect();
    let (control, shaper) = planned();
    let tables = Arc::new(SwitchTables::new(2));
    let rack = RackControl::new(control, Arc::clone(&tables));
    let mut switch = UdpSwitch::bind(
        "127.0.0.1:0".parse().unwrap(),
        shaper,
        ServerAddresses::new(&addresses).unwrap(),
        SwitchLimits::new(2),
        Clock::global(),
    )
    .unwrap()
    .with_tables(Arc::clone(&tables));
    let at = switch.local_addr();
    let stopped = Arc::new(AtomicBool::new(false));
    let stopper = switch.stopper(&stopped);
    let sent = std::thread::scope(|scope| {
        let counts = scope.spawn(|| {
            switch.run(&stopped);
            *switch.switch().counts()
        });
        scope.spawn(|| {
            let score = |task: &ScoringTask| score_by_simulation(&CORES, Turns::Even, None, task);
            run_control(rack, Clock::global(), &stopped, score, |_| {});
        });
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.connect(at).unwrap();
        socket
            .set_read_timeout(Some(Duration::from_secs(60)))
            .unwrap();
        let begin = Instant::now();
        let (mut sent, mut buffer) = (0u32, [0; 64]);
        // Shorts alone need the longs' cores.
        while tables.generation() < 2 {
            assert!(begin.elapsed() < Duration::from_secs(60), "no new layout");
            let request = Header {
                class: u8::from(sent % 100 == 0),
                flag: Flag::REQUEST,
                index: sent,
                time_ns: 0,
            };
            socket.send(&request.encode()).unwrap();
            uninterrupted(|| socket.recv(&mut buffer)).expect("an answer");
            sent += 1;
        }
        stopper.stop();
        let counts = counts.join().unwrap();
        assert_eq!(
            (counts.requests, counts.answered),
            (u64::from(sent), u64::from(sent))
        );
        assert_eq!(counts.dropped() + counts.expired + counts.shed, 0);
        sent
    });
    assert!(sent > 0);
    assert!(stopped.load(Ordering::Acquire));
}
