//! A host in the world: the arbiter's passes as they are, and model applications that grow, park, hang and die.

use std::collections::HashMap;
use std::fmt;
use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use headway_host::HostPeer;
use headway_host::arbiter::{Arbiter, CycleStep, Newcomer, NewcomerWork, PassCycle};
use headway_host::memory::SharedLines;
use headway_host::topology::HostCores;
use headway_kthread::Grant;
use headway_machine::Clock;
use headway_policy::host::systems::{self, HostSystem, HostVisit, NAMES};
use headway_policy::host::{Allocator, AppKind, AppShape, HostShape, HostTopology};
use nix::sched::CpuSet;

use crate::random::Random;
use crate::scheduler::{CoreCosts, CoreFaults, Watched, World, draw, now_ns, read_clock_ns, spend};
use crate::verdict::WorldVerdict;

/// The core of those that were moved away: it is not dealt out.
const SHARED: usize = 900;

/// The interval at which the daemon looks at busy applications, ns.
const TICK_NS: u64 = 20_000;

/// For how long an application under Shenango may miss guaranteed cores, or a core that is idle, while its queue is never empty, ns: kthreads are moved
/// away after 100 µs, looks come every tick, and cores are taken from who hangs one after the other. For each core of the host:
const MISSING_NS: u64 = 150_000;

/// A host, its applications, and what goes wrong.
struct HostScenario {
    policy: &'static str,
    cores: usize,
    span_ns: u64,
    hangs: bool,
    deaths: bool,
    stalls: bool,
    jumps: bool,
}

impl HostScenario {
    fn draw(random: &mut Random) -> Self {
        Self {
            policy: if random.once_in(2) {
                "shenango"
            } else {
                random.one_of(NAMES)
            },
            cores: 1 + random.below(6) as usize,
            span_ns: 3_000_000 + random.below(10_000_000),
            hangs: random.once_in(2),
            deaths: random.once_in(2),
            stalls: random.once_in(2),
            jumps: random.once_in(3),
        }
    }
}

impl fmt::Display for HostScenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "host of {} cores under {}", self.cores, self.policy)?;
        for (has, what) in [
            (self.hangs, "hangs"),
            (self.deaths, "deaths"),
            (self.stalls, "stalls"),
            (self.jumps, "jumps"),
        ] {
            if has {
                write!(f, ", {what}")?;
            }
        }
        Ok(())
    }
}

/// The scenario of a seed, in a line.
pub(crate) fn describe(seed: u64) -> String {
    HostScenario::draw(&mut Random::new(seed)).to_string()
}

/// Lives through the host's world of this seed.
pub(crate) fn live(seed: u64, watched: Watched) -> WorldVerdict {
    let mut random = Random::new(seed);
    let scenario = HostScenario::draw(&mut random);
    let (ended, past) = World::run(
        watched,
        random,
        CoreCosts::TINY,
        CoreFaults::default(),
        || {
            let shape = HostShape::vacant(HostTopology::flat(scenario.cores), 8, seed);
            let policy = scenario.policy.parse().expect("a name of ours");
            systems::with(&policy, &shape, HostPlay(&scenario)).expect("a policy of this host")
        },
    );
    WorldVerdict {
        scenario: scenario.to_string(),
        faults: ended.0,
        fingerprint: ended.1,
        turns: past.turns,
    }
}

struct HostPlay<'a>(&'a HostScenario);

impl HostVisit for HostPlay<'_> {
    type Output = (Vec<String>, u64);

    fn visit<A: Allocator + Send + 'static>(self, system: HostSystem<A>) -> Self::Output {
        let clock = Clock::given(read_clock_ns);
        let cores = HostCores {
            dealt: (0..self.0.cores).map(|core| 10 + core).collect(),
            siblings: HostTopology::flat(self.0.cores),
            own: None,
            shared: SHARED,
        };
        let mut room = HostRoom {
            scenario: self.0,
            arbiter: Arbiter::new(system.allocator, cores, true).with_timers(clock),
            cycle: PassCycle::new(clock, TICK_NS, 0, true),
            apps: Vec::new(),
            numbered: 0,
            due_ns: now_ns(),
            excused_ns: now_ns(),
            faults: Vec::new(),
            hash: 0xcbf2_9ce4_8422_2325,
        };
        room.play();
        (room.faults, room.hash)
    }
}

/// The kernel's side of a process: its threads, and the cores to which each is confined.
#[derive(Clone, Default)]
struct ModelPeer(Arc<Mutex<HashMap<u32, Vec<usize>>>>);

impl ModelPeer {
    fn threads(&self) -> MutexGuard<'_, HashMap<u32, Vec<usize>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn list(cores: &CpuSet) -> Vec<usize> {
    let all = 0..CpuSet::count();
    all.filter(|&core| cores.is_set(core) == Ok(true)).collect()
}

impl HostPeer for ModelPeer {
    fn owns(&self, tid: u32) -> bool {
        self.threads().contains_key(&tid)
    }

    fn pin(&self, tid: u32, cores: &CpuSet) -> bool {
        let mut threads = self.threads();
        let Some(mask) = threads.get_mut(&tid) else {
            return false;
        };
        *mask = list(cores);
        true
    }

    fn may_run_on(&self, tid: u32, core: usize) -> bool {
        let threads = self.threads();
        let mask = threads.get(&tid);
        mask.is_none_or(|mask| mask.contains(&core))
    }

    fn interrupt(&self, tid: u32) -> bool {
        self.owns(tid)
    }

    fn demote(&self, _tid: u32, _demoted: bool) {}

    fn pin_all(&mut self, cores: &CpuSet) -> usize {
        self.pin_known(cores);
        self.threads().len()
    }

    fn pin_known(&mut self, cores: &CpuSet) {
        let mask = list(cores);
        for one in self.threads().values_mut() {
            one.clone_from(&mask);
        }
    }

    fn let_all_go(&mut self, home: &CpuSet) {
        self.pin_known(home);
    }

    fn cpu_ns(&self) -> u64 {
        0
    }
}

struct ModelApp {
    id: u64,
    shape: AppShape,
    lines: SharedLines,
    _memory: OwnedFd,
    peer: ModelPeer,
    /// What each kthread has left of its job, ns.
    jobs_ns: Vec<u64>,
    /// The mean time between two jobs, ns.
    gap_ns: u64,
    next_job_ns: u64,
    /// It heeds nothing and does nothing until then, ns.
    hangs_until_ns: u64,
    /// Since when jobs wait while it misses guaranteed cores, or one that is idle, ns.
    misses_since_ns: Option<u64>,
}

impl ModelApp {
    fn tid(id: u64, kthread: usize) -> u32 {
        1000 * id as u32 + kthread as u32 + 1
    }

    fn running(&self, kthread: usize) -> Option<Grant> {
        let granted = self.lines.orders(kthread).granted();
        (granted > self.lines.line(kthread).left()).then_some(granted)
    }

    fn active(&self) -> usize {
        let kthreads = 0..self.shape.most;
        kthreads.filter(|&one| self.running(one).is_some()).count()
    }

    fn waiting(&self) -> u64 {
        let app = self.lines.app();
        app.shared_tail.load(Ordering::Relaxed) - app.shared_head.load(Ordering::Relaxed)
    }

    /// Lives for `span_ns`. Returns whether it rings.
    fn act(&mut self, span_ns: u64) -> bool {
        let now_ns = now_ns();
        let mut rings = false;
        while self.next_job_ns <= now_ns {
            self.next_job_ns += 1 + draw(2 * self.gap_ns);
            self.lines.app().shared_tail.fetch_add(1, Ordering::Relaxed);
        }
        if now_ns < self.hangs_until_ns {
            return false;
        }
        for kthread in 0..self.shape.most {
            let Some(grant) = self.running(kthread) else {
                continue;
            };
            let app = self.lines.app();
            if self.lines.orders(kthread).is_revoked(grant) {
                if self.jobs_ns[kthread] > 0 {
                    self.jobs_ns[kthread] = 0;
                    app.shared_tail.fetch_add(1, Ordering::Relaxed);
                }
                self.lines.line(kthread).leave(grant);
                rings = true;
                continue;
            }
            self.jobs_ns[kthread] = self.jobs_ns[kthread].saturating_sub(span_ns);
            if self.jobs_ns[kthread] > 0 {
                continue;
            }
            if self.waiting() > 0 {
                app.shared_head.fetch_add(1, Ordering::Relaxed);
                self.jobs_ns[kthread] = 1 + draw(40_000);
            } else if self.lines.arbiter().parks.load(Ordering::Relaxed) == 1 {
                self.lines.line(kthread).leave(grant);
                rings = true;
            }
        }
        if self.active() == 0 && self.waiting() > 0 {
            self.lines.app().wants.fetch_add(1, Ordering::Release);
            rings = true;
        }
        rings
    }
}

struct HostRoom<'a, A> {
    scenario: &'a HostScenario,
    arbiter: Arbiter<A, ModelPeer>,
    cycle: PassCycle,
    apps: Vec<ModelApp>,
    numbered: u64,
    /// When the next step of the cycle is due, ns.
    due_ns: u64,
    /// The last stall of the daemon, hang, death or jump, ns: what is missing counts from then on.
    excused_ns: u64,
    faults: Vec<String>,
    hash: u64,
}

impl<A: Allocator> HostRoom<'_, A> {
    fn play(&mut self) {
        let clock = self.cycle.clock();
        let now = || clock.now_ns();
        let end_ns = now_ns() + self.scenario.span_ns;
        while now_ns() < end_ns && self.faults.is_empty() {
            let span_ns = 500 + draw(3_000);
            spend(span_ns);
            self.change();
            let mut rings = false;
            for app in &mut self.apps {
                rings |= app.act(span_ns);
            }
            if rings {
                self.due_ns = self.due_ns.min(now_ns());
            }
            if now_ns() >= self.due_ns {
                let own_core = 10 + draw(self.scenario.cores as u64) as usize;
                let step = self.cycle.step(&mut self.arbiter, false, || Some(own_core));
                self.due_ns = now_ns();
                if let CycleStep::Waits { patience_ns } = step {
                    self.due_ns += patience_ns;
                }
            }
            self.check();
        }
        self.arbiter.retire_all(&now);
        if self.arbiter.allocator().cores().idle().len() != self.scenario.cores {
            self.faults.push("cores are missing at the end".to_owned());
        }
    }

    /// Applications come, hang and die; the daemon stands still; the clock jumps.
    fn change(&mut self) {
        let scenario = self.scenario;
        if self.apps.len() < 4 && draw(100) == 0 {
            self.admit();
        }
        if self.apps.is_empty() {
            return;
        }
        let victim = draw(self.apps.len() as u64) as usize;
        let now_ns = now_ns();
        if scenario.hangs && draw(400) == 0 {
            let for_ns = draw(1_000_000);
            self.apps[victim].hangs_until_ns = now_ns + for_ns;
        }
        if scenario.deaths && draw(400) == 0 {
            let gone = self.apps.swap_remove(victim);
            gone.peer.threads().clear();
            let clock = self.cycle.clock();
            if !self.arbiter.retire(gone.id, &|| clock.now_ns()) {
                self.faults.push(format!("app-{} was not there", gone.id));
            }
            self.excused_ns = now_ns;
        }
        if scenario.stalls && draw(400) == 0 {
            self.due_ns = now_ns + draw(1_000_000);
            self.excused_ns = self.due_ns;
        }
        if scenario.jumps && draw(1000) == 0 {
            self.excused_ns = spend(draw(2_000_000_000));
        }
        if draw(50) == 0 {
            let gap_ns = [2_000, 20_000, 400_000][draw(3) as usize];
            if let Some(app) = self.apps.get_mut(victim) {
                app.gap_ns = gap_ns;
            }
        }
    }

    fn admit(&mut self) {
        let cores = self.scenario.cores as u64;
        let most = 1 + draw(cores) as usize;
        let shape = AppShape {
            guaranteed: draw(most as u64 + 1) as usize,
            most,
            kind: if draw(3) == 0 {
                AppKind::Batch
            } else {
                AppKind::Latency
            },
        };
        self.numbered += 1;
        let id = self.numbered;
        let (memory, lines) = SharedLines::create(most).expect("memory for its lines");
        let peer = ModelPeer::default();
        for kthread in 0..most {
            let tid = ModelApp::tid(id, kthread);
            peer.threads().insert(tid, vec![0, 1]);
            lines.line(kthread).set_tid(tid);
        }
        let mut home = CpuSet::new();
        home.set(0).expect("there is a first core");
        let newcomer = Newcomer {
            id,
            name: format!("app-{id}"),
            shape,
            work: NewcomerWork::Kthreads {
                lines: SharedLines::adopt(&memory, most).expect("they were made"),
                probes: false,
                resumed: false,
            },
            peer: peer.clone(),
            home,
        };
        let given: usize = self.apps.iter().map(|app| app.shape.guaranteed).sum();
        let clock = self.cycle.clock();
        let admitted = self.arbiter.admit(newcomer, &|| clock.now_ns());
        if admitted.is_ok() != (given + shape.guaranteed <= self.scenario.cores) {
            self.faults.push(format!(
                "{given} cores are guaranteed, {shape:?} asked: {admitted:?}"
            ));
        }
        if admitted.is_ok() {
            self.apps.push(ModelApp {
                id,
                shape,
                lines,
                _memory: memory,
                peer,
                jobs_ns: vec![0; most],
                gap_ns: 20_000,
                next_job_ns: now_ns() + draw(50_000),
                hangs_until_ns: 0,
                misses_since_ns: None,
            });
        }
    }

    fn check(&mut self) {
        self.check_owners();
        let report = self.arbiter.report(now_ns(), 0, 0);
        let idle = report.cores.iter().filter(|core| core.app.is_none());
        let idle = idle.count();
        let is_shenango = self.scenario.policy == "shenango";
        let most_ns = MISSING_NS * (1 + self.scenario.cores as u64);
        let now_ns = now_ns();
        for app in &mut self.apps {
            let name = format!("app-{}", app.id);
            let Some(told) = report.apps.iter().find(|told| told.name == name) else {
                self.faults.push(format!("{name} is not in the report"));
                continue;
            };
            for word in [now_ns, told.grants, told.revocations] {
                for byte in word.to_le_bytes() {
                    let mixed = self.hash ^ u64::from(byte);
                    self.hash = mixed.wrapping_mul(0x0100_0000_01b3);
                }
            }
            let held = told.cores.len();
            if held > told.most
                || told.evictions > told.revocations
                || told.revocations > told.grants
            {
                self.faults.push(format!("out of bounds: {told:?}"));
            }
            // One that hangs claims a core still when it was moved away.
            let is_awake = now_ns >= app.hangs_until_ns;
            let missing = held < app.shape.guaranteed || (idle > 0 && held < app.shape.most);
            let misses = is_awake && app.waiting() > 1 && missing;
            app.misses_since_ns = misses.then(|| app.misses_since_ns.unwrap_or(now_ns));
            let for_ns = app
                .misses_since_ns
                .map(|since_ns| now_ns.saturating_sub(since_ns.max(self.excused_ns)));
            if is_shenango && for_ns.is_some_and(|ns| ns > most_ns) {
                self.faults.push(format!(
                    "for {for_ns:?} ns {name} waits with {} jobs, and has {held} cores beside {idle} idle ones: {:?}",
                    app.waiting(), app.shape
                ));
            }
        }
    }

    /// No two kthreads run on a core that is dealt out.
    fn check_owners(&mut self) {
        let mut owners: HashMap<usize, u32> = HashMap::new();
        for app in &self.apps {
            for kthread in 0..app.shape.most {
                let tid = ModelApp::tid(app.id, kthread);
                let threads = app.peer.threads();
                let [core] = threads[&tid][..] else { continue };
                if app.running(kthread).is_none() || core == SHARED {
                    continue;
                }
                if let Some(other) = owners.insert(core, tid) {
                    self.faults
                        .push(format!("threads {other} and {tid} both have core {core}"));
                }
            }
        }
    }
}
