//! A system by its parts: `compose,discipline=typed,placement=jbsq,k=2,preemption=quantum,control=darc`.

use super::build::Build;
use super::chosen::{ChosenControl, ChosenDiscipline, ChosenMonitor, ChosenParts, ChosenPlacement};
use super::darc::{DELAY, DELTA, DEVIATION, SPILLWAY, WINDOW, WINDOW_TIME, starts};
use super::describe::{Facts, Grid, Preemption, Promises, ServerPolicy, Values};
use super::params::{
    CHARGE, K, LATE, LEVELS, LONG, PICK, PROPAGATION, REENTRY, RESERVED, SIGMA, SIZE, SLO, TURN,
    WEIGHTS, any_time, cost, next, switch,
};
use super::visit::Visit;
use crate::server::Shape;
use crate::spec::{GivenParams, Param, Params, Reader, SpecError};

/// What it says of itself.
const POLICY: ServerPolicy = ServerPolicy::named("compose")
    .summary("any discipline, placement, preemption and control that go together")
    .params(&[
        Param::word("discipline", DISCIPLINES).means("which waiting request is first"),
        Param::word("placement", PLACEMENTS).means("which worker gets it"),
        Param::word("preemption", PREEMPTIONS).means("who is interrupted when"),
        Param::word("control", CONTROLS).means("which classes may use which workers"),
        K,
        Param::whole("choices", 2, 1, 256)
            .in_units("draws")
            .means("workers drawn, of which the least occupied is taken")
            .while_serving(),
        SIZE,
        SLO,
        TURN,
        WEIGHTS,
        LEVELS,
        LONG,
        PICK,
        REENTRY,
        any_time("q", 0)
            .following("5us, 0 for on-blocked")
            .means("service until a request is interrupted")
            .while_serving(),
        PROPAGATION,
        cost(0).following("1us, 0 for srpt and edf"),
        CHARGE,
        switch(0),
        next(0),
        SIGMA,
        LATE,
        RESERVED,
        DELTA,
        WINDOW,
        WINDOW_TIME,
        DEVIATION,
        DELAY,
        SPILLWAY,
        starts(&["observed", "declared", "known"]),
    ])
    .with_params(facts)
    .grids(GRIDS);

/// DARC that also interrupts: of the compositions nobody published.
const GRIDS: &[Grid] = &[Grid {
    parts: &[
        ("discipline", "typed"),
        ("placement", "reserved"),
        ("control", "darc"),
        ("preemption", "quantum"),
    ],
    ..Grid::profiled(&[("q", Values::Quanta), ("cost", Values::These(&["1us"]))])
}];

const DISCIPLINES: &[&str] = &[
    "fifo", "typed", "sjf", "edf", "drr", "wrr", "mlfq", "gittins", "mq", "cscq",
];
const PLACEMENTS: &[&str] = &["idle", "reserved", "jbsq", "shortest", "choices", "random"];
const PREEMPTIONS: &[&str] = &[
    "never",
    "quantum",
    "srpt",
    "edf",
    "on-blocked",
    "levels",
    "index",
];
const CONTROLS: &[&str] = &["none", "reserve", "partition", "darc", "darc-stable"];

fn facts(facts: Facts, given: &GivenParams<'_>) -> Facts {
    let (discipline, placement) = (given.word("discipline"), given.word("placement"));
    let control = given.word("control");
    let draws = matches!(placement, "choices" | "random");
    Facts {
        preemption: match given.word("preemption") {
            "never" => Preemption::None,
            _ => Facts::BY_DISPATCHER,
        },
        keeps_times: !matches!(given.word("preemption"), "srpt" | "edf" | "on-blocked"),
        depth: match placement {
            "idle" | "reserved" => 1,
            "jbsq" => given.whole("k") as usize,
            _ => usize::MAX,
        },
        knows_load: control.starts_with("darc") && given.word("profile") == "known",
        promises: Some(Promises {
            bound_per_class: discipline != "fifo",
            work_conserving: control == "none" && discipline != "cscq" && !draws,
            fcfs_in_class: discipline != "sjf",
        }),
        ..facts
    }
}

/// Any discipline with any placement, preemption and control that go together. Refuses two parts that cannot be
/// combined, and a parameter that no chosen part takes.
pub(super) enum Entry {}

impl Build for Entry {
    const POLICY: &'static ServerPolicy = &POLICY;
    type Settings = ChosenParts;

    fn read(read: &mut Reader<'_>, shape: &Shape) -> Result<ChosenParts, SpecError> {
        let choice = Choice::read(read)?;
        choice.check(read)?;
        let placement = ChosenPlacement::read(choice.placement, read)?;
        let chosen = ChosenParts {
            discipline: ChosenDiscipline::read(choice.discipline, shape, read)?,
            placement,
            control: ChosenControl::read(choice.control, read)?,
            monitor: ChosenMonitor::read(choice.preemption, read)?,
        };
        read.refuse_unread("left out: none of the chosen parts takes it")?;
        Ok(chosen)
    }

    fn build<V: Visit>(
        chosen: ChosenParts,
        params: Params,
        shape: &Shape,
        visitor: V,
    ) -> V::Output {
        let name = POLICY.about.name;
        chosen.assemble(name, params, shape).visit(visitor)
    }
}

/// Whether parts do not go together; then the key, its value, and what it must be.
type Fault = (bool, (&'static str, &'static str, &'static str));

/// Names of the parts that were chosen.
#[derive(Clone, Copy)]
struct Choice {
    discipline: &'static str,
    placement: &'static str,
    preemption: &'static str,
    control: &'static str,
}

impl Choice {
    fn read(read: &mut Reader<'_>) -> Result<Self, SpecError> {
        Ok(Self {
            discipline: read.word("discipline")?,
            placement: read.word("placement")?,
            preemption: read.word("preemption")?,
            control: read.word("control")?,
        })
    }

    /// Says why parts do not go together.
    fn check(self, read: &Reader<'_>) -> Result<(), SpecError> {
        let mut faults = (self.control_faults().into_iter())
            .chain(self.placement_faults())
            .chain(self.preemption_faults());
        match faults.find(|(wrong, _)| *wrong) {
            Some((_, (key, value, expected))) => Err(read.bad(key, value, expected)),
            None => Ok(()),
        }
    }

    /// What a control does not go with.
    fn control_faults(self) -> [Fault; 2] {
        let (control, placement) = (self.control, self.placement);
        let plans = control != "none";
        let needs = |wanted: &str| self.discipline == wanted;
        [
            (
                plans && !needs("typed"),
                (
                    "control",
                    control,
                    "none: reserving workers for classes needs discipline=typed",
                ),
            ),
            (
                plans && !matches!(placement, "reserved" | "jbsq"),
                (
                    "control",
                    control,
                    "none: only placement=reserved and placement=jbsq keep to reservations",
                ),
            ),
        ]
    }

    /// What a placement does not go with.
    fn placement_faults(self) -> [Fault; 2] {
        let (discipline, placement) = (self.discipline, self.placement);
        let at_once = self.places_at_once();
        let needs = |wanted: &str| discipline == wanted;
        [
            (
                placement == "reserved" && !needs("typed"),
                (
                    "placement",
                    placement,
                    "idle, jbsq, shortest, choices or random: a queue of several classes would be held up by a head whose workers are busy; reserved needs discipline=typed",
                ),
            ),
            (
                at_once && !needs("fifo"),
                (
                    "discipline",
                    discipline,
                    "fifo: this placement hands out requests at once, so none waits to be put in order",
                ),
            ),
        ]
    }

    /// What a preemption does not go with.
    fn preemption_faults(self) -> [Fault; 7] {
        let preemption = self.preemption;
        let at_once = self.places_at_once();
        let needs = |wanted: &str| self.discipline == wanted;
        [
            (
                at_once && !matches!(preemption, "never" | "quantum"),
                (
                    "preemption",
                    preemption,
                    "never or quantum: this placement hands out requests at once, so none waits that could overtake",
                ),
            ),
            (
                preemption == "srpt" && !needs("sjf"),
                (
                    "preemption",
                    preemption,
                    "never or quantum: what wants least service must head the queue, by discipline=sjf",
                ),
            ),
            (
                preemption == "edf" && !needs("edf"),
                (
                    "preemption",
                    preemption,
                    "never or quantum: the earliest deadline must head the queue, by discipline=edf",
                ),
            ),
            (
                preemption == "levels" && !needs("mlfq"),
                (
                    "preemption",
                    preemption,
                    "never or quantum: levels are those of discipline=mlfq",
                ),
            ),
            (
                preemption == "index" && !needs("gittins"),
                (
                    "preemption",
                    preemption,
                    "never or quantum: an index is that of discipline=gittins",
                ),
            ),
            (
                preemption == "on-blocked" && !needs("fifo"),
                (
                    "preemption",
                    preemption,
                    "never or quantum: blocked is the head of a single queue, discipline=fifo",
                ),
            ),
            (
                needs("cscq") && preemption != "never",
                (
                    "preemption",
                    preemption,
                    "never: cycle stealing with a central queue runs requests to their end",
                ),
            ),
        ]
    }

    /// Whether no request waits at the dispatcher.
    fn places_at_once(self) -> bool {
        matches!(self.placement, "shortest" | "choices" | "random")
    }
}
