//! Which policies a live server runs, and how: decided without starting anything.

use std::collections::HashSet;

use headway_net::pool::MAX_SLOTS;
use headway_policy::server::role::Owner;
use headway_policy::server::systems::{Facts, Preemption, ServerSpec};
use headway_policy::spec::SpecError;
use headway_policy::{MAX_CLASSES, MAX_WORKERS, Resume, Shape};

use super::class::{DeclaredClass, UNKNOWN_NAME};
use crate::error::StartError;
use crate::request::intake::BATCH;

/// Requests that may wait in one queue, unless chosen otherwise: a millisecond's worth at a million a second.
const QUEUE_LIMIT: usize = 1024;

/// How a live server carries a policy out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Admission {
    /// Whether a dispatcher places requests; else the network steers them, or workers help themselves.
    pub has_dispatcher: bool,
    /// How many dispatchers there are, each with workers and a receive queue of its own; 0 without.
    pub dispatchers: usize,
    /// Whether requests wait in queues of the server, which have a limit; else in the network's receive queues.
    pub limits_queues: bool,
    /// Whether that limit is each class's own; else that of one queue for all.
    pub limits_classes: bool,
    /// Whether the dispatcher interrupts requests.
    pub dispatcher_interrupts: bool,
    /// Whether workers interrupt their own requests.
    pub workers_interrupt: bool,
    /// Whether requests are interrupted at the ends of quanta alone, which workers can time themselves
    /// ([`Builder::interrupt_by_clock`](crate::Builder::interrupt_by_clock)).
    pub keeps_times: bool,
    /// Whether a monitor interrupts requests though there is no dispatcher: a thread of its own carries it out, or the workers.
    pub has_monitor: bool,
}

impl Admission {
    /// Whether running requests are interrupted.
    #[must_use]
    pub fn interrupts(&self) -> bool {
        self.dispatcher_interrupts || self.workers_interrupt
    }

    /// Whether all requests come through one receive queue, so that the network has nobody to steer them to.
    #[must_use]
    pub fn has_one_receive_queue(&self) -> bool {
        self.limits_queues && self.dispatchers <= 1
    }

    /// Whether workers poll for arrivals while a request runs. `dedicated` says whether a dispatcher, where there is one, has a thread of its own.
    #[must_use]
    pub fn polls_at_work(&self, dedicated: bool) -> bool {
        self.interrupts() && !(self.has_dispatcher && dedicated)
    }

    /// Whether a [`Layout`](crate::Layout) says who carries something out.
    #[must_use]
    pub fn is_laid_out(&self) -> bool {
        self.threads_beside() > 0
    }

    /// The threads beside the workers where the [layout](crate::Layout::Dedicated) is dedicated: a dispatcher's each, or the monitor's.
    #[must_use]
    pub fn threads_beside(&self) -> usize {
        if self.has_dispatcher {
            self.dispatchers
        } else {
            usize::from(self.has_monitor)
        }
    }
}

/// Whether a server of this shape runs a policy, and how. [`ServerSettings::admit`](crate::ServerSettings::admit) asks the same.
///
/// # Errors
/// [`StartError`], which says why not and what to choose instead.
pub fn admit(spec: &ServerSpec, shape: &Shape) -> Result<Admission, StartError> {
    let (policy, facts) = (spec.name(), spec.facts());
    let checked = spec.check(shape);
    // That a policy moves what it interrupts is the lesser fault: one that no live server runs is refused for that.
    if !matches!(checked, Err(SpecError::Roams { .. })) {
        checked.clone()?;
    }
    if facts.knows_load {
        return Err(StartError::KnownProfile { policy });
    }
    checked?;
    let by_monitor = matches!(facts.preemption, Preemption::ByMonitor { .. });
    Ok(Admission {
        has_monitor: facts.owner == Owner::Steering && by_monitor,
        has_dispatcher: facts.owner == Owner::Dispatcher,
        dispatchers: facts.dispatchers,
        limits_queues: facts.owner != Owner::Steering,
        limits_classes: facts.promises.is_some_and(|kept| kept.bound_per_class),
        dispatcher_interrupts: facts.preemption == Facts::BY_DISPATCHER,
        workers_interrupt: !matches!(facts.preemption, Preemption::None | Facts::BY_DISPATCHER),
        keeps_times: facts.keeps_times,
    })
}

/// What a policy is built for on a server of these workers, classes and queues, with as many buffers as it needs. Seed, resume mode and number
/// of buffers may be set afterwards. [`Builder::start`](crate::Builder::start) asks the same.
///
/// # Errors
/// [`StartError`]: the workers, classes, their hints or the queue limit are out of range, or there are not enough buffers for such queues.
pub fn server_shape(
    workers: usize,
    classes: &[DeclaredClass],
    queue_limit: usize,
) -> Result<Shape, StartError> {
    let mut shape = unbuffered(workers, classes, Some(queue_limit))?;
    shape.job_capacity = slots_needed(&shape)?;
    Ok(shape)
}

/// The same, its number of buffers still to be set.
pub(crate) fn unbuffered(
    workers: usize,
    classes: &[DeclaredClass],
    queue_limit: Option<usize>,
) -> Result<Shape, StartError> {
    if !(1..=MAX_WORKERS).contains(&workers) {
        let max = MAX_WORKERS;
        return Err(StartError::Workers { workers, max });
    }
    if classes.len() > MAX_CLASSES {
        let (classes, max) = (classes.len(), MAX_CLASSES);
        return Err(StartError::Classes { classes, max });
    }
    check_names(classes)?;
    check_hints(classes)?;
    let queue_limit = queue_limit.unwrap_or(QUEUE_LIMIT);
    within("queue_limit", queue_limit, 1, usize::MAX)?;
    let mut shape = Shape::new(workers);
    shape.classes = classes.iter().map(|class| class.hint).collect();
    shape.queue_limit = queue_limit;
    shape.resume = Resume::OwnWorker;
    Ok(shape)
}

/// The most requests that may wait in one queue of a server of so many workers and declared classes: all queues full, there is still a buffer
/// for each request.
#[must_use]
pub fn max_queue_limit(workers: usize, classes: usize) -> usize {
    let queues = classes + 1;
    // With hundreds of classes the default limit asks for too much. Nobody chose it, so their queues share what there is.
    ((MAX_SLOTS - slots_beside_queues(workers)) / queues).max(QUEUE_LIMIT)
}

/// Full queues, what the workers hold, and a batch that is being refused.
pub(crate) fn slots_needed(shape: &Shape) -> Result<usize, StartError> {
    let (requests, workers, classes) = (shape.queue_limit, shape.workers, shape.classes.len());
    let most = max_queue_limit(workers, classes);
    if requests > most {
        return Err(StartError::QueueLimit { requests, most });
    }
    let needed = requests * (classes + 1) + slots_beside_queues(workers);
    Ok(needed.min(MAX_SLOTS))
}

/// What the workers hold, and a batch that is being refused.
fn slots_beside_queues(workers: usize) -> usize {
    (workers + 1) * 2 * BATCH
}

/// The most requests that may wait in one queue of a server with so many buffers, such that each of its queues may fill up: a class's full queue takes no buffer
/// from another's. Beside them there are buffers for what the workers hold, and for refusals: three quarters of the buffers are the queues' at least.
pub(crate) fn queue_limit_within(slots: usize, shape: &Shape, admission: &Admission) -> usize {
    let slots = slots / admission.dispatchers.max(1);
    let beside = slots_beside_queues(shape.workers).min(slots / 4);
    let queues = if admission.limits_classes {
        shape.queues()
    } else {
        1
    };
    ((slots - beside) / queues).max(1)
}

/// A number of the builder's, by its method.
pub(crate) fn within(
    what: &'static str,
    number: usize,
    least: usize,
    most: usize,
) -> Result<(), StartError> {
    if (least..=most).contains(&number) {
        return Ok(());
    }
    Err(StartError::OutOfRange {
        what,
        number,
        least,
        most,
    })
}

/// Names by which people and metrics tell the classes apart.
fn check_names(classes: &[DeclaredClass]) -> Result<(), StartError> {
    let mut names = HashSet::from([UNKNOWN_NAME]);
    match classes.iter().find(|class| !names.insert(&class.name)) {
        Some(class) => Err(StartError::SameName {
            name: class.name.clone(),
        }),
        None => Ok(()),
    }
}

/// Times and shares by which policies order the classes.
fn check_hints(classes: &[DeclaredClass]) -> Result<(), StartError> {
    let unusable = classes.iter().find(|class| {
        let hint = &class.hint;
        !(hint.mean_ns.is_finite() && hint.mean_ns >= 0.0 && (0.0..=1.0).contains(&hint.share))
    });
    match unusable {
        Some(class) => Err(StartError::Hint {
            class: class.name.clone(),
            mean_ns: class.hint.mean_ns,
            share: class.hint.share,
        }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use headway_policy::server::systems;

    use super::*;
    use crate::error::ServerSetting;

    fn admitted(policy: &str) -> Result<Admission, StartError> {
        admitted_to(policy, Resume::Anywhere)
    }

    fn admitted_to(policy: &str, resume: Resume) -> Result<Admission, StartError> {
        let mut shape = Shape::new(2).class(1_000, 0.5).class(100_000, 0.5);
        shape.resume = resume;
        admit(&policy.parse()?, &shape)
    }

    #[test]
    fn what_no_live_server_runs_is_refused_for_the_right_reason() {
        let refused = |policy| admitted(policy).unwrap_err();
        assert!(matches!(
            refused("concord,dispatchers=3"),
            StartError::Policy(_)
        ));
        assert!(matches!(
            refused("darc,profile=known"),
            StartError::KnownProfile { .. }
        ));
        assert!(matches!(refused("ps"), StartError::Policy(_)));
    }

    #[test]
    fn requests_that_stay_on_their_workers_are_no_matter_of_workers_that_help_themselves() {
        for policy in ["synergy", "tardis"] {
            let refused = admitted_to(policy, Resume::OwnWorker);
            let roams = matches!(refused, Err(StartError::Policy(SpecError::Roams { .. })));
            assert!(roams, "{refused:?}");
        }
        assert!(admitted_to("concord", Resume::OwnWorker).is_ok());
    }

    fn numbered(classes: usize) -> Vec<DeclaredClass> {
        (0..classes)
            .map(|class| DeclaredClass::new(class.to_string(), Duration::from_micros(1)))
            .collect()
    }

    #[test]
    fn each_class_has_a_name_of_its_own() {
        for names in [["a", "a"], ["a", "unknown"]] {
            let classes = names.map(|name| DeclaredClass::new(name, Duration::from_micros(1)));
            let refused = server_shape(1, &classes, QUEUE_LIMIT).unwrap_err();
            assert_eq!(refused.setting(), ServerSetting::Classes);
            let words = format!("class '{}' is declared twice", names[1]);
            assert!(refused.to_string().contains(&words), "{refused}");
        }
    }

    #[test]
    fn the_largest_queue_limit_leaves_a_buffer_for_every_request() {
        for (workers, classes) in [(1, 0), (2, 2), (MAX_WORKERS, 16)] {
            let named = numbered(classes);
            let most = max_queue_limit(workers, classes);
            let slots = server_shape(workers, &named, most).unwrap().job_capacity;
            assert!(slots <= MAX_SLOTS, "{slots}");
            let held = slots - most * (classes + 1);
            assert_eq!(held, slots_beside_queues(workers));
            let refused = server_shape(workers, &named, most + 1);
            assert!(matches!(refused, Err(StartError::QueueLimit { .. })));
        }
        let many = numbered(MAX_CLASSES);
        let shape = server_shape(MAX_WORKERS, &many, QUEUE_LIMIT).unwrap();
        assert!(shape.job_capacity <= MAX_SLOTS);
    }

    #[test]
    fn full_queues_fit_into_the_buffers_there_are() {
        let mut shape = Shape::new(2).class(1_000, 0.5).class(100_000, 0.5);
        for slots in [8, 600, 100_000] {
            for (policy, queues) in [("fixed-priority", 3), ("c-fcfs", 1), ("tardis", 1)] {
                let admission = admitted(policy).unwrap();
                shape.queue_limit = queue_limit_within(slots, &shape, &admission);
                let full = queues * shape.queue_limit;
                assert!(full < slots, "{policy}: {full} of {slots}");
                assert!(full >= slots / 2, "{policy}: {full} of {slots}");
            }
        }
        let by_two = admitted("concord,dispatchers=2").unwrap();
        assert_eq!(queue_limit_within(800, &shape, &by_two), 300);
        assert_eq!(queue_limit_within(1, &shape, &by_two), 1);
    }

    #[test]
    fn how_a_policy_is_carried_out_is_said() {
        let said = |policy| admitted(policy).unwrap();
        assert!(!said("d-fcfs").is_laid_out());
        let darc = said("darc");
        assert!(darc.has_dispatcher && !darc.interrupts());
        assert!(said("concord").dispatcher_interrupts);
        assert_eq!(said("concord,dispatchers=2").dispatchers, 2);
        assert!(said("tiny-quanta").workers_interrupt);
        for (policy, keeps_times) in [
            ("concord", true),
            ("shinjuku-mq", true),
            ("mlfq", true),
            ("gittins", true),
            ("srpt", false),
            ("on-blocked", false),
        ] {
            assert_eq!(said(policy).keeps_times, keeps_times, "{policy}");
        }
        let synergy = said("synergy");
        assert!(!synergy.has_dispatcher && synergy.workers_interrupt && synergy.has_monitor);
        assert!(!synergy.limits_queues && synergy.polls_at_work(true));
        assert!(!said("d-fcfs").polls_at_work(false));
        let tardis = said("tardis");
        assert!(!tardis.has_dispatcher && tardis.workers_interrupt);
        assert!(tardis.limits_queues && tardis.polls_at_work(true));
        assert!(said("concord").polls_at_work(false) && !said("concord").polls_at_work(true));
    }

    #[test]
    fn it_runs_what_policies_say_that_it_runs() {
        for policy in systems::ALL {
            let name = policy.about.name;
            assert!(admitted(name).is_ok(), "{name}");
            assert!(policy.by_default().runs_live(), "{name}");
        }
    }
}
