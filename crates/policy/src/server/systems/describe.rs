//! What a server's policy says of itself beside its name and parameters.

use crate::server::role::Owner;
use crate::spec::{Description, GivenParams, Param, Spec};

/// A policy of a server, as it describes itself.
#[derive(Clone, Copy, Debug)]
pub struct ServerPolicy {
    /// Its names, what it does, its parameters.
    pub about: Description,
    /// What it is with its default parameters.
    pub defaults: Facts,
    /// What parameters make of that.
    pub with_params: fn(Facts, &GivenParams<'_>) -> Facts,
    /// What a planner tries of it; nothing where it tries it only on request.
    pub grids: &'static [Grid],
}

/// What an engine, a planner or a test has to know of a system before there is one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Facts {
    /// Who carries the ingress out.
    pub owner: Owner,
    /// Who interrupts requests, if anybody.
    pub preemption: Preemption,
    /// Whether requests are interrupted at the ends of slices alone, which workers can time themselves; else also when others come.
    pub keeps_times: bool,
    /// Whether workers take what waits at others.
    pub steals: bool,
    /// Requests a worker may hold, the running one included; `usize::MAX` for any number.
    pub depth: usize,
    /// Dispatchers: none unless one owns the ingress, several where workers are divided among them.
    pub dispatchers: usize,
    /// Whether a dispatcher runs requests itself while all workers have enough.
    pub dispatchers_work: bool,
    /// Whether it starts with a profile of the load, which only a simulation has.
    pub knows_load: bool,
    /// What a dispatcher's queues keep to; `None` where there are none.
    pub promises: Option<Promises>,
}

/// Who interrupts running requests.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Preemption {
    /// Nobody: a request runs to its end.
    None,
    /// A monitor.
    ByMonitor {
        /// Whether it is the dispatcher's; else a timer core's.
        on_dispatcher: bool,
    },
    /// Each worker ends its own slices.
    BySlices,
}

/// What a dispatcher's queues keep to, beside what all do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Promises {
    /// The bound is each class's own; else that of one queue for all.
    pub bound_per_class: bool,
    /// No worker idles while a request waits.
    pub work_conserving: bool,
    /// First come, first served within a class.
    pub fcfs_in_class: bool,
}

impl Promises {
    /// One bounded queue, first come first served, for whichever worker is idle.
    pub const SINGLE_QUEUE: Self = Self {
        bound_per_class: false,
        work_conserving: true,
        fcfs_in_class: true,
    };
    /// A bounded queue a class, for whichever worker is idle.
    pub const TYPED: Self = Self {
        bound_per_class: true,
        ..Self::SINGLE_QUEUE
    };
    /// A bounded queue a class, some workers kept for some classes.
    pub const RESERVING: Self = Self {
        work_conserving: false,
        ..Self::TYPED
    };
}

impl Facts {
    /// A dispatcher hands requests to idle workers, which run them to their end.
    pub const CENTRAL: Self = Self {
        owner: Owner::Dispatcher,
        preemption: Preemption::None,
        keeps_times: true,
        steals: false,
        depth: 1,
        dispatchers: 1,
        dispatchers_work: false,
        knows_load: false,
        promises: Some(Promises::SINGLE_QUEUE),
    };
    /// The network steers requests to workers, which run them to their end.
    pub const STEERED: Self = Self {
        owner: Owner::Steering,
        depth: usize::MAX,
        dispatchers: 0,
        promises: None,
        ..Self::CENTRAL
    };
    /// The monitor that a dispatcher keeps.
    pub const BY_DISPATCHER: Preemption = Preemption::ByMonitor {
        on_dispatcher: true,
    };

    /// Whether running requests are interrupted.
    #[must_use]
    pub fn interrupts(&self) -> bool {
        self.preemption != Preemption::None
    }

    /// Whether a request that was interrupted may go on at another worker, whatever the shape says: the
    /// workers help themselves.
    #[must_use]
    pub fn roams(&self) -> bool {
        self.interrupts() && self.owner != Owner::Dispatcher
    }

    /// Cores that it takes beside those of its workers: of its dispatchers, and of a timer that is no dispatcher's.
    #[must_use]
    pub fn cores_beside_workers(&self) -> usize {
        let timer = Preemption::ByMonitor {
            on_dispatcher: false,
        };
        self.dispatchers + usize::from(self.preemption == timer)
    }

    /// Whether nothing is left in the queue of a worker that is gone. A dispatcher whose workers are all gone serves
    /// nobody, and no allocator knows whose they are.
    #[must_use]
    pub fn may_lose_workers(&self) -> bool {
        let central = self.owner == Owner::Nobody || self.depth == 1;
        self.dispatchers <= 1 && (self.steals || central)
    }
}

impl ServerPolicy {
    /// A policy of this name that hands requests to idle workers, which run them to their end, and that has no parameters. What
    /// differs the methods below say.
    pub(super) const fn named(name: &'static str) -> Self {
        Self {
            about: Description {
                name,
                aliases: &[],
                summary: "",
                paper: "",
                params: &[],
            },
            defaults: Facts::CENTRAL,
            with_params: |facts, _| facts,
            grids: &[],
        }
    }

    /// The same under another name.
    pub(super) const fn called(mut self, name: &'static str) -> Self {
        self.about.name = name;
        self
    }

    /// Names of the papers' systems that mean the same.
    pub(super) const fn aliases(mut self, aliases: &'static [&'static str]) -> Self {
        self.about.aliases = aliases;
        self
    }

    /// What it does, in a line.
    pub(super) const fn summary(mut self, summary: &'static str) -> Self {
        self.about.summary = summary;
        self
    }

    /// Where it was published.
    pub(super) const fn paper(mut self, paper: &'static str) -> Self {
        self.about.paper = paper;
        self
    }

    /// Its parameters, in the order of reading.
    pub(super) const fn params(mut self, params: &'static [Param]) -> Self {
        self.about.params = params;
        self
    }

    /// What it is with its default parameters.
    pub(super) const fn defaults(mut self, defaults: Facts) -> Self {
        self.defaults = defaults;
        self
    }

    /// What its dispatcher's queues keep to.
    pub(super) const fn promises(mut self, promises: Promises) -> Self {
        self.defaults.promises = Some(promises);
        self
    }

    /// What parameters make of the defaults.
    pub(super) const fn with_params(
        mut self,
        with_params: fn(Facts, &GivenParams<'_>) -> Facts,
    ) -> Self {
        self.with_params = with_params;
        self
    }

    /// What a planner tries of it.
    pub(super) const fn grids(mut self, grids: &'static [Grid]) -> Self {
        self.grids = grids;
        self
    }

    /// What it is with the parameters of a spec. Values that do not parse count as not given.
    pub(super) fn facts(&'static self, spec: &Spec) -> Facts {
        (self.with_params)(self.defaults, &GivenParams::new(&self.about, spec))
    }
}

/// What a planner tries: every combination of the values of some parameters.
#[derive(Clone, Copy, Debug)]
pub struct Grid {
    /// Parameters with their values; the policy alone where there are none.
    pub values: &'static [(&'static str, Values)],
    /// The parts of a composition: taken together, or not at all.
    pub parts: &'static [(&'static str, &'static str)],
    /// Whether it does nothing with a single class that another policy does not.
    pub needs_classes: bool,
    /// Set in simulation only: steady state without a long start, say.
    pub simulated_with: &'static [(&'static str, &'static str)],
}

/// The values of a parameter that a planner tries.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Values {
    /// These.
    These(&'static [&'static str]),
    /// Numbers of workers around what the shortest class needs.
    Workers,
    /// Multiples of the shortest class's mean service time, and the papers' 2, 5 and 10 µs.
    Quanta,
    /// Two, four, eight dispatchers, as far as each has workers enough.
    Dispatchers,
}

impl Grid {
    /// Every combination of these values, whatever the workload.
    pub(super) const fn of(values: &'static [(&'static str, Values)]) -> Self {
        Self {
            values,
            parts: &[],
            needs_classes: false,
            simulated_with: &[],
        }
    }

    /// The same where there are several classes.
    pub(super) const fn by_class(values: &'static [(&'static str, Values)]) -> Self {
        Self {
            needs_classes: true,
            ..Self::of(values)
        }
    }

    /// The same, simulated with the profile known.
    pub(super) const fn profiled(values: &'static [(&'static str, Values)]) -> Self {
        Self {
            simulated_with: &[("profile", "known")],
            ..Self::by_class(values)
        }
    }
}
