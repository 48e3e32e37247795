//! The report of a measured figure as text, Markdown and HTML, with the same content.

use std::fmt::Write as _;

use headway_report::Table;
use headway_report::html::{Chart, Page};
use serde::Serialize;

use super::experiment::MeasuredExperiment;
use crate::PaperFigure;
use crate::show::{list, rows};

/// The result of a figure that is measured on this machine.
pub trait MeasuredResult: Serialize {
    /// The report of the result.
    fn report(&self) -> FigureReport;

    /// How many rounds were complete, where the measurement was ended before its last one.
    fn cut_off(&self) -> Option<usize>;
}

/// The note of a measurement that was ended after so many rounds.
pub(crate) fn cut_off_note(complete_rounds: Option<usize>) -> Option<String> {
    let rounds = complete_rounds?;
    let rounds = format!("{rounds} round{}", if rounds == 1 { "" } else { "s" });
    Some(format!("Cut off by Ctrl-C: {rounds} complete."))
}

/// The report of a measured figure.
#[derive(Clone, Debug)]
pub struct FigureReport {
    pub(crate) about: PaperFigure,
    /// The command that repeats the measurement.
    pub(crate) command: String,
    /// The claims, judged.
    pub(crate) claims: Table,
    /// The rule that computes the verdicts.
    pub(crate) rule: String,
    /// Notes that text has below the rule, before the tables.
    pub(crate) first_notes: Vec<String>,
    /// The tables of figures.
    pub(crate) tables: Vec<ReportTable>,
    /// The charts of a page.
    pub(crate) charts: Vec<Chart>,
    /// Tables that a page has below its charts.
    pub(crate) details: Vec<ReportTable>,
    /// Reasons, conditions and caveats, one sentence each.
    pub(crate) notes: Vec<String>,
}

/// A table of a report.
#[derive(Clone, Debug)]
pub struct ReportTable {
    /// Caption in a page.
    pub caption: &'static str,
    /// Line before the table in text.
    pub text_heading: Option<String>,
    /// Line before the table in Markdown.
    pub markdown_heading: Option<String>,
    /// The table.
    pub table: Table,
}

impl ReportTable {
    /// A table without a line before it.
    pub(crate) fn new(caption: &'static str, table: Table) -> Self {
        Self {
            caption,
            text_heading: None,
            markdown_heading: None,
            table,
        }
    }
}

impl FigureReport {
    /// The report as text for a terminal.
    #[must_use]
    pub fn text(&self) -> String {
        let about = &self.about;
        let mut text = format!(
            "{} · {} {}\n{}\n\n{}\n{}\n",
            about.name, about.paper, about.figure, about.title, self.claims, self.rule
        );
        for note in &self.first_notes {
            let _ = writeln!(text, "{note}");
        }
        for ReportTable {
            text_heading,
            table,
            ..
        } in self.all_tables()
        {
            text.push('\n');
            if let Some(heading) = text_heading {
                let _ = writeln!(text, "{heading}");
            }
            let _ = writeln!(text, "{table}");
        }
        for note in &self.notes {
            let _ = write!(text, "\n{note}");
        }
        let _ = write!(text, "\n{}\nAgain: {}\n", self.testbed_note(), self.command);
        text
    }

    /// The report as a section in Markdown.
    #[must_use]
    pub fn markdown(&self) -> String {
        let mut text = format!(
            "## {}\n\n`{}`\n\n{}\n{}\n",
            self.about.heading(),
            self.command,
            rows(&self.claims),
            self.rule
        );
        for ReportTable {
            markdown_heading,
            table,
            ..
        } in self.all_tables()
        {
            text.push('\n');
            if let Some(heading) = markdown_heading {
                let _ = write!(text, "{heading}\n\n");
            }
            text += &rows(table);
        }
        text.push('\n');
        for note in self.all_notes() {
            let _ = writeln!(text, "- {note}");
        }
        text
    }

    /// The report as an HTML page.
    #[must_use]
    pub fn page(&self) -> Page {
        let mut page = Page::new(self.about.heading())
            .table("Claims", &self.claims)
            .paragraph(&self.rule);
        for table in &self.tables {
            page = page.table(table.caption, &table.table);
        }
        for note in self.all_notes() {
            page = page.paragraph(&note);
        }
        for chart in &self.charts {
            page = page.chart(chart);
        }
        for table in &self.details {
            page = page.table(table.caption, &table.table);
        }
        page.code(&self.command)
    }

    fn all_tables(&self) -> impl Iterator<Item = &ReportTable> {
        self.tables.iter().chain(&self.details)
    }

    fn all_notes(&self) -> impl Iterator<Item = String> {
        let notes = self.first_notes.iter().chain(&self.notes).cloned();
        notes.chain([self.testbed_note()])
    }

    fn testbed_note(&self) -> String {
        format!("The paper's: {}", self.about.testbed)
    }
}

/// The note on why a claim is not reproduced.
pub(crate) fn reason_note(says: &str, reason: Option<&str>) -> Option<String> {
    reason.map(|reason| format!("Why ({says}): {reason}"))
}

/// The list of a kind's built-in experiments.
#[must_use]
pub fn listing<E: MeasuredExperiment>() -> Table {
    let experiments = E::all();
    let listed: Vec<(PaperFigure, usize)> = experiments
        .iter()
        .map(|experiment| (experiment.paper_figure(), experiment.claims().len()))
        .collect();
    list(listed.iter().map(|(about, claims)| {
        let names = [&about.name, &about.paper, &about.figure];
        (names, &about.title, *claims)
    }))
}
