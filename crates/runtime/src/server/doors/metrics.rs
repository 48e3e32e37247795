//! A server's counts as metrics.

use std::fmt;

use headway_ops::metrics::MetricsWriter;
use prometheus_client::encoding::DescriptorEncoder;

use crate::stats::tally::{ClassStats, Stats};

/// A count of each class: its metric, its meaning, how it is read.
type ServerClassCount = (&'static str, &'static str, fn(&ClassStats) -> u64);

const BY_CLASS: [ServerClassCount; 7] = [
    ("accepted_requests", "Requests taken in", |class| {
        class.accepted
    }),
    ("answered_requests", "Requests run to their end", |class| {
        class.answered
    }),
    (
        "shed_requests",
        "Requests refused since a queue was full",
        |class| class.shed,
    ),
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

/// Writes them.
pub(super) fn collect(stats: &Stats, encoder: DescriptorEncoder<'_>) -> fmt::Result {
    let mut writer = MetricsWriter::new(encoder);
    for (name, help, read) in BY_CLASS {
        let samples = stats.classes.iter();
        let samples = samples.map(|class| (vec![("class", &*class.name)], read(class)));
        writer.counter(&format!("headway_server_{name}"), help, samples)?;
    }
    let pending = stats.classes.iter();
    let pending = pending.map(|class| (vec![("class", &*class.name)], class.pending() as f64));
    writer.gauge(
        "headway_server_pending_requests",
        "Requests that wait or run",
        pending,
    )?;
    let service = stats.classes.iter();
    let service = service.map(|class| (vec![("class", &*class.name)], class.cpu_ns / 1_000));
    writer.counter(
        "headway_server_service_microseconds",
        "Time that handlers took",
        service,
    )?;
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
