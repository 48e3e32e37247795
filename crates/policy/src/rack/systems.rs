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
//! | pallas | groups of types, weighted turns | given: c-FCFS, or DARC with a given reservation |

use super::{
    Bouncing, Bounded, Cloning, Control, ControlRules, Horus, NetClone, Objective, Random,
    Reported, RoundRobin, Shaper, Shortest, Switch, Turns,
};
use crate::ClassHint;
use crate::spec::{Params, Reader, Spec, SpecError, Value};
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

/// A switch, its control plane, and what its servers run.
pub struct RackSystem<S> {
    /// Its name.
    pub name: &'static str,
    /// The parameters it was built with.
    pub params: Params,
    /// The step.
    pub switch: S,
    /// What writes its tables.
    pub control: Option<Control>,
    /// The servers' policy; `None`: as the control plane says.
    pub inner: Option<Spec>,
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

/// Every rack policy, by its own name.
pub const NAMES: &[&str] = &[
    "random",
    "round-robin",
    "racksched",
    "racksched-plain",
    "r2p2",
    "draconis",
    "netclone",
    "horus",
    "pallas",
];

/// What a rack policy is, in a line, for lists.
#[must_use]
pub fn summary(name: &str) -> Option<&'static str> {
    Some(match find(name)? {
        "random" => "any server",
        "round-robin" => "one server after the other",
        "racksched" => "the shortest queue, as replies and later sends tell (RackSched)",
        "racksched-plain" => "the shortest queue, as replies tell alone",
        "r2p2" => "at most n requests at a server, the rest waits in the switch (R2P2)",
        "draconis" => "one queue in the switch for all cores (Draconis)",
        "netclone" => "two copies while two servers seem idle (NetClone)",
        "horus" => "a server with an idle core, else the shorter of two (Horus)",
        "pallas" => "types shaped into groups with servers of their own (Pallas)",
        _ => return None,
    })
}

/// The own name behind a name.
#[must_use]
pub fn find(name: &str) -> Option<&'static str> {
    NAMES.iter().copied().find(|&known| known == name)
}

/// Builds the rack a spec asks for and hands it to the visitor.
///
/// # Errors
/// [`SpecError`] when there is no such policy or parameter, or a value is out of range; the inner policy is checked by name
/// only.
pub fn with<V: RackVisit>(
    spec: &Spec,
    shape: &RackShape,
    visitor: V,
) -> Result<V::Output, SpecError> {
    let unknown = || SpecError::UnknownPolicy {
        name: spec.name.clone(),
        valid: NAMES,
    };
    let name = find(&spec.name).ok_or_else(unknown)?;
    let (own, inner) = split(spec)?;
    let reader = |valid| Reader::new(name, valid, &own);
    let rack = Assembly {
        name,
        inner,
        visitor,
    };
    let servers = shape.cores.len();
    match name {
        "random" => rack.simple(reader(&["rtt", "inner"])?, Random::new(servers, shape.seed)),
        "round-robin" => rack.simple(reader(&["rtt", "inner"])?, RoundRobin::new(servers)),
        "racksched" | "racksched-plain" => {
            let mut read = reader(&["rtt", "inner", "choices"])?;
            let choices = choices(&mut read, servers)?;
            let reported = match name {
                "racksched" => Reported::AndSent,
                _ => Reported::Only,
            };
            let switch = Shortest::new(servers, reported, choices, shape.seed);
            rack.simple(read, switch)
        }
        "r2p2" => {
            let mut read = reader(&["rtt", "inner", "n"])?;
            let most = shape.cores.iter().copied().max().unwrap_or(1) as u64;
            let expected = "a number of requests, 1 to 65536";
            let bound = read.whole("n", 2 * most, 1..=1 << 16, expected)?;
            rack.simple(read, Bounded::new(servers, bound as u32, shape.room))
        }
        "draconis" => {
            let switch = Bounded::per_core(&shape.cores, 1, shape.room);
            rack.simple(reader(&["rtt", "inner"])?, switch)
        }
        "netclone" => {
            let switch = NetClone::new(&shape.cores, DUPLICATE_SLOTS, shape.seed);
            rack.simple(reader(&["rtt", "inner"])?, switch)
        }
        "horus" => rack.simple(
            reader(&["rtt", "inner"])?,
            Horus::new(&shape.cores, shape.seed),
        ),
        _ => rack.pallas(reader(PALLAS_KEYS)?, shape),
    }
}

/// Registers that tell duplicates: enough for all requests that overlap in time.
const DUPLICATE_SLOTS: usize = 1 << 17;

const PALLAS_KEYS: &[&str] = &[
    "rtt", "inner", "delta", "interval", "window", "turns", "clone", "score", "bounce", "adapt",
];

/// Checks a spec without using the rack.
///
/// # Errors
/// As [`with`].
pub fn check(spec: &Spec, shape: &RackShape) -> Result<Checked, SpecError> {
    struct Check;
    impl RackVisit for Check {
        type Output = Checked;
        fn visit<S: Switch + Send + 'static>(self, system: RackSystem<S>) -> Checked {
            (system.params, system.inner)
        }
    }
    with(spec, shape, Check)
}

/// The parameters that were used, and the servers' policy.
pub type Checked = (Params, Option<Spec>);

/// Keys after `inner=NAME` belong to NAME.
fn split(spec: &Spec) -> Result<(Spec, Option<Spec>), SpecError> {
    let Some(at) = spec.params.iter().position(|(key, _)| key == "inner") else {
        return Ok((spec.clone(), None));
    };
    let (own, inner) = spec.params.split_at(at);
    let inner = Spec {
        name: inner[0].1.clone(),
        params: inner[1..].to_vec(),
    };
    if crate::systems::find(&inner.name).is_none() {
        return Err(SpecError::UnknownPolicy {
            name: inner.name,
            valid: crate::systems::NAMES,
        });
    }
    let own = Spec {
        name: spec.name.clone(),
        params: own.to_vec(),
    };
    Ok((own, Some(inner)))
}

/// `all` (the default), or how many servers are drawn.
fn choices(read: &mut Reader<'_>, servers: usize) -> Result<usize, SpecError> {
    match read.text("choices", "all") {
        "all" => {
            read.note("choices", Value::Word("all"));
            Ok(0)
        }
        _ => {
            let expected = "all, or a number of servers, 1 to 4096";
            Ok(read.whole("choices", servers as u64, 1..=4096, expected)? as usize)
        }
    }
}

struct Assembly<V> {
    name: &'static str,
    inner: Option<Spec>,
    visitor: V,
}

impl<V: RackVisit> Assembly<V> {
    /// A switch without tables over servers that are c-FCFS unless said otherwise.
    fn simple<S>(self, mut read: Reader<'_>, switch: S) -> Result<V::Output, SpecError>
    where
        S: Switch + Send + 'static,
    {
        let rtt_ns = rtt(&mut read)?;
        let c_fcfs = || Spec {
            name: "c-fcfs".to_string(),
            params: Vec::new(),
        };
        let inner = self.inner.unwrap_or_else(c_fcfs);
        let mut params = read.used();
        params.push(("inner", Value::Text(inner.to_string())));
        Ok(self.visitor.visit(RackSystem {
            name: self.name,
            params,
            switch,
            control: None,
            inner: Some(inner),
            rtt_ns,
            bouncing: Bouncing::Off,
            adapting: false,
        }))
    }

    fn pallas(self, mut read: Reader<'_>, shape: &RackShape) -> Result<V::Output, SpecError> {
        const SECOND: u64 = 1_000_000_000;
        const SWITCH: [&str; 2] = ["on", "off"];
        let rtt_ns = rtt(&mut read)?;
        let rules = ControlRules {
            delta_cores: read.number("delta", 10.0, 0.0..=1e6, "a number of cores")?,
            interval_ns: read.time("interval", 10_000_000, 1_000..=SECOND, "a time, 1us to 1s")?,
            objective: match read.word("score", &["slowdown", "latency"], "slowdown or latency")? {
                0 => Objective::Slowdown,
                _ => Objective::Latency,
            },
        };
        let window_ns = read.time("window", 20_000, 1_000..=SECOND, "a time, 1us to 1s")?;
        let turns = match read.word("turns", &["even", "ranges"], "even or ranges")? {
            0 => Turns::Even,
            _ => Turns::Ranges,
        };
        let expected = "longer, any or off";
        let cloning = match read.word("clone", &["longer", "any", "off"], expected)? {
            0 => Cloning::Longer(window_ns),
            1 => Cloning::Calmest(window_ns),
            _ => Cloning::Off,
        };
        let expected = "longer, all or off";
        let bouncing = match read.word("bounce", &["longer", "all", "off"], expected)? {
            0 => Bouncing::Longer,
            1 => Bouncing::All,
            _ => Bouncing::Off,
        };
        let adapting = read.word("adapt", &SWITCH, "on or off")? == 0;
        let mut params = read.used();
        if let Some(inner) = &self.inner {
            params.push(("inner", Value::Text(inner.to_string())));
        }
        let cores = shape.cores.iter().sum();
        let types = shape.types.len();
        Ok(self.visitor.visit(RackSystem {
            name: self.name,
            params,
            switch: Shaper::new(types, cores, turns, cloning, DUPLICATE_SLOTS),
            control: Some(Control::new(&shape.cores, &shape.types, rules)),
            inner: self.inner,
            rtt_ns,
            bouncing,
            adapting,
        }))
    }
}

fn rtt(read: &mut Reader<'_>) -> Result<u64, SpecError> {
    read.time("rtt", 10_000, 0..=1_000_000_000, "a time, up to 1s")
}

#[cfg(test)]
mod tests {
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
        let (params, _) = check(&spec, &shape).map_err(|error| error.to_string())?;
        let pairs = params
            .iter()
            .map(|(key, value)| alloc::format!(",{key}={value}"));
        Ok(pairs.collect())
    }

    #[test]
    fn every_name_is_a_rack_with_a_summary() {
        for name in NAMES {
            assert!(summary(name).is_some(), "{name}");
            checked(name).expect(name);
            assert!(
                crate::systems::find(name).is_none(),
                "{name} is a server's policy too"
            );
        }
    }

    #[test]
    fn keys_after_inner_belong_to_the_inner_policy() {
        let used = checked("pallas,delta=5,inner=darc,delta=3").unwrap();
        assert!(
            used.starts_with(",rtt=10us,delta=5,interval=10ms"),
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

    #[test]
    fn what_was_used_can_be_used_again() {
        for name in NAMES {
            let used = checked(name).unwrap();
            assert_eq!(checked(&alloc::format!("{name}{used}")).unwrap(), used);
        }
    }

    #[test]
    fn errors_name_the_key_and_what_it_may_be() {
        let error = checked("racksched,inner=drac").unwrap_err();
        assert!(error.contains("drac") && error.contains("darc"), "{error}");
        let error = checked("racksched,choices=none").unwrap_err();
        assert!(error.contains("all, or a number of servers"), "{error}");
        assert!(checked("pallas,rtt=5").unwrap_err().contains("rtt=5"));
    }
}
