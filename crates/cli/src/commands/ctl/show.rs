//! A server's status as text.

use headway_report::table::Table;
use headway_workload::duration;
use serde_json::Value;

/// Prints a paragraph about the server, tables of its workers and classes, and its remaining counters.
pub(super) fn text(status: &Value) -> String {
    let mut text = heading(status);
    text += &format!("\n\n{}", workers(status));
    if let Some(queues) = status["wait_queues"]
        .as_array()
        .filter(|all| !all.is_empty())
    {
        let queues: Vec<_> = queues
            .iter()
            .map(|queue: &Value| {
                let congested = queue["congested"].as_bool().unwrap_or_default();
                format!(
                    "{}{}",
                    queue["waiting"],
                    if congested { " (congested)" } else { "" }
                )
            })
            .collect();
        text += &format!("\n\nwaiting in wait queues: {}", queues.join(", "));
    }
    text += &format!("\n\n{}", classes(status));
    text += &held(status);
    text += &feedback(status);
    text + &plan(status)
}

fn heading(status: &Value) -> String {
    let spec = word(&status["spec"]);
    let listens = status["listen"].as_str().unwrap_or("no address");
    let changes = match status["changes"].as_u64() {
        None | Some(0) => "since the start".to_owned(),
        Some(changes) => format!(
            "since {} ago (change {changes})",
            time_s(&status["in_force_s"])
        ),
    };
    let changeable = status["changeable"]
        .as_array()
        .map_or(&[][..], Vec::as_slice);
    let changeable = match changeable {
        [] => "none of them may change while it serves".to_owned(),
        keys => {
            let keys: Vec<_> = keys.iter().map(word).collect();
            format!("may change while it serves: {}", keys.join(", "))
        }
    };
    let layout = match status["layout"].as_str() {
        Some("inline") => "workers take turns as the dispatcher (inline)",
        Some("dedicated") => "each dispatcher has a thread of its own (dedicated)",
        Some("shared") => "workers take turns at one receive queue (shared)",
        _ => "the network steers requests to the workers (steered)",
    };
    format!(
        "{listens}, process {}, up for {}\npolicy {spec}, {changes}; {changeable}\n{layout}; received {}, answered {}, shed {}, dropped by the kernel {}",
        status["pid"],
        time_s(&status["uptime_s"]),
        status["received"],
        status["answered"],
        status["shed"],
        status["kernel_drops"],
    )
}

fn workers(status: &Value) -> Table {
    let columns = [
        "worker",
        "answered",
        "own",
        "stolen",
        "resumed",
        "preempted",
        "renewed",
        "lock yields",
        "queued",
    ];
    let mut table = Table::new(columns);
    let workers = status["workers"].as_array().into_iter().flatten();
    let dispatchers = status["dispatchers"].as_array().into_iter().flatten();
    for worker in workers.chain(dispatchers) {
        let mut cells: Vec<String> = columns[..7]
            .iter()
            .map(|field| word(&worker[field]))
            .collect();
        cells.push(sum(&worker["held"], "yields").to_string());
        cells.push(word(&worker["queued"]));
        table.push(cells);
    }
    table
}

fn classes(status: &Value) -> Table {
    let columns = [
        "class",
        "accepted",
        "answered",
        "shed",
        "pending",
        "asked",
        "preempted",
        "renewed",
        "overruns",
        "rescued",
    ];
    let mut table = Table::new(columns.into_iter().chain(["mean"]));
    for class in status["classes"].as_array().into_iter().flatten() {
        let mut cells: Vec<String> = columns.iter().map(|field| word(&class[field])).collect();
        let mean = class["mean_us"].as_f64().map(|us| (us * 1e3) as u64);
        cells.push(mean.map_or("–".into(), duration::format));
        table.push(cells);
    }
    table
}

/// Requests that could not yield on demand, by class and kind of section.
fn held(status: &Value) -> String {
    let mut lines = String::new();
    for class in status["classes"].as_array().into_iter().flatten() {
        for (section, counts) in class["held"].as_object().into_iter().flatten() {
            let [count, ns, yields] =
                ["count", "ns", "yields"].map(|field| counts[field].as_u64().unwrap_or(0));
            if count == 0 {
                continue;
            }
            lines += &format!(
                "\nasked to yield inside a section ({section}): {count} of class {}, for {} on average; {yields} yielded at its end",
                word(&class["class"]),
                duration::format(ns / count),
            );
        }
    }
    if lines.is_empty() {
        return lines;
    }
    format!("\n{lines}")
}

/// Misuses by handlers of the calls that declare long parts, by class.
fn feedback(status: &Value) -> String {
    let mut lines = String::new();
    for class in status["classes"].as_array().into_iter().flatten() {
        let [from_short, unended, unbegun] = ["from_short", "unended", "unbegun"]
            .map(|field| class["feedback"][field].as_u64().unwrap_or(0));
        if from_short + unended + unbegun > 0 {
            lines += &format!(
                "\nlong parts of class {}: {from_short} requests began one although the class is short, {unended} never ended, {unbegun} ended without a beginning",
                word(&class["class"]),
            );
        }
    }
    if lines.is_empty() {
        return lines;
    }
    format!("\n{lines}")
}

fn plan(status: &Value) -> String {
    let Some(groups) = status["reservation"].as_array() else {
        return String::new();
    };
    let list = |value: &Value| {
        let items: Vec<_> = value.as_array().into_iter().flatten().map(word).collect();
        if items.is_empty() {
            "none".to_owned()
        } else {
            items.join(" ")
        }
    };
    let mut text = format!("\n\nplan, revised {} times:", status["plan_revisions"]);
    if groups.is_empty() {
        text += " nothing is reserved yet";
    }
    for group in groups {
        text += &format!(
            "\n  {}: workers {}, may also use {}",
            list(&group["classes"]),
            list(&group["reserved"]),
            list(&group["stealable"])
        );
    }
    text
}

/// The sum over all kinds of sections.
fn sum(held: &Value, field: &str) -> u64 {
    let kinds = held.as_object().into_iter().flatten();
    kinds.filter_map(|(_, counts)| counts[field].as_u64()).sum()
}

/// Formats a time in s.
fn time_s(seconds: &Value) -> String {
    let seconds = seconds.as_f64().unwrap_or_default();
    match seconds as u64 {
        0 => format!("{:.1}s", seconds),
        whole => duration::format(whole * 1_000_000_000),
    }
}

fn word(value: &Value) -> String {
    match value {
        Value::Null => "–".into(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
