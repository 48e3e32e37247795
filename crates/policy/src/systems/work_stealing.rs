//! One queue a worker; idle workers steal.

use super::params::FLOWS;
use super::{Description, Facts, Grid, ServerPolicy, Steered, System, Values, Visit, steered};
use crate::Shape;
use crate::locals::{Stealing, Take};
use crate::spec::{Param, Reader, Spec, SpecError};

/// What it says of itself.
pub(super) const POLICY: ServerPolicy = ServerPolicy {
    about: Description {
        name: "work-stealing",
        aliases: &["zygos", "shenango"],
        summary: "one queue per worker; idle workers steal from the others",
        paper: "ZygOS, SOSP '17; Shenango, NSDI '19",
        params: &[
            Param::word("steal", &["half", "one"])
                .means("half of the victim's queue, rounded up, or one request"),
            FLOWS,
        ],
    },
    defaults: Facts {
        steals: true,
        ..Facts::STEERED
    },
    grids: &[Grid::of(&[("steal", Values::These(&["half", "one"]))])],
    ..ServerPolicy::CENTRAL
};

/// Work stealing over hashed queues; `flows` as in [`Hashed::new`](crate::placements::Hashed::new).
#[must_use]
pub fn work_stealing(shape: &Shape, take: Take, flows: u64) -> System<Steered, Stealing> {
    let thief = |worker| Stealing::new(take, shape.seed ^ (worker as u64 + 1).rotate_left(40));
    let locals = (0..shape.workers).map(thief).collect();
    steered(POLICY.about.name, shape, flows, locals)
}

pub(super) fn build<V: Visit>(
    spec: &Spec,
    shape: &Shape,
    visitor: V,
) -> Result<V::Output, SpecError> {
    let mut read = Reader::new(&POLICY.about, spec)?;
    let take = match read.word("steal")? {
        "half" => Take::Half,
        _ => Take::One,
    };
    let flows = read.whole("flows")?;
    Ok(visitor.visit(work_stealing(shape, take, flows).used(read)))
}
