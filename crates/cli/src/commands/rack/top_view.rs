//! The view of `headway rack top`: a status, and the rates of its counts.

use crate::commands::terminal::StatusView;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Cell, Paragraph, Row, Sparkline, Table};
use serde_json::Value;
use std::collections::VecDeque;

/// Number of rates in the curve: the columns of a wide terminal.
const KEPT: usize = 300;
/// Width of a bar, characters.
const BAR: usize = 24;
/// The counts whose rates the view shows; the curve shows the first.
const RATES: [&str; 5] = ["requests", "answered", "cloned", "bounced", "shed"];
const COLOURS: [Color; 6] = [
    Color::Blue,
    Color::Yellow,
    Color::Green,
    Color::Magenta,
    Color::Cyan,
    Color::Red,
];

/// The last status, and the earlier rates of requests.
#[derive(Default)]
pub(super) struct TopView {
    status: Value,
    /// Rates since the previous status, per second, in the order of [`RATES`].
    rates: [f64; RATES.len()],
    requests_rps: VecDeque<u64>,
}

impl StatusView for TopView {
    /// Adds a status of the switch.
    fn look(&mut self, status: Value) {
        let elapsed_s = number(&status["uptime_s"]) - number(&self.status["uptime_s"]);
        // A restarted switch counts from 0.
        if !self.status.is_null() && elapsed_s > 0.0 {
            for (rate, name) in self.rates.iter_mut().zip(RATES) {
                let counted =
                    number(&status["counts"][name]) - number(&self.status["counts"][name]);
                *rate = counted.max(0.0) / elapsed_s;
            }
            if self.requests_rps.len() == KEPT {
                self.requests_rps.pop_front();
            }
            self.requests_rps.push_back(self.rates[0] as u64);
        }
        self.status = status;
    }

    fn draw(&self, frame: &mut Frame<'_>) {
        let lines = |field: &str| array(&self.status[field]).len() as u16;
        let groups = match lines("groups") {
            0 => 0,
            groups => groups + 2,
        };
        let [about, of_groups, of_servers, of_rates, curve, keys] = Layout::vertical([
            Constraint::Length(5),
            Constraint::Length(groups),
            Constraint::Length(lines("servers") + 2),
            Constraint::Length(1),
            Constraint::Min(3),
            Constraint::Length(1),
        ])
        .areas(frame.area());
        frame.render_widget(self.about(), about);
        self.draw_groups(frame, of_groups);
        self.draw_servers(frame, of_servers);
        frame.render_widget(self.rates(), of_rates);
        self.draw_curve(frame, curve);
        frame.render_widget(Line::from("q ends").style(Modifier::DIM), keys);
    }
}

impl TopView {
    fn about(&self) -> Paragraph<'_> {
        let status = &self.status;
        let mut state = format!(
            "{} under way · up for {:.0} s",
            status["under_way"],
            number(&status["uptime_s"])
        );
        if let Some(load) = status["load"].as_f64() {
            state += &format!(
                " · load {load:.2} · {} layouts · groups differ from their demand by {:.1} cores",
                status["layouts"],
                number(&status["discrepancy_cores"])
            );
        }
        let listens = word(&status["listen"]);
        let mut lines = vec![
            Line::from(format!("headway rack {listens}")).style(Modifier::BOLD),
            Line::from(word(&status["spec"])),
            Line::from(state),
        ];
        let bounds = array(&status["slo"]);
        let missed = bounds.iter().filter(|bound| bound["met"] == false);
        let missed: Vec<_> = missed.map(|bound| word(&bound["bound"])).collect();
        if !missed.is_empty() {
            let missed = format!("SLO missed: {}", missed.join(", "));
            lines.push(Line::from(missed).style(Color::Red));
        }
        Paragraph::new(lines)
    }

    fn draw_groups(&self, frame: &mut Frame<'_>, area: Rect) {
        let groups = array(&self.status["groups"]);
        let needs = |group: &Value| number(&group["demand_cores"]);
        let most = groups.iter().fold(1.0, |most: f64, group: &Value| {
            most.max(number(&group["cores"])).max(needs(group))
        });
        let rows = groups.iter().enumerate().map(|(index, group)| {
            let types = array(&group["types"]).iter().map(word);
            Row::new([
                Cell::from(format!("group {index}")).style(colour(index)),
                Cell::from(format!("{:>5}", number(&group["cores"]))),
                Cell::from(format!("{:>6.1}", needs(group))),
                Cell::from(bar(number(&group["cores"]), needs(group), most)).style(colour(index)),
                Cell::from(types.collect::<Vec<_>>().join(", ")),
            ])
        });
        let table = Table::new(
            rows,
            [
                Constraint::Length(9),
                Constraint::Length(5),
                Constraint::Length(6),
                Constraint::Length(BAR as u16),
                Constraint::Fill(1),
            ],
        );
        let header = ["", "  has", " needs", "█ has  ░ needs more", "types"];
        frame.render_widget(table.header(heading(header)), area);
    }

    fn draw_servers(&self, frame: &mut Frame<'_>, area: Rect) {
        let rows = array(&self.status["servers"]).iter().map(|server| {
            let groups = array(&server["group_cores"]).iter().enumerate();
            let cores = groups.flat_map(|(group, cores)| {
                let cores = number(cores) as usize;
                (cores > 0).then(|| Span::styled("█".repeat(cores.min(BAR)), colour(group)))
            });
            let (state, style) = state(server);
            Row::new([
                Cell::from(word(&server["server"])),
                Cell::from(format!("{:>5}", number(&server["cores"]))),
                Cell::from(format!("{:>10}", number(&server["unanswered"]))),
                Cell::from(Line::from_iter(cores)),
                Cell::from(state).style(style),
            ])
        });
        let table = Table::new(
            rows,
            [
                Constraint::Length(22),
                Constraint::Length(5),
                Constraint::Length(10),
                Constraint::Length(BAR as u16),
                Constraint::Fill(1),
            ],
        );
        let header = ["server", "cores", "unanswered", "of groups", "state"];
        frame.render_widget(table.header(heading(header)), area);
    }

    fn rates(&self) -> Line<'_> {
        let rates = RATES.iter().zip(self.rates);
        let words = rates.map(|(name, rate)| format!("{name} {rate:.0}/s"));
        Line::from(words.collect::<Vec<_>>().join(" · "))
    }

    /// The newest rate is at the right edge.
    fn draw_curve(&self, frame: &mut Frame<'_>, area: Rect) {
        let columns = usize::from(area.width);
        let shown = self.requests_rps.len().min(columns);
        let newest = self
            .requests_rps
            .iter()
            .skip(self.requests_rps.len() - shown);
        let blank = std::iter::repeat_n(0, columns - shown);
        let curve = Sparkline::default().data(blank.chain(newest.copied()));
        frame.render_widget(curve.style(COLOURS[0]), area);
    }
}

/// A bar of the allocated cores, followed by the missing ones.
fn bar(has: f64, needs: f64, most: f64) -> String {
    let cells = |cores: f64| (cores / most * BAR as f64).round() as usize;
    let missing = cells(needs).saturating_sub(cells(has));
    "█".repeat(cells(has)) + &"░".repeat(missing)
}

fn state(server: &Value) -> (String, Style) {
    let counted = &server["counted_cores"];
    if server["silent"].as_bool().unwrap_or_default() {
        ("silent".into(), Style::from(Color::Red))
    } else if counted == &server["cores"] {
        ("answers".into(), Style::default())
    } else {
        (
            format!("comes back, with {counted}"),
            Style::from(Color::Yellow),
        )
    }
}

fn colour(group: usize) -> Style {
    Style::from(COLOURS[group % COLOURS.len()])
}

fn heading(words: [&'static str; 5]) -> Row<'static> {
    Row::new(words).style(Modifier::UNDERLINED)
}

fn array(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn word(value: &Value) -> String {
    value.as_str().unwrap_or("–").to_owned()
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

    fn status(uptime_s: f64, requests: u64) -> Value {
        json!({
            "listen": "udp://127.0.0.1:7100", "spec": "pallas", "uptime_s": uptime_s, "under_way": 3, "layouts": 2,
            "load": 0.5, "discrepancy_cores": 1.25,
            "slo": [{ "bound": "overall.latency.p99<=1ms", "met": false }, { "bound": "overall.latency.max<=1s", "met": true }],
            "groups": [
                { "group": 0, "types": ["get"], "cores": 2, "demand_cores": 4.0 },
                { "group": 1, "types": ["scan", "put"], "cores": 6, "demand_cores": 4.0 },
            ],
            "servers": [
                { "server": "127.0.0.1:7001", "cores": 4, "counted_cores": 4, "unanswered": 7, "group_cores": [2, 2] },
                { "server": "127.0.0.1:7002", "cores": 4, "counted_cores": 0, "silent": true, "unanswered": 0, "group_cores": [0, 4] },
            ],
            "counts": { "requests": requests, "bounced": requests / 10 },
        })
    }

    fn drawn(view: &TopView) -> String {
        let mut terminal = Terminal::new(TestBackend::new(100, 20)).unwrap();
        terminal.draw(|frame| view.draw(frame)).unwrap();
        let buffer = terminal.backend().buffer().clone();
        let rows = buffer.content().chunks(100);
        let rows = rows.map(|row| row.iter().map(|cell| cell.symbol()).collect::<String>());
        rows.map(|row| row.trim_end().to_owned() + "\n").collect()
    }

    #[test]
    fn it_shows_groups_servers_and_rates() {
        let mut view = TopView::default();
        view.look(status(10.0, 1_000));
        view.look(status(12.0, 3_000));
        let text = drawn(&view);
        for part in [
            "headway rack udp://127.0.0.1:7100",
            "3 under way · up for 12 s · load 0.50 · 2 layouts · groups differ from their demand by 1.2 cores",
            "SLO missed: overall.latency.p99<=1ms\n",
            // 2 of 6 cores in 24 cells, followed by 2 missing ones.
            "group 0       2    4.0 ████████░░░░░░░░         get",
            "group 1       6    4.0 ████████████████████████ scan, put",
            "127.0.0.1:7001             4          7 ████                     answers",
            "127.0.0.1:7002             4          0 ████                     silent",
            "requests 1000/s · answered 0/s · cloned 0/s · bounced 100/s · shed 0/s",
        ] {
            assert!(text.contains(part), "{part}\nis not in\n{text}");
        }
    }

    /// A policy without a control plane, and a terminal that is too small.
    #[test]
    fn what_is_missing_is_left_out() {
        let mut view = TopView::default();
        view.look(json!({ "listen": "udp://a", "groups": null, "servers": [], "counts": {} }));
        assert!(!drawn(&view).contains("needs"));
        let mut terminal = Terminal::new(TestBackend::new(5, 2)).unwrap();
        terminal.draw(|frame| view.draw(frame)).unwrap();
    }
}
