//! A pool seen from outside: its counts as values, as a status, as metrics.

use std::fmt;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use headway_ops::metrics::{Labels, MetricsWriter};
use headway_ops::protocol::CtlResponse;
use headway_ops::status::{POOL, PoolClassStatus, PoolStatus, TimesStatus};
use headway_ops::subject::Subject;
use headway_policy::ClassId;
use headway_policy::server::systems::ServerSpec;
use prometheus_client::encoding::DescriptorEncoder;
use serde_json::{Value, json};

use crate::layout::PoolLayout;
use crate::shared::SharedPool;
use crate::stats::{ClassRuns, PoolClassStats, PoolStats};

impl SharedPool {
    /// See [`Pool::stats`](crate::Pool::stats).
    pub(crate) fn stats(&self) -> PoolStats {
        let mut stats = self.counts();
        // One class at a time: histograms take the lock for a microsecond each.
        for (at, class) in stats.classes.iter_mut().enumerate() {
            let mut core = self.core.lock();
            class.runs.copy_from(&core.class(ClassId(at as u16)).runs);
        }
        stats
    }

    /// The same without how jobs ran, read at one moment.
    fn counts(&self) -> PoolStats {
        // Allocated before the lock is taken.
        let mut classes: Vec<_> = self.classes.names.iter().map(|name| unread(name)).collect();
        let core = self.core.lock();
        for (at, class) in classes.iter_mut().enumerate() {
            let (counts, mean_ns) = core.class_counts(ClassId(at as u16));
            class.counts = counts;
            class.mean = Duration::from_nanos(mean_ns as u64);
        }
        PoolStats {
            classes,
            threads: core.threads.len(),
            blocked: core.threads.blocked,
            blocked_in_place: core.blocked_in_place,
            interruptions: core.interruptions,
            rescued: self.slices.rescue().map_or(0, |rescue| rescue.sent_home()),
            without_fiber: core.without_fiber,
        }
    }
}

fn unread(name: &str) -> PoolClassStats {
    PoolClassStats {
        name: name.to_owned(),
        counts: Default::default(),
        mean: Duration::ZERO,
        runs: ClassRuns::default(),
    }
}

/// A pool, as the one that clients ask about. It does not keep the pool.
pub(crate) struct PoolSubject {
    pool: Weak<SharedPool>,
    policy: &'static str,
    spec: String,
    layout: PoolLayout,
    workers: usize,
    since: Instant,
}

impl PoolSubject {
    /// Of a pool that was just built.
    pub(crate) fn new(
        pool: &Arc<SharedPool>,
        spec: &ServerSpec,
        layout: PoolLayout,
        workers: usize,
    ) -> Self {
        Self {
            pool: Arc::downgrade(pool),
            policy: spec.name(),
            spec: spec.to_string(),
            layout,
            workers,
            since: Instant::now(),
        }
    }
}

impl Subject for PoolSubject {
    fn status(&self) -> Value {
        let Some(pool) = self.pool.upgrade() else {
            return Value::Null;
        };
        let stats = pool.stats();
        let status = PoolStatus {
            kind: POOL.into(),
            pid: std::process::id(),
            version: env!("CARGO_PKG_VERSION").into(),
            name: pool.name.clone(),
            policy: self.policy.into(),
            spec: self.spec.clone(),
            layout: self.layout.name().into(),
            workers: self.workers,
            threads: stats.threads,
            blocked: stats.blocked,
            blocked_in_place: stats.blocked_in_place,
            uptime_s: self.since.elapsed().as_secs_f64(),
            interruptions: stats.interruptions,
            rescued: stats.rescued,
            without_fiber: stats.without_fiber,
            classes: stats.classes.iter().map(class_status).collect(),
        };
        json!(status)
    }

    fn set(&self, _params: &[(String, String)]) -> CtlResponse {
        Err("a pool's policy is chosen as the pool is built: change the program's PoolBuilder::policy".into())
    }

    fn stacks(&self) -> CtlResponse {
        Err("a pool does not say where its suspended jobs stand; a server does".into())
    }

    fn collect(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        match self.pool.upgrade() {
            Some(pool) => write_metrics(&pool.name, &pool.stats(), encoder),
            None => Ok(()),
        }
    }
}

fn class_status(class: &PoolClassStats) -> PoolClassStatus {
    let (counts, runs) = (&class.counts, &class.runs);
    PoolClassStatus {
        class: class.name.clone(),
        submitted: counts.submitted,
        done: counts.done,
        panicked: counts.panicked,
        cancelled: counts.cancelled,
        shed_for_room: counts.shed - counts.shed_too_late,
        shed_too_late: counts.shed_too_late,
        abandoned: counts.abandoned,
        refused: counts.refused,
        queued: counts.waiting,
        running: counts.running,
        asleep: counts.asleep,
        mean_us: class.mean.as_nanos() as f64 / 1e3,
        slices: runs.slices,
        asked: runs.interruptions_asked,
        preempted: runs.interruptions,
        stalls: runs.stalls,
        longest_gap_us: runs.longest_gap_ns as f64 / 1e3,
        wait: TimesStatus::from(&runs.wait),
        service: TimesStatus::from(&runs.service),
    }
}

/// A count of each class: its metric, its meaning, how it is read.
type PoolClassCount<T> = (&'static str, &'static str, fn(&PoolClassStats) -> T);

const COUNTERS: [PoolClassCount<u64>; 6] = [
    ("submitted_jobs", "Jobs accepted", |class| {
        class.counts.submitted
    }),
    ("refused_jobs", "Jobs not accepted", |class| {
        class.counts.refused
    }),
    ("slices", "Slices begun", |class| class.runs.slices),
    (
        "interruptions_asked",
        "Times a job was to make way",
        |class| class.runs.interruptions_asked,
    ),
    ("interruptions", "Times a job made way", |class| {
        class.runs.interruptions
    }),
    ("stalls", "Slices that ran on without a probe", |class| {
        class.runs.stalls
    }),
];

const GAUGES: [PoolClassCount<f64>; 4] = [
    ("queued_jobs", "Jobs that wait for a worker", |class| {
        class.counts.waiting as f64
    }),
    (
        "running_jobs",
        "Jobs that run, or were interrupted",
        |class| class.counts.running as f64,
    ),
    ("sleeping_jobs", "Futures that wait to be woken", |class| {
        class.counts.asleep as f64
    }),
    (
        "longest_gap_seconds",
        "The longest run past a slice's end without a probe",
        |class| class.runs.longest_gap_ns as f64 / 1e9,
    ),
];

/// An end of accepted jobs, and how its count is read.
type CountedEnd = (&'static str, fn(&PoolClassStats) -> u64);

const ENDS: [CountedEnd; 6] = [
    ("done", |class| class.counts.done),
    ("panicked", |class| class.counts.panicked),
    ("cancelled", |class| class.counts.cancelled),
    ("shed_for_room", |class| {
        class.counts.shed - class.counts.shed_too_late
    }),
    ("shed_too_late", |class| class.counts.shed_too_late),
    ("abandoned", |class| class.counts.abandoned),
];

fn write_metrics(name: &str, stats: &PoolStats, encoder: DescriptorEncoder<'_>) -> fmt::Result {
    let mut writer = MetricsWriter::new(encoder);
    let labels = |class| -> Labels<'_> { labels(name, class) };
    let classes = || stats.classes.iter();
    for (metric, help, read) in COUNTERS {
        let samples = classes().map(|class| (labels(class), read(class)));
        writer.counter(&format!("headway_pool_{metric}"), help, samples)?;
    }
    for (metric, help, read) in GAUGES {
        let samples = classes().map(|class| (labels(class), read(class)));
        writer.gauge(&format!("headway_pool_{metric}"), help, samples)?;
    }
    let ends = classes().flat_map(|class| {
        ENDS.map(|(end, read)| {
            let mut labels = labels(class);
            labels.push(("end", end));
            (labels, read(class))
        })
    });
    writer.counter(
        "headway_pool_ended_jobs",
        "Accepted jobs that ended, by their end",
        ends,
    )?;
    let waits = classes().map(|class| (labels(class), &class.runs.wait));
    writer.times(
        "headway_pool_wait_seconds",
        "From submission to the first slice",
        waits,
    )?;
    let services = classes().map(|class| (labels(class), &class.runs.service));
    writer.times("headway_pool_service_seconds", "Service times", services)
}

fn labels<'a>(pool: &'a str, class: &'a PoolClassStats) -> Labels<'a> {
    vec![("pool", pool), ("class", &class.name)]
}
