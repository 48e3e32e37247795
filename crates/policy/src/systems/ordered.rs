//! Systems that differ in the order of the queue, each a choice of parts.

use super::parts::{self, Composed, Parts};
use crate::Shape;
use crate::spec::{Reader, Spec, SpecError};

/// The parts of a system of the literature: any idle worker takes what the discipline offers,
/// under a monitor, or none.
struct Recipe {
    name: &'static str,
    keys: &'static [&'static str],
    discipline: &'static str,
    preemption: &'static str,
}

/// What interrupting may cost.
macro_rules! keys {
    ($($key:literal),*) => { &[$($key),*] };
    ($($key:literal),*; costs) => {
        &[$($key,)* "cost", "charge", "switch", "next"]
    };
}

const RECIPES: &[Recipe] = &[
    Recipe {
        name: "sjf",
        keys: keys!("size"),
        discipline: "sjf",
        preemption: "never",
    },
    Recipe {
        name: "srpt",
        keys: keys!("size"; costs),
        discipline: "sjf",
        preemption: "srpt",
    },
    Recipe {
        name: "edf",
        keys: keys!("slo", "preemption"; costs),
        discipline: "edf",
        preemption: "never",
    },
    Recipe {
        name: "drr",
        keys: keys!("quantum", "size"),
        discipline: "drr",
        preemption: "never",
    },
    Recipe {
        name: "wrr",
        keys: keys!("weights"),
        discipline: "wrr",
        preemption: "never",
    },
    Recipe {
        name: "mlfq",
        keys: keys!("q", "levels"; costs),
        discipline: "mlfq",
        preemption: "levels",
    },
    Recipe {
        name: "cscq",
        keys: keys!("long"),
        discipline: "cscq",
        preemption: "never",
    },
    Recipe {
        name: "on-blocked",
        keys: keys!("q", "propagation"; costs),
        discipline: "fifo",
        preemption: "on-blocked",
    },
    Recipe {
        name: "shinjuku-mq",
        keys: keys!("q", "pick", "slo", "reentry", "sigma", "late"; costs),
        discipline: "mq",
        preemption: "quantum",
    },
];

/// One of `sjf`, `srpt`, `edf`, `drr`, `wrr`, `mlfq`, `cscq`, `on-blocked` and `shinjuku-mq`.
///
/// # Errors
/// [`SpecError`] when it is none of them, or a parameter is unknown or out of range.
pub fn ordered(shape: &Shape, spec: &Spec) -> Result<Composed, SpecError> {
    let recipe = RECIPES.iter().find(|recipe| recipe.name == spec.name);
    let recipe = recipe.ok_or_else(|| super::unknown(spec))?;
    let mut read = Reader::new(recipe.name, recipe.keys, spec)?;
    let mut preemption = recipe.preemption;
    if recipe.keys.contains(&"preemption") {
        // Liu and Layland's interrupts at arrivals; Perséphone's Table 5 takes the other for EDF.
        let choices = &["never", "edf"];
        preemption = choices[read.word("preemption", choices, "never or edf")?];
    }
    let discipline = parts::discipline(recipe.discipline, shape, &mut read)?;
    let monitor = parts::monitor(preemption, shape, &mut read)?;
    read.refuse_unread("left out: nothing is interrupted that could cost")?;
    let parts = Parts::idle(discipline);
    let parts = Parts { monitor, ..parts };
    Ok(parts.assemble(recipe.name, shape).used(read.used()))
}
