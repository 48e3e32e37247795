//! A report, from top to bottom.

use std::path::Path;
use std::{fs, io};

use super::chart::Chart;
use super::schedule;
use super::text::{escape, table_html};
use crate::schedule::Schedule;
use crate::table::Table;

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("script.js");

/// A report, built from top to bottom.
///
/// # Examples
///
/// ```
/// use headway_report::Table;
/// use headway_report::html::{Chart, Page, Series};
///
/// let chart = Chart::new("Tail by load", "load", "p99.9 slowdown")
///     .log_y()
///     .series(Series::new("c-fcfs", vec![(0.5, 12.0), (0.9, 240.0)]))
///     .series(Series::new("darc", vec![(0.5, 1.8), (0.9, 4.2)]));
/// let page = Page::new("Extreme Bimodal, 16 workers")
///     .paragraph("Simulated, Poisson arrivals, seed 1.")
///     .chart(&chart)
///     .table("At load 0.9", &Table::new(["policy", "p99.9"]).row(["darc", "4.2"]));
/// assert!(page.render().starts_with("<!DOCTYPE html>"));
/// ```
#[derive(Clone, Debug)]
pub struct Page {
    title: String,
    body: String,
    charts: usize,
}

impl Page {
    /// An empty report headed by `title`.
    pub fn new(title: impl Into<String>) -> Self {
        Self {
            title: title.into(),
            body: String::new(),
            charts: 0,
        }
    }

    /// Starts a section.
    #[must_use]
    pub fn heading(self, text: &str) -> Self {
        self.push(&format!("<h2>{}</h2>\n", escape(text)))
    }

    /// Adds a paragraph of plain text.
    #[must_use]
    pub fn paragraph(self, text: &str) -> Self {
        self.push(&format!("<p>{}</p>\n", escape(text)))
    }

    /// Adds text in a fixed-width font, line breaks kept: a command to repeat the run, say.
    #[must_use]
    pub fn code(self, text: &str) -> Self {
        self.push(&format!("<pre><code>{}</code></pre>\n", escape(text)))
    }

    /// Adds a table under a caption, which may be empty. One that is too wide for the window scrolls, and a shadow at its edge says so.
    #[must_use]
    pub fn table(self, caption: &str, table: &Table) -> Self {
        self.push(&format!(
            "<div class=\"scroll\" tabindex=\"0\">{}</div>\n",
            table_html(caption, table)
        ))
    }

    /// Adds a chart, with its points as a table folded away below it.
    #[must_use]
    pub fn chart(mut self, chart: &Chart) -> Self {
        self.charts += 1;
        let figure = chart.render(self.charts);
        self.push(&figure)
    }

    /// Adds the drawing of a schedule.
    #[must_use]
    pub fn schedule(self, schedule: &Schedule) -> Self {
        self.push(&schedule::figure(schedule))
    }

    fn push(mut self, html: &str) -> Self {
        self.body.push_str(html);
        self
    }

    /// The whole file.
    pub fn render(&self) -> String {
        let title = escape(&self.title);
        format!(
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n\
             <title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n\
             <h1>{title}</h1>\n{}</main>\n<script>\n{SCRIPT}</script>\n</body>\n</html>\n",
            self.body
        )
    }

    /// Writes the whole file to `path`.
    ///
    /// # Errors
    ///
    /// The file system's error, with the path.
    pub fn write(&self, path: impl AsRef<Path>) -> io::Result<()> {
        let path = path.as_ref();
        fs::write(path, self.render()).map_err(|error| {
            let message = format!("cannot write report {}: {error}", path.display());
            io::Error::new(error.kind(), message)
        })
    }
}
