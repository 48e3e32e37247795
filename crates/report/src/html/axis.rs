//! Axes: from data to positions, and ticks at round numbers.

/// Ticks aimed at on an axis; round steps decide how many there are.
const TICKS: f64 = 6.0;

/// A mark on an axis.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Tick {
    pub(super) value: f64,
    /// Empty for the unlabelled ticks between powers of ten.
    pub(super) label: String,
}

/// The range of an axis and how it is divided.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Axis {
    low: f64,
    high: f64,
    log: bool,
}

impl Axis {
    /// An axis over `values`, of which those that cannot be shown are ignored.
    ///
    /// A linear axis ends at round numbers, and starts at 0 when `from_zero` and no value is
    /// negative; a logarithmic one ends a little beyond the data.
    pub(super) fn over(values: impl Iterator<Item = f64>, log: bool, from_zero: bool) -> Self {
        let shown = values.filter(|&value| shows(value, log));
        let (low, high) = shown.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
            (low.min(value), high.max(value))
        });
        match (low <= high, log) {
            (false, _) => Self {
                low: if log { 0.1 } else { 0.0 },
                high: 1.0,
                log,
            },
            (true, true) => Self::logarithmic(low, high),
            (true, false) => Self::linear(if from_zero { low.min(0.0) } else { low }, high),
        }
    }

    fn logarithmic(low: f64, high: f64) -> Self {
        // At least half a decade, so that nearly equal values do not look far apart.
        let spare = (3.0 / (high / low)).max(1.0).sqrt() * 1.15;
        Self {
            low: low / spare,
            high: high * spare,
            log: true,
        }
    }

    fn linear(low: f64, high: f64) -> Self {
        let high = if high > low {
            high
        } else {
            low + low.abs().max(1.0)
        };
        let step = round_step(high - low);
        let (low, high) = ((low / step).floor() * step, (high / step).ceil() * step);
        Self {
            low,
            high,
            log: false,
        }
    }

    /// Where `value` lies: 0 at the low end, 1 at the high end; `None` if it cannot be shown.
    pub(super) fn position(&self, value: f64) -> Option<f64> {
        let [low, high, at] = [self.low, self.high, value].map(|value| self.scaled(value));
        shows(value, self.log).then(|| (at - low) / (high - low))
    }

    fn scaled(&self, value: f64) -> f64 {
        if self.log { value.log10() } else { value }
    }

    /// The ticks within the axis, in ascending order.
    pub(super) fn ticks(&self) -> Vec<Tick> {
        if self.log {
            self.log_ticks()
        } else {
            self.linear_ticks()
        }
    }

    fn linear_ticks(&self) -> Vec<Tick> {
        let step = round_step(self.high - self.low);
        let first = (self.low / step).round() as i64;
        let last = (self.high / step).round() as i64;
        (first..=last)
            .map(|index: i64| {
                let value = index as f64 * step;
                Tick {
                    value,
                    label: number(value, step),
                }
            })
            .collect()
    }

    /// Powers of ten are labelled; over few decades 2 and 5 are too, over many only some powers.
    fn log_ticks(&self) -> Vec<Tick> {
        let decades = (self.high / self.low).log10();
        let every = (decades / 8.0).ceil().max(1.0) as i32;
        let (first, last) = (
            self.low.log10().floor() as i32,
            self.high.log10().ceil() as i32,
        );
        let labelled = |power: i32, digit: i32| match digit {
            1 => power.rem_euclid(every) == 0,
            2 | 5 => decades < 2.5,
            _ => false,
        };
        let tick = |power: i32, digit: i32| {
            let value = f64::from(digit) * 10_f64.powi(power);
            let shown = labelled(power, digit);
            Tick {
                value,
                label: if shown {
                    number(value, value)
                } else {
                    String::new()
                },
            }
        };
        (first..=last)
            .flat_map(|power| (1..10).map(move |digit| (power, digit)))
            .map(|(power, digit)| tick(power, digit))
            .filter(|tick| (self.low..=self.high).contains(&tick.value))
            .collect()
    }
}

/// Whether an axis can show `value` at all.
pub(super) fn shows(value: f64, log: bool) -> bool {
    value.is_finite() && (value > 0.0 || !log)
}

/// 1, 2 or 5 times a power of ten, near a sixth of `span`.
fn round_step(span: f64) -> f64 {
    let raw = span / TICKS;
    let power = 10_f64.powf(raw.log10().floor());
    let digit = match raw / power {
        ratio if ratio < 1.5 => 1.0,
        ratio if ratio < 3.5 => 2.0,
        ratio if ratio < 7.5 => 5.0,
        _ => 10.0,
    };
    digit * power
}

/// A tick's label: metric suffixes from a thousand on, and the decimals that `step` needs.
fn number(value: f64, step: f64) -> String {
    let (scale, suffix) = match value.abs().max(step) {
        size if size >= 1e9 => (1e9, "G"),
        size if size >= 1e6 => (1e6, "M"),
        size if size >= 1e3 => (1e3, "k"),
        _ => (1.0, ""),
    };
    if value == 0.0 {
        return "0".to_owned();
    }
    let places = (-(step / scale).log10().floor()).clamp(0.0, 9.0) as usize;
    format!("{:.places$}{suffix}", value / scale)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(axis: &Axis) -> Vec<String> {
        let labels = axis.ticks().into_iter().map(|tick| tick.label);
        labels.filter(|label| !label.is_empty()).collect()
    }

    #[test]
    fn linear_axes_end_at_round_numbers() {
        let loads = Axis::over([0.05, 0.95].into_iter(), false, false);
        assert_eq!(labels(&loads), ["0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
        assert_eq!(loads.position(0.5), Some(0.5));
        let rates = Axis::over([1.2e6, 5.1e6].into_iter(), false, true);
        assert_eq!(labels(&rates), ["0", "1M", "2M", "3M", "4M", "5M", "6M"]);
    }

    #[test]
    fn log_axes_label_powers_of_ten_and_over_few_decades_2_and_5() {
        let wide = Axis::over([1.0, 20_000.0].into_iter(), true, true);
        assert_eq!(labels(&wide), ["1", "10", "100", "1k", "10k"]);
        assert!(wide.ticks().len() > 30, "with unlabelled ticks between");
        let narrow = Axis::over([1.0, 40.0].into_iter(), true, true);
        assert_eq!(labels(&narrow), ["1", "2", "5", "10", "20"]);
    }

    #[test]
    fn many_decades_do_not_crowd_the_axis() {
        let axis = Axis::over([1e-3, 1e20].into_iter(), true, true);
        assert!(labels(&axis).len() <= 9, "{:?}", labels(&axis));
    }

    #[test]
    fn what_cannot_be_shown_has_no_position() {
        let log = Axis::over([1.0, 10.0].into_iter(), true, true);
        assert_eq!(log.position(0.0), None);
        assert_eq!(log.position(f64::INFINITY), None);
        let linear = Axis::over([-1.0, 1.0].into_iter(), false, true);
        assert_eq!(linear.position(0.0), Some(0.5));
    }

    #[test]
    fn degenerate_data_still_makes_an_axis() {
        for values in [vec![], vec![5.0], vec![0.0], vec![f64::NAN], vec![3.0, 3.0]] {
            for log in [false, true] {
                let axis = Axis::over(values.iter().copied(), log, true);
                assert!(!axis.ticks().is_empty(), "{values:?} {log}");
                assert!(axis.low < axis.high, "{values:?} {log}");
            }
        }
    }
}
