//! What happens in one world: all of it follows from the seed.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use headway_net::header::{CloneRole, Flag};
use headway_policy::rack::{Bouncing, Duty, Part};
use headway_policy::server::role::Owner;
use headway_policy::server::systems::{NAMES, ServerSpec};
use headway_policy::{BitSet, ClassHint, ClassId, Resume, Shape};
use headway_runtime::{Admission, DeclaredClass, DutyOrder, Idle, Layout, admit, server_shape};

use crate::granted::Granting;
use crate::network::{Datagram, switch_peer};
use crate::random::Random;
use crate::scheduler::{CoreCosts, CoreFaults};

/// Which faults a world may have.
#[derive(Clone, Copy, Debug)]
pub struct Faults {
    /// Cores stand still for up to milliseconds, and their clocks differ.
    pub cores: bool,
    /// The network loses, repeats, reorders and delays.
    pub network: bool,
    /// Buffers and queues are few.
    pub buffers: bool,
    /// Handlers panic, or meet no probe.
    pub handlers: bool,
    /// Workers come and go, rules change, the server stops in the middle.
    pub orders: bool,
}

impl Faults {
    /// All of them.
    pub const ALL: Self = Self {
        cores: true,
        network: true,
        buffers: true,
        handlers: true,
        orders: true,
    };
    /// None.
    pub const NONE: Self = Self {
        cores: false,
        network: false,
        buffers: false,
        handlers: false,
        orders: false,
    };
}

/// A word that names no fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownFault(String);

impl fmt::Display for UnknownFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "no fault '{}': choose among cores, network, buffers, handlers, orders, all, none",
            self.0
        )
    }
}

impl std::error::Error for UnknownFault {}

impl FromStr for Faults {
    type Err = UnknownFault;

    fn from_str(text: &str) -> Result<Self, UnknownFault> {
        let mut faults = Self::NONE;
        for word in text.split(',') {
            match word {
                "all" => faults = Self::ALL,
                "none" => {}
                "cores" => faults.cores = true,
                "network" => faults.network = true,
                "buffers" => faults.buffers = true,
                "handlers" => faults.handlers = true,
                "orders" => faults.orders = true,
                other => return Err(UnknownFault(other.to_owned())),
            }
        }
        Ok(faults)
    }
}

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = [
            ("cores", self.cores),
            ("network", self.network),
            ("buffers", self.buffers),
            ("handlers", self.handlers),
            ("orders", self.orders),
        ];
        let words = words.iter().filter(|(_, on)| *on).map(|(word, _)| *word);
        let words: Vec<&str> = words.collect();
        f.write_str(match words.len() {
            0 => "none",
            5 => "all",
            _ => return f.write_str(&words.join(",")),
        })
    }
}

/// An order of the server's owner.
#[derive(Clone, Debug)]
pub(crate) enum OwnerOrder {
    Workers(usize),
    Rule(&'static str, String),
    Duty(DutyOrder),
}

/// A server of a rack.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum BehindSwitch {
    OwnPolicy,
    /// The control plane says what it serves.
    Directed,
}

/// A server, what comes to it, and what goes wrong.
#[derive(Clone, Debug)]
pub(crate) struct Scenario {
    pub(crate) policy: ServerSpec,
    pub(crate) workers: usize,
    pub(crate) layout: Layout,
    pub(crate) idle: Idle,
    pub(crate) by_clock: bool,
    pub(crate) queue_limit: usize,
    pub(crate) slots: Option<usize>,
    /// How often a busy worker looks for arrivals, where that is chosen, ns.
    pub(crate) look_ns: Option<u64>,
    pub(crate) probe_gap_ns: u64,
    pub(crate) probes: bool,
    pub(crate) panics: u64,
    /// Whether handlers are interrupted in their long parts only.
    pub(crate) by_feedback: bool,
    /// Whether handlers have long parts and no-preempt sections.
    pub(crate) sections: bool,
    /// After so many packets a thread of the server panics.
    pub(crate) crash: Option<u64>,
    pub(crate) behind_switch: Option<BehindSwitch>,
    /// An arbiter grants the workers' cores.
    pub(crate) granting: Option<Granting>,
    /// Whether the dispatcher interrupts by signals.
    pub(crate) by_signal: bool,
    pub(crate) means_ns: [u64; 2],
    pub(crate) datagrams: Vec<Datagram>,
    /// Datagrams that a receive queue holds.
    pub(crate) room: usize,
    /// When each order is given, ns after the start.
    pub(crate) orders: Vec<(u64, OwnerOrder)>,
    /// When the server is told to stop, ns after the start.
    pub(crate) stop_ns: u64,
    /// How long it may take to answer what it accepted.
    pub(crate) deadline: Duration,
    pub(crate) core_costs: CoreCosts,
    pub(crate) core_faults: CoreFaults,
}

/// Requests that a dispatcher may have sent to one worker, and that it has not begun: the deepest bound among the policies, and one that a
/// worker took up.
pub(crate) const MOST_ON_THE_WAY: usize = 4;

/// A request of the short class that takes so long says that it is long, ns.
pub(crate) const HIDDEN_LONG_NS: u64 = 20_000;

/// A drain that always suffices.
const PATIENT: Duration = Duration::from_secs(60);

impl Scenario {
    /// What is drawn for every world; [`trials`](crate::trials) add to it. `policy` replaces the one that the seed would choose.
    pub(crate) fn draw(random: &mut Random, faults: Faults, policy: Option<&ServerSpec>) -> Self {
        let workers = 1 + random.below(4) as usize;
        let policy = match policy {
            Some(policy) => policy.clone(),
            None => live_policy(random, workers),
        };
        let means_ns = [500 + random.below(2_000), 20_000 + random.below(180_000)];
        let shape = shape(workers, means_ns);
        let admission = admit(&policy, &shape).expect("a policy of the live server");
        let (layout, by_clock) = layout(random, &admission);
        let idle = idle(random);
        let mut datagrams = traffic(random, faults, workers, means_ns);
        let end_ns = datagrams.iter().map(|one| one.at_ns).max().unwrap_or(0);
        let hasty = faults.orders && random.once_in(4);
        let stop_ns = stop_ns(random, hasty, end_ns);
        let mut orders = orders(
            random,
            faults,
            &policy,
            workers,
            admission.has_dispatcher,
            end_ns,
        );
        let behind_switch = (admission.has_dispatcher && random.once_in(6)).then(|| {
            come_by_switch(random, &mut datagrams);
            if faults.orders {
                duties(random, workers, end_ns, &mut orders);
            }
            random.one_of(&[BehindSwitch::OwnPolicy, BehindSwitch::Directed])
        });
        let policy = match behind_switch {
            Some(BehindSwitch::Directed) => "c-fcfs".parse().expect("a name of ours"),
            _ => policy,
        };
        let is_directed = behind_switch == Some(BehindSwitch::Directed);
        let by_clock = by_clock && !is_directed;
        Self {
            behind_switch,
            workers,
            layout,
            idle,
            by_clock,
            queue_limit: fault(random, faults.buffers, 3)
                .map_or(1024, |random| 1 + random.below(8) as usize),
            slots: (faults.buffers && random.once_in(3))
                .then(|| workers.max(8) + random.below(24) as usize),
            probe_gap_ns: 100 + random.below(4_000),
            probes: !(faults.handlers && random.once_in(8)),
            panics: fault(random, faults.handlers, 4).map_or(0, |_| 20),
            means_ns,
            room: fault(random, faults.buffers, 4)
                .map_or(100_000, |random| 4 + random.below(12) as usize),
            orders,
            stop_ns,
            deadline: fault(random, hasty, 2).map_or(PATIENT, |random| {
                Duration::from_nanos(random.below(200_000))
            }),
            core_costs: CoreCosts::USUAL,
            core_faults: core_faults(random, faults),
            by_feedback: random.once_in(4) && admission.interrupts() && !is_directed,
            sections: random.once_in(3),
            crash: (faults.handlers && random.once_in(40))
                .then(|| random.below(2 * datagrams.len() as u64)),
            datagrams,
            policy,
            look_ns: None,
            granting: None,
            by_signal: false,
        }
    }

    /// The declared classes.
    pub(crate) fn classes(&self) -> Vec<DeclaredClass> {
        let names = ["short", "long"].into_iter().zip(self.means_ns);
        names
            .map(|(name, mean_ns)| DeclaredClass {
                name: name.to_owned(),
                hint: ClassHint::new(mean_ns as f64, 0.5),
            })
            .collect()
    }

    /// For how long a worker may idle while a request waits that it may take, ns; `None` where policies keep workers for some requests, or the owner
    /// takes workers away. A wake takes up to 20 µs, and one may wait for another; a thief sleeps for a millisecond while others are awake.
    pub(crate) fn most_idle_ns(&self) -> Option<u64> {
        const WAKES_NS: u64 = 200_000;
        const THIEF_NS: u64 = 1_500_000;
        let mut orders = self.orders.iter();
        if orders.any(|(_, order)| matches!(order, OwnerOrder::Workers(_))) {
            return None;
        }
        if self.behind_switch == Some(BehindSwitch::Directed) {
            return None;
        }
        match self.policy.name() {
            "darc" | "darc-paper" | "darc-static" | "darc-stable" | "static-partition" => {
                Some(WAKES_NS)
            }
            "c-fcfs" | "fixed-priority" | "sjf" | "edf" | "srpt" | "drr" | "wrr" | "mlfq"
            | "gittins" | "shinjuku-sq" | "shinjuku-mq" | "on-blocked" | "tardis" => Some(WAKES_NS),
            "work-stealing" | "synergy" => Some(THIEF_NS),
            _ => None,
        }
    }

    /// For how long a request may run on beside one that waits, ns, where the policy interrupts and handlers let it: the longest quantum, wakes and probes.
    pub(crate) fn longest_turn_ns(&self) -> Option<u64> {
        const QUANTUM_AND_WAKES_NS: u64 = 250_000;
        // A signal that meets no handler is sent again.
        const SENT_AGAIN_NS: u64 = 200_000;
        let changes = |order: &(u64, OwnerOrder)| matches!(order.1, OwnerOrder::Workers(_));
        let is_interruptible = self.is_interruptible() && self.crash.is_none();
        let is_shared = matches!(self.policy.name(), "shinjuku-sq" | "shinjuku-ci");
        let most_ns = QUANTUM_AND_WAKES_NS + if self.by_signal { SENT_AGAIN_NS } else { 0 };
        (is_shared && is_interruptible && !self.orders.iter().any(changes)).then_some(most_ns)
    }

    /// Whether handlers can be interrupted wherever they are.
    pub(crate) fn is_interruptible(&self) -> bool {
        (self.probes || self.by_signal) && !self.by_feedback && !self.sections
    }

    /// Whether somebody looks at the receive queues while all workers run requests: workers at probes, or doors where workers do not.
    pub(crate) fn is_polled_at_work(&self) -> bool {
        let admission = self.admission();
        let by_workers = admission.limits_queues && admission.interrupts() && !self.by_feedback;
        !by_workers || (self.probes && !self.sections)
    }

    /// How its policy is carried out.
    pub(crate) fn admission(&self) -> Admission {
        let admission = admit(&self.policy, &shape(self.workers, self.means_ns));
        admission.expect("a policy of the live server")
    }

    /// Whether its policy gives workers to classes.
    pub(crate) fn follows_plan(&self) -> bool {
        matches!(
            self.policy.name(),
            "darc" | "darc-paper" | "darc-static" | "darc-stable" | "static-partition"
        )
    }

    /// Whether requests wait in queues of the server's own, else in the network's receive queues.
    pub(crate) fn has_own_queues(&self) -> bool {
        self.policy.facts().owner != Owner::Steering
    }

    /// The buffers of a server whose queues have this scenario's limit.
    pub(crate) fn buffers(&self) -> usize {
        let shape = server_shape(self.workers, &self.classes(), self.queue_limit);
        shape.expect("a server of this scenario").job_capacity
    }

    /// Whether requests wait in queues of the server's own, which have a limit. Tiny Quanta hands them to the workers at once.
    pub(crate) fn limits_queues(&self) -> bool {
        let admission = admit(&self.policy, &shape(self.workers, self.means_ns));
        admission.is_ok_and(|admission| admission.has_dispatcher)
            && self.policy.name() != "tiny-quanta"
    }

    /// Whether the server has all the time that it needs to answer what it accepted.
    pub(crate) fn is_patient(&self) -> bool {
        self.deadline == PATIENT
    }
}

/// Draws whether a fault of a kind that this world `has` is in it, `once_in` so many worlds; whoever gets `random` draws how bad it is.
fn fault(random: &mut Random, has: bool, once_in: u64) -> Option<&mut Random> {
    (has && random.once_in(once_in)).then_some(random)
}

/// Who owns the dispatcher, and whether it interrupts by the clock.
fn layout(random: &mut Random, admission: &Admission) -> (Layout, bool) {
    let drawn = random.one_of(&[Layout::Dedicated, Layout::Inline]);
    let layout = if admission.is_laid_out() {
        drawn
    } else {
        Layout::Auto
    };
    let may_read = admission.dispatcher_interrupts && admission.keeps_times;
    (layout, may_read && random.once_in(4))
}

/// When the server is told to stop: after all requests, or amid them.
fn stop_ns(random: &mut Random, hasty: bool, end_ns: u64) -> u64 {
    if hasty {
        random.below(end_ns + 1)
    } else {
        end_ns + 1_000_000
    }
}

fn idle(random: &mut Random) -> Idle {
    match random.below(3) {
        0 => Idle::Spin,
        1 => Idle::Park,
        _ => Idle::SpinThenPark {
            spin_ns: 500 + random.below(20_000),
        },
    }
}

/// Two classes, and handlers that may go on anywhere.
fn shape(workers: usize, means_ns: [u64; 2]) -> Shape {
    let mut shape = Shape::new(workers)
        .class(means_ns[0], 0.5)
        .class(means_ns[1], 0.5);
    shape.resume = Resume::Anywhere;
    shape
}

/// A policy that a live server of so many workers runs.
fn live_policy(random: &mut Random, workers: usize) -> ServerSpec {
    loop {
        let text = match random.one_of(NAMES) {
            // So that it makes plans in these short lives.
            "darc" => "darc,window=16",
            "darc-paper" => "darc-paper,window=16",
            "darc-stable" => "darc-stable,window=16",
            name => name,
        };
        let spec: ServerSpec = text.parse().expect("a policy of ours");
        if admit(&spec, &shape(workers, [1_000, 100_000])).is_ok() {
            return spec;
        }
    }
}

fn core_faults(random: &mut Random, faults: Faults) -> CoreFaults {
    if !faults.cores {
        return CoreFaults::default();
    }
    CoreFaults {
        stalls_ppm: random.one_of(&[0, 100, 2_000]),
        stall_ns: random.one_of(&[20_000, 3_000_000]),
        skew_ns: random.one_of(&[0, 30, 200]),
        pauses_in: random.one_of(&[0, 10, 100]),
    }
}

/// Some requests come by the rack's switch: some as clones, some that were handed back once.
fn come_by_switch(random: &mut Random, datagrams: &mut [Datagram]) {
    for datagram in datagrams {
        datagram.by_switch = random.once_in(2);
        if datagram.by_switch && random.once_in(3) {
            datagram.flag = datagram.flag.with_clone_role(CloneRole::Clone);
        }
        datagram.flag = datagram.flag.with_bounced(random.once_in(8));
    }
}

/// Orders of the rack's control plane, among those of the owner.
fn duties(random: &mut Random, workers: usize, end_ns: u64, orders: &mut Vec<(u64, OwnerOrder)>) {
    let mut times: Vec<u64> = (0..random.below(5))
        .map(|_| random.below(end_ns + 1))
        .collect();
    times.sort_unstable();
    for (number, at_ns) in times.into_iter().enumerate() {
        let cores = random.below(workers as u64 + 1) as usize;
        let parts = [
            (BitSet::range(0, 1), cores),
            (BitSet::range(1, 3), workers - cores),
        ];
        let parts = parts.into_iter().filter(|part| part.1 > 0);
        let parts = parts.map(|(classes, cores)| Part { classes, cores });
        let order = DutyOrder {
            number: number as u64 + 1,
            duty: Duty {
                parts: parts.collect(),
                ascending: (0..3).map(ClassId).collect(),
            },
            bouncing: random.one_of(&[Bouncing::Off, Bouncing::Longer, Bouncing::All]),
            switch: switch_peer(),
        };
        orders.push((at_ns, OwnerOrder::Duty(order)));
    }
    orders.sort_by_key(|order| order.0);
}

/// An open loop: arrivals do not wait for answers.
fn traffic(
    random: &mut Random,
    faults: Faults,
    workers: usize,
    means_ns: [u64; 2],
) -> Vec<Datagram> {
    let requests = 20 + random.below(80);
    let longs = random.one_of(&[2, 5, 20]);
    let mean_ns = (means_ns[0] * (longs - 1) + means_ns[1]) as f64 / longs as f64;
    let load = random.one_of(&[0.3, 0.8, 2.0]);
    let gap_ns = mean_ns / (load * workers as f64);
    let mut datagrams = Vec::new();
    let mut at_ns = 100_000;
    for _ in 0..requests {
        at_ns += random.exponential(gap_ns);
        let class = u8::from(random.once_in(longs));
        let datagram = Datagram {
            at_ns,
            class: if random.once_in(50) { 7 } else { class },
            service_ns: random.exponential(means_ns[usize::from(class)] as f64) + 1,
            by_switch: false,
            flag: Flag::REQUEST,
            delivery: 0,
        };
        deliver(random, faults.network, datagram, &mut datagrams);
    }
    number(&mut datagrams);
    datagrams
}

/// Each gets its place in the order of their times.
pub(crate) fn number(datagrams: &mut [Datagram]) {
    datagrams.sort_by_key(|datagram| datagram.at_ns);
    for (delivery, datagram) in datagrams.iter_mut().enumerate() {
        datagram.delivery = delivery as u32;
    }
}

/// What the network makes of a datagram.
fn deliver(random: &mut Random, is_bad: bool, datagram: Datagram, arriving: &mut Vec<Datagram>) {
    if is_bad && random.once_in(20) {
        return;
    }
    let copies = if is_bad && random.once_in(20) { 2 } else { 1 };
    for _ in 0..copies {
        let delay_ns = if is_bad && random.once_in(10) {
            random.below(300_000)
        } else {
            0
        };
        arriving.push(Datagram {
            at_ns: datagram.at_ns + delay_ns,
            ..datagram
        });
    }
}

fn orders(
    random: &mut Random,
    faults: Faults,
    policy: &ServerSpec,
    workers: usize,
    has_dispatcher: bool,
    end_ns: u64,
) -> Vec<(u64, OwnerOrder)> {
    if !faults.orders {
        return Vec::new();
    }
    let mut orders: Vec<(u64, OwnerOrder)> = Vec::new();
    for _ in 0..random.below(4) {
        let at_ns = random.below(end_ns + 1);
        let quantum = ("q", format!("{}us", 1 + random.below(30)));
        if has_dispatcher && random.once_in(2) {
            orders.push((
                at_ns,
                OwnerOrder::Workers(1 + random.below(workers as u64) as usize),
            ));
        } else if policy
            .policy()
            .about
            .params
            .iter()
            .any(|param| param.key == "q")
        {
            orders.push((at_ns, OwnerOrder::Rule(quantum.0, quantum.1)));
        }
    }
    orders.sort_by_key(|order| order.0);
    orders
}

impl fmt::Display for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} on {} workers, {:?}, {:?}, {} datagrams, {} orders{}{}",
            self.policy,
            self.workers,
            self.layout,
            self.idle,
            self.datagrams.len(),
            self.orders.len(),
            if self.by_clock { ", by clock" } else { "" },
            if self.is_patient() {
                ""
            } else {
                ", a short drain"
            },
        )?;
        for (has, what) in [
            (self.by_feedback, "by feedback"),
            (self.sections, "sections"),
            (self.crash.is_some(), "a crash"),
            (self.behind_switch.is_some(), "behind a switch"),
            (self.granting.is_some(), "granted cores"),
            (self.by_signal, "by signal"),
        ] {
            if has {
                write!(f, ", {what}")?;
            }
        }
        Ok(())
    }
}
