//! A server's counts as metrics.

use std::fmt;

use headway_ops::metrics::{Labels, MetricsWriter};
use prometheus_client::encoding::DescriptorEncoder;

use crate::stats::tally::{ClassStats, Stats};

/// A count of each class: its metric, its meaning, how it is read.
type ServerClassCount = (&'static str, &'static str, fn(&ClassStats) -> u64);

const BY_CLASS: [ServerClassCount; 6] = [
    ("accepted_requests", "Requests taken in", |class| {
        class.accepted
    }),
    ("answered_requests", "Requests run to their end", |class| {
        class.answered
    }),
    (
        "interruptions_asked",
        "Times a running request was to yield",
        |class| class.preemptions_asked,
    ),
    (
        "interruptions",
        "Times a request was interrupted",
        |class| class.preemptions,
    ),
    (
        "overruns",
        "Requests that ended long after they were to yield",
        |class| class.overruns,
    ),
    (
        "rescued_requests",
        "Interrupted requests that went on in threads of their own",
        |class| class.rescued,
    ),
];

/// The same of requests that wait or run.
const WAITING: [ServerClassCount; 3] = [
    (
        "pending_requests",
        "Requests that wait or run",
        ClassStats::pending,
    ),
    (
        "queued_requests",
        "Requests that wait for a worker",
        ClassStats::queued,
    ),
    (
        "running_requests",
        "Requests that run, or were interrupted",
        |class| class.running,
    ),
];

/// A cause of refusals, and how its count is read.
type CountedShed = (&'static str, fn(&ClassStats) -> u64);

const SHEDS: [CountedShed; 4] = [
    ("queue_full", |class| class.sheds.queue_full),
    ("no_buffer", |class| class.sheds.no_buffer),
    ("no_stack", |class| class.sheds.no_stack),
    ("clone", |class| class.sheds.clones),
];

/// Writes them.
pub(super) fn collect(stats: &Stats, encoder: DescriptorEncoder<'_>) -> fmt::Result {
    let mut writer = MetricsWriter::new(encoder);
    for (name, help, read) in BY_CLASS {
        let samples = stats.classes.iter();
        let samples = samples.map(|class| (vec![("class", &*class.name)], read(class)));
        writer.counter(&format!("headway_server_{name}"), help, samples)?;
    }
    by_class(&mut writer, &stats.classes)?;
    let lost = [
        ("malformed", stats.malformed),
        ("too_large", stats.too_large),
        ("refused_draining", stats.refused_draining),
        ("abandoned", stats.abandoned),
        ("unsent", stats.unsent),
        ("kernel_drops", stats.kernel_drops),
    ];
    let lost = lost.map(|(reason, count)| (vec![("reason", reason)], count));
    writer.counter(
        "headway_server_lost_datagrams",
        "Datagrams without a useful answer",
        lost,
    )?;
    let whole = [
        (
            "received_datagrams",
            "Datagrams taken from the network",
            stats.received,
        ),
        ("handler_panics", "Handlers that panicked", stats.panics),
        (
            "plan_revisions",
            "Times the policy revised its plan",
            stats.plan_revisions,
        ),
    ];
    for (name, help, count) in whole {
        writer.counter(
            &format!("headway_server_{name}"),
            help,
            [(Vec::new(), count)],
        )?;
    }
    Ok(())
}

/// Counts of each class that are no plain counters: by cause, of now, and of times.
fn by_class(writer: &mut MetricsWriter<'_>, classes: &[ClassStats]) -> fmt::Result {
    let label = |class| -> Labels<'_> { vec![("class", class)] };
    let sheds = classes.iter().flat_map(|class| {
        SHEDS.map(|(cause, read)| {
            let mut labels = label(&*class.name);
            labels.push(("reason", cause));
            (labels, read(class))
        })
    });
    writer.counter(
        "headway_server_shed_requests",
        "Requests refused, by the reason",
        sheds,
    )?;
    for (name, help, read) in WAITING {
        let samples = classes.iter();
        let samples = samples.map(|class| (label(&*class.name), read(class) as f64));
        writer.gauge(&format!("headway_server_{name}"), help, samples)?;
    }
    let waits = classes.iter();
    let waits = waits.map(|class| (label(&*class.name), &class.wait));
    writer.times(
        "headway_server_wait_seconds",
        "From arrival to the first slice",
        waits,
    )?;
    let services = classes.iter();
    let services = services.map(|class| (label(&*class.name), &class.service));
    writer.times(
        "headway_server_service_seconds",
        "Time that handlers took",
        services,
    )
}
