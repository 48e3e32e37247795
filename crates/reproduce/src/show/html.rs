//! Results as a page with charts.

use super::{claims, few_samples, overview, reasons, singles, systems};
use crate::Reproduction;
use crate::figures::{Datum, distinct};
use headway_report::html::{Chart, Page, Series};

/// All results on one page.
#[must_use]
pub fn page(results: &[Reproduction]) -> Page {
    let mut page =
        Page::new("The papers' figures, run again").table("Overview", &overview(results));
    for result in results {
        page = section(page, result);
    }
    page
}

fn section(page: Page, result: &Reproduction) -> Page {
    let mut page = page
        .heading(&result.about.heading())
        .table("Claims", &claims(result));
    for (reason, of) in reasons(result) {
        page = page.paragraph(&format!("Why ({}): {reason}", of.join("; ")));
    }
    page = page.paragraph(&format!("Not in the model: {}", result.about.testbed));
    if result.shortened {
        page = page.paragraph("Shortened runs: their tails are rough, and so are the verdicts.");
    }
    if !result.systems.is_empty() {
        page = page.table("Systems", &systems(result));
    }
    if let Some(few) = few_samples(&result.figures) {
        page = page.paragraph(&few);
    }
    for table in singles(result) {
        page = page.table("Figures", &table);
    }
    for family in result.figures.families() {
        page = page.chart(&chart(&result.about.figure, &family));
    }
    let mut commands = result.command.clone();
    for command in &result.commands {
        commands = format!("{commands}\n{command}");
    }
    page.code(&commands)
}

pub(crate) fn chart(figure: &str, family: &[&Datum]) -> Chart {
    let what = &family[0].what;
    let mut chart = Chart::new(format!("{figure}: {what}"), &family[0].axis, what);
    if what.contains("slowdown") || what.contains("latency") {
        chart = chart.log_y();
    }
    for system in distinct(family.iter().map(|datum| datum.system.as_str())) {
        let own = family
            .iter()
            .filter(|datum| datum.system == system && datum.value.is_finite());
        let points = own
            .filter_map(|datum| Some((datum.x?, datum.value)))
            .collect();
        chart = chart.series(Series::new(system, points));
    }
    chart
}
