//! The host's allocators by name, as [`crate::systems`] has the servers'.

use super::{
    Allocator, Estimate, HostShape, Interval, IntervalRules, Shenango, ShenangoRules, Static,
};
use crate::spec::{Params, Reader, Spec, SpecError};

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
pub trait Visit {
    /// What comes of it.
    type Output;
    /// Called once, with the allocator that was asked for.
    fn visit<A: Allocator + Send + 'static>(self, system: HostSystem<A>) -> Self::Output;
}

/// Every allocator, by its own name.
pub const NAMES: &[&str] = &["static", "interval", "shenango"];

/// Names of the papers' systems for what we call otherwise.
const ALIASES: &[(&str, &str)] = &[("arachne", "interval")];

/// What an allocator does, in a line, for lists.
#[must_use]
pub fn summary(name: &str) -> Option<&'static str> {
    Some(match find(name)? {
        "static" => "every application keeps the cores for its peak",
        "interval" => "cores follow the last period's load (Arachne: every 50 ms)",
        "shenango" => "a core to whoever is congested every 5 us, back as soon as it idles",
        _ => return None,
    })
}

/// The own name behind a name or alias.
#[must_use]
pub fn find(name: &str) -> Option<&'static str> {
    let own = ALIASES
        .iter()
        .find(|(alias, _)| *alias == name)
        .map_or(name, |(_, own)| own);
    NAMES.iter().copied().find(|&known| known == own)
}

/// Builds the allocator a spec asks for and hands it to the visitor.
///
/// # Errors
/// [`SpecError`] when there is no such allocator or parameter, or a value is out of range.
///
/// # Panics
/// When the shape does not pass its [check](HostShape::check).
pub fn with<V: Visit>(spec: &Spec, shape: &HostShape, visitor: V) -> Result<V::Output, SpecError> {
    let unknown = || SpecError::UnknownPolicy {
        name: spec.name.clone(),
        valid: NAMES,
    };
    let name = find(&spec.name).ok_or_else(unknown)?;
    Ok(match name {
        "static" => {
            let params = Reader::new(name, &[], spec)?.used();
            let allocator = Static::new(shape);
            visitor.visit(HostSystem {
                name,
                params,
                allocator,
            })
        }
        "interval" => {
            let (rules, params) = interval_rules(spec)?;
            let allocator = Interval::new(shape, rules);
            visitor.visit(HostSystem {
                name,
                params,
                allocator,
            })
        }
        _ => {
            let mut read = Reader::new("shenango", &["interval"], spec)?;
            let interval_ns = period(&mut read, "interval", 5_000)?;
            let allocator = Shenango::new(shape, ShenangoRules { interval_ns });
            visitor.visit(HostSystem {
                name,
                params: read.used(),
                allocator,
            })
        }
    })
}

/// Checks a spec without using the allocator.
///
/// # Errors
/// As [`with`].
pub fn check(spec: &Spec, shape: &HostShape) -> Result<Params, SpecError> {
    struct Check;
    impl Visit for Check {
        type Output = Params;
        fn visit<A: Allocator>(self, system: HostSystem<A>) -> Params {
            system.params
        }
    }
    with(spec, shape, Check)
}

fn interval_rules(spec: &Spec) -> Result<(IntervalRules, Params), SpecError> {
    const KEYS: &[&str] = &[
        "period",
        "estimate",
        "load-factor",
        "utilization",
        "hysteresis",
    ];
    let mut read = Reader::new("interval", KEYS, spec)?;
    let period_ns = period(&mut read, "period", 50_000_000)?;
    let by_load = read.word(
        "estimate",
        &["load-factor", "utilization"],
        "load-factor or utilization",
    )? == 0;
    let estimate = if by_load {
        Estimate::LoadFactor {
            most: read.number(
                "load-factor",
                1.5,
                0.01..=1e6,
                "runnable threads per core, 0.01 to 10^6",
            )?,
        }
    } else {
        Estimate::Utilization {
            most: read.number("utilization", 0.8, 0.01..=1.0, "a fraction, 0.01 to 1")?,
        }
    };
    let hysteresis_cores =
        read.number("hysteresis", 0.09, 0.0..=1.0, "a part of a core, 0 to 1")?;
    let rules = IntervalRules {
        period_ns,
        estimate,
        hysteresis_cores,
    };
    Ok((rules, read.used()))
}

fn period(read: &mut Reader<'_>, key: &'static str, default_ns: u64) -> Result<u64, SpecError> {
    const EXPECTED: &str = "a time with its unit, 100ns to 1000s, such as 5us or 50ms";
    read.time(key, default_ns, 100..=1_000_000_000_000, EXPECTED)
}
