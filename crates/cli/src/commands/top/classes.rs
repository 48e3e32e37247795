//! The view of `headway top`: what each class does now.

use crate::commands::terminal::StatusView;
use headway_ops::status::POOL;
use headway_workload::duration;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout};
use ratatui::style::Modifier;
use ratatui::style::Stylize as _;
use ratatui::text::Line;
use ratatui::widgets::{Row, Table};
use serde_json::Value;

/// The last status, and what each class did since the one before.
#[derive(Default)]
pub(super) struct ClassesView {
    status: Value,
    classes: Vec<ClassRates>,
}

/// A class between two looks.
#[derive(Default, PartialEq, Debug)]
struct ClassRates {
    name: String,
    ended_per_s: f64,
    shed_per_s: f64,
    queued: f64,
    running: Option<f64>,
    preempted_per_s: f64,
    wait_p99_us: Option<f64>,
    service_us: Option<f64>,
    stalls: f64,
}

impl StatusView for ClassesView {
    fn look(&mut self, status: Value) {
        let elapsed_s = number(&status["uptime_s"]) - number(&self.status["uptime_s"]);
        let is_pool = status["kind"] == POOL;
        let before = array(&self.status["classes"]);
        let rates = |class: &Value| {
            let before = before.iter().find(|other| other["class"] == class["class"]);
            let per_s = |fields: &[&str]| {
                let sum = |class: &Value| {
                    fields
                        .iter()
                        .map(|&field| number(&class[field]))
                        .sum::<f64>()
                };
                match before {
                    Some(before) if elapsed_s > 0.0 => {
                        (sum(class) - sum(before)).max(0.0) / elapsed_s
                    }
                    _ => 0.0,
                }
            };
            let (ended, shed, queued, stalls) = if is_pool {
                (
                    "done",
                    &["shed_for_room", "shed_too_late", "refused"][..],
                    "queued",
                    "stalls",
                )
            } else {
                ("answered", &["shed"][..], "queued", "overruns")
            };
            ClassRates {
                name: class["class"].as_str().unwrap_or_default().to_owned(),
                ended_per_s: per_s(&[ended]),
                shed_per_s: per_s(shed),
                queued: number(&class[queued]),
                running: class["running"].as_f64(),
                preempted_per_s: per_s(&["preempted"]),
                wait_p99_us: class["wait"]["p99_us"].as_f64(),
                service_us: class["mean_us"].as_f64(),
                stalls: number(&class[stalls]),
            }
        };
        self.classes = array(&status["classes"]).iter().map(rates).collect();
        self.status = status;
    }

    fn draw(&self, frame: &mut Frame<'_>) {
        let [about, classes, keys] = Layout::vertical([
            Constraint::Length(2),
            Constraint::Min(3),
            Constraint::Length(1),
        ])
        .areas(frame.area());
        frame.render_widget(Line::from(self.about()), about);
        let head = [
            "class",
            "ended/s",
            "shed/s",
            "queued",
            "running",
            "preempted/s",
            "wait p99",
            "service",
            "stalls",
        ];
        let widths = [Constraint::Min(10)]
            .into_iter()
            .chain([Constraint::Length(11); 8]);
        let rows = self.classes.iter().map(ClassRates::row);
        let table = Table::new(rows, widths).header(Row::new(head).bold());
        frame.render_widget(table, classes);
        frame.render_widget(Line::from("q ends").style(Modifier::DIM), keys);
    }
}

impl ClassesView {
    fn about(&self) -> String {
        let word = |field: &str| self.status[field].as_str().unwrap_or_default();
        let name = match word("name") {
            "" => word("listen"),
            name => name,
        };
        format!(
            "{} {name}, process {}, policy {}",
            word("kind"),
            self.status["pid"],
            word("spec")
        )
    }
}

impl ClassRates {
    fn row(&self) -> Row<'static> {
        let whole = |value: f64| format!("{value:.0}");
        let time =
            |us: Option<f64>| us.map_or("–".into(), |us| duration::format((us * 1e3) as u64));
        Row::new([
            self.name.clone(),
            whole(self.ended_per_s),
            whole(self.shed_per_s),
            whole(self.queued),
            self.running.map_or("–".into(), whole),
            whole(self.preempted_per_s),
            time(self.wait_p99_us),
            time(self.service_us),
            whole(self.stalls),
        ])
    }
}

fn array(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;
    use serde_json::json;

    fn drawn(view: &ClassesView) -> Vec<String> {
        let mut terminal = Terminal::new(TestBackend::new(110, 8)).unwrap();
        terminal.draw(|frame| view.draw(frame)).unwrap();
        let buffer = terminal.backend().buffer().clone();
        let rows = buffer.content().chunks(110);
        rows.map(|row| row.iter().map(|cell| cell.symbol()).collect())
            .collect()
    }

    fn words(line: &str) -> Vec<&str> {
        line.split_whitespace().collect()
    }

    #[test]
    fn a_pool_is_shown_by_what_it_did_since_the_last_look() {
        let status = |uptime_s: f64, done: u64, refused: u64| {
            json!({
                "kind": "pool", "name": "shop", "pid": 7, "spec": "srpt", "uptime_s": uptime_s,
                "classes": [{
                    "class": "point", "done": done, "shed_for_room": 0, "shed_too_late": 2, "refused": refused, "queued": 3, "running": 1,
                    "preempted": 0, "wait": { "p99_us": 20.0 }, "mean_us": 1.5, "stalls": 4,
                }],
            })
        };
        let mut view = ClassesView::default();
        view.look(status(1.0, 100, 0));
        view.look(status(3.0, 300, 10));
        let rows = drawn(&view);
        assert_eq!(rows[0].trim_end(), "pool shop, process 7, policy srpt");
        assert_eq!(
            words(&rows[3]),
            ["point", "100", "5", "3", "1", "0", "20us", "1.5us", "4"]
        );
    }

    #[test]
    fn a_server_is_shown_by_the_same_columns() {
        let status = |uptime_s: f64, answered: u64| {
            json!({
                "kind": "server", "listen": "udp://127.0.0.1:7000", "pid": 7, "spec": "darc", "uptime_s": uptime_s,
                "classes": [{ "class": "get", "answered": answered, "shed": 0, "queued": 2, "running": 1, "wait": { "p99_us": 5.0 }, "preempted": 0, "mean_us": null, "overruns": 0 }],
            })
        };
        let mut view = ClassesView::default();
        view.look(status(1.0, 0));
        view.look(status(2.0, 50));
        let rows = drawn(&view);
        assert!(
            rows[0].starts_with("server udp://127.0.0.1:7000"),
            "{rows:?}"
        );
        assert_eq!(
            words(&rows[3]),
            ["get", "50", "0", "2", "1", "0", "5us", "–", "0"]
        );
    }
}
