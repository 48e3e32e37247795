//! Rates as people write them: `900`, `260k`, `5.1M` requests per second.

use thiserror::Error;

/// A text that is not a rate.
#[derive(Clone, PartialEq, Eq, Error)]
#[error("`{0}` is not a rate; write requests per second above 0, such as `900`, `260k` or `5.1M`")]
pub struct RateParseError(String);

headway_words::debug_is_display!(RateParseError);

/// Suffixes and their multipliers.
const SUFFIXES: [(char, f64); 4] = [('k', 1e3), ('K', 1e3), ('M', 1e6), ('G', 1e9)];

/// Reads a rate in requests per second, with an optional suffix `k`, `M` or `G`.
///
/// # Errors
/// [`RateParseError`] unless the text is a finite number above 0 with at most one known suffix.
///
/// ```
/// assert_eq!(headway_workload::rate::parse("5.1M"), Ok(5.1e6));
/// ```
pub fn parse(text: &str) -> Result<f64, RateParseError> {
    let trimmed = text.trim();
    let (number, multiplier) = SUFFIXES
        .iter()
        .find_map(|(suffix, by)| Some((trimmed.strip_suffix(*suffix)?, *by)))
        .unwrap_or((trimmed, 1.0));
    let rate_rps = number.trim().parse::<f64>().unwrap_or(f64::NAN) * multiplier;
    if rate_rps.is_finite() && rate_rps > 0.0 {
        Ok(rate_rps)
    } else {
        Err(RateParseError(trimmed.to_owned()))
    }
}

/// Writes a rate with the suffix that suits it and at most three decimals: `5.1M`, `260k`, `900`.
///
/// ```
/// assert_eq!(headway_workload::rate::format(260_000.0), "260k");
/// ```
#[must_use]
pub fn format(rate_rps: f64) -> String {
    let (scaled, suffix) = match rate_rps {
        rate if rate >= 1e9 => (rate / 1e9, "G"),
        rate if rate >= 1e6 => (rate / 1e6, "M"),
        rate if rate >= 1e3 => (rate / 1e3, "k"),
        rate => (rate, ""),
    };
    let decimal = format!("{scaled:.3}");
    format!(
        "{}{suffix}",
        decimal.trim_end_matches('0').trim_end_matches('.')
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_and_writes_suffixes() {
        let cases = [
            ("5.1M", 5.1e6),
            ("260k", 260e3),
            ("900", 900.0),
            ("1.25G", 1.25e9),
        ];
        for (text, rate_rps) in cases {
            assert_eq!(parse(text), Ok(rate_rps));
            assert_eq!(format(rate_rps), text);
        }
        assert_eq!(parse(" 2 K "), Ok(2000.0));
    }

    #[test]
    fn refuses_what_is_no_rate() {
        for text in ["", "k", "fast", "-5k", "0", "inf", "nan", "5kk", "1e400"] {
            let message = parse(text).unwrap_err().to_string();
            assert_eq!(
                message,
                format!(
                    "`{text}` is not a rate; write requests per second above 0, such as `900`, `260k` or `5.1M`"
                )
            );
        }
    }
}
