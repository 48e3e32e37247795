//! DARC: workers reserved for short classes by profile (Perséphone, SOSP '21).

use super::assemble::typed;
use super::build::Build;
use super::describe::{Facts, Grid, Promises, ServerPolicy, Values};
use super::system::System;
use super::visit::Visit;
use crate::server::controls::{Control, Darc, DarcRules, Known};
use crate::server::disciplines::Typed;
use crate::server::placements::Reserved;
use crate::server::{Central, Shape, locals};
use crate::spec::{GivenParams, Param, Params, Reader, SpecError};

/// What it says of itself.
const POLICY: ServerPolicy = ServerPolicy::named("darc")
    .summary("typed queues, workers reserved for short classes by profile (Perséphone)")
    .aliases(&["persephone"])
    .paper("Perséphone, SOSP '21")
    .params(PARAMS)
    .defaults(RESERVING)
    .with_params(by_profile)
    .grids(GRIDS);

const PARAMS: &[Param] = &[
    DELTA,
    WINDOW,
    WINDOW_TIME,
    DEVIATION,
    DELAY,
    SPILLWAY,
    starts(&["declared", "observed", "known"]),
];

pub(super) const DELTA: Param = Param::number("delta", 2.0, 1.0, f64::MAX)
    .means("classes whose mean is within this factor of their group's shortest share workers")
    .while_serving();
pub(super) const WINDOW: Param = Param::whole("window", 50_000, 1, 1 << 40)
    .in_units("completions")
    .means("length of a profiling window")
    .while_serving();
pub(super) const WINDOW_TIME: Param =
    Param::time("window_time", 1_000_000_000, 1_000_000, u64::MAX)
        .means("a window with 1000 completions closes after this time too")
        .while_serving();
pub(super) const DEVIATION: Param = Param::number("deviation", 0.10, 0.0, 1.0)
    .means("how far a class's part of all demand must move, absolute, before a new reservation")
    .while_serving();
pub(super) const DELAY: Param = Param::number("delay", 10.0, 0.0, f64::MAX)
    .in_units("mean service times")
    .means("a wait beyond this calls for a check")
    .while_serving();
pub(super) const SPILLWAY: Param = Param::whole("spillway", 1, 1, 256)
    .in_units("workers")
    .means("the last workers, which serve UNKNOWN and groups that found no worker free")
    .while_serving();

/// What it starts with; the first word is the default.
pub(super) const fn starts(words: &'static [&'static str]) -> Param {
    Param::word("profile", words).means(
        "it starts with the declared means and shares until the first window, in order of arrival, or (simulation) with the true load",
    )
}

pub(super) const RESERVING: Facts = Facts {
    promises: Some(Promises::RESERVING),
    ..Facts::CENTRAL
};

pub(super) const GRIDS: &[Grid] = &[Grid::profiled(&[(
    "delta",
    Values::These(&["1.5", "2", "3", "5"]),
)])];

pub(super) fn by_profile(facts: Facts, given: &GivenParams<'_>) -> Facts {
    Facts {
        knows_load: given.word("profile") == "known",
        ..facts
    }
}

/// DARC that starts from what was declared, and whose windows close by time too.
#[must_use]
pub fn darc(
    shape: &Shape,
    params: DarcParams,
) -> System<Central<Typed, Reserved, Darc>, locals::LocalFifo> {
    reserving(POLICY.about.name, shape, params, Darc::new)
}

/// Typed queues under a control that reserves by these parameters.
pub(super) fn reserving<C: Control>(
    name: &'static str,
    shape: &Shape,
    params: DarcParams,
    control: impl FnOnce(usize, DarcRules, Option<&Known>) -> C,
) -> System<Central<Typed, Reserved, C>, locals::LocalFifo> {
    let known = params.profile(shape);
    let control = control(shape.classes.len(), params.rules, known.as_ref());
    typed(name, shape, control)
}

pub(super) enum Entry {}

impl Build for Entry {
    const POLICY: &'static ServerPolicy = &POLICY;
    type Settings = DarcParams;

    fn read(read: &mut Reader<'_>, _: &Shape) -> Result<DarcParams, SpecError> {
        DarcParams::read(read)
    }

    fn build<V: Visit>(
        settings: DarcParams,
        params: Params,
        shape: &Shape,
        visitor: V,
    ) -> V::Output {
        visitor.visit(System {
            params,
            ..darc(shape, settings)
        })
    }
}

/// What DARC starts with.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum DarcStart {
    /// The declared means and shares, until the first window; as [`Observed`](Self::Observed) where a class has no mean.
    #[default]
    Declared,
    /// Order of arrival, until the first window: as published.
    Observed,
    /// The true means and shares, and the load (simulation).
    Known,
}

/// Parameters of `darc`, `darc-paper` and `darc-stable`.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct DarcParams {
    /// Windows and reservation.
    pub rules: DarcRules,
    /// What it starts with.
    pub start: DarcStart,
}

impl DarcParams {
    pub(super) fn read(read: &mut Reader<'_>) -> Result<Self, SpecError> {
        let mut params = Self::read_printed(read)?;
        params.rules.window_time_ns = read.time("window_time")?;
        Ok(params)
    }

    /// The parameters as printed: windows close by completions alone.
    pub(super) fn read_printed(read: &mut Reader<'_>) -> Result<Self, SpecError> {
        let mut params = Self::default();
        let rules = &mut params.rules;
        rules.window_time_ns = u64::MAX;
        rules.reservation.delta = read.number("delta")?;
        rules.window = read.whole("window")?;
        rules.deviation = read.number("deviation")?;
        rules.delay = read.number("delay")?;
        rules.reservation.spillway = read.whole("spillway")? as usize;
        params.start = match read.word("profile")? {
            "known" => DarcStart::Known,
            "observed" => DarcStart::Observed,
            _ => DarcStart::Declared,
        };
        Ok(params)
    }

    /// The profile to start with, if any: what the shape declares.
    pub(super) fn profile(&self, shape: &Shape) -> Option<Known> {
        let is_true = self.start == DarcStart::Known;
        let declares = || {
            let mut hints = shape.classes.iter();
            hints.all(|hint| hint.mean_ns > 0.0)
                && shape.classes.iter().any(|hint| hint.share > 0.0)
        };
        if !is_true && (self.start == DarcStart::Observed || !declares()) {
            return None;
        }
        Some(Known {
            mean_ns: shape.classes.iter().map(|hint| hint.mean_ns).collect(),
            share: shape.classes.iter().map(|hint| hint.share).collect(),
            load_cores: if is_true {
                shape.known_load.unwrap_or(0.0) * shape.workers as f64
            } else {
                0.0
            },
            is_true,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rules_by_default_are_those_described() {
        let spec = "darc".parse().unwrap();
        let mut read = Reader::new(&POLICY.about, &spec).unwrap();
        let params = DarcParams::read(&mut read).unwrap();
        assert_eq!(params, DarcParams::default());
    }
}
