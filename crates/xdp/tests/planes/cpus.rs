//! Packets that come to several CPUs. In the kernel each has its own turns and averages, so each has its own here. They share the requests under way, the
//! windows of bursts, and what servers have.

use crate::common::stay_on_cpu;
use crate::{Excess, Planes, TYPES, shaper};
use headway_policy::ClassId;
use headway_policy::rack::Shaper;

/// One CPU's part of the two planes in user space.
struct CpuShaper {
    cpu: usize,
    /// Their turns and averages are this CPU's while it is not present; nothing else of them is used.
    policy: Shaper,
    user: Shaper,
    /// Responses that the averages are of, by type.
    responses: [u64; TYPES + 1],
}

/// The CPUs that packets come to.
pub(crate) struct CpuShapers {
    of_cpu: Vec<CpuShaper>,
    present: usize,
}

impl CpuShapers {
    pub(crate) fn of(cpus: &[usize], (cloning, overflow): Excess) -> Self {
        let of_cpu = cpus.iter().map(|&cpu| CpuShaper {
            cpu,
            policy: shaper(cloning, overflow),
            user: shaper(cloning, overflow),
            responses: [0; TYPES + 1],
        });
        Self {
            of_cpu: of_cpu.collect(),
            present: 0,
        }
    }

    /// The number of the present CPU.
    pub(crate) fn present(&self) -> usize {
        self.of_cpu[self.present].cpu
    }

    /// The present CPU has averaged a response.
    pub(crate) fn averaged(&mut self, class: ClassId) {
        self.of_cpu[self.present].responses[class.index()] += 1;
    }

    /// Responses that the present CPU has averaged.
    pub(crate) fn responses(&self, class: usize) -> u64 {
        self.of_cpu[self.present].responses[class]
    }
}

impl Planes {
    /// Moves to one of the CPUs.
    fn move_to(&mut self, next: usize) {
        if next == self.cpus.present {
            return;
        }
        for at in [self.cpus.present, next] {
            let parked = &mut self.cpus.of_cpu[at];
            self.policy.exchange_turns(&mut parked.policy);
            self.user.policy().exchange_turns(&mut parked.user);
        }
        self.cpus.present = next;
        stay_on_cpu(self.cpus.present());
    }

    /// The next packet comes to any of the CPUs.
    pub(crate) fn next_cpu(&mut self) {
        let next = self.below(self.cpus.of_cpu.len() as u32) as usize;
        self.move_to(next);
    }

    pub(crate) fn on_each_cpu(&mut self, mut body: impl FnMut(&mut Self)) {
        let before = self.cpus.present;
        for at in 0..self.cpus.of_cpu.len() {
            self.move_to(at);
            body(self);
        }
        self.move_to(before);
    }
}

/// The CPUs that this thread may run on.
pub(crate) fn allowed() -> Vec<usize> {
    let own = nix::unistd::Pid::from_raw(0);
    let set = nix::sched::sched_getaffinity(own).expect("the CPUs");
    let cpus = 0..nix::sched::CpuSet::count();
    cpus.filter(|&cpu| set.is_set(cpu).unwrap_or(false))
        .collect()
}
