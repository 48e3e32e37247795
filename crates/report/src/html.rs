//! Reports as one HTML file that needs no network, no server and no library.
//!
//! Charts are inline SVG drawn here, with a page's worth of script for hovering and hiding series.
//! A plotting library such as plotly was the alternative: embedded for offline use it adds some
//! 4 MB to every report and draws nothing until its script has run. These pages are some tens of
//! kilobytes, show everything without script, print, follow the reader's light or dark scheme, and
//! can be compared by `diff`, since equal results give equal bytes.

mod axis;
mod chart;
mod schedule;
mod svg;

use std::fmt::Write as _;
use std::path::Path;
use std::{fs, io};

pub use chart::{Chart, Series};

use crate::schedule::Schedule;
use crate::table::Table;

const STYLE: &str = include_str!("html/style.css");
const SCRIPT: &str = include_str!("html/script.js");

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

    /// Adds a table under a caption, which may be empty.
    #[must_use]
    pub fn table(self, caption: &str, table: &Table) -> Self {
        self.push(&format!(
            "<div class=\"scroll\">{}</div>\n",
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
    /// Whatever the file system answers, with the path.
    pub fn write(&self, path: impl AsRef<Path>) -> io::Result<()> {
        let path = path.as_ref();
        fs::write(path, self.render()).map_err(|error| {
            let message = format!("cannot write report {}: {error}", path.display());
            io::Error::new(error.kind(), message)
        })
    }
}

fn table_html(caption: &str, table: &Table) -> String {
    let mut html = String::from("<table>\n");
    if !caption.is_empty() {
        let _ = writeln!(html, "<caption>{}</caption>", escape(caption));
    }
    let class = |column| {
        if table.is_numeric(column) {
            " class=\"number\""
        } else {
            ""
        }
    };
    html.push_str("<thead><tr>");
    for (column, name) in table.columns().iter().enumerate() {
        let _ = write!(
            html,
            "<th scope=\"col\"{}>{}</th>",
            class(column),
            escape(name)
        );
    }
    html.push_str("</tr></thead>\n<tbody>\n");
    for row in table.rows() {
        html.push_str("<tr>");
        for (column, cell) in row.iter().enumerate() {
            let _ = write!(html, "<td{}>{}</td>", class(column), escape(cell));
        }
        html.push_str("</tr>\n");
    }
    html.push_str("</tbody>\n</table>\n");
    html
}

/// `text` with the characters that HTML gives a meaning replaced, for elements and attributes.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests;
