//! The report of a figure that is measured behind a switch.

use headway_report::Table;

use super::experiment::RackedExperiment;
use super::run::RackedTail;
use crate::measured::show::number;
use crate::measured::{ClientCounts, MeasuredReproduction, ReportedKind};

impl ReportedKind for RackedExperiment {
    const FIGURES: &'static str = "Latencies are p99 in ms at the client, by class, phase and part of the phase; simulated ones in brackets.";
    const SHORT: &'static str = "few rounds";
    const CAPTION: &'static str = "All tails";

    fn figures(result: &MeasuredReproduction<Self>) -> Table {
        let shown = result.points.iter().find(|point| !point.live.is_empty());
        let tails = shown.map_or(&[][..], |point| &point.live);
        let columns = tails.iter().map(|tail| {
            let (class, phase, during) = (&tail.class, tail.phase, tail.during.words());
            format!("{class}, {phase}, {during}")
        });
        let head = ["system", "rounds"].map(str::to_owned);
        let mut table = Table::new(head.into_iter().chain(columns));
        for point in &result.points {
            let row = [
                point.system.clone(),
                format!("{} of {}", point.rounds, result.rounds),
            ];
            let sides = point.live.iter().zip(&point.simulated);
            let cells = sides.map(|(live, simulated): (&RackedTail, &RackedTail)| {
                format!("{} ({})", number(live.p99_ms), number(simulated.p99_ms))
            });
            let mut cells: Vec<String> = cells.collect();
            cells.resize(tails.len(), "–".into());
            table.push(row.into_iter().chain(cells));
        }
        table
    }

    fn conditions(result: &MeasuredReproduction<Self>) -> String {
        let [servers, workers] = result.details.servers;
        let (load, rounds) = (result.details.load, result.rounds);
        format!("{servers} servers of {workers} workers, load {load}, {rounds} rounds")
    }

    fn losses(result: &MeasuredReproduction<Self>) -> String {
        ClientCounts::losses(result.runs.iter().map(|run| &run.client))
    }
}
