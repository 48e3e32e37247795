//! Reports of the kinds that are measured and simulated.

use headway_report::{Table, format};

use super::claim::{ClaimedFigure as _, MeasuredRun as _};
use super::expectation::interval_words;
use super::report::{FigureReport, MeasuredResult, ReportTable, cut_off_note, reason_note};
use super::result::{FigureOf, MeasuredKind, MeasuredReproduction};

/// The rule that computes all verdicts.
const RULE: &str = "Intervals are of 95 % over rounds, paired by round: of ratios around their geometric mean, of single figures around their mean. \
                    An interval wholly where the paper is: reproduced; wholly elsewhere: not reproduced; on the paper's side of 1 without its \
                    figure: deviates; else undecided.";

/// The parts of its reports that a kind has for itself.
pub trait ReportedKind: MeasuredKind {
    /// The meaning of the figures, after the rule of the verdicts.
    const FIGURES: &'static str;
    /// The shortcomings of the short version.
    const SHORT: &'static str;
    /// Caption of the table of figures.
    const CAPTION: &'static str;
    /// The columns of the table of systems.
    const SYSTEM_COLUMNS: [&'static str; 2] = ["system", "policy"];

    /// The table of figures: medians over the rounds that count, live beside simulated.
    fn figures(result: &MeasuredReproduction<Self>) -> Table;

    /// The conditions of all runs, and the rounds.
    fn conditions(result: &MeasuredReproduction<Self>) -> String;

    /// The losses of all runs.
    fn losses(result: &MeasuredReproduction<Self>) -> String;

    /// Caveats of the figures.
    fn caveats(_: &MeasuredReproduction<Self>) -> Vec<String> {
        Vec::new()
    }

    /// Tables after those that all kinds have.
    fn more_tables(_: &MeasuredReproduction<Self>) -> Vec<ReportTable> {
        Vec::new()
    }
}

impl<K: ReportedKind> MeasuredResult for MeasuredReproduction<K> {
    fn cut_off(&self) -> Option<usize> {
        self.cut_off.then_some(self.rounds)
    }

    fn report(&self) -> FigureReport {
        let mut tables = vec![
            ReportTable::new(K::CAPTION, K::figures(self)),
            ReportTable::new("Systems", systems(self)),
        ];
        tables.extend(K::more_tables(self));
        FigureReport {
            about: self.about.clone(),
            command: self.command.clone(),
            claims: claims(self),
            rule: format!("{RULE} {}", K::FIGURES),
            first_notes: cut_off_note(self.cut_off()).into_iter().collect(),
            tables,
            charts: Vec::new(),
            details: Vec::new(),
            notes: notes(self),
        }
    }
}

/// The claims: the expectation, the measured and the simulated figure, the verdict.
fn claims<K: ReportedKind>(result: &MeasuredReproduction<K>) -> Table {
    let own = FigureOf::<K>::COLUMNS.iter().copied();
    let columns = ["what", "of"].into_iter().chain(own);
    let judged = ["expected", "live", "simulated", "rounds", "verdict"];
    let mut table = Table::new(columns.chain(judged));
    for claim in &result.claims {
        let mut row = vec![claim.says.clone(), claim.of.clone()];
        row.extend(claim.figure.cells());
        row.extend([
            claim.expect.words(),
            interval_words(claim.live.as_ref()),
            interval_words(claim.simulated.as_ref()),
            claim.rounds.to_string(),
            claim.verdict.words().into(),
        ]);
        table.push(row);
    }
    table
}

fn systems<K: ReportedKind>(result: &MeasuredReproduction<K>) -> Table {
    let [system, policy] = K::SYSTEM_COLUMNS;
    let mut table = Table::new([system, policy, "cores"]);
    for ((name, policy), cores) in result.systems.iter().zip(&result.system_cores) {
        table.push([name, policy, cores].map(String::clone));
    }
    table
}

/// The reasons, the conditions and the caveats, one sentence each.
fn notes<K: ReportedKind>(result: &MeasuredReproduction<K>) -> Vec<String> {
    let claims = result.claims.iter();
    let mut notes: Vec<String> = claims
        .filter_map(|claim| reason_note(&claim.says, claim.reason.as_deref()))
        .collect();
    notes.push(format!(
        "Machine: {}. {}, seed {}. {} of {} runs count; {}.",
        result.machine,
        K::conditions(result),
        result.seed,
        result.runs.iter().filter(|run| run.counts()).count(),
        result.runs.len(),
        K::losses(result),
    ));
    notes.extend(K::caveats(result));
    if result.shortened {
        notes.push(format!("A first impression: {}.", K::SHORT));
    }
    notes
}

/// A figure as tables show it.
pub(crate) fn number(value: f64) -> String {
    if value.is_finite() {
        format::significant(value, 3)
    } else {
        "–".into()
    }
}
