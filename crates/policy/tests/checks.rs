//! A check, which builds nothing, refuses what the builder refuses, for the same reason, and says the same parameters.

use headway_policy::host::systems::HostSystem;
use headway_policy::host::{self, Allocator, AppShape, HostShape, HostTopology};
use headway_policy::rack::{self, RackShape, RackSystem, RackVisit, Switch};
use headway_policy::server::role::{Ingress, Local, Monitor};
use headway_policy::server::systems::{self, ServerSpec, System, VisitInstance};
use headway_policy::spec::{Description, Param, ParamKind, Params, Spec};
use headway_policy::{ClassHint, Resume, Shape};
use proptest::prelude::*;

/// A value for a parameter: one of its kind as often as not, else anything.
fn value(param: Param) -> BoxedStrategy<String> {
    let own = match param.kind {
        ParamKind::Number { .. } => (0.0..300.0f64).prop_map(|it| it.to_string()).boxed(),
        ParamKind::Whole { .. } => (0..12u64).prop_map(|it| it.to_string()).boxed(),
        ParamKind::Time { .. } => (0..9u64).prop_map(|us| format!("{us}us")).boxed(),
        ParamKind::Word(words) => prop::sample::select(words).prop_map(str::to_owned).boxed(),
        ParamKind::Text { .. } => prop::sample::select(TEXTS).prop_map(str::to_owned).boxed(),
    };
    let any = prop::sample::select(TEXTS).prop_map(str::to_owned);
    prop_oneof![4 => own, 1 => any].boxed()
}

const TEXTS: &[&str] = &[
    "",
    "3/1",
    "1/1/1",
    "0/1",
    "7",
    "all",
    "none",
    "ws+qa",
    "wx",
    "0ns/80ns/2us",
    "2us/1us",
    "-1",
    "1e400",
    "nan",
    "5us",
    "18446744073709551616",
];

/// A policy with some of its parameters, in any order, some twice, whatever their values.
fn any_spec(all: Vec<&'static Description>) -> impl Strategy<Value = Spec> {
    prop::sample::select(all).prop_flat_map(|about| {
        if about.params.is_empty() {
            return Just(Spec {
                name: about.name.to_owned(),
                params: Vec::new(),
            })
            .boxed();
        }
        let params = prop::sample::select(about.params.to_vec());
        let pair = params
            .prop_flat_map(|param| value(param).prop_map(move |text| (param.key.to_owned(), text)));
        let pairs = prop::collection::vec(pair, 0..6);
        pairs
            .prop_map(|params| Spec {
                name: about.name.to_owned(),
                params,
            })
            .boxed()
    })
}

fn any_shape() -> impl Strategy<Value = Shape> {
    let classes = prop::collection::vec((1u64..200_000, 0.0..1.0), 0..4);
    (1usize..9, classes, any::<bool>()).prop_map(|(workers, classes, bound)| {
        let empty = Shape::new(workers);
        let mut shape = classes
            .into_iter()
            .fold(empty, |shape, (mean_ns, share)| shape.class(mean_ns, share));
        shape.job_capacity = 64;
        if bound {
            shape.resume = Resume::OwnWorker;
        }
        shape
    })
}

struct Used;

impl VisitInstance for Used {
    type Output = Params;

    fn visit_instance<I: Ingress, L: Local, M: Monitor>(self, system: System<I, L, M>) -> Params {
        system.params
    }
}

impl RackVisit for Used {
    type Output = Params;

    fn visit<S: Switch>(self, rack: RackSystem<S>) -> Params {
        rack.params
    }
}

impl host::systems::HostVisit for Used {
    type Output = Params;

    fn visit<A: Allocator>(self, host: HostSystem<A>) -> Params {
        host.params
    }
}

fn host() -> HostShape {
    HostShape {
        topology: HostTopology::flat(2),
        apps: vec![AppShape {
            guaranteed: 1,
            most: 2,
            kind: host::AppKind::Latency,
        }],
        seed: 0,
    }
}

fn servers() -> Vec<&'static Description> {
    systems::ALL.iter().map(|policy| &policy.about).collect()
}

proptest! {
    #[test]
    fn of_servers(spec in any_spec(servers()), shape in any_shape()) {
        let spec = ServerSpec::parse(spec).expect("the parameters are the policy's own");
        let built = systems::with(&spec, &shape, Used);
        prop_assert_eq!(systems::check(&spec, &shape), built, "{}", spec);
    }

    #[test]
    fn of_racks(spec in any_spec(rack::systems::ALL.to_vec()), cores in prop::collection::vec(1usize..9, 1..5)) {
        let shape = RackShape { cores, types: vec![ClassHint::new(1e3, 1.0)], room: 16, seed: 1 };
        let built = rack::systems::with(&spec, &shape, Used);
        prop_assert_eq!(rack::systems::check(&spec, &shape), built, "{}", spec);
    }

    #[test]
    fn of_hosts(spec in any_spec(host::systems::ALL.to_vec())) {
        let built = host::systems::with(&spec, &host(), Used);
        prop_assert_eq!(host::systems::check(&spec), built, "{}", spec);
    }
}
