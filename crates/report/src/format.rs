//! Numbers as people read them: few digits, a unit, and a dash where there is none.

use crate::stats::ConfidenceInterval;

/// Stands for a value that does not exist, such as the percentile of no samples.
const ABSENT: &str = "–";

/// `value` with `digits` significant digits and no exponent: 0.0123, 4.57, 12300.
///
/// Digits before the point are never cut to zeros: 12 345 at 3 digits is "12345".
pub fn significant(value: f64, digits: usize) -> String {
    if !value.is_finite() {
        return ABSENT.to_owned();
    }
    // The exponent after rounding, so that 9.996 at 3 digits is 10.0 and not 10.00.
    let scientific = format!("{value:.*e}", digits.saturating_sub(1));
    let exponent: i32 = scientific
        .split_once('e')
        .map_or(0, |(_, e)| e.parse().unwrap_or(0));
    let places = (digits as i32 - 1 - exponent).max(0) as usize;
    format!("{value:.places$}")
}

/// A rate or count with three significant digits and a metric suffix: 5.09M, 260k, 12.0.
pub fn metric(value: f64) -> String {
    let (scale, suffix) = match value.abs() {
        size if size >= 999.5e6 => (1e9, "G"),
        size if size >= 999.5e3 => (1e6, "M"),
        size if size >= 999.5 => (1e3, "k"),
        _ => (1.0, ""),
    };
    if value.is_finite() {
        significant(value / scale, 3) + suffix
    } else {
        ABSENT.to_owned()
    }
}

/// A duration given in µs, with three significant digits in its own unit: 500 ns, 12.5 µs, 1.20 ms.
pub fn duration_us(us: f64) -> String {
    let (scale, unit) = match us.abs() {
        size if size >= 999.5e3 => (1e-6, "s"),
        size if size >= 999.5 => (1e-3, "ms"),
        size if size >= 0.9995 || size == 0.0 => (1.0, "µs"),
        _ => (1e3, "ns"),
    };
    let number = if us == 0.0 {
        "0".to_owned()
    } else {
        significant(us * scale, 3)
    };
    if us.is_finite() {
        format!("{number} {unit}")
    } else {
        ABSENT.to_owned()
    }
}

/// A fraction as a percentage with one decimal: 95.5 %.
pub fn percent(fraction: f64) -> String {
    if fraction.is_finite() {
        format!("{:.1} %", 100.0 * fraction)
    } else {
        ABSENT.to_owned()
    }
}

/// A count of things whose plural ends in s: 1 worker, 14 workers.
pub fn counted(count: usize, thing: &str) -> String {
    format!("{count} {thing}{}", if count == 1 { "" } else { "s" })
}

/// The cores of a system for tables: the workers', then those beside them, and whether these run requests too: 16, 2 + 1, 2 + 1 serving.
pub fn cores(workers: usize, all: usize, serving: usize) -> String {
    match all.saturating_sub(workers) {
        0 => workers.to_string(),
        beside if serving > workers => format!("{workers} + {beside} serving"),
        beside => format!("{workers} + {beside}"),
    }
}

/// An estimate and its interval, all with three significant digits: 1.31 [1.27, 1.35].
pub fn interval(interval: &ConfidenceInterval) -> String {
    let ConfidenceInterval {
        estimate, lo, hi, ..
    } = *interval;
    let [estimate, lo, hi] = [estimate, lo, hi].map(|value| significant(value, 3));
    format!("{estimate} [{lo}, {hi}]")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn significant_digits_survive_rounding_up() {
        let show = |value| significant(value, 3);
        assert_eq!(show(9.996), "10.0");
        assert_eq!(show(0.012_34), "0.0123");
        assert_eq!(show(12_345.6), "12346");
        assert_eq!(show(0.0), "0.00");
        assert_eq!(show(-1.5), "-1.50");
        assert_eq!(show(f64::NAN), "–");
    }

    #[test]
    fn units_change_where_the_rounded_number_does() {
        assert_eq!(metric(5.092e6), "5.09M");
        assert_eq!(metric(999_499.0), "999k");
        assert_eq!(metric(999_501.0), "1.00M");
        assert_eq!(metric(12.0), "12.0");
        assert_eq!(duration_us(0.5), "500 ns");
        assert_eq!(duration_us(12.5), "12.5 µs");
        assert_eq!(duration_us(999.9), "1.00 ms");
        assert_eq!(duration_us(2.5e6), "2.50 s");
        assert_eq!(duration_us(0.0), "0 µs");
        assert_eq!(percent(0.955), "95.5 %");
    }

    #[test]
    fn one_of_a_thing_is_no_plural() {
        assert_eq!(counted(1, "server"), "1 server");
        assert_eq!(counted(2, "server"), "2 servers");
    }

    #[test]
    fn an_interval_shows_both_ends() {
        let shown = ConfidenceInterval {
            estimate: 1.314,
            lo: 1.27,
            hi: 1.358,
            confidence: 0.95,
        };
        assert_eq!(interval(&shown), "1.31 [1.27, 1.36]");
    }
}
