//! A schedule: which request ran where and when, in a short window of a run.
//!
//! [`Schedule::write_trace`] writes it as JSON trace events (the Trace Event Format that Perfetto
//! and `chrome://tracing` read): a track per worker with what it ran, and the waits of every request
//! as asynchronous spans. [`Page::schedule`](crate::html::Page::schedule) draws it.

use std::io::{self, Write};
use std::ops::Range;

use serde_json::{Value, json};

/// The thread that runs a slice; workers and dispatchers are each counted from 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Runner {
    /// A worker.
    Worker(usize),
    /// A dispatcher that also runs requests.
    Dispatcher(usize),
}

/// A slice: service that a request received without a break.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Slice {
    /// The request's index, counted from 0 in the order of arrival.
    pub request: u64,
    /// Its class, an index into [`Schedule::classes`].
    pub class: usize,
    /// Its whole service time, ns.
    pub service_ns: u64,
    /// The thread that ran it.
    pub runner: Runner,
    /// When its wait began: at its arrival or at its last interruption.
    pub waited_from_ns: u64,
    /// When it began to run.
    pub from_ns: u64,
    /// When it stopped.
    pub to_ns: u64,
    /// Whether it had run before.
    pub resumed: bool,
    /// Whether the request was done at the end of the slice; otherwise it was interrupted.
    pub done: bool,
}

/// The slices of a window.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Schedule {
    /// Names of the classes.
    pub classes: Vec<String>,
    /// How many workers there are.
    pub workers: usize,
    /// The window, ns.
    pub window: Range<u64>,
    /// The slices that ran in the window, or whose request waited in it; in the order of their ends.
    pub slices: Vec<Slice>,
}

/// Process ids of the two groups of tracks.
const RUNNING: u32 = 1;
const WAITING: u32 = 2;

impl Schedule {
    /// Writes it as JSON trace events; times are µs from the start of the run.
    ///
    /// # Errors
    /// The writer's error.
    pub fn write_trace(&self, mut writer: impl Write) -> io::Result<()> {
        let mut events = self.names();
        events.extend(self.running());
        events.extend(self.waits());
        writer.write_all(b"{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n")?;
        for (index, event) in events.iter().enumerate() {
            writer.write_all(if index == 0 { b"" } else { b",\n" })?;
            serde_json::to_writer(&mut writer, event)?;
        }
        writer.write_all(b"\n]}\n")?;
        writer.flush()
    }

    /// The track of a thread; dispatchers' tracks follow those of the workers.
    pub(crate) fn lane(&self, runner: Runner) -> usize {
        match runner {
            Runner::Worker(worker) => worker,
            Runner::Dispatcher(dispatcher) => self.workers + dispatcher,
        }
    }

    /// The tracks' names.
    pub(crate) fn lanes(&self) -> Vec<String> {
        let mut lanes: Vec<String> = (0..self.workers).map(|w| format!("worker {w}")).collect();
        let dispatchers = self.slices.iter().map(|slice| match slice.runner {
            Runner::Worker(_) => 0,
            Runner::Dispatcher(dispatcher) => dispatcher + 1,
        });
        match dispatchers.max().unwrap_or(0) {
            1 => lanes.push("dispatcher".into()),
            several => lanes.extend((0..several).map(|d| format!("dispatcher {d}"))),
        }
        lanes
    }

    /// The slices that run in the window.
    pub(crate) fn shown(&self) -> impl Iterator<Item = &Slice> {
        let Range { start, end } = self.window;
        let slices = self.slices.iter();
        slices.filter(move |slice| slice.from_ns < end && slice.to_ns > start)
    }

    fn names(&self) -> Vec<Value> {
        let process = |pid: u32, name: &str| json!({"ph": "M", "name": "process_name", "pid": pid, "args": {"name": name}});
        let mut events = vec![process(RUNNING, "running"), process(WAITING, "waiting")];
        for (tid, name) in self.lanes().iter().enumerate() {
            let name = json!({"name": name});
            events.push(
                json!({"ph": "M", "name": "thread_name", "pid": RUNNING, "tid": tid, "args": name}),
            );
        }
        events
    }

    fn running(&self) -> impl Iterator<Item = Value> {
        self.shown().map(|slice| {
            json!({
                "ph": "X", "cat": "run", "pid": RUNNING, "tid": self.lane(slice.runner),
                "name": self.classes[slice.class],
                "ts": us(slice.from_ns), "dur": us(slice.to_ns - slice.from_ns),
                "args": {
                    "request": slice.request,
                    "service_us": us(slice.service_ns),
                    "resumed": slice.resumed,
                    "end": if slice.done { "done" } else { "interrupted" },
                },
            })
        })
    }

    /// A begin event and an end event for every wait, with its reason.
    fn waits(&self) -> Vec<Value> {
        let idle = IdleSpans::of(self);
        let mut events = Vec::new();
        for slice in &self.slices {
            if slice.from_ns == slice.waited_from_ns {
                continue;
            }
            let event = |phase: &str, at_ns: u64, args: Value| {
                json!({
                    "ph": phase, "cat": "wait", "pid": WAITING, "id": slice.request,
                    "name": self.classes[slice.class], "ts": us(at_ns), "args": args,
                })
            };
            let why = idle.why(slice, &self.window);
            let after = if slice.resumed {
                "interruption"
            } else {
                "arrival"
            };
            let args = json!({"request": slice.request, "after": after, "why": why});
            events.push(event("b", slice.waited_from_ns, args));
            events.push(event("e", slice.from_ns, json!({})));
        }
        events
    }
}

/// Nanoseconds as µs; exact in the three decimals that are written.
fn us(ns: u64) -> f64 {
    ns as f64 / 1e3
}

/// The spans during which some worker was idle.
struct IdleSpans {
    /// Disjoint, ascending.
    spans: Vec<Range<u64>>,
}

impl IdleSpans {
    fn of(schedule: &Schedule) -> Self {
        let of_workers = schedule
            .slices
            .iter()
            .filter(|slice| matches!(slice.runner, Runner::Worker(_)));
        let mut changes: Vec<(u64, i64)> = of_workers
            .flat_map(|slice| [(slice.from_ns, 1), (slice.to_ns, -1)])
            .collect();
        changes.sort_unstable();
        let all = schedule.workers as i64;
        let (mut spans, mut busy, mut since) = (Vec::new(), 0, 0);
        for (at_ns, change) in changes {
            let was_idle = busy < all;
            busy += change;
            match (was_idle, busy < all) {
                (true, false) if at_ns > since => spans.push(since..at_ns),
                (false, true) => since = at_ns,
                _ => {}
            }
        }
        if busy < all {
            spans.push(since..u64::MAX);
        }
        Self { spans }
    }

    /// The reason why a request waited, as far as the window shows it.
    fn why(&self, slice: &Slice, window: &Range<u64>) -> String {
        let from_ns = slice.waited_from_ns.max(window.start);
        let to_ns = slice.from_ns.min(window.end);
        if to_ns <= from_ns {
            return "outside the window".into();
        }
        let seen_ns = to_ns - from_ns;
        let first = self.spans.partition_point(|span| span.end <= from_ns);
        let overlapping = self.spans[first..]
            .iter()
            .take_while(|span| span.start < to_ns);
        let idle_ns: u64 = overlapping
            .map(|span| span.end.min(to_ns) - span.start.max(from_ns))
            .sum();
        match idle_ns {
            0 => "every worker was running something".into(),
            idle if idle == seen_ns => {
                "a worker was idle, but not for it, or being handed it".into()
            }
            idle => format!(
                "every worker was running something; for {} µs one was idle, but not for it, or being handed it",
                us(idle)
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slice(request: u64, worker: usize, waited_from_ns: u64, ran: Range<u64>) -> Slice {
        Slice {
            request,
            class: 0,
            service_ns: ran.end - ran.start,
            runner: Runner::Worker(worker),
            waited_from_ns,
            from_ns: ran.start,
            to_ns: ran.end,
            resumed: false,
            done: true,
        }
    }

    fn schedule(slices: Vec<Slice>) -> Schedule {
        Schedule {
            classes: vec!["GET \"x\"".into()],
            workers: 2,
            window: 0..10_000,
            slices,
        }
    }

    fn events(schedule: &Schedule) -> Vec<Value> {
        let mut text = Vec::new();
        schedule.write_trace(&mut text).unwrap();
        let trace: Value = serde_json::from_slice(&text).unwrap();
        trace["traceEvents"].as_array().unwrap().clone()
    }

    #[test]
    fn every_slice_is_on_its_workers_track_and_every_wait_is_a_span() {
        let schedule = schedule(vec![
            slice(0, 0, 0, 0..1_500),
            slice(1, 1, 100, 100..2_000),
            slice(2, 0, 200, 1_500..2_500),
        ]);
        let events = events(&schedule);
        let of =
            |phase: &str| -> Vec<&Value> { events.iter().filter(|e| e["ph"] == phase).collect() };
        let runs = of("X");
        assert_eq!(runs.len(), 3);
        assert_eq!(
            (&runs[2]["tid"], &runs[2]["ts"], &runs[2]["dur"]),
            (&json!(0), &json!(1.5), &json!(1.0))
        );
        assert_eq!(runs[0]["name"], "GET \"x\"");
        let (begins, ends) = (of("b"), of("e"));
        assert_eq!((begins.len(), ends.len()), (1, 1));
        assert_eq!(
            (&begins[0]["id"], &begins[0]["ts"], &ends[0]["ts"]),
            (&json!(2), &json!(0.2), &json!(1.5))
        );
        assert_eq!(
            begins[0]["args"]["why"],
            "every worker was running something"
        );
    }

    #[test]
    fn dispatchers_have_tracks_below_the_workers() {
        let ran_by = |runner| Slice {
            runner,
            ..slice(0, 0, 0, 0..1_000)
        };
        let lanes = |runner| {
            let schedule = schedule(vec![ran_by(runner)]);
            (schedule.lane(runner), schedule.lanes()[2..].join(", "))
        };
        assert_eq!(lanes(Runner::Worker(1)), (1, String::new()));
        assert_eq!(lanes(Runner::Dispatcher(0)), (2, "dispatcher".into()));
        let two = "dispatcher 0, dispatcher 1";
        assert_eq!(lanes(Runner::Dispatcher(1)), (3, two.into()));
    }

    #[test]
    fn a_wait_beside_an_idle_worker_says_so() {
        let schedule = schedule(vec![
            slice(0, 0, 0, 0..4_000),
            slice(1, 0, 1_000, 4_000..5_000),
        ]);
        let events = events(&schedule);
        let begin = events.iter().find(|event| event["ph"] == "b").unwrap();
        assert_eq!(
            begin["args"]["why"],
            "a worker was idle, but not for it, or being handed it"
        );
        // A worker is idle for half of the wait only.
        let half = self::schedule(vec![
            slice(0, 0, 0, 0..3_000),
            slice(2, 1, 2_000, 2_000..6_000),
            slice(1, 0, 1_000, 3_000..5_000),
        ]);
        let why = IdleSpans::of(&half).why(&half.slices[2], &half.window);
        assert!(why.contains("for 1 µs one was idle"), "{why}");
    }

    #[test]
    fn a_wait_before_the_window_is_outside_of_it() {
        let mut schedule = schedule(vec![
            slice(0, 0, 0, 0..3_000),
            slice(1, 0, 1_000, 3_000..6_000),
        ]);
        schedule.window = 4_000..10_000;
        let why = IdleSpans::of(&schedule).why(&schedule.slices[1], &schedule.window);
        assert_eq!(why, "outside the window");
    }
}
