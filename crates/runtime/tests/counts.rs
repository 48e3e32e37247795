//! Every datagram that a server takes in is in exactly one count: under every policy of the registry, in every layout, over every datapath, under an
//! overload of any class, and with a stop at any moment.
//!
//! `HEADWAY_COUNTS` says how many servers each policy gets. A failure prints the command that draws the same servers again.

mod common;

use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use common::{FOREVER, loopback, wait_until};
use headway_machine::Clock;
use headway_net::header::{Flag, Header};
use headway_net::replay::{Completion, Replay, ReplayArrival};
use headway_policy::server::systems::{self, ServerSpec};
use headway_policy::{Resume, Shape};
use headway_runtime::{
    Admission, Builder, Call, ClassStats, DeclaredClass, Idle, Layout, Pin, Server, ShedStats,
    Stats, admit, checkpoint,
};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

/// Servers of each policy, unless `HEADWAY_COUNTS` says otherwise.
const SERVERS: u32 = 6;
const SEED: u64 = 0xc0_4475;
/// Datagrams at once that no socket buffer on the way drops.
const BURST: u32 = 64;
const TOO_LARGE: usize = 3_000;

/// What comes to a server, and how it ends.
#[derive(Clone, Debug)]
struct Overload {
    workers: usize,
    dedicated: bool,
    by_udp: bool,
    anywhere: bool,
    by_feedback: bool,
    says_long: bool,
    idle: Idle,
    /// Buffers; as many as the queues need where it is `None`.
    slots: Option<usize>,
    queue_limit: Option<usize>,
    /// Requests of each class: short, long, UNKNOWN.
    requests: [u32; 3],
    /// Checkpoints of a long.
    rounds: u32,
    /// Datagrams that are no requests, and requests too large for a buffer. Only UDP carries them.
    malformed: u32,
    too_large: u32,
    stop: Stop,
}

#[derive(Clone, Copy, Debug)]
enum Stop {
    /// When everything was answered or refused.
    AtRest,
    /// After so long, with so long to answer what was accepted.
    After { us: u64, within: Duration },
}

fn overloads() -> impl Strategy<Value = Overload> {
    let stop = prop_oneof![
        Just(Stop::AtRest),
        (
            0..20_000u64,
            prop_oneof![Just(0), Just(200), Just(60_000_000u64)]
        )
            .prop_map(|(us, within_us)| Stop::After {
                us,
                within: Duration::from_micros(within_us),
            }),
    ];
    let few_or_many = || prop_oneof![0..20u32, 500..2_500u32];
    let idle = prop_oneof![Just(Idle::Spin), Just(Idle::Park), Just(Idle::default())];
    let slots = prop_oneof![Just(None), Just(Some(8)), Just(Some(70)), Just(Some(600))];
    let limit = prop_oneof![Just(None), Just(Some(1)), Just(Some(30))];
    let shape = (1..4usize, any::<[bool; 5]>(), idle, slots, limit);
    let longs = prop_oneof![Just(20u32), Just(2_000), Just(20_000)];
    let traffic = (
        [few_or_many(), few_or_many(), few_or_many()],
        longs,
        0..4u32,
        0..4u32,
    );
    (shape, traffic, stop).prop_map(|(shape, traffic, stop)| {
        let (
            workers,
            [dedicated, by_udp, anywhere, by_feedback, says_long],
            idle,
            slots,
            queue_limit,
        ) = shape;
        let (requests, rounds, malformed, too_large) = traffic;
        Overload {
            workers,
            dedicated,
            by_udp,
            anywhere,
            by_feedback,
            says_long,
            idle,
            slots,
            queue_limit,
            requests,
            rounds,
            malformed,
            too_large,
            stop,
        }
    })
}

#[test]
fn every_datagram_is_in_exactly_one_count() {
    let number = |name: &str| {
        let text = std::env::var(name).ok()?;
        Some(text.parse::<u64>().expect("a whole number"))
    };
    let seed = number("HEADWAY_COUNTS_SEED").unwrap_or(SEED);
    let servers = number("HEADWAY_COUNTS").map_or(SERVERS, |servers| servers as u32);
    let only = std::env::var("HEADWAY_COUNTS_POLICY").ok();
    for policy in systems::ALL {
        let name = policy.about.name;
        if only.as_ref().is_some_and(|only| only != name) {
            continue;
        }
        let config = Config {
            cases: servers,
            max_shrink_iters: 40,
            failure_persistence: None,
            ..Config::default()
        };
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&seed.to_le_bytes());
        let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
        let found = TestRunner::new_with_rng(config, rng).run(&overloads(), |overload| {
            overload.run(name);
            Ok(())
        });
        if let Err(error) = found {
            panic!(
                "{error}\nrepeat it: HEADWAY_COUNTS_SEED={seed} HEADWAY_COUNTS={servers} HEADWAY_COUNTS_POLICY={name} \
                 cargo test -p headway-runtime --test counts"
            );
        }
    }
}

/// The policy on so many workers: how a server carries it out, and whether its requests must be free to change workers.
fn admitted(policy: &str, workers: usize) -> (Admission, bool) {
    let spec: ServerSpec = policy.parse().unwrap();
    let on = |resume| {
        let mut shape = Shape::new(workers).class(1_000, 0.5).class(100_000, 0.5);
        shape.resume = resume;
        admit(&spec, &shape)
    };
    match on(Resume::OwnWorker) {
        Ok(admission) => (admission, false),
        Err(_) => (on(Resume::Anywhere).expect("every policy runs live"), true),
    }
}

impl Overload {
    fn run(&self, policy: &str) {
        let (stats, sent) = if self.by_udp {
            self.over_udp(policy)
        } else {
            self.over_replay(policy)
        };
        let context = format!("{policy}: {stats:?}");
        let counted = stats.answered
            + stats.shed
            + stats.handed_back
            + stats.malformed
            + stats.too_large
            + stats.refused_draining
            + stats.abandoned;
        assert_eq!(stats.received, counted, "{context}");
        let of_classes = stats.classes.iter();
        let accepted: u64 = of_classes.clone().map(|class| class.accepted).sum();
        let left: u64 = of_classes.map(|class| class.answered + class.shed).sum();
        assert_eq!(accepted, left + stats.abandoned, "{context}");
        assert!(stats.received + stats.kernel_drops <= sent, "{context}");
        let is_at_rest = matches!(self.stop, Stop::AtRest);
        if is_at_rest {
            assert_eq!(stats.received + stats.kernel_drops, sent, "{context}");
            assert_eq!(stats.abandoned + stats.refused_draining, 0, "{context}");
        }
        for class in &stats.classes {
            self.check_times(class, is_at_rest, &context);
        }
    }

    /// Each request that a worker took up waited once, and each that was answered has one service time.
    fn check_times(&self, class: &ClassStats, is_at_rest: bool, context: &str) {
        let ShedStats {
            queue_full,
            no_buffer,
            no_stack,
            clones,
        } = class.sheds;
        let sheds = queue_full + no_buffer + no_stack + clones;
        assert_eq!(class.shed, sheds, "{context}");
        assert_eq!(class.service.count(), class.answered, "{context}");
        assert_eq!(class.service.sum_ns(), class.cpu_ns, "{context}");
        let taken_up = class.answered + no_stack + class.running;
        assert_eq!(class.wait.count(), taken_up, "{context}");
        assert_eq!(class.queued() + class.running, class.pending(), "{context}");
        assert!(!is_at_rest || class.pending() == 0, "{context}");
    }

    fn builder(&self, policy: &str) -> Builder {
        let (admission, roams) = admitted(policy, self.workers);
        let unknown = |name| DeclaredClass::new(name, Duration::from_micros(1));
        let mut builder = Server::builder()
            .policy(policy)
            .workers(self.workers)
            .classes(vec![unknown("short"), unknown("long")])
            .idle(self.idle)
            .pin(Pin::Off)
            .by_feedback(self.by_feedback && admission.interrupts());
        if admission.is_laid_out() {
            builder = builder.layout(if self.dedicated {
                Layout::Dedicated
            } else {
                Layout::Inline
            });
        }
        if let Some(limit) = self.queue_limit.filter(|_| admission.limits_queues) {
            builder = builder.queue_limit(limit);
        }
        if let Some(slots) = self.slots {
            builder = builder.slots(slots);
        }
        if !(roams || self.anywhere) {
            return builder.resume(Resume::OwnWorker);
        }
        builder.resume(Resume::Anywhere)
    }

    fn handler(&self) -> impl Fn(&mut Call<'_>) + Send + Sync + 'static {
        let (rounds, says_long) = (self.rounds, self.says_long);
        move |call: &mut Call<'_>| {
            let work = || (0..rounds).for_each(|_| checkpoint());
            match call.class().0 {
                1 if says_long => call.long(|_| work()),
                1 => work(),
                _ => {}
            }
            call.reply_in_place();
        }
    }

    /// Waits for the moment of the stop, and stops the server; `is_done` says that everything was sent and taken in.
    fn stopped(&self, server: Server, is_done: impl Fn(&Stats) -> bool) -> Stats {
        match self.stop {
            Stop::AtRest => {
                wait_until("all were taken in", || is_done(&server.stats()));
                server.shutdown(FOREVER).unwrap()
            }
            Stop::After { us, within } => {
                std::thread::sleep(Duration::from_micros(us));
                server.shutdown(within).unwrap()
            }
        }
    }

    /// The classes of the requests, mixed: by turns while all classes last.
    fn classes(&self) -> Vec<u8> {
        let most = self.requests.into_iter().max().unwrap_or(0);
        let turns = (0..most).flat_map(|turn| {
            let left = (0..3u8).filter(move |class| turn < self.requests[usize::from(*class)]);
            left.collect::<Vec<u8>>()
        });
        turns.collect()
    }

    fn over_replay(&self, policy: &str) -> (Stats, u64) {
        let (admission, _) = admitted(policy, self.workers);
        let queues = if admission.has_one_receive_queue() {
            1
        } else {
            admission.dispatchers.max(1)
                * if admission.has_dispatcher {
                    1
                } else {
                    self.workers
                }
        };
        let mut schedules = vec![Vec::new(); queues];
        for (index, class) in self.classes().into_iter().enumerate() {
            schedules[index % queues].push(ReplayArrival {
                at_ns: index as u64 / 64 * 1_000,
                service_ns: 0,
                index: index as u32,
                class,
            });
        }
        let (datapath, control) = Replay::new(schedules).unwrap();
        let builder = self.builder(policy).service(self.handler());
        let server = builder.datapath(datapath).start().unwrap();
        control.start(Clock::global().now_ns());
        let total = control.total() as u64;
        let stats = self.stopped(server, |_| control.taken() as u64 == total);
        assert_eq!(
            stats.received,
            control.taken() as u64,
            "{policy}: {stats:?}"
        );
        let done = control.take_completions();
        assert_answers_once(&done);
        let responses = stats.answered + stats.shed + stats.refused_draining;
        assert_eq!(done.len() as u64, responses, "{policy}: {stats:?}");
        (stats, total)
    }

    fn over_udp(&self, policy: &str) -> (Stats, u64) {
        let builder = self.builder(policy).service(self.handler());
        let server = builder.listen_udp(loopback()).start().unwrap();
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.connect(server.local_addr().unwrap()).unwrap();
        let ended = Arc::new(AtomicBool::new(false));
        let hears = Arc::clone(&ended);
        let ear = socket.try_clone().unwrap();
        let answers = std::thread::spawn(move || answers_of(&ear, &hears));
        let sent = self.send_all(&socket);
        let at_rest = |stats: &Stats| stats.received + stats.kernel_drops == sent;
        let stats = self.stopped(server, at_rest);
        ended.store(true, Ordering::Release);
        let mut answers = answers.join().unwrap();
        let heard = answers.len() as u64;
        answers.sort_unstable();
        answers.dedup();
        assert_eq!(
            answers.len() as u64,
            heard,
            "{policy}: one was answered twice"
        );
        assert!(heard <= stats.responses(), "{policy}: {heard} of {stats:?}");
        (stats, sent)
    }

    /// Sends everything in bursts. A server that stops meanwhile is no error.
    fn send_all(&self, socket: &UdpSocket) -> u64 {
        let mut sent = 0;
        let mut send = |bytes: &[u8]| sent += u64::from(socket.send(bytes).is_ok());
        for (index, class) in self.classes().into_iter().enumerate() {
            let header = Header {
                class,
                flag: Flag::REQUEST,
                index: index as u32,
                time_ns: 0,
            };
            send(&header.encode());
            if index as u32 % BURST == BURST - 1 {
                std::thread::sleep(Duration::from_micros(50));
            }
        }
        for index in 0..self.malformed {
            send(&vec![0xff; 1 + index as usize]);
        }
        for index in 0..self.too_large {
            let header = Header {
                class: 0,
                flag: Flag::REQUEST,
                index: u32::MAX - index,
                time_ns: 0,
            };
            send(&[&header.encode()[..], &[0; TOO_LARGE]].concat());
        }
        sent
    }
}

fn assert_answers_once(done: &[Completion]) {
    let mut seen: Vec<u32> = done.iter().map(|done| done.index).collect();
    seen.sort_unstable();
    assert!(seen.is_sorted_by(|a, b| a < b), "one was answered twice");
}

/// The requests that were answered, by index, until nothing came for a while after the end.
fn answers_of(socket: &UdpSocket, ended: &AtomicBool) -> Vec<u32> {
    let quiet = Duration::from_millis(20);
    socket.set_read_timeout(Some(quiet)).unwrap();
    let (mut answers, mut buffer) = (Vec::new(), [0; 4_096]);
    let begun = Instant::now();
    while begun.elapsed() < 2 * FOREVER {
        let is_over = ended.load(Ordering::Acquire);
        match socket.recv(&mut buffer) {
            Ok(len) => answers.push(Header::parse(&buffer[..len]).unwrap().0.index),
            Err(_) if is_over => break,
            Err(_) => {}
        }
    }
    answers
}
