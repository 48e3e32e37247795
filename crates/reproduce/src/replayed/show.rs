//! The report of a figure that is measured on replayed arrivals.

use headway_report::{Table, format};

use super::experiment::ReplayedExperiment;
use super::figure::RunFigure;
use crate::measured::show::number;
use crate::measured::{MeasuredReproduction, ReportedKind};

impl ReportedKind for ReplayedExperiment {
    const FIGURES: &'static str = "Figures are of the requests that the machine left alone, simulated ones, in brackets, of the same.";
    const SHORT: &'static str = "few loads, short runs";
    const CAPTION: &'static str = "All points";

    fn figures(result: &MeasuredReproduction<Self>) -> Table {
        let columns = RunFigure::SHOWN.map(|figure| figure.words().to_owned());
        let head = ["load", "system", "rounds", "left alone"].map(str::to_owned);
        let mut table = Table::new(head.into_iter().chain(columns));
        let mut points: Vec<_> = result.points.iter().collect();
        points.sort_by(|a, b| a.load.total_cmp(&b.load));
        for point in points {
            let row = [
                format::significant(point.load, 2),
                point.system.clone(),
                format!("{} of {}", point.rounds, result.rounds),
                format::percent(point.untouched_fraction),
            ];
            table.push(row.into_iter().chain(point.figures.iter().map(
                |(figure, live, simulated): &(RunFigure, f64, f64)| match figure {
                    RunFigure::Avoided => number(*live),
                    _ => format!("{} ({})", number(*live), number(*simulated)),
                },
            )));
        }
        table
    }

    fn conditions(result: &MeasuredReproduction<Self>) -> String {
        let details = &result.details;
        format!(
            "Workload {}, {} workers, {} rounds of {} ms",
            details.workload, details.workers, result.rounds, details.run_ms
        )
    }

    fn losses(result: &MeasuredReproduction<Self>) -> String {
        let lost = result.runs.iter().map(|run| run.lost_fraction);
        let most = format::percent(lost.fold(0.0, f64::max));
        format!("the machine took up to {most} of the time of a run")
    }
}
