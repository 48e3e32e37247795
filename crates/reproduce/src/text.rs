//! A figure, or a paragraph of a file, as one line of text.

use headway_report::format::{duration_us, metric, percent, significant};

/// Formats a figure with the unit that its name implies.
pub(crate) fn quantity(what: &str, value: f64) -> String {
    if !value.is_finite() {
        return "–".into();
    }
    let last = what.rsplit('.').next().unwrap_or(what);
    if what.contains("latency.") || last.ends_with("_us") {
        return duration_us(value);
    }
    match last {
        "rps" | "offered" | "achieved" => metric(value),
        "utilization" | "unserved" | "overhead" => percent(value),
        "ratio" => format!("{} ×", significant(value, 3)),
        _ if value != 0.0 && value.fract() == 0.0 && value.abs() < 1e4 => format!("{value}"),
        _ => significant(value, 3),
    }
}

/// Joins the lines of a paragraph that a file wraps.
pub(crate) fn on_one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::quantity;

    #[test]
    fn names_imply_units() {
        assert_eq!(quantity("rps", 5.1e6), "5.10M");
        assert_eq!(quantity("class.short.latency.p999", 9.87), "9.87 µs");
        assert_eq!(quantity("ratio", 2.35), "2.35 ×");
        assert_eq!(quantity("reserved.A", 2.0), "2");
        assert_eq!(quantity("overall.slowdown.p999", f64::NAN), "–");
    }
}
