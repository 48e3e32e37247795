//! Charts of lines through points, with intervals where they are known.

use super::svg::Drawing;
use super::{escape, table_html};
use crate::format::significant;
use crate::table::Table;

/// One line of a chart.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
    /// The name in the legend.
    pub name: String,
    /// (x, y), in the order in which the line joins them.
    pub points: Vec<(f64, f64)>,
    /// The ends (low, high) of each point's interval, as values of y; one per point.
    pub error: Option<Vec<(f64, f64)>>,
    /// Whether the line is dashed and without markers: a bound or a model, not a measurement.
    pub dashed: bool,
}

impl Series {
    /// A line through `points`.
    pub fn new(name: impl Into<String>, points: Vec<(f64, f64)>) -> Self {
        Self {
            name: name.into(),
            points,
            error: None,
            dashed: false,
        }
    }

    /// Gives each point the interval (low, high), in values of y.
    ///
    /// # Panics
    ///
    /// If there is not one interval per point.
    #[must_use]
    pub fn error(mut self, error: Vec<(f64, f64)>) -> Self {
        assert_eq!(
            error.len(),
            self.points.len(),
            "one interval per point of {}",
            self.name
        );
        self.error = Some(error);
        self
    }

    /// Dashes the line and leaves out its markers.
    #[must_use]
    pub fn dashed(mut self) -> Self {
        self.dashed = true;
        self
    }

    /// The interval of the point at `index`.
    pub(super) fn error_at(&self, index: usize) -> Option<(f64, f64)> {
        self.error
            .as_ref()
            .and_then(|error| error.get(index).copied())
    }
}

/// A chart of one or more [`Series`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Chart {
    /// What the chart shows.
    pub title: String,
    /// Name and unit of the horizontal axis.
    pub x_label: String,
    /// Name and unit of the vertical axis.
    pub y_label: String,
    /// Whether the horizontal axis is logarithmic.
    pub log_x: bool,
    /// Whether the vertical axis is logarithmic.
    pub log_y: bool,
    /// The lines, in the legend's order.
    pub series: Vec<Series>,
    /// A remark under the chart; empty for none.
    pub note: String,
}

impl Chart {
    /// A chart without lines, on linear axes.
    pub fn new(
        title: impl Into<String>,
        x_label: impl Into<String>,
        y_label: impl Into<String>,
    ) -> Self {
        let (title, x_label, y_label) = (title.into(), x_label.into(), y_label.into());
        Self {
            title,
            x_label,
            y_label,
            ..Self::default()
        }
    }

    /// Makes the horizontal axis logarithmic.
    #[must_use]
    pub fn log_x(mut self) -> Self {
        self.log_x = true;
        self
    }

    /// Makes the vertical axis logarithmic.
    #[must_use]
    pub fn log_y(mut self) -> Self {
        self.log_y = true;
        self
    }

    /// Adds a line.
    #[must_use]
    pub fn series(mut self, series: Series) -> Self {
        self.series.push(series);
        self
    }

    /// Puts a remark under the chart.
    #[must_use]
    pub fn note(mut self, note: impl Into<String>) -> Self {
        self.note = note.into();
        self
    }

    /// The chart as a `<figure>`; `number` makes its ids unique on the page.
    pub(super) fn render(&self, number: usize) -> String {
        let drawing = Drawing::new(self);
        let title = escape(&self.title);
        format!(
            "<figure class=\"chart\" id=\"chart-{number}\">\n<figcaption>{title}</figcaption>\n\
             {}<div class=\"scroll\">\n{}</div>\n{}\
             <details><summary>Data</summary><div class=\"scroll\">{}</div></details>\n\
             </figure>\n",
            self.legend(),
            drawing.svg(&self.description()),
            self.notes(drawing.omitted()),
            table_html("", &self.data()),
        )
    }

    /// Buttons that hide and show a series; without script they are a plain legend.
    fn legend(&self) -> String {
        let entry = |(index, series): (usize, &Series)| {
            format!(
                "<button type=\"button\" class=\"{}\" data-series=\"{index}\" \
                 aria-pressed=\"true\">{}{}</button>\n",
                super::svg::series_class(index, series),
                super::svg::legend_key(index, series),
                escape(&series.name),
            )
        };
        let entries: String = self.series.iter().enumerate().map(entry).collect();
        format!("<div class=\"legend\">\n{entries}</div>\n")
    }

    fn description(&self) -> String {
        let names: Vec<&str> = self
            .series
            .iter()
            .map(|series| series.name.as_str())
            .collect();
        let scale = |log| if log { " (logarithmic)" } else { "" };
        let (x, y) = (&self.x_label, &self.y_label);
        let (scale_x, scale_y) = (scale(self.log_x), scale(self.log_y));
        format!(
            "{}: {y}{scale_y} by {x}{scale_x}, for {}",
            self.title,
            names.join(", ")
        )
    }

    fn notes(&self, omitted: usize) -> String {
        let mut notes = String::new();
        if !self.note.is_empty() {
            notes += &format!("<p class=\"note\">{}</p>\n", escape(&self.note));
        }
        if omitted > 0 {
            notes += &format!(
                "<p class=\"note\">Not drawn: {omitted} {} without a place on the axes (missing, \
                 infinite, or not positive on a logarithmic axis).</p>\n",
                if omitted == 1 { "point" } else { "points" },
            );
        }
        notes
    }

    fn data(&self) -> Table {
        let mut table = Table::new(["series", &self.x_label, &self.y_label, "low", "high"]);
        for series in &self.series {
            for (index, &(x, y)) in series.points.iter().enumerate() {
                let (low, high) = series.error_at(index).unwrap_or((f64::NAN, f64::NAN));
                let figures = [x, y, low, high].map(|value| significant(value, 4));
                table.push(std::iter::once(series.name.clone()).chain(figures));
            }
        }
        table
    }
}
