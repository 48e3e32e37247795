//! The drawing of a chart: grid, axes, lines, intervals and markers.

use std::fmt::Write as _;

use super::axis::Axis;
use super::chart::{Chart, Series};
use super::text::escape;
use crate::format::significant;

const WIDTH: f64 = 800.0;
const HEIGHT: f64 = 420.0;
const LEFT: f64 = 60.0;
const RIGHT: f64 = 784.0;
const TOP: f64 = 34.0;
const BOTTOM: f64 = 370.0;
/// Colours in the style sheet.
const COLOURS: usize = 8;
/// A line of more points than this shows its shape by itself; markers appear on hovering only.
const MARKED_POINTS_MAX: usize = 60;

/// A point that has a place on the axes.
struct Placed {
    x: f64,
    y: f64,
    index: usize,
}

/// A chart with its axes settled.
pub(super) struct Drawing<'a> {
    chart: &'a Chart,
    x: Axis,
    y: Axis,
}

impl<'a> Drawing<'a> {
    pub(super) fn new(chart: &'a Chart) -> Self {
        let points = || chart.series.iter().flat_map(|series| &series.points);
        let errors = chart
            .series
            .iter()
            .flat_map(|series| series.error.iter().flatten());
        let ys = points()
            .map(|point| point.1)
            .chain(errors.flat_map(|&(low, high)| [low, high]));
        let x = Axis::over(points().map(|point| point.0), chart.log_x, false);
        let y = Axis::over(ys, chart.log_y, true);
        Self { chart, x, y }
    }

    /// How many points have no place on the axes.
    pub(super) fn omitted(&self) -> usize {
        let series = self.chart.series.iter();
        series
            .map(|series| series.points.len() - self.placed(series).len())
            .sum()
    }

    pub(super) fn svg(&self, description: &str) -> String {
        let lines: String = self
            .chart
            .series
            .iter()
            .enumerate()
            .map(|(index, s)| self.series(index, s))
            .collect();
        format!(
            "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{}\" \
             data-plot=\"{LEFT} {TOP} {RIGHT} {BOTTOM}\">\n{}{}\
             <line class=\"crosshair\" y1=\"{TOP}\" y2=\"{BOTTOM}\" visibility=\"hidden\"/>\n\
             {lines}</svg>\n",
            escape(description),
            self.grid(),
            self.labels(),
        )
    }

    fn across(&self, value: f64) -> Option<f64> {
        self.x
            .position(value)
            .map(|position| LEFT + position * (RIGHT - LEFT))
    }

    fn up(&self, value: f64) -> Option<f64> {
        self.y
            .position(value)
            .map(|position| BOTTOM - position * (BOTTOM - TOP))
    }

    fn grid(&self) -> String {
        let mut grid = String::from("<g class=\"grid\">\n");
        for tick in self.x.ticks() {
            let Some(x) = self.across(tick.value) else {
                continue;
            };
            let class = if tick.label.is_empty() {
                "minor"
            } else {
                "major"
            };
            let _ = writeln!(
                grid,
                "<line class=\"{class}\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{TOP}\" y2=\"{BOTTOM}\"/>\
                 <text class=\"x\" x=\"{x:.1}\" y=\"{}\">{}</text>",
                BOTTOM + 18.0,
                tick.label
            );
        }
        for tick in self.y.ticks() {
            let Some(y) = self.up(tick.value) else {
                continue;
            };
            let class = if tick.label.is_empty() {
                "minor"
            } else {
                "major"
            };
            let _ = writeln!(
                grid,
                "<line class=\"{class}\" x1=\"{LEFT}\" x2=\"{RIGHT}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>\
                 <text class=\"y\" x=\"{}\" y=\"{:.1}\">{}</text>",
                LEFT - 8.0,
                y + 4.0,
                tick.label
            );
        }
        let base = "<line class=\"base\"";
        let _ = writeln!(
            grid,
            "{base} x1=\"{LEFT}\" x2=\"{RIGHT}\" y1=\"{BOTTOM}\" y2=\"{BOTTOM}\"/>"
        );
        grid + "</g>\n"
    }

    fn labels(&self) -> String {
        format!(
            "<text class=\"label x\" x=\"{:.0}\" y=\"{:.0}\">{}</text>\n\
             <text class=\"label\" x=\"4\" y=\"16\">{}</text>\n",
            (LEFT + RIGHT) / 2.0,
            BOTTOM + 42.0,
            escape(&self.chart.x_label),
            escape(&self.chart.y_label),
        )
    }

    fn series(&self, index: usize, series: &Series) -> String {
        let placed = self.placed(series);
        format!(
            "<g class=\"series {}\" data-series=\"{index}\" data-name=\"{}\">\n{}{}{}</g>\n",
            series_class(index, series),
            escape(&series.name),
            self.whiskers(series, &placed),
            path(&placed),
            markers(index, series, &placed),
        )
    }

    fn placed(&self, series: &Series) -> Vec<Placed> {
        series
            .points
            .iter()
            .enumerate()
            .filter_map(|(index, &(x, y)): (usize, &(f64, f64))| {
                Some(Placed {
                    x: self.across(x)?,
                    y: self.up(y)?,
                    index,
                })
            })
            .collect()
    }

    /// The interval of each point, cut at the axis where it has no place there.
    fn whiskers(&self, series: &Series, placed: &[Placed]) -> String {
        let whisker = |point: &Placed| {
            let (low, high) = series.error_at(point.index)?;
            let (low, high) = (self.up(low).unwrap_or(BOTTOM), self.up(high).unwrap_or(TOP));
            let (x, left, right) = (point.x, point.x - 4.0, point.x + 4.0);
            Some(format!(
                "M{x:.1} {low:.1}V{high:.1}M{left:.1} {low:.1}H{right:.1}M{left:.1} {high:.1}H{right:.1}"
            ))
        };
        let whiskers: String = placed.iter().filter_map(whisker).collect();
        if whiskers.is_empty() {
            return whiskers;
        }
        format!("<path class=\"whisker\" d=\"{whiskers}\"/>\n")
    }
}

/// The line through the points; a missing point breaks it, since the values between are unknown.
fn path(placed: &[Placed]) -> String {
    let mut d = String::new();
    let mut expected = usize::MAX;
    for point in placed {
        let command = if point.index == expected { 'L' } else { 'M' };
        let _ = write!(d, "{command}{:.1} {:.1}", point.x, point.y);
        expected = point.index + 1;
    }
    format!("<path class=\"line\" d=\"{d}\"/>\n")
}

fn markers(series_index: usize, series: &Series, placed: &[Placed]) -> String {
    let hidden = series.dashed || placed.len() > MARKED_POINTS_MAX;
    let class = if hidden { "mark hidden" } else { "mark" };
    placed
        .iter()
        .map(|point: &Placed| {
            let (x, y) = series.points[point.index];
            let error = series
                .error_at(point.index)
                .map_or(String::new(), |(low, high)| {
                    format!(" [{}, {}]", significant(low, 3), significant(high, 3))
                });
            format!(
                "<path class=\"{class}\" d=\"{}\" data-at=\"{:.1} {:.1}\" data-x=\"{}\" \
             data-y=\"{}{error}\"/>\n",
                shape(series_index, point.x, point.y),
                point.x,
                point.y,
                plain(x),
                significant(y, 3),
            )
        })
        .collect()
}

/// A value of x, which was chosen and not measured: without trailing zeros.
fn plain(x: f64) -> String {
    let text = significant(x, 4);
    let trimmed = if text.contains('.') {
        text.trim_end_matches('0')
    } else {
        &text
    };
    trimmed.trim_end_matches('.').to_owned()
}

/// The marker of a series: shapes tell series apart where colours do not.
fn shape(series: usize, x: f64, y: f64) -> String {
    match (series + series / COLOURS) % 4 {
        0 => format!("M{:.1} {y:.1}a4 4 0 1 0 8 0a4 4 0 1 0 -8 0", x - 4.0),
        1 => format!("M{:.1} {:.1}h7v7h-7z", x - 3.5, y - 3.5),
        2 => format!("M{x:.1} {:.1}l5 5l-5 5l-5 -5z", y - 5.0),
        _ => format!("M{x:.1} {:.1}l5 8.5h-10z", y - 5.0),
    }
}

/// The classes that give a series its colour and dashes.
pub(super) fn series_class(index: usize, series: &Series) -> String {
    format!(
        "c{}{}",
        index % COLOURS,
        if series.dashed { " dashed" } else { "" }
    )
}

/// The sample of line and marker in the legend.
pub(super) fn legend_key(index: usize, series: &Series) -> String {
    let marker = if series.dashed {
        String::new()
    } else {
        format!("<path class=\"mark\" d=\"{}\"/>", shape(index, 14.0, 7.0))
    };
    format!(
        "<svg viewBox=\"0 0 28 14\" width=\"28\" height=\"14\" aria-hidden=\"true\">\
         <path class=\"line\" d=\"M1 7H27\"/>{marker}</svg>"
    )
}
