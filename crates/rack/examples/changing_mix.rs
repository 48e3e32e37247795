//! A rack on one machine: one client, one switch, four servers of one worker each, and a mix that changes half-way. As root each has a network
//! namespace of its own; else they are ports of the loopback interface.
//!
//! `make demo-rack` runs it, under racksched, pallas and pallas-paper in turn, in about a minute. Servers sleep for their requests' service times, so
//! that four of them fit on two cores; packets, queues and the switch are real. It prints a table, and writes a page of tails over time to the
//! file that its argument names.

use headway_machine::Clock;
use headway_net::header::{Flag, HEADER_BYTES, Header};
use headway_policy::rack::{RackShape, RackSystem, RackVisit, Switch, Turns, systems};
use headway_policy::{ClassHint, ClassId, Rng};
use headway_rack::{
    PacketCounts, RackControl, ScoringTask, ServerAddresses, SwitchLimits, SwitchTables, UdpSwitch,
    run_control, score_by_simulation,
};
use headway_report::html::{Chart, Page, Series};
use headway_report::{Table, format};
use headway_runtime::{Pin, Server};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

#[path = "../../xdp/tests/common/net.rs"]
mod net;

const SERVERS: usize = 4;
/// The hosts' numbers, in their addresses.
const SWITCH: u8 = 1;
const CLIENT: u8 = 2;
const FIRST_SERVER: u8 = 10;
const SERVICE_MS: [u64; 2] = [1, 10];
/// The load, as a share of all workers.
const LOAD: f64 = 0.5;
const PHASE: Duration = Duration::from_secs(10);
/// The share of shorts in each phase: a quarter of the work, then three quarters, so that whole servers fit both.
const SHORT_SHARES: [f64; 2] = [10.0 / 13.0, 30.0 / 31.0];
/// The longest wait for a late response.
const PATIENCE: Duration = Duration::from_secs(2);
/// Looks are further apart than the paper's 10 ms, in which ten requests arrive here: of fifty longs the noise is a seventh. Cloning is off,
/// since these servers would serve every clone, even those that they cannot start at once.
const PALLAS: &str = "pallas,clone=off,interval=1s,plan_time=20ms";
/// As printed, where the old layout holds what a change piles up.
const PAPER: &str = "pallas-paper,clone=off,interval=1s,delta=2,plan_time=20ms";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let setting = format!(
        "4 servers of one worker; short requests of {} ms, long ones of {} ms; {:.0} % load; p99 in ms over all seconds, and of the worst second",
        SERVICE_MS[0],
        SERVICE_MS[1],
        100.0 * LOAD,
    );
    let place = Place::of_this_machine();
    println!("{setting}");
    let mut outcomes = Vec::new();
    for spec in ["racksched", PALLAS, PAPER] {
        let name = spec.split(',').next().unwrap_or(spec);
        eprintln!("{name}: {} s", 2 * PHASE.as_secs());
        let outcome = run(spec, place)?;
        let counts = outcome.counts;
        eprintln!(
            "{spec}: the switch forwarded {} requests and {} responses, dropped {}, shed {}",
            counts.requests,
            counts.answered,
            counts.dropped(),
            counts.shed
        );
        outcomes.push((name, outcome));
    }
    let table = table(&outcomes);
    println!("{table}");
    if let Some(path) = std::env::args_os().nth(1) {
        page(&setting, &table, &outcomes).write(&path)?;
        println!("tails over time: {}", path.display());
    }
    Ok(())
}

fn table(outcomes: &[(&str, DemoOutcome)]) -> Table {
    let [before, after] = SHORT_SHARES.map(|share| format!("of {:.0} % shorts", 100.0 * share));
    let mut table = Table::new([
        "policy".into(),
        format!("shorts, {before}"),
        format!("longs, {before}"),
        format!("shorts, {after}"),
        format!("longs, {after}"),
        "new layouts".into(),
        "lost".into(),
    ]);
    for (name, outcome) in outcomes {
        let [before, after] = [0, 1].map(|phase| {
            let from = PHASE * phase;
            let to = PHASE * (phase + 1);
            [0, 1].map(|class| {
                let all = outcome.p99_ms(class, from, to);
                let worst = outcome.worst_second_ms(class, from, to);
                let [all, worst] = [all, worst].map(|ms| format::significant(ms, 3));
                format!("{all}, {worst}")
            })
        });
        table.push([
            (*name).into(),
            before[0].clone(),
            before[1].clone(),
            after[0].clone(),
            after[1].clone(),
            outcome.layouts.to_string(),
            outcome.lost.to_string(),
        ]);
    }
    table
}

/// The table, and each class's tail second by second.
fn page(setting: &str, table: &Table, outcomes: &[(&str, DemoOutcome)]) -> Page {
    let page = Page::new("A rack on one machine, under three policies")
        .paragraph(setting)
        .table("Tails in each phase", table);
    let seconds = 2 * PHASE.as_secs();
    let chart = |title: &str, class: usize| {
        let chart = Chart::new(title, "seconds", "p99, ms").log_y();
        let chart = outcomes.iter().fold(chart, |chart, (name, outcome)| {
            let of_second = |second: u64| {
                let from = Duration::from_secs(second);
                outcome.p99_ms(class, from, from + Duration::from_secs(1))
            };
            let points = (0..seconds).map(|second| (second as f64 + 0.5, of_second(second)));
            let points = points.filter(|(_, p99_ms)| p99_ms.is_finite());
            chart.series(Series::new(*name, points.collect()))
        });
        chart.note(format!("The mix changes after {} s.", PHASE.as_secs()))
    };
    page.chart(&chart("Short requests", 0))
        .chart(&chart("Long requests", 1))
}

/// The result of one policy.
struct DemoOutcome {
    answers: Vec<Answered>,
    layouts: u64,
    lost: u64,
    counts: PacketCounts,
}

/// The placement of the rack's hosts.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Loopback,
    /// This thread's namespace is the switch's.
    Namespaces,
}

impl Place {
    /// Uses namespaces, or prints why this machine refuses them.
    fn of_this_machine() -> Self {
        if let Some(why) = net::missing() {
            eprintln!("the rack's hosts are ports of the loopback interface: {why}");
            return Self::Loopback;
        }
        eprintln!("each host of the rack is a network namespace");
        net::enter_namespace();
        net::shell(&format!("ip address add 10.77.0.{SWITCH}/32 dev lo"));
        Self::Namespaces
    }

    fn ip(self, number: u8) -> IpAddr {
        match self {
            Self::Loopback => Ipv4Addr::LOCALHOST.into(),
            Self::Namespaces => Ipv4Addr::new(10, 77, 0, number).into(),
        }
    }

    /// Does `work` on a host.
    fn start<T: Send + 'static>(
        self,
        number: u8,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> RunningHost<T> {
        match self {
            Self::Loopback => RunningHost::Thread(thread::spawn(work)),
            Self::Namespaces => {
                let host = net::Host::start(number, work);
                let interface = host.wire();
                net::shell(&format!("ip route add 10.77.0.{number} dev {interface}"));
                host.begin();
                RunningHost::Namespace(host)
            }
        }
    }
}

enum RunningHost<T> {
    Thread(JoinHandle<T>),
    Namespace(net::Host<T>),
}

impl<T: Send + 'static> RunningHost<T> {
    /// The result of the work.
    fn end(self) -> T {
        match self {
            Self::Thread(thread) => thread.join().expect("the host's work ends"),
            Self::Namespace(host) => host.end(),
        }
    }
}

/// A server, until the sender is dropped.
struct ServerHost {
    address: SocketAddr,
    stop: Sender<()>,
    host: RunningHost<()>,
}

impl ServerHost {
    fn start(place: Place, number: u8) -> Self {
        let ((tell, told), (stop, wait)) = (channel(), channel());
        let at = SocketAddr::new(place.ip(number), 0);
        let host = place.start(number, move || {
            let server = server(at).expect("the server starts");
            let address = server.local_addr().expect("it listens");
            tell.send(address).expect("the rack waits for it");
            // The server ends when the sender is gone.
            let _ = wait.recv();
            server.shutdown(PATIENCE).expect("the server stops");
        });
        let address = told.recv().expect("the server starts");
        Self {
            address,
            stop,
            host,
        }
    }

    fn end(self) {
        drop(self.stop);
        self.host.end();
    }
}

fn run(spec: &str, place: Place) -> Result<DemoOutcome, Box<dyn std::error::Error>> {
    struct Live<'a>(Place, &'a [SocketAddr]);
    impl RackVisit for Live<'_> {
        type Output = Result<DemoOutcome, Box<dyn std::error::Error>>;
        fn visit<S: Switch + Send + 'static>(self, system: RackSystem<S>) -> Self::Output {
            live(system, self.0, self.1)
        }
    }
    let numbers = (FIRST_SERVER..).take(SERVERS);
    let servers: Vec<ServerHost> = numbers
        .map(|number| ServerHost::start(place, number))
        .collect();
    let addresses: Vec<SocketAddr> = servers.iter().map(|server| server.address).collect();
    let hint = |class: usize, share: f64| ClassHint::new(SERVICE_MS[class] as f64 * 1e6, share);
    let shape = RackShape {
        cores: vec![1; SERVERS],
        types: vec![hint(0, SHORT_SHARES[0]), hint(1, 1.0 - SHORT_SHARES[0])],
        room: 0,
        seed: 1,
    };
    let outcome = systems::with(&spec.parse()?, &shape, Live(place, &addresses))??;
    servers.into_iter().for_each(ServerHost::end);
    Ok(outcome)
}

fn server(at: SocketAddr) -> Result<Server, Box<dyn std::error::Error>> {
    let [short, long] = SERVICE_MS.map(Duration::from_millis);
    let server = Server::builder()
        .policy("c-fcfs")
        .class("short", short)
        .class("long", long)
        .workers(1)
        .pin(Pin::Off)
        .handler(move |call| {
            thread::sleep(if call.class() == ClassId(0) {
                short
            } else {
                long
            });
            call.reply(&[]);
        })
        .listen_udp(at)
        .start()?;
    Ok(server)
}

fn live<S: Switch + Send + 'static>(
    mut system: RackSystem<S>,
    place: Place,
    servers: &[SocketAddr],
) -> Result<DemoOutcome, Box<dyn std::error::Error>> {
    let tables = Arc::new(SwitchTables::new(2));
    let turns = system
        .switch
        .shaper()
        .map_or(Turns::Even, |shaper| shaper.turns());
    let control = system.control.take().map(|mut control| {
        let task = ScoringTask {
            control: control.clone(),
            load: LOAD,
        };
        control.choose(&score_by_simulation(&[1; SERVERS], turns, None, &task));
        RackControl::new(control, Arc::clone(&tables))
    });
    let listen = SocketAddr::new(place.ip(SWITCH), 0);
    let addresses = ServerAddresses::new(servers)?;
    let mut switch = UdpSwitch::bind(
        listen,
        system.switch,
        addresses,
        SwitchLimits::new(2),
        Clock::global(),
    )?
    .with_tables(Arc::clone(&tables));
    let at = switch.local_addr();
    let stopped = Arc::new(AtomicBool::new(false));
    let stopper = switch.stopper(&stopped);
    let (answers, sent, counts) = thread::scope(|scope| {
        let switching = scope.spawn(|| {
            switch.run(&stopped);
            *switch.switch().counts()
        });
        if let Some(control) = control {
            scope.spawn(|| {
                let score =
                    |task: &ScoringTask| score_by_simulation(&[1; SERVERS], turns, None, task);
                run_control(control, Clock::global(), &stopped, score, |_| {});
            });
        }
        let measured = place.start(CLIENT, move || offer(at)).end();
        stopper.stop();
        let counts = switching
            .join()
            .expect("the switch's thread ends when it is stopped");
        measured.map(|(answers, sent)| (answers, sent, counts))
    })?;
    let lost = sent - answers.len() as u64;
    Ok(DemoOutcome {
        answers,
        layouts: tables.generation().saturating_sub(1),
        lost,
        counts,
    })
}

/// A request that was answered.
struct Answered {
    class: usize,
    intended: Duration,
    latency: Duration,
}

impl DemoOutcome {
    /// The highest p99 of a class among the seconds of this span; NaN without requests.
    fn worst_second_ms(&self, class: usize, from: Duration, to: Duration) -> f64 {
        let second = Duration::from_secs(1);
        let seconds = (from.as_secs()..to.as_secs()).map(Duration::from_secs);
        let p99s = seconds.map(|at| self.p99_ms(class, at, at + second));
        p99s.fold(f64::NAN, f64::max)
    }

    /// The quantile of a class's requests with an intended send time in this span; NaN without requests.
    fn p99_ms(&self, class: usize, from: Duration, to: Duration) -> f64 {
        let answers = self.answers.iter();
        let mut latencies: Vec<Duration> = answers
            .filter(|answer| answer.class == class && (from..to).contains(&answer.intended))
            .map(|answer| answer.latency)
            .collect();
        latencies.sort_unstable();
        // Nearest rank.
        let rank = (latencies.len() * 99).div_ceil(100);
        latencies
            .get(rank.saturating_sub(1))
            .map_or(f64::NAN, |latency| latency.as_secs_f64() * 1e3)
    }
}

/// Offers the load as an open loop: Poisson arrivals, latencies from the intended times.
fn offer(at: SocketAddr) -> std::io::Result<(Vec<Answered>, u64)> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    socket.connect(at)?;
    socket.set_read_timeout(Some(Duration::from_millis(20)))?;
    let plan = plan();
    let begin = Instant::now();
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let (plan, socket, done) = (&plan, &socket, &done);
        let receiver = scope.spawn(move || receive(socket, plan, begin, done));
        for (index, (intended, class)) in plan.iter().enumerate() {
            thread::sleep(intended.saturating_sub(begin.elapsed()));
            let header = Header {
                class: *class as u8,
                flag: Flag::REQUEST,
                index: index as u32,
                time_ns: 0,
            };
            socket.send(&header.encode())?;
        }
        done.store(true, Ordering::Release);
        let answers = receiver.join().expect("the receiver ends when all is sent");
        Ok((answers, plan.len() as u64))
    })
}

/// Each request's intended send time, and its class.
fn plan() -> Vec<(Duration, usize)> {
    let mut rng = Rng::new(7);
    let mut plan = Vec::new();
    let mut at = Duration::ZERO;
    for (phase, short_share) in SHORT_SHARES.into_iter().enumerate() {
        let mean_s = 1e-3
            * (short_share * SERVICE_MS[0] as f64 + (1.0 - short_share) * SERVICE_MS[1] as f64);
        let rate_rps = LOAD * SERVERS as f64 / mean_s;
        while at < PHASE * (phase as u32 + 1) {
            let uniform = (rng.below(1 << 30) as f64 + 0.5) / (1u64 << 30) as f64;
            at += Duration::from_secs_f64(-libm::log(uniform) / rate_rps);
            let is_long = rng.below(1000) as f64 >= 1000.0 * short_share;
            plan.push((at, usize::from(is_long)));
        }
    }
    plan
}

fn receive(
    socket: &UdpSocket,
    plan: &[(Duration, usize)],
    begin: Instant,
    done: &AtomicBool,
) -> Vec<Answered> {
    let mut answers = Vec::with_capacity(plan.len());
    let mut buffer = [0; 64];
    let mut quiet_since = Instant::now();
    while answers.len() < plan.len() {
        let Ok(len) = socket.recv(&mut buffer) else {
            if done.load(Ordering::Acquire) && quiet_since.elapsed() > PATIENCE {
                break;
            }
            continue;
        };
        let now = begin.elapsed();
        quiet_since = Instant::now();
        let Some(bytes) = buffer[..len].first_chunk::<HEADER_BYTES>() else {
            continue;
        };
        let index = Header::decode(*bytes).index as usize;
        if let Some(&(intended, class)) = plan.get(index) {
            answers.push(Answered {
                class,
                intended,
                latency: now.saturating_sub(intended),
            });
        }
    }
    answers
}
