//! The view of `headway host top`: a status, and the rates of its counts.

use super::show::{array, number, text, word};
use crate::commands::terminal::StatusView;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;
use serde_json::Value;

const COLOURS: [Color; 6] = [
    Color::Blue,
    Color::Yellow,
    Color::Green,
    Color::Magenta,
    Color::Cyan,
    Color::Red,
];

/// The last two statuses.
#[derive(Default)]
pub(super) struct HostStatusView {
    status: Value,
    grants_per_s: f64,
    revocations_per_s: f64,
}

impl StatusView for HostStatusView {
    fn look(&mut self, status: Value) {
        let elapsed_s = number(&status["uptime_s"]) - number(&self.status["uptime_s"]);
        if !self.status.is_null() && elapsed_s > 0.0 {
            let rate = |kind: &str| {
                let more = number(&status[kind]["count"]) - number(&self.status[kind]["count"]);
                more.max(0.0) / elapsed_s
            };
            self.grants_per_s = rate("grant");
            self.revocations_per_s = rate("revoke");
        }
        self.status = status;
    }

    fn draw(&self, frame: &mut Frame<'_>) {
        let cores = array(&self.status["cores"]).len() as u16;
        let [of_cores, rates, about, keys] = Layout::vertical([
            Constraint::Length(cores),
            Constraint::Length(2),
            Constraint::Min(3),
            Constraint::Length(1),
        ])
        .areas(frame.area());
        frame.render_widget(Paragraph::new(self.cores(of_cores.width)), of_cores);
        let moved = format!(
            "{:.0} grants and {:.0} orders to leave per second",
            self.grants_per_s, self.revocations_per_s
        );
        frame.render_widget(Line::from(moved), rates);
        frame.render_widget(Paragraph::new(text(&self.status)), about);
        frame.render_widget(Line::from("q ends").style(Modifier::DIM), keys);
    }
}

impl HostStatusView {
    /// A row for each core: its applications over the last changes, with the newest at the right.
    fn cores(&self, width: u16) -> Vec<Line<'static>> {
        const NAME: usize = 24;
        let columns = usize::from(width).saturating_sub(NAME).max(1);
        let changes = array(&self.status["changes"]);
        let span_ns = changes.iter().map(|change| number(&change["ago_ns"]));
        let span_ns = span_ns.fold(1.0, f64::max);
        let row = |core: &Value| {
            let own: Vec<_> = changes
                .iter()
                .filter(|one| one["core"] == core["core"])
                .collect();
            let mut spans = vec![Span::raw(format!(
                "{:<NAME$}",
                format!(
                    "core {} {}",
                    core["core"],
                    core["app"].as_str().unwrap_or("–")
                )
            ))];
            for column in 0..columns {
                let ago_ns = span_ns * (columns - column) as f64 / columns as f64;
                let before = own
                    .iter()
                    .rev()
                    .find(|one| number(&one["ago_ns"]) >= ago_ns);
                let app = before.and_then(|one| one["app"].as_str());
                spans.push(match app {
                    Some(app) => Span::styled("█", self.colour(app)),
                    None => Span::raw(" "),
                });
            }
            Line::from(spans)
        };
        array(&self.status["cores"]).iter().map(row).collect()
    }

    fn colour(&self, app: &str) -> Style {
        let apps = array(&self.status["apps"]).iter();
        let place = apps
            .map(|one| word(&one["name"]))
            .position(|name| name == app);
        Style::from(COLOURS[place.unwrap_or_default() % COLOURS.len()])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;
    use serde_json::json;

    fn status(uptime_s: f64, grants: u64) -> Value {
        json!({
            "uptime_s": uptime_s, "grant": { "count": grants },
            "cores": [{ "core": 0, "app": "kv" }, { "core": 1, "app": null }],
            "apps": [{ "name": "kv" }],
            "changes": [{ "ago_ns": 100, "core": 0, "app": "kv" }, { "ago_ns": 50, "core": 0, "app": null }],
        })
    }

    #[test]
    fn it_shows_who_had_which_core_and_the_rate_of_moves() {
        let mut view = HostStatusView::default();
        view.look(status(1.0, 100));
        view.look(status(3.0, 300));
        let mut terminal = Terminal::new(TestBackend::new(44, 12)).unwrap();
        terminal.draw(|frame| view.draw(frame)).unwrap();
        let buffer = terminal.backend().buffer().clone();
        let rows: Vec<String> = buffer
            .content()
            .chunks(44)
            .map(|row| row.iter().map(|cell| cell.symbol()).collect())
            .collect();
        assert_eq!(rows[0].trim_end(), "core 0 kv               ██████████");
        assert_eq!(rows[1].trim_end(), "core 1 –");
        assert!(rows[2].starts_with("100 grants"), "{rows:?}");
    }
}
