//! A server's status as text.

use super::rows::{counted, quantiles, time_us};
use headway_ops::server_status::{
    HeldStatus, LiveServerStatus, ServerClassStatus, ServerWorkerStatus,
};
use headway_report::table::Table;
use headway_workload::duration;
use serde_json::Value;

/// Prints a paragraph about the server, tables of its workers and classes, and its remaining counters.
pub(super) fn text(status: &LiveServerStatus) -> String {
    let mut text = heading(status);
    text += &format!("\n\n{}", workers(status));
    if !status.wait_queues.is_empty() {
        let queues = status.wait_queues.iter().map(|queue| {
            let congested = if queue.congested { " (congested)" } else { "" };
            format!("{}{congested}", queue.waiting)
        });
        let queues: Vec<_> = queues.collect();
        text += &format!("\n\nwaiting in wait queues: {}", queues.join(", "));
    }
    text += &format!("\n\n{}\n\n{}", ends(&status.classes), runs(&status.classes));
    text += &held(&status.classes);
    text += &feedback(&status.classes);
    text + &plan(status)
}

fn heading(status: &LiveServerStatus) -> String {
    let listens = status.listen.as_deref().unwrap_or("no address");
    let changes = match status.changes {
        0 => "since the start".to_owned(),
        changes => format!("since {} ago (change {changes})", time_s(status.in_force_s)),
    };
    let changeable = match &*status.changeable {
        [] => "none of them may change while it serves".to_owned(),
        keys => format!("may change while it serves: {}", keys.join(", ")),
    };
    let layout = match &*status.layout {
        "inline" => "workers take turns as the dispatcher (inline)",
        "dedicated" => "each dispatcher has a thread of its own (dedicated)",
        "shared" => "workers take turns at one receive queue (shared)",
        _ => "the network steers requests to the workers (steered)",
    };
    let rare = [
        (", handed back ", status.handed_back),
        (", abandoned ", status.abandoned),
        (", unsent ", status.unsent),
    ];
    let rare = rare.into_iter().filter(|(_, count)| *count > 0);
    let rare: Vec<_> = rare.map(|(name, count)| format!("{name}{count}")).collect();
    format!(
        "{listens}, process {}, up for {}\npolicy {}, {changes}; {changeable}\n{layout}; received {}, answered {}, shed {}, too large {}, refused {}, malformed {}, pending {}, dropped by the kernel {}{}",
        status.pid,
        time_s(status.uptime_s),
        status.spec,
        status.received,
        status.answered,
        status.shed,
        status.too_large,
        status.refused,
        status.malformed,
        status
            .classes
            .iter()
            .map(|class| class.pending)
            .sum::<u64>(),
        status.kernel_drops,
        rare.concat(),
    )
}

fn workers(status: &LiveServerStatus) -> Table {
    let mut table = Table::new([
        "worker",
        "answered",
        "own",
        "stolen",
        "resumed",
        "preempted",
        "renewed",
        "lock yields",
        "queued",
    ]);
    for worker in status.workers.iter().chain(&status.dispatchers) {
        table.push(worker_row(worker));
    }
    table
}

fn worker_row(worker: &ServerWorkerStatus) -> Vec<String> {
    let name = match &worker.worker {
        Value::String(name) => name.clone(),
        number => number.to_string(),
    };
    let counts = [
        worker.answered,
        worker.own,
        worker.stolen,
        worker.resumed,
        worker.preempted,
        worker.renewed,
        yields(&worker.held),
    ];
    let mut cells = counted(&name, &counts);
    let queued = worker.queued;
    cells.push(queued.map_or("–".into(), |queued| queued.to_string()));
    cells
}

/// What became of the requests.
fn ends(classes: &[ServerClassStatus]) -> Table {
    let mut table = Table::new([
        "class",
        "accepted",
        "answered",
        "shed",
        "shed: queue",
        "shed: buffer",
        "queued",
        "running",
        "pending",
    ]);
    for class in classes {
        let counts = [
            class.accepted,
            class.answered,
            class.shed,
            class.shed_queue_full,
            class.shed_no_buffer,
            class.queued,
            class.running,
            class.pending,
        ];
        table.push(counted(&class.class, &counts));
    }
    table
}

/// How they ran.
fn runs(classes: &[ServerClassStatus]) -> Table {
    let mut table = Table::new([
        "class",
        "mean",
        "wait p50",
        "p99",
        "p99.9",
        "service p50",
        "p99",
        "p99.9",
        "asked",
        "preempted",
        "renewed",
        "overruns",
        "rescued",
    ]);
    for class in classes {
        let mean = class.mean_us.map_or("–".into(), time_us);
        let mut cells = vec![class.class.clone(), mean];
        cells.extend(quantiles(&class.wait));
        cells.extend(quantiles(&class.service));
        let counts = [
            class.asked,
            class.preempted,
            class.renewed,
            class.overruns,
            class.rescued,
        ];
        cells.extend(counts.iter().map(u64::to_string));
        table.push(cells);
    }
    table
}

/// Requests that could not yield on demand, by class and kind of section.
fn held(classes: &[ServerClassStatus]) -> String {
    let mut lines = String::new();
    for class in classes {
        for (section, counts) in class.held.iter().filter(|(_, counts)| counts.count > 0) {
            lines += &format!(
                "\nasked to yield inside a section ({section}): {} of class {}, for {} on average; {} yielded at its end",
                counts.count,
                class.class,
                duration::format(counts.ns / counts.count),
                counts.yields,
            );
        }
    }
    apart(lines)
}

/// Misuses by handlers of the calls that declare long parts, by class.
fn feedback(classes: &[ServerClassStatus]) -> String {
    let mut lines = String::new();
    for class in classes {
        let said = &class.feedback;
        if said.from_short + said.unended + said.unbegun > 0 {
            lines += &format!(
                "\nlong parts of class {}: {} requests began one although the class is short, {} never ended, {} ended without a beginning",
                class.class, said.from_short, said.unended, said.unbegun,
            );
        }
    }
    apart(lines)
}

/// An empty line before lines, if there are any.
fn apart(lines: String) -> String {
    if lines.is_empty() {
        return lines;
    }
    format!("\n{lines}")
}

fn plan(status: &LiveServerStatus) -> String {
    let Some(groups) = &status.reservation else {
        return String::new();
    };
    let numbers = |workers: &[usize]| {
        let workers: Vec<_> = workers.iter().map(usize::to_string).collect();
        if workers.is_empty() {
            "none".to_owned()
        } else {
            workers.join(" ")
        }
    };
    let mut text = format!("\n\nplan, revised {} times:", status.plan_revisions);
    if groups.is_empty() {
        text += " nothing is reserved yet";
    }
    for group in groups {
        text += &format!(
            "\n  {}: workers {}, may also use {}",
            group.classes.join(" "),
            numbers(&group.reserved),
            numbers(&group.stealable)
        );
    }
    text
}

/// The lock yields of all kinds of sections.
fn yields(held: &HeldStatus) -> u64 {
    held.values().map(|counts| counts.yields).sum()
}

/// Formats a time in s.
fn time_s(seconds: f64) -> String {
    match seconds as u64 {
        0 => format!("{seconds:.1}s"),
        whole => duration::format(whole * 1_000_000_000),
    }
}
