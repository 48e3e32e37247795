//! The result of a policy with other workers, more load, or longer service times.

use crate::arrangement::PlannedServer;
use crate::question::{PlanError, PlanProgress, Question};
use crate::ranked::Ranked;
use crate::trial::{SeededTask, Tried, try_all};
use headway_policy::server::systems::ServerSpec;
use headway_policy::{MAX_WORKERS, Shape};
use headway_report::{CoresNeeded, Sensitivity};
use headway_sim::Offered;
use headway_workload::{Arrivals, Class, Empirical, ServiceDistribution, Workload};
use std::sync::Arc;

/// More load, and longer service times.
const MORE: f64 = 1.2;

impl Question {
    /// Requests per second, of the first phase.
    pub(crate) fn rate_rps(&self) -> f64 {
        match (&self.workload.arrivals, self.offered) {
            (Arrivals::Trace(trace), _) => trace.rate_rps().unwrap_or(f64::NAN),
            (_, Offered::Rate(rate)) => rate,
            (_, Offered::Load { load, workers }) => self.workload.rate_for_load(load, workers),
        }
    }

    pub(crate) fn task(&self, server: &PlannedServer) -> SeededTask {
        SeededTask {
            server: server.clone(),
            workload: self.workload.clone(),
            workers: self.workers_of(server),
            offered: self.offered,
            requests: self.requests,
            replications: self.replications,
            seed: self.seed,
        }
    }
}

/// The fewest workers with which the policy meets the SLO at the same rate: on the recording where there is one, else in every
/// replication.
/// Bisects: a policy that meets it with some workers meets it with more.
pub(crate) fn cores(
    question: &Question,
    ranked: &Ranked,
    progress: &mut impl FnMut(PlanProgress),
) -> Result<CoresNeeded, PlanError> {
    let recording = question.on_the_recording();
    let question = recording.as_ref().unwrap_or(question);
    let (rate, server) = (question.rate_rps(), &ranked.tried.task.server);
    let mut meets = |workers: usize| -> Result<bool, PlanError> {
        // Each dispatcher needs at least one worker.
        let shape = Shape {
            workers,
            ..question.shape()
        };
        if server.policy.check(&shape).is_err() {
            return Ok(false);
        }
        let task = SeededTask {
            workers,
            offered: Offered::Rate(rate),
            ..question.task(server)
        };
        let tried = try_all(question, vec![task], "counting cores", progress)?;
        Ok(tried[0].all_met())
    };
    let demand = rate * question.workload.mean_service_ns() / 1e9;
    // Fewer workers than the demand are overloaded.
    let mut missed = (demand as usize).min(MAX_WORKERS);
    let own = ranked.tried.task.workers;
    let mut searched_to = own.max(missed + 1).min(MAX_WORKERS);
    let mut met = None;
    loop {
        if meets(searched_to)? {
            met = Some(searched_to);
            break;
        }
        missed = missed.max(searched_to);
        if searched_to == MAX_WORKERS {
            break;
        }
        searched_to = (2 * searched_to).min(MAX_WORKERS);
    }
    while let Some(workers) = met.filter(|workers| workers - missed > 1) {
        let middle = usize::midpoint(missed, workers);
        if meets(middle)? {
            met = Some(middle);
        } else {
            missed = middle;
        }
    }
    Ok(CoresNeeded {
        policy: ranked.policy.to_string(),
        layout: server.layout.name().into(),
        workers: met,
        cores: met
            .filter(|_| question.cores.is_some())
            .map(|workers| workers + server.cores_beside()),
        searched_to,
        load: met.map(|workers| question.workload.load_for_rate(rate, workers)),
    })
}

/// The changes that a plan is tried under.
const CHANGES: [&str; 2] = ["load +20 %", "service times +20 %"];

/// A candidate under more load, and with longer service times at the same rate.
pub(crate) struct Stressed {
    tried: Vec<Tried>,
}

impl Stressed {
    /// The changes under which it meets the SLO, all of them first, and how much of it it uses at most.
    pub(crate) fn rank(&self) -> (usize, f64) {
        let missed = self.tried.iter().filter(|tried| !tried.all_met()).count();
        let uses = self
            .tried
            .iter()
            .map(|tried| tried.used().unwrap_or(f64::INFINITY));
        (missed, uses.fold(0.0, f64::max))
    }

    pub(crate) fn report(&self, question: &Question, policy: &ServerSpec) -> Vec<Sensitivity> {
        let of = match question.replay {
            Some(_) => "the fitted process, ",
            None => "",
        };
        let changes = CHANGES.iter().zip(&self.tried);
        changes
            .map(|(change, tried): (&&str, &Tried)| Sensitivity {
                change: format!("{of}{change}"),
                trial: tried.report(policy),
            })
            .collect()
    }
}

/// Each candidate under each of the changes; none where recorded arrivals are replayed, which have no other load.
pub(crate) fn stressed(
    question: &Question,
    ranked: &[&Ranked],
    progress: &mut impl FnMut(PlanProgress),
) -> Result<Vec<Stressed>, PlanError> {
    if matches!(question.workload.arrivals, Arrivals::Trace(_)) {
        return Ok(Vec::new());
    }
    let rate = question.rate_rps();
    let changed = ranked.iter().flat_map(|one| {
        let task = question.task(&one.tried.task.server);
        [
            SeededTask {
                offered: times(question.offered, MORE),
                ..task.clone()
            },
            SeededTask {
                workload: longer(&question.workload, MORE),
                offered: Offered::Rate(rate),
                ..task
            },
        ]
    });
    let mut tried = try_all(question, changed.collect(), "stressing", progress)?.into_iter();
    let each = ranked.iter().map(|_| Stressed {
        tried: tried.by_ref().take(CHANGES.len()).collect(),
    });
    Ok(each.collect())
}

fn times(offered: Offered, factor: f64) -> Offered {
    match offered {
        Offered::Rate(rate) => Offered::Rate(rate * factor),
        Offered::Load { load, workers } => Offered::Load {
            load: load * factor,
            workers,
        },
    }
}

/// The workload with service times `factor` times as long.
fn longer(workload: &Workload, factor: f64) -> Workload {
    let stretch = |class: &mut Class| class.service = stretched(&class.service, factor);
    let mut workload = workload.clone();
    workload.classes.iter_mut().for_each(stretch);
    let of_phases = workload
        .phases
        .iter_mut()
        .flat_map(|phase| &mut phase.classes);
    of_phases.for_each(stretch);
    workload
}

fn stretched(service: &ServiceDistribution, factor: f64) -> ServiceDistribution {
    let by = |ns: u64| libm::round(ns as f64 * factor) as u64;
    match service {
        ServiceDistribution::Constant { mean_ns } => ServiceDistribution::Constant {
            mean_ns: by(*mean_ns),
        },
        ServiceDistribution::Exponential { mean_ns } => ServiceDistribution::Exponential {
            mean_ns: by(*mean_ns),
        },
        ServiceDistribution::Lognormal { mean_ns, cv } => ServiceDistribution::Lognormal {
            mean_ns: by(*mean_ns),
            cv: *cv,
        },
        ServiceDistribution::Uniform { min_ns, max_ns } => ServiceDistribution::Uniform {
            min_ns: by(*min_ns),
            max_ns: by(*max_ns),
        },
        ServiceDistribution::Pareto {
            min_ns,
            max_ns,
            alpha,
        } => ServiceDistribution::Pareto {
            min_ns: by(*min_ns),
            max_ns: by(*max_ns),
            alpha: *alpha,
        },
        ServiceDistribution::Empirical(empirical) => {
            let points = empirical
                .points()
                .iter()
                .map(|(ns, weight)| (by(*ns), *weight));
            ServiceDistribution::Empirical(Arc::new(Empirical::new(points.collect())))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stretching_multiplies_means_and_leaves_the_shape() {
        for name in headway_workload::NAMES {
            let workload = Workload::named(name).unwrap();
            let stretched = longer(&workload, 1.2);
            let ratio = stretched.mean_service_ns() / workload.mean_service_ns();
            assert!((ratio - 1.2).abs() < 0.001, "{name} {ratio}");
            assert!(
                (stretched.scv() - workload.scv()).abs() < 0.01 * workload.scv().max(1.0),
                "{name}"
            );
        }
        let points = Arc::new(Empirical::new(vec![(10, 2.0), (100, 1.0)]));
        let ServiceDistribution::Empirical(long) =
            stretched(&ServiceDistribution::Empirical(points), 1.2)
        else {
            panic!("it is another distribution");
        };
        assert_eq!(long.points(), [(12, 2.0), (120, 1.0)]);
    }
}
