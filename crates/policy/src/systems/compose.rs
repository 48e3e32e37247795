//! A system by its parts: `compose,discipline=typed,placement=jbsq,k=2,preemption=quantum,control=darc`.

use super::parts::{self, Composed, Parts};
use crate::Shape;
use crate::spec::{Reader, Spec, SpecError};

const KEYS: &[&str] = &[
    "discipline",
    "placement",
    "preemption",
    "control",
    "k",
    "choices",
    "size",
    "slo",
    "quantum",
    "weights",
    "levels",
    "long",
    "pick",
    "reentry",
    "q",
    "propagation",
    "cost",
    "charge",
    "switch",
    "next",
    "sigma",
    "late",
    "reserved",
    "delta",
    "window",
    "deviation",
    "delay",
    "spillway",
    "profile",
];

/// Any discipline with any placement, preemption and control that go together.
///
/// # Errors
/// [`SpecError`] when a part or parameter is unknown or out of range, when two parts cannot be
/// combined, or when no chosen part takes a parameter that was given.
pub fn compose(shape: &Shape, spec: &Spec) -> Result<Composed, SpecError> {
    let mut read = Reader::new("compose", KEYS, spec)?;
    let choice = Choice::read(&mut read)?;
    choice.check(&read)?;
    let (placement, depth) = parts::placement(choice.placement, shape, &mut read)?;
    let parts = Parts {
        discipline: parts::discipline(choice.discipline, shape, &mut read)?,
        placement,
        control: parts::control(choice.control, shape, &mut read)?,
        depth,
        monitor: parts::monitor(choice.preemption, shape, &mut read)?,
    };
    read.refuse_unread("left out: none of the chosen parts takes it")?;
    Ok(parts.assemble("compose", shape).used(read.used()))
}

/// Names of the parts that were chosen.
#[derive(Clone, Copy)]
struct Choice {
    discipline: &'static str,
    placement: &'static str,
    preemption: &'static str,
    control: &'static str,
}

impl Choice {
    const DISCIPLINES: &'static [&'static str] = &[
        "fifo", "typed", "sjf", "edf", "drr", "wrr", "mlfq", "mq", "cscq",
    ];
    const PLACEMENTS: &'static [&'static str] =
        &["idle", "reserved", "jbsq", "shortest", "choices", "random"];
    const PREEMPTIONS: &'static [&'static str] =
        &["never", "quantum", "srpt", "edf", "on-blocked", "levels"];
    const CONTROLS: &'static [&'static str] =
        &["none", "reserve", "partition", "darc", "darc-stable"];

    fn read(read: &mut Reader<'_>) -> Result<Self, SpecError> {
        let mut part = |key, names: &'static [&'static str], expected| {
            read.word(key, names, expected).map(|at| names[at])
        };
        Ok(Self {
            discipline: part(
                "discipline",
                Self::DISCIPLINES,
                "fifo, typed, sjf, edf, drr, wrr, mlfq, mq or cscq",
            )?,
            placement: part(
                "placement",
                Self::PLACEMENTS,
                "idle, reserved, jbsq, shortest, choices or random",
            )?,
            preemption: part(
                "preemption",
                Self::PREEMPTIONS,
                "never, quantum, srpt, edf, on-blocked or levels",
            )?,
            control: part(
                "control",
                Self::CONTROLS,
                "none, reserve, partition, darc or darc-stable",
            )?,
        })
    }

    /// Says why parts do not go together.
    fn check(self, read: &Reader<'_>) -> Result<(), SpecError> {
        let Self {
            discipline,
            placement,
            preemption,
            control,
        } = self;
        let at_once = matches!(placement, "shortest" | "choices" | "random");
        let plans = control != "none";
        let needs = |wanted: &str| discipline == wanted;
        let faults = [
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
        ];
        match faults.into_iter().find(|(wrong, _)| *wrong) {
            Some((_, (key, value, expected))) => Err(read.bad(key, value, expected)),
            None => Ok(()),
        }
    }
}
