//! The promises of every system, over random traffic: nothing is lost or run twice, first come
//! first served within a class, plans are kept to, only the full queue sheds.

use headway_contract::dispatcher::{CLASSES, DispatcherContract, ServerEvent, WORKERS, shape};
use headway_policy::server::role::{Ingress, Local, Monitor};
use headway_policy::server::systems::{self, NAMES, Promises, ServerSpec, System, VisitInstance};
use proptest::prelude::*;

fn events() -> impl Strategy<Value = Vec<ServerEvent>> {
    let event = prop_oneof![
        5 => (0..=CLASSES as u16, any::<u32>())
            .prop_map(|(class, flow)| ServerEvent::Arrive { class, flow }),
        5 => (0..WORKERS, 1u64..1_000_000)
            .prop_map(|(nth, cpu_ns)| ServerEvent::Finish { nth, cpu_ns }),
        1 => (0..WORKERS as u16).prop_map(|worker| ServerEvent::Toggle { worker }),
    ];
    prop::collection::vec(event, 1..600)
}

/// Plays the events to the system's ingress.
struct Driver<'a> {
    events: &'a [ServerEvent],
    promises: Promises,
}

impl VisitInstance for Driver<'_> {
    type Output = Result<(), TestCaseError>;

    fn visit_instance<I: Ingress, L: Local, M: Monitor>(
        self,
        system: System<I, L, M>,
    ) -> Self::Output {
        let name = system.name;
        let mut contract = DispatcherContract::new(system.ingress, system.depth, self.promises);
        let mut events = self.events.iter();
        let played = events.try_for_each(|&event| contract.play(event));
        played
            .and_then(|()| contract.drain())
            .map_err(|broken| TestCaseError::fail(format!("{name}: {broken}")))
    }
}

/// The parts in combinations that no name stands for.
const COMPOSED: &[&str] = &[
    "compose",
    "compose,discipline=typed,placement=jbsq,k=3",
    "compose,discipline=typed,placement=jbsq,k=2,preemption=quantum,control=darc,window=20,deviation=0.05",
    "compose,discipline=typed,placement=reserved,control=darc-stable,window=20,deviation=0.05",
    "compose,discipline=typed,placement=reserved,control=partition",
    "compose,discipline=typed,placement=jbsq,k=2,control=reserve,reserved=2",
    "compose,placement=shortest,preemption=quantum",
    "compose,placement=choices,choices=3",
    "compose,placement=random",
    "compose,discipline=sjf,placement=jbsq,k=2,preemption=srpt",
    "compose,discipline=edf,preemption=edf",
    "compose,discipline=drr,placement=jbsq,k=2,quantum=7us,preemption=quantum",
    "compose,discipline=wrr,weights=4/3/2/1",
    "compose,discipline=mlfq,preemption=levels,levels=3",
    "compose,discipline=gittins,preemption=index",
    "compose,discipline=mq,pick=bvt,preemption=quantum",
    "compose,discipline=cscq,placement=jbsq,k=2",
];

/// Every name, and the parts in combinations. Small windows, so that reservations are made and
/// revised within a case.
fn specs() -> Vec<String> {
    let named = NAMES
        .iter()
        .filter(|&&name| name != "compose")
        .map(|&name| match name {
            "darc" | "darc-stable" => format!("{name},window=20,deviation=0.05"),
            "jbsq" | "concord" => format!("{name},k=3"),
            name => name.to_owned(),
        });
    named
        .chain(COMPOSED.iter().map(|&spec| spec.to_owned()))
        .collect()
}

proptest! {
    #[test]
    fn every_dispatcher_keeps_its_promises(events in events(), policy in 0..specs().len()) {
        let spec: ServerSpec = specs()[policy].parse().unwrap();
        let facts = spec.facts();
        if let Some(promises) = facts.promises {
            let driver = Driver { events: &events, promises };
            systems::with(&spec, &shape(), driver).unwrap()?;
        }
    }
}
