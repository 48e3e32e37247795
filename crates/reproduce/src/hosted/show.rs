//! The report of a figure that is measured on a host of applications.

use headway_report::Table;

use super::experiment::HostedExperiment;
use super::run::HostedFigure;
use crate::measured::show::number;
use crate::measured::{ClientCounts, MeasuredReproduction, ReportTable, ReportedKind};
use crate::show;

impl ReportedKind for HostedExperiment {
    const FIGURES: &'static str =
        "Latencies are those of the client, from the intended send; simulated figures in brackets.";
    const SHORT: &'static str = "few rounds";
    const CAPTION: &'static str = "All figures";
    const SYSTEM_COLUMNS: [&'static str; 2] = ["system", "allocator"];

    fn figures(result: &MeasuredReproduction<Self>) -> Table {
        let columns = HostedFigure::ALL.map(|figure| figure.words().to_owned());
        let head = ["load", "system", "rounds"].map(str::to_owned);
        let mut table = Table::new(head.into_iter().chain(columns));
        for point in &result.points {
            let row = [
                point.place.clone(),
                point.system.clone(),
                format!("{} of {}", point.rounds, result.rounds),
            ];
            let cells = HostedFigure::ALL.map(|figure| {
                let (live, simulated) = (point.live.get(figure), point.simulated.get(figure));
                format!("{} ({})", number(live), number(simulated))
            });
            table.push(row.into_iter().chain(cells));
        }
        table
    }

    fn conditions(result: &MeasuredReproduction<Self>) -> String {
        let (cores, rounds) = (result.details.cores, result.rounds);
        format!("{cores} cores are dealt out, {rounds} rounds")
    }

    fn losses(result: &MeasuredReproduction<Self>) -> String {
        ClientCounts::losses(result.runs.iter().map(|run| &run.client))
    }

    fn caveats(result: &MeasuredReproduction<Self>) -> Vec<String> {
        let processors = result.details.processors;
        // Two more processors: one for the daemon, one for the client and the server's receiving thread.
        let needed = result.details.cores + 2;
        if processors >= needed {
            return Vec::new();
        }
        vec![format!(
            "The figure needs {needed} processors, and this machine has {processors}: the daemon, the client and the thread at the server's receive queue run on the cores \
             that are dealt out. They take time from both applications, and tails are upper bounds."
        )]
    }

    /// The simulation of the paper's own host.
    fn more_tables(result: &MeasuredReproduction<Self>) -> Vec<ReportTable> {
        let papers = result.details.papers.iter();
        papers
            .map(|papers| ReportTable {
                caption: "The simulation of the paper's host",
                text_heading: Some(format!("{} (the paper's host)", papers.about.name)),
                markdown_heading: Some(format!("`{}`, the paper's host:", papers.command)),
                table: show::claims(papers),
            })
            .collect()
    }
}
