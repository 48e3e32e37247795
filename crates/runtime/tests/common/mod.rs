//! The shared parts of the tests of the running server.
#![allow(dead_code, reason = "each test file uses its own part")]

use headway_machine::thread::uninterrupted;
use std::collections::HashMap;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use headway_machine::Clock;
use headway_net::header::{Flag, HEADER_BYTES, Header, Status};
use headway_net::replay::{Replay, ReplayArrival, ReplayControl};
use headway_policy::server::role::Owner;
use headway_policy::server::systems::{self, Preemption, ServerSpec};
use headway_runtime::{Builder, Call, Layout, Server, Service, ShutdownError, Stats};

/// Builders that start a server on a free port of this machine.
pub(crate) trait ServeOnLoopback {
    /// Starts a server that answers by `service`.
    fn serving(self, service: impl Service) -> Server;
}

impl<S, D> ServeOnLoopback for Builder<S, D> {
    fn serving(self, service: impl Service) -> Server {
        let listening = self.service(service).listen_udp(loopback());
        listening.start().expect("the server starts")
    }
}

/// Any free port of this machine.
pub(crate) fn loopback() -> SocketAddr {
    "127.0.0.1:0".parse().unwrap()
}

/// So long that only a hang exceeds it.
pub(crate) const FOREVER: Duration = Duration::from_secs(60);

/// The policies that a live server carries out without interrupting requests.
pub(crate) fn live_policies() -> impl Iterator<Item = &'static str> {
    let live = systems::ALL
        .iter()
        .filter(|policy| policy.defaults.preemption == Preemption::None);
    live.map(|policy| policy.about.name)
}

/// Whether the policy's workers own their receive queues.
pub(crate) fn is_steered(policy: &str) -> bool {
    let spec: ServerSpec = policy.parse().unwrap();
    spec.facts().owner == Owner::Steering
}

/// The builder with the policy, and the layout where the policy has somebody to lay out: a server refuses it elsewhere.
pub(crate) fn laid_out<S, D>(
    builder: Builder<S, D>,
    policy: &str,
    layout: Layout,
) -> Builder<S, D> {
    let facts = policy.parse::<ServerSpec>().unwrap().facts();
    let by_monitor = matches!(facts.preemption, Preemption::ByMonitor { .. });
    let builder = builder.policy(policy);
    match facts.owner {
        Owner::Dispatcher => builder.layout(layout),
        Owner::Steering if by_monitor => builder.layout(layout),
        Owner::Steering | Owner::Nobody => builder,
    }
}

/// The builder with a limit of its queues, or with buffers for as many requests where they wait in receive queues.
pub(crate) fn with_room<S, D>(
    builder: Builder<S, D>,
    policy: &str,
    requests: usize,
) -> Builder<S, D> {
    if is_steered(policy) {
        builder.slots(requests)
    } else {
        builder.queue_limit(requests)
    }
}

/// A replay of `count` requests, one each `gap_ns`, of two classes in turn, dealt to `queues` receive queues.
pub(crate) fn replay(
    queues: usize,
    count: u32,
    gap_ns: u64,
    service_ns: [u64; 2],
) -> (Replay, ReplayControl) {
    uneven_replay(queues, queues, count, gap_ns, service_ns)
}

/// The same, dealt to the first `fed` of the receive queues.
pub(crate) fn uneven_replay(
    queues: usize,
    fed: usize,
    count: u32,
    gap_ns: u64,
    service_ns: [u64; 2],
) -> (Replay, ReplayControl) {
    let mut schedules = vec![Vec::new(); queues];
    for index in 0..count {
        let class = (index % 2) as u8;
        schedules[index as usize / 2 % fed].push(ReplayArrival {
            at_ns: u64::from(index) * gap_ns,
            service_ns: service_ns[usize::from(class)],
            index,
            class,
        });
    }
    Replay::new(schedules).unwrap()
}

/// Starts a replay and waits until all requests are handed out.
pub(crate) fn play(control: &ReplayControl) {
    control.start(Clock::global().now_ns());
    let end = Instant::now() + FOREVER;
    while control.taken() < control.total() {
        assert!(
            Instant::now() < end,
            "only {} of {} were taken",
            control.taken(),
            control.total()
        );
        std::thread::sleep(Duration::from_micros(200));
    }
}

/// Each of a [`replay`]'s `count` requests came back once, none was refused or lost, and longs were served for `long_ns` on average or more.
pub(crate) fn assert_all_answered(
    stats: &Stats,
    control: &ReplayControl,
    long_ns: u64,
    context: &str,
) {
    let count = control.total() as u32;
    let context = format!("{context}: {stats:?}");
    let mut seen: Vec<u32> = control
        .take_completions()
        .iter()
        .map(|done| done.index)
        .collect();
    seen.sort_unstable();
    assert_eq!(seen, (0..count).collect::<Vec<u32>>(), "{context}");
    let expected = u64::from(count);
    assert_eq!(
        (stats.received, stats.answered, stats.shed),
        (expected, expected, 0),
        "{context}"
    );
    assert_eq!(
        (stats.abandoned, stats.panics, stats.unsent),
        (0, 0, 0),
        "{context}"
    );
    let by_class: Vec<u64> = stats.classes.iter().map(|class| class.answered).collect();
    assert_eq!(by_class, [expected / 2, expected / 2, 0], "{context}");
    let served_ns = stats.classes[1].mean_cpu_ns().unwrap();
    // A clock's tick is not a whole number of ns.
    assert!(
        served_ns >= 0.996 * long_ns as f64,
        "{served_ns} ns served, {context}"
    );
}

/// While the gate is shut, requests of the long class block their worker.
pub(crate) fn gated(gate: &Arc<AtomicBool>) -> impl Fn(&mut Call<'_>) + Send + Sync + 'static {
    let gate = Arc::clone(gate);
    move |call| {
        while call.class().0 == 1 && !gate.load(Ordering::Acquire) {
            std::thread::sleep(Duration::from_micros(100));
        }
        call.reply_in_place();
    }
}

/// Stops a server whose workers wait at a gate: the deadline is short, and the gate opens later, while the server still waits for its threads. `None`
/// where the machine delayed the opening for longer than that. Where it delays the stop, the gate opens before the deadline.
pub(crate) fn stopped_before_the_gate_opens(server: Server, gate: &AtomicBool) -> Option<Stats> {
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(200));
            gate.store(true, Ordering::Release);
        });
        match server.shutdown(Duration::from_millis(20)) {
            Err(ShutdownError::Stuck { .. }) => None,
            ended => Some(ended.unwrap()),
        }
    })
}

/// Waits for a condition. A round of a test can be one that the machine may prevent, such as one thread before another.
pub(crate) fn wait_until(what: &str, condition: impl Fn() -> bool) {
    let end = Instant::now() + FOREVER;
    while !condition() {
        assert!(Instant::now() < end, "waited in vain until {what}");
        std::thread::sleep(Duration::from_micros(200));
    }
}

/// A UDP client that counts what comes back.
pub(crate) struct Client {
    socket: UdpSocket,
    pub(crate) answers: HashMap<u32, Vec<(Header, Vec<u8>)>>,
}

impl Client {
    /// A client of the server.
    pub(crate) fn of(server: &Server) -> Self {
        Self::connect(server.local_addr().expect("it listens"))
    }

    pub(crate) fn connect(addr: SocketAddr) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.connect(addr).unwrap();
        socket.set_read_timeout(Some(FOREVER)).unwrap();
        Self {
            socket,
            answers: HashMap::new(),
        }
    }

    pub(crate) fn send(&self, class: u8, index: u32, payload: &[u8]) {
        let header = Header {
            class,
            flag: Flag::REQUEST,
            index,
            time_ns: 0,
        };
        self.send_raw(&[&header.encode(), payload].concat());
    }

    pub(crate) fn send_raw(&self, bytes: &[u8]) {
        self.socket.send(bytes).unwrap();
    }

    /// Waits for the next answer and files it.
    pub(crate) fn receive(&mut self) -> (Header, Vec<u8>) {
        let mut buffer = [0; 4096];
        let len = uninterrupted(|| self.socket.recv(&mut buffer)).expect("an answer in time");
        assert!(len >= HEADER_BYTES);
        let (header, payload) = Header::parse(&buffer[..len]).unwrap();
        assert!(header.flag.is_response());
        let answer = (header, payload.to_vec());
        self.answers
            .entry(header.index)
            .or_default()
            .push(answer.clone());
        answer
    }

    pub(crate) fn call(&mut self, class: u8, index: u32, payload: &[u8]) -> (Status, Vec<u8>) {
        self.send(class, index, payload);
        let (header, answer) = self.receive();
        assert_eq!((header.class, header.index), (class, index));
        (header.flag.status(), answer)
    }

    /// The status of the answer to a request, if one comes in time.
    pub(crate) fn answers_within(
        &mut self,
        time: Duration,
        class: u8,
        index: u32,
    ) -> Option<Status> {
        self.send(class, index, b"");
        self.socket.set_read_timeout(Some(time)).unwrap();
        let mut buffer = [0; 4096];
        let answer = uninterrupted(|| self.socket.recv(&mut buffer));
        self.socket.set_read_timeout(Some(FOREVER)).unwrap();
        let (header, _) = Header::parse(&buffer[..answer.ok()?]).unwrap();
        Some(header.flag.status())
    }

    /// Nothing more is on its way.
    pub(crate) fn assert_silent(&self) {
        self.socket
            .set_read_timeout(Some(Duration::from_millis(20)))
            .unwrap();
        assert!(
            self.socket.recv(&mut [0; 64]).is_err(),
            "an answer too many"
        );
    }
}
