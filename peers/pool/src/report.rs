//! Medians, and how Headway's figures stand to the others'.

use std::fmt::Write;

use crate::contender::Kind;
use crate::measures::Measure;

/// What an ideal pool had, and a row for each contender: the median of its rounds, the median of its ratios to the first contender, round by round, with their quartiles, and
/// how much of the machine others had meanwhile.
pub(crate) fn table(
    measure: Measure,
    contenders: &[Kind],
    figures: &[Vec<f64>],
    lost: &[Vec<f64>],
    least: &[f64],
) -> String {
    let mut table = format!("{}\n", measure.title());
    if !least.is_empty() {
        let [low, median, high] = [0.25, 0.5, 0.75].map(|at| quantile(least, at));
        let what = "the least, by stops";
        let _ = writeln!(table, "  {what:24} {median:>12.1}   {low:.1} to {high:.1}");
    }
    for ((kind, rounds), lost) in contenders.iter().zip(figures).zip(lost) {
        let ratios: Vec<f64> = figures[0]
            .iter()
            .zip(rounds)
            .map(|(first, own)| first / own)
            .collect();
        let _ = writeln!(
            table,
            "  {:24} {:>12.1}   {} / it: {:.2} ({:.2} to {:.2})   others had {:.0} %",
            kind.name(),
            quantile(rounds, 0.5),
            contenders[0].name(),
            quantile(&ratios, 0.5),
            quantile(&ratios, 0.25),
            quantile(&ratios, 0.75),
            100.0 * quantile(lost, 0.5)
        );
    }
    table
}

pub(crate) fn quantile(values: &[f64], at: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[((sorted.len() - 1) as f64 * at).round() as usize]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_values() {
        assert_eq!(quantile(&[3.0, 1.0, 2.0], 0.5), 2.0);
        assert_eq!(quantile(&[3.0, 1.0, 2.0], 0.0), 1.0);
        assert_eq!(quantile(&[3.0], 0.75), 3.0);
    }
}
