//! Processes that exist in a test only.

use headway_host::HostPeer;
use headway_host::arbiter::{Arbiter, Newcomer, NewcomerWork};
use headway_host::memory::SharedLines;
use headway_host::topology::HostCores;
use headway_kthread::Grant;
use headway_policy::host::{Allocator, AppKind, AppShape, HostTopology};
use nix::sched::CpuSet;
use std::cell::Cell;
use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex};

/// The shared core: it is not dealt out.
pub(crate) const SHARED: usize = 900;

/// The kernel's side of a process.
#[derive(Debug, Default)]
pub(crate) struct FakeProcess {
    /// Its threads, and the cores to which each is confined.
    pub(crate) threads: HashMap<u32, Vec<usize>>,
    pub(crate) signals: Vec<u32>,
    pub(crate) demoted: Vec<u32>,
    pub(crate) touched_strangers: usize,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct FakePeer(pub(crate) Arc<Mutex<FakeProcess>>);

fn list(cores: &CpuSet) -> Vec<usize> {
    (0..CpuSet::count())
        .filter(|&core| cores.is_set(core) == Ok(true))
        .collect()
}

impl HostPeer for FakePeer {
    fn owns(&self, tid: u32) -> bool {
        self.0.lock().unwrap().threads.contains_key(&tid)
    }

    fn pin(&self, tid: u32, cores: &CpuSet) -> bool {
        let mut process = self.0.lock().unwrap();
        let Some(mask) = process.threads.get_mut(&tid) else {
            process.touched_strangers += 1;
            return false;
        };
        *mask = list(cores);
        true
    }

    fn may_run_on(&self, tid: u32, core: usize) -> bool {
        let process = self.0.lock().unwrap();
        let mask = process.threads.get(&tid);
        mask.is_none_or(|mask| mask.contains(&core))
    }

    fn interrupt(&self, tid: u32) -> bool {
        let mut process = self.0.lock().unwrap();
        if !process.threads.contains_key(&tid) {
            process.touched_strangers += 1;
            return false;
        }
        process.signals.push(tid);
        true
    }

    fn demote(&self, tid: u32, demoted: bool) {
        let mut process = self.0.lock().unwrap();
        process.demoted.retain(|&other| other != tid);
        if demoted {
            process.demoted.push(tid);
        }
    }

    fn pin_all(&mut self, cores: &CpuSet) -> usize {
        self.pin_known(cores);
        self.0.lock().unwrap().threads.len()
    }

    fn pin_known(&mut self, cores: &CpuSet) {
        let mask = list(cores);
        for one in self.0.lock().unwrap().threads.values_mut() {
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

/// An application of a test: its side of the lines, and its process.
pub(crate) struct FakeApp {
    pub(crate) id: u64,
    pub(crate) lines: SharedLines,
    pub(crate) memory: OwnedFd,
    pub(crate) process: Arc<Mutex<FakeProcess>>,
    pub(crate) most: usize,
    pub(crate) guaranteed: usize,
}

pub(crate) fn host_cores(cores: usize) -> HostCores {
    HostCores {
        dealt: (0..cores).map(|core| 10 + core).collect(),
        siblings: HostTopology::flat(cores),
        own: None,
        shared: SHARED,
    }
}

pub(crate) fn shape(guaranteed: usize, most: usize, kind: AppKind) -> AppShape {
    AppShape {
        guaranteed,
        most,
        kind,
    }
}

/// An application with a thread for each kthread, and the newcomer for the daemon.
pub(crate) fn kthreads(id: u64, shape: AppShape) -> (FakeApp, Newcomer<FakePeer>) {
    let (memory, lines) = SharedLines::create(shape.most).unwrap();
    let process = Arc::new(Mutex::new(FakeProcess::default()));
    for kthread in 0..shape.most {
        let tid = 1000 * id as u32 + kthread as u32 + 1;
        process.lock().unwrap().threads.insert(tid, vec![0, 1]);
        lines.line(kthread).set_tid(tid);
    }
    let app = FakeApp {
        id,
        lines,
        memory,
        process,
        most: shape.most,
        guaranteed: shape.guaranteed,
    };
    let newcomer = app.newcomer(shape, false);
    (app, newcomer)
}

impl FakeApp {
    pub(crate) fn newcomer(&self, shape: AppShape, resumed: bool) -> Newcomer<FakePeer> {
        let mut home = CpuSet::new();
        home.set(0).unwrap();
        home.set(1).unwrap();
        Newcomer {
            id: self.id,
            name: format!("app-{}", self.id),
            shape,
            work: NewcomerWork::Kthreads {
                lines: SharedLines::adopt(&self.memory, self.most).unwrap(),
                probes: false,
                resumed,
            },
            peer: FakePeer(Arc::clone(&self.process)),
            home,
        }
    }

    pub(crate) fn tid(&self, kthread: usize) -> u32 {
        1000 * self.id as u32 + kthread as u32 + 1
    }

    /// Whether the kthread has a core, and the grant.
    pub(crate) fn running(&self, kthread: usize) -> Option<Grant> {
        let granted = self.lines.orders(kthread).granted();
        (granted > self.lines.line(kthread).left()).then_some(granted)
    }

    /// Makes kthreads with an order to leave obey it.
    pub(crate) fn heed(&self) {
        for kthread in 0..self.most {
            if let Some(grant) = self.running(kthread)
                && self.lines.orders(kthread).is_revoked(grant)
            {
                self.lines.line(kthread).leave(grant);
            }
        }
    }

    pub(crate) fn mask(&self, kthread: usize) -> Vec<usize> {
        self.process.lock().unwrap().threads[&self.tid(kthread)].clone()
    }
}

/// A clock that a test turns.
#[derive(Default)]
pub(crate) struct Turned(pub(crate) Cell<u64>);

impl Turned {
    pub(crate) fn pass<A: Allocator>(&self, arbiter: &mut Arbiter<A, FakePeer>, ns: u64) {
        self.0.set(self.0.get() + ns);
        arbiter.pass(&|| self.0.get());
    }
}
