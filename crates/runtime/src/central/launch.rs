//! From parts to running threads.

use std::sync::Arc;

use headway_policy::server::role::{Ingress, Local, Monitor};

use super::dispatched::Dispatched;
use super::group::{GroupMailboxes, GroupParts, RackOrders, prepare};
use super::start::{start_dedicated, start_inline};
use crate::engine::launch::{EngineBase, EngineDemands, EngineEnds, EngineTraits, set_rules};
use crate::engine::parts::{EngineParts, LiveEngine, QueueDepths, SetRules};
use crate::error::StartError;
use crate::threads::control::ServerControl;
use crate::threads::groups::controls_of;
use crate::threads::rack::set_duty;

/// Starts a server whose ingress is a dispatcher, or several with workers of their own: a system each.
pub(crate) fn launch<I, L, M>(
    systems: Vec<Dispatched<I, L, M>>,
    parts: EngineParts,
) -> Result<LiveEngine, StartError>
where
    I: Ingress + Send + 'static,
    L: Local + Send + 'static,
    M: Monitor + Send + 'static,
{
    let (count, dispatchers) = (parts.shape.workers, systems.len());
    let layout = parts.config.layout;
    let (control, controls) = controls(&systems, parts.config.stalls);
    // Workers that take turns as the dispatcher run requests anyway.
    let dispatchers_work = I::WORKS && layout.is_dedicated();
    let demands = EngineDemands {
        queues: dispatchers,
        runners: count + if dispatchers_work { dispatchers } else { 0 },
        refusers: dispatchers,
        spare: dispatchers,
        rooms: 0,
        interrupts: M::PREEMPTS || L::SLICES,
        heeds_length: false,
        watched: systems.iter().map(|system| system.locals.len()).collect(),
    };
    let (mut base, mut ends) = EngineBase::new(parts, control, &demands)?;
    let mut orders = base
        .config
        .behind_switch
        .then(|| RackOrders::new(&base.rxs));
    if let Some(orders) = &orders {
        orders.told_by(&mut ends.executors);
    }
    let mut mailboxes = Vec::with_capacity(dispatchers);
    let mut groups = Vec::with_capacity(dispatchers);
    for parts in group_parts(systems, controls, count, ends) {
        let (group, rules) = prepare(&base, parts, orders.as_mut());
        groups.push(group);
        mailboxes.push(rules);
    }
    for group in groups {
        if layout.is_dedicated() {
            start_dedicated(group, &mut base);
        } else {
            start_inline(group, &mut base);
        }
    }
    base.ready(EngineTraits {
        layout: layout.layout,
        monitor_layout: None,
        dispatchers,
        set_rules: rules_of(mailboxes),
        set_duty: orders.map(|orders| set_duty(orders.senders)),
        queue_depths: Arc::new(QueueDepths::default),
    })
}

/// The server's control, and that of each dispatcher, which is the same where there is one.
fn controls<I: Ingress, L, M>(
    systems: &[Dispatched<I, L, M>],
    stalls: usize,
) -> (Arc<ServerControl>, Vec<Arc<ServerControl>>) {
    if let [system] = systems {
        let (workers, plan) = (system.locals.len(), system.ingress.plan());
        let control = Arc::new(ServerControl::new(workers, plan, stalls));
        return (Arc::clone(&control), vec![control]);
    }
    let sizes: Vec<usize> = systems.iter().map(|system| system.locals.len()).collect();
    controls_of(&sizes, stalls)
}

/// Divides what the threads own among the dispatchers of `count` workers.
fn group_parts<I, L, M>(
    systems: Vec<Dispatched<I, L, M>>,
    controls: Vec<Arc<ServerControl>>,
    count: usize,
    ends: EngineEnds,
) -> Vec<GroupParts<I, L, M>> {
    let dispatchers = systems.len();
    let mut executors = ends.executors;
    let mut dispatcher_executors = executors.split_off(count).into_iter();
    let mut executors = executors.into_iter();
    let ends = ends
        .refusal_txs
        .into_iter()
        .zip(ends.buffers.divided(dispatchers));
    let groups = systems.into_iter().zip(controls).zip(ends).enumerate();
    let mut first = 0;
    groups
        .map(|(number, ((system, control), (tx, buffers)))| {
            let size = system.locals.len();
            first += size;
            GroupParts {
                number,
                is_one_of_several: dispatchers > 1,
                first: first - size,
                system,
                control,
                tx,
                buffers,
                executors: executors.by_ref().take(size).collect(),
                dispatcher_executor: dispatcher_executors.next(),
            }
        })
        .collect()
}

/// Gives each dispatcher and worker the part of a new system that it is to adopt the rules of.
fn rules_of<I, L, M>(mailboxes: Vec<GroupMailboxes<I, L, M>>) -> SetRules
where
    I: Ingress + Send + 'static,
    L: Local + Send + 'static,
    M: Monitor + Send + 'static,
{
    set_rules::<I, L, M>(move |number, system| {
        if let Some(group) = mailboxes.get(number) {
            group.put(system);
        }
    })
}
