//! Compares the description of each policy with the built system.

use headway_policy::server::role::{Ingress, Local, Monitor, Owner};
use headway_policy::server::systems::{
    self, Facts, NAMES, Preemption, Replicas, ServerSpec, System, Visit,
};
use headway_policy::{Policy, Shape};

/// Every name, and parameters that change what a system is.
fn specs() -> Vec<ServerSpec> {
    let named = NAMES.iter().map(|&name| name.to_owned());
    let changed = [
        "jbsq,k=1",
        "jbsq,k=5",
        "concord,k=3,dispatcher=dedicated",
        "concord,dispatchers=3",
        "darc,profile=known",
        "darc-stable,profile=known",
        "edf,preemption=edf",
        "work-stealing,steal=one",
        "compose,discipline=typed,placement=jbsq,k=3,control=darc,profile=known",
        "compose,placement=choices",
        "compose,placement=random,preemption=quantum",
        "compose,placement=shortest",
        "compose,discipline=edf,preemption=edf",
        "compose,discipline=sjf,preemption=srpt",
        "compose,preemption=on-blocked",
        "compose,discipline=mlfq,preemption=levels",
        "compose,discipline=gittins,preemption=index",
        "compose,discipline=cscq",
        "synergy,parts=none",
    ];
    let all = named.chain(changed.into_iter().map(str::to_owned));
    all.map(|text| text.parse().unwrap()).collect()
}

fn facts_of<I: Ingress, L: Local, M: Monitor>(
    system: &System<I, L, M>,
    dispatchers: usize,
    described: Facts,
) -> Facts {
    let slices = L::SLICES && !M::PREEMPTS;
    Facts {
        owner: I::OWNER,
        preemption: if slices {
            Preemption::BySlices
        } else if M::PREEMPTS {
            Preemption::ByMonitor {
                on_dispatcher: M::ON_DISPATCHER,
            }
        } else {
            Preemption::None
        },
        keeps_times: system.monitor.keeps_times(),
        steals: L::STEALS,
        depth: system.depth,
        dispatchers: if I::OWNER == Owner::Dispatcher {
            dispatchers
        } else {
            0
        },
        ..described
    }
}

struct Ask(Facts);

impl Visit for Ask {
    type Output = (Facts, Vec<(&'static str, String)>);

    fn visit<I: Ingress, L: Local, M: Monitor>(self, system: System<I, L, M>) -> Self::Output {
        let facts = facts_of(&system, 1, self.0);
        let used = system.params.iter();
        (
            facts,
            used.map(|(key, value)| (*key, value.to_string())).collect(),
        )
    }

    fn visit_replicas<I, L, M>(self, replicas: Replicas<I, L, M>) -> Self::Output
    where
        I: Ingress + Send + 'static,
        L: Local + Send + 'static,
        M: Monitor + Send + 'static,
    {
        let facts = facts_of(&replicas.instances[0], replicas.instances.len(), self.0);
        (facts, Vec::new())
    }
}

fn shape() -> Shape {
    Shape::new(6).class(1_000, 0.5).class(100_000, 0.5)
}

#[test]
fn a_system_is_what_its_policy_says() {
    for spec in specs() {
        let described = spec.facts();
        let (built, used) = systems::with(&spec, &shape(), Ask(described)).unwrap();
        assert_eq!(built, described, "{spec}");
        assert_eq!(
            described.promises.is_some(),
            described.owner == Owner::Dispatcher,
            "{spec}"
        );
        for (key, value) in used {
            let says = |wanted: &str| value == wanted;
            let knows = key == "profile" && says("known");
            assert!(!knows || described.knows_load, "{spec}");
            assert!(
                key != "dispatcher" || described.dispatchers_work == says("works"),
                "{spec}"
            );
        }
    }
}

/// The defaults that a list shows are those that a system is built with.
#[test]
fn defaults_are_those_described() {
    for name in NAMES {
        let policy = systems::find(name).unwrap();
        let spec = policy.by_default();
        assert_eq!(spec.facts(), policy.defaults, "{name}");
        for (key, value) in systems::check(&spec, &shape()).unwrap() {
            let param = policy.about.param(key).unwrap();
            let shown = param.default_text();
            let follows = shown.contains(' ') || shown == "none";
            assert!(
                follows || shown == value.to_string(),
                "{name}: {key}={value}, not {shown}"
            );
        }
    }
}

/// A grid that names what the policy does not have would be tried in vain.
#[test]
fn grids_name_parameters_of_their_policy() {
    for policy in systems::ALL {
        for grid in policy.grids {
            let values = grid.values.iter().map(|(key, _)| *key);
            let words = grid.parts.iter().chain(grid.simulated_with);
            for key in values.chain(words.map(|(key, _)| *key)) {
                assert!(
                    policy.about.param(key).is_some(),
                    "{}: {key}",
                    policy.about.name
                );
            }
        }
    }
}

#[test]
fn every_alias_finds_its_policy() {
    assert_eq!(systems::find("persephone").unwrap().about.name, "darc");
    assert_eq!(systems::find("zygos").unwrap().about.name, "work-stealing");
    for policy in Policy::all() {
        for alias in policy.about().aliases {
            assert!(policy.about().is_called(alias));
        }
    }
    assert!(Policy::find("drac").is_none());
}
