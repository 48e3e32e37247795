//! The host's allocators by name, as [`crate::server::systems`] has the servers'.

use super::{
    Allocator, Estimate, HostShape, Interval, IntervalRules, Shenango, ShenangoRules, Static,
    StaticRules,
};
use crate::spec::{self, Description, Param, Params, Reader, Spec, SpecError};

/// An allocator and what it was built with.
pub struct HostSystem<A> {
    /// Its name.
    pub name: &'static str,
    /// Its parameters.
    pub params: Params,
    /// Who decides.
    pub allocator: A,
}

/// Takes an allocator whatever its type.
pub trait HostVisit {
    /// What comes of it.
    type Output;
    /// Called once, with the allocator that was asked for.
    fn visit<A: Allocator + Send + 'static>(self, system: HostSystem<A>) -> Self::Output;
}

const STATIC: Description = Description {
    name: "static",
    aliases: &[],
    summary: "every application keeps the cores for its peak",
    paper: "",
    params: &[EVICT],
};

const INTERVAL: Description = Description {
    name: "interval",
    aliases: &["arachne"],
    summary: "cores follow the last period's load (Arachne: every 50 ms)",
    paper: "Arachne, OSDI '18",
    params: &[
        period("period", 50_000_000).means("between two looks"),
        Param::word("estimate", &["load-factor", "utilization"])
            .means("by what the number of cores is estimated"),
        Param::number("load-factor", 1.5, 0.01, 1e6)
            .in_units("runnable threads per core")
            .means("one core more above this"),
        Param::number("utilization", 0.8, 0.01, 1.0).means("one core more above this"),
        Param::number("hysteresis", 0.09, 0.0, 1.0)
            .in_units("cores")
            .means("how far the load must fall below the threshold before a core is given back"),
        EVICT,
    ],
};

const SHENANGO: Description = Description {
    name: "shenango",
    aliases: &[],
    summary: "a core to whoever is congested every 5 us, back as soon as it idles",
    paper: "Shenango, NSDI '19",
    params: &[
        period("interval", 5_000).means("between two looks for congestion"),
        EVICT,
    ],
};

const EVICT: Param = period("evict", 100_000)
    .means("for a kthread to leave before it is moved to a core that all such share");

const fn period(key: &'static str, default_ns: u64) -> Param {
    Param::time(key, default_ns, 100, 1_000_000_000_000)
}

/// Every allocator.
pub const ALL: &[&Description] = &[&STATIC, &INTERVAL, &SHENANGO];

/// Every allocator's own name, in the order of [`ALL`].
pub const NAMES: &[&str] = &spec::names::<{ ALL.len() }>(ALL);

/// The allocator of this name or alias.
#[must_use]
pub fn find(name: &str) -> Option<&'static Description> {
    spec::find(ALL, name)
}

/// Builds the allocator a spec asks for and hands it to the visitor.
///
/// # Errors
/// As [`check`].
///
/// # Panics
/// When the shape does not pass its [check](HostShape::check).
pub fn with<V: HostVisit>(
    spec: &Spec,
    shape: &HostShape,
    visitor: V,
) -> Result<V::Output, SpecError> {
    let (settings, params) = HostSettings::read(spec)?;
    let name = settings.about().name;
    Ok(match settings {
        HostSettings::Static(rules) => visitor.visit(HostSystem {
            name,
            params,
            allocator: Static::new(shape, rules),
        }),
        HostSettings::Interval(rules) => visitor.visit(HostSystem {
            name,
            params,
            allocator: Interval::new(shape, rules),
        }),
        HostSettings::Shenango(rules) => visitor.visit(HostSystem {
            name,
            params,
            allocator: Shenango::new(shape, rules),
        }),
    })
}

/// Checks a spec, as [`with`] does before it builds, and says the parameters as used. They depend on no shape.
///
/// # Errors
/// [`SpecError`] when there is no such allocator or parameter, or a value is out of range.
pub fn check(spec: &Spec) -> Result<Params, SpecError> {
    HostSettings::read(spec).map(|(_, params)| params)
}

/// What a spec sets: reading can fail, building cannot.
enum HostSettings {
    Static(StaticRules),
    Interval(IntervalRules),
    Shenango(ShenangoRules),
}

impl HostSettings {
    fn read(spec: &Spec) -> Result<(Self, Params), SpecError> {
        let about = find(&spec.name).ok_or_else(|| SpecError::UnknownPolicy {
            name: spec.name.clone(),
            valid: NAMES,
        })?;
        let mut read = Reader::new(about, spec)?;
        let settings = if about.name == STATIC.name {
            Self::Static(StaticRules {
                evict_ns: read.time("evict")?,
            })
        } else if about.name == INTERVAL.name {
            Self::Interval(interval_rules(&mut read)?)
        } else {
            Self::Shenango(ShenangoRules {
                interval_ns: read.time("interval")?,
                evict_ns: read.time("evict")?,
            })
        };
        Ok((settings, read.used()))
    }

    fn about(&self) -> &'static Description {
        match self {
            Self::Static(_) => &STATIC,
            Self::Interval(_) => &INTERVAL,
            Self::Shenango(_) => &SHENANGO,
        }
    }
}

fn interval_rules(read: &mut Reader<'_>) -> Result<IntervalRules, SpecError> {
    Ok(IntervalRules {
        period_ns: read.time("period")?,
        estimate: match read.word("estimate")? {
            "load-factor" => Estimate::LoadFactor {
                most: read.number("load-factor")?,
            },
            _ => Estimate::Utilization {
                most: read.number("utilization")?,
            },
        },
        hysteresis_cores: read.number("hysteresis")?,
        evict_ns: read.time("evict")?,
    })
}
