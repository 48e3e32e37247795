//! The racks of the literature, a line each.
//!
//! | system | step | servers, unless `inner` says otherwise |
//! |---|---|---|
//! | random, round-robin | knows nothing | c-fcfs |
//! | racksched, racksched-plain | shortest as reported | c-fcfs |
//! | r2p2 | at most `n` a server, the rest waits in the switch | c-fcfs |
//! | draconis | one queue in the switch | c-fcfs |
//! | netclone | at random, twice while both seem idle | c-fcfs |
//! | horus | idle first, else the shorter of two | c-fcfs |
//! | pallas, pallas-paper | groups of types, weighted turns | given: c-FCFS, or DARC with a given reservation |

mod descriptions;
mod tiers;

pub use tiers::behind_core_switch;

use self::descriptions::{
    CHOICES, DRACONIS, HORUS, INNER, MOST_CHOICES, NETCLONE, PALLAS, PALLAS_PAPER, R2P2, RACKSCHED,
    RACKSCHED_PLAIN, RANDOM, ROUND_ROBIN, is_shaped,
};
use super::{
    Bouncing, BoundedSwitch, Cloning, ControlPlane, ControlRules, Delta, Drift, Horus, Likeness,
    NetClone, Objective, Overflow, RandomSwitch, Reported, RoundRobinSwitch, Shaper,
    ShortestSwitch, Switch, Turns,
};
use crate::ClassHint;
use crate::spec::{self, Description, Params, Reader, Spec, SpecError, Value};
use alloc::string::ToString;
use alloc::vec::Vec;

/// What a rack is built for.
#[derive(Clone, PartialEq, Debug)]
pub struct RackShape {
    /// Cores of each server, at least one server and one core each.
    pub cores: Vec<usize>,
    /// The declared types.
    pub types: Vec<ClassHint>,
    /// Requests that a switch may hold.
    pub room: usize,
    /// Seed of the switch's own randomness.
    pub seed: u64,
}

/// A switch and its control plane.
pub struct RackSystem<S> {
    /// Its name.
    pub name: &'static str,
    /// The parameters it was built with.
    pub params: Params,
    /// The step.
    pub switch: S,
    /// What writes its tables.
    pub control: Option<ControlPlane>,
    /// The age of what the switch knows, ns: half of it on the way to a server, half on the way back.
    pub rtt_ns: u64,
    /// What servers bounce when their role changed.
    pub bouncing: Bouncing,
    /// Whether the control plane goes on after the first policy.
    pub adapting: bool,
}

/// Takes a rack whatever its switch.
pub trait RackVisit {
    /// What comes of it.
    type Output;
    /// Called once, with the system that was asked for.
    fn visit<S: Switch + Send + 'static>(self, system: RackSystem<S>) -> Self::Output;
}

/// Every rack policy.
pub const ALL: &[&Description] = &[
    &RANDOM,
    &ROUND_ROBIN,
    &RACKSCHED,
    &RACKSCHED_PLAIN,
    &R2P2,
    &DRACONIS,
    &NETCLONE,
    &HORUS,
    &PALLAS,
    &PALLAS_PAPER,
];

/// Every rack policy's own name, in the order of [`ALL`].
pub const NAMES: &[&str] = &spec::names::<{ ALL.len() }>(ALL);

/// The rack policy of this name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Description> {
    spec::find(ALL, name)
}

/// Builds the rack a spec asks for and hands it to the visitor.
///
/// # Errors
/// As [`check`].
pub fn with<V: RackVisit>(
    spec: &Spec,
    shape: &RackShape,
    visitor: V,
) -> Result<V::Output, SpecError> {
    Ok(SystemSettings::read(spec, shape)?.build(shape, visitor))
}

/// Checks a spec for a rack of this shape, as [`with`] does before it builds, and says the parameters as used.
///
/// # Errors
/// [`SpecError`] when there is no such policy or parameter, or a value is out of range; the inner policy is taken as it
/// is written.
pub fn check(spec: &Spec, shape: &RackShape) -> Result<Params, SpecError> {
    Ok(SystemSettings::read(spec, shape)?.params)
}

/// A rack's own spec, and that of its servers where it is given: keys after `inner=NAME` belong to NAME.
pub(crate) fn split(spec: &Spec) -> (Spec, Option<Spec>) {
    let Some(at) = spec.params.iter().position(|(key, _)| key == INNER.key) else {
        return (spec.clone(), None);
    };
    let (own, inner) = spec.params.split_at(at);
    let inner = Spec {
        name: inner[0].1.clone(),
        params: inner[1..].to_vec(),
    };
    let own = Spec {
        name: spec.name.clone(),
        params: own.to_vec(),
    };
    (own, Some(inner))
}

/// The policy that a rack's servers run, given or by default; `None` where the rack's control plane decides.
pub(crate) fn servers(about: &Description, given: Option<Spec>) -> Option<Spec> {
    if is_shaped(about) {
        given
    } else {
        Some(given.unwrap_or_else(c_fcfs))
    }
}

/// How many servers are drawn; 0 for all of them.
fn choices(read: &mut Reader<'_>) -> Result<usize, SpecError> {
    let text = read.text(CHOICES.key);
    if text == "all" {
        read.note(CHOICES.key, Value::Word("all"));
        return Ok(0);
    }
    match text.parse::<u64>() {
        Ok(drawn) if (1..=MOST_CHOICES).contains(&drawn) => {
            read.note(CHOICES.key, Value::Number(drawn as f64));
            Ok(drawn as usize)
        }
        _ => Err(read.wrong_text(CHOICES.key)),
    }
}

/// How far the demand may move before a new layout is made.
fn delta(read: &mut Reader<'_>) -> Result<Delta, SpecError> {
    const KEY: &str = "delta";
    let text = read.text(KEY);
    let (number, most) = match text.strip_suffix('%') {
        Some(percent) => (percent.parse::<f64>(), 100.0),
        None => (text.parse::<f64>(), 1e6),
    };
    let number = match number {
        Ok(number) if (0.0..=most).contains(&number) => number,
        _ => return Err(read.wrong_text(KEY)),
    };
    if text.ends_with('%') {
        read.note(KEY, Value::Text(text.to_string()));
        return Ok(Delta::Share(number / 100.0));
    }
    read.note(KEY, Value::Number(number));
    Ok(Delta::Cores(number))
}

/// Where the requests go that a group's cores cannot begin.
fn overflow(read: &mut Reader<'_>) -> Result<Overflow, SpecError> {
    const KEY: &str = "overflow";
    let text = read.text(KEY);
    if text == "off" {
        read.note(KEY, Value::Word("off"));
        return Ok(Overflow::Off);
    }
    match text.parse::<f64>() {
        Ok(most) if (1.0..=1e3).contains(&most) => {
            read.note(KEY, Value::Number(most));
            Ok(Overflow::PerCore(most))
        }
        _ => Err(read.wrong_text(KEY)),
    }
}

/// What a spec sets on a rack of the shape that it was read for: reading can fail, building cannot.
struct SystemSettings {
    name: &'static str,
    params: Params,
    step: SwitchSpec,
    rtt_ns: u64,
}

/// A switch, not built yet.
enum SwitchSpec {
    Random,
    RoundRobin,
    Shortest { reported: Reported, choices: usize },
    Bounded { most: u32 },
    OneQueue,
    NetClone,
    Horus,
    Shaped(Shaping),
}

/// How types are shaped into groups.
struct Shaping {
    rules: ControlRules,
    turns: Turns,
    cloning: Cloning,
    overflow: Overflow,
    bouncing: Bouncing,
    adapting: bool,
}

impl SystemSettings {
    fn read(spec: &Spec, shape: &RackShape) -> Result<Self, SpecError> {
        let about = find(&spec.name).ok_or_else(|| SpecError::UnknownPolicy {
            name: spec.name.clone(),
            valid: NAMES,
        })?;
        let (own, given) = split(spec);
        let mut read = Reader::new(about, &own)?;
        let (step, rtt_ns) = if is_shaped(about) {
            let rtt_ns = read.time("rtt")?;
            (SwitchSpec::Shaped(Shaping::read(&mut read)?), rtt_ns)
        } else {
            (
                SwitchSpec::read(about.name, &mut read, shape)?,
                read.time("rtt")?,
            )
        };
        let mut params = read.used();
        if let Some(inner) = servers(about, given) {
            params.push((INNER.key, Value::Text(inner.to_string())));
        }
        Ok(Self {
            name: about.name,
            params,
            step,
            rtt_ns,
        })
    }

    fn build<V: RackVisit>(self, shape: &RackShape, visitor: V) -> V::Output {
        let Self {
            name,
            params,
            step,
            rtt_ns,
        } = self;
        let plain = RackSystem::plain(name, params, rtt_ns);
        let servers = shape.cores.len();
        match step {
            SwitchSpec::Random => {
                visitor.visit(plain.switched_by(RandomSwitch::new(servers, shape.seed)))
            }
            SwitchSpec::RoundRobin => {
                visitor.visit(plain.switched_by(RoundRobinSwitch::new(servers)))
            }
            SwitchSpec::Shortest { reported, choices } => {
                let switch = ShortestSwitch::new(servers, reported, choices, shape.seed);
                visitor.visit(plain.switched_by(switch))
            }
            SwitchSpec::Bounded { most } => visitor.visit(
                plain.switched_by(BoundedSwitch::new(servers, most, shape.room, shape.seed)),
            ),
            SwitchSpec::OneQueue => {
                let switch = BoundedSwitch::per_core(&shape.cores, 1, shape.room, shape.seed);
                visitor.visit(plain.switched_by(switch))
            }
            SwitchSpec::NetClone => {
                let switch = NetClone::new(&shape.cores, DUPLICATE_SLOTS, shape.seed);
                visitor.visit(plain.switched_by(switch))
            }
            SwitchSpec::Horus => {
                visitor.visit(plain.switched_by(Horus::new(&shape.cores, shape.seed)))
            }
            SwitchSpec::Shaped(shaping) => {
                let cores = shape.cores.iter().sum();
                let (turns, cloning) = (shaping.turns, shaping.cloning);
                let types = shape.types.len();
                let switch = Shaper::new(types, cores, turns, cloning, DUPLICATE_SLOTS)
                    .overflowing(servers, shaping.overflow);
                visitor.visit(RackSystem {
                    control: Some(ControlPlane::new(&shape.cores, &shape.types, shaping.rules)),
                    bouncing: shaping.bouncing,
                    adapting: shaping.adapting,
                    ..plain.switched_by(switch)
                })
            }
        }
    }
}

impl RackSystem<()> {
    /// Without a switch yet, and without a control plane.
    fn plain(name: &'static str, params: Params, rtt_ns: u64) -> Self {
        Self {
            name,
            params,
            switch: (),
            control: None,
            rtt_ns,
            bouncing: Bouncing::Off,
            adapting: false,
        }
    }

    fn switched_by<S>(self, switch: S) -> RackSystem<S> {
        RackSystem {
            name: self.name,
            params: self.params,
            switch,
            control: self.control,
            rtt_ns: self.rtt_ns,
            bouncing: self.bouncing,
            adapting: self.adapting,
        }
    }
}

impl SwitchSpec {
    fn read(name: &str, read: &mut Reader<'_>, shape: &RackShape) -> Result<Self, SpecError> {
        Ok(match name {
            "random" => Self::Random,
            "round-robin" => Self::RoundRobin,
            "racksched" => Self::Shortest {
                reported: Reported::AndSent,
                choices: choices(read)?,
            },
            "racksched-plain" => Self::Shortest {
                reported: Reported::Only,
                choices: choices(read)?,
            },
            "r2p2" => {
                let cores = shape.cores.iter().copied().max().unwrap_or(1) as u64;
                Self::Bounded {
                    most: read.whole_or("n", 2 * cores)? as u32,
                }
            }
            "draconis" => Self::OneQueue,
            "netclone" => Self::NetClone,
            _ => Self::Horus,
        })
    }
}

impl Shaping {
    fn read(read: &mut Reader<'_>) -> Result<Self, SpecError> {
        let rules = ControlRules {
            delta: delta(read)?,
            drift: match read.word("drift")? {
                "types" => Drift::Types,
                _ => Drift::Groups,
            },
            interval_ns: read.time("interval")?,
            plan_ns: read.time("plan_time")?,
            samples: read.whole("samples")?,
            sooner: read.word("look")? == "sooner",
            likeness: match read.word("alike")? {
                "time" => Likeness::Time,
                _ => Likeness::Demand,
            },
            objective: match read.word("score")? {
                "slowdown" => Objective::Slowdown,
                _ => Objective::Latency,
            },
        };
        let window_ns = read.time("window")?;
        Ok(Self {
            rules,
            turns: match read.word("turns")? {
                "even" => Turns::Even,
                _ => Turns::Ranges,
            },
            cloning: match read.word("clone")? {
                "longer" => Cloning::Longer(window_ns),
                "any" => Cloning::Calmest(window_ns),
                _ => Cloning::Off,
            },
            overflow: overflow(read)?,
            bouncing: match read.word("bounce")? {
                "longer" => Bouncing::Longer,
                "all" => Bouncing::All,
                _ => Bouncing::Off,
            },
            adapting: read.word("adapt")? == "on",
        })
    }
}

fn c_fcfs() -> Spec {
    Spec {
        name: "c-fcfs".to_string(),
        params: Vec::new(),
    }
}

/// Registers that tell duplicates: enough for all requests that overlap in time.
const DUPLICATE_SLOTS: usize = 1 << 17;

#[cfg(test)]
mod tests {
    use super::descriptions::{DELTA_FORM, OVERFLOW_FORM};
    use super::*;
    use alloc::string::String;

    fn checked(text: &str) -> Result<String, String> {
        let shape = RackShape {
            cores: alloc::vec![10; 8],
            types: alloc::vec![ClassHint::new(1e3, 1.0)],
            room: 16,
            seed: 1,
        };
        let spec: Spec = text.parse().map_err(|error: SpecError| error.to_string())?;
        let params = check(&spec, &shape).map_err(|error| error.to_string())?;
        let pairs = params
            .iter()
            .map(|(key, value)| alloc::format!(",{key}={value}"));
        Ok(pairs.collect())
    }

    #[test]
    fn every_name_is_a_rack() {
        for name in NAMES {
            checked(name).expect(name);
        }
    }

    #[test]
    fn keys_after_inner_belong_to_the_inner_policy() {
        let used = checked("pallas,delta=5,inner=darc,delta=3").unwrap();
        assert!(
            used.starts_with(",rtt=10us,delta=5,drift=types,interval=10ms"),
            "{used}"
        );
        assert!(used.ends_with(",inner=darc,delta=3"), "{used}");
        assert_eq!(
            checked("racksched,choices=2").unwrap(),
            ",choices=2,rtt=10us,inner=c-fcfs"
        );
        assert_eq!(checked("r2p2").unwrap(), ",n=20,rtt=10us,inner=c-fcfs");
        assert_eq!(
            checked("racksched").unwrap(),
            ",choices=all,rtt=10us,inner=c-fcfs"
        );
    }

    /// Each repair is one switch (N6): with all of them taken back, ours is the paper's.
    #[test]
    fn the_papers_pallas_differs_by_switches() {
        let switches = "delta=10,drift=groups,samples=0,look=interval,alike=demand,score=latency,turns=ranges,\
                        clone=any,overflow=off";
        let ours = checked(&alloc::format!("pallas,{switches}")).unwrap();
        assert_eq!(checked("pallas-paper").unwrap(), ours);
        assert_ne!(checked("pallas").unwrap(), ours);
    }

    #[test]
    fn what_was_used_can_be_used_again() {
        for name in NAMES {
            let used = checked(name).unwrap();
            assert_eq!(checked(&alloc::format!("{name}{used}")).unwrap(), used);
        }
    }

    #[test]
    fn errors_name_the_key_and_what_it_may_be() {
        let error = checked("racksched,choices=none").unwrap_err();
        assert!(error.contains("all, or a number of servers"), "{error}");
        assert!(checked("pallas,rtt=5").unwrap_err().contains("rtt=5"));
        for (wrong, form) in [
            ("delta=101%", DELTA_FORM),
            ("delta=-1", DELTA_FORM),
            ("overflow=0.5", OVERFLOW_FORM),
            ("overflow=nan", OVERFLOW_FORM),
        ] {
            let error = checked(&alloc::format!("pallas,{wrong}")).unwrap_err();
            assert!(error.contains(form), "{error}");
        }
    }
}
