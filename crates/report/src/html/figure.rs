//! A chart as a figure of the page: its legend, its drawing, its points as a table.

use super::chart::{Chart, Series};
use super::svg::{Drawing, legend_key, series_class};
use super::text::{escape, table_html};
use crate::format::significant;
use crate::table::Table;

impl Chart {
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
        let entries: String = self
            .series
            .iter()
            .enumerate()
            .map(|(index, series): (usize, &Series)| {
                format!(
                    "<button type=\"button\" class=\"{}\" data-series=\"{index}\" \
                 aria-pressed=\"true\">{}{}</button>\n",
                    series_class(index, series),
                    legend_key(index, series),
                    escape(&series.name),
                )
            })
            .collect();
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
