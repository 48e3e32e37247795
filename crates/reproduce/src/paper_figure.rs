//! The paper's figure that an experiment repeats.

use serde::Serialize;

/// A figure or table of a paper, as the file of an experiment describes it.
#[derive(Clone, Debug, Serialize)]
pub struct PaperFigure {
    /// The experiment's name.
    pub name: String,
    /// Title of the figure.
    pub title: String,
    /// The paper.
    pub paper: String,
    /// Number of the figure or table in the paper.
    pub figure: String,
    /// The differences between the paper's testbed and ours, on one line.
    pub testbed: String,
}

impl PaperFigure {
    /// The paper, the figure and its title: the heading of a result.
    pub(crate) fn heading(&self) -> String {
        format!("{}, {}: {}", self.paper, self.figure, self.title)
    }
}
