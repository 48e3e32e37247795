//! Charts of lines through points, with intervals where they are known.

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
    /// The chart's title.
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
}
