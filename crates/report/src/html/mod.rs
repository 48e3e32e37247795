//! Reports as one HTML file that needs no network, no server and no library.
//!
//! Charts are inline SVG drawn here, with a page's worth of script for hovering and hiding series.
//! A plotting library such as plotly was the alternative: embedded for offline use it adds some
//! 4 MB to every report and draws nothing until its script has run. These pages are some tens of
//! kilobytes, show everything without script, print, follow the reader's light or dark scheme, and
//! can be compared by `diff`, since equal results give equal bytes.

mod axis;
mod chart;
mod figure;
mod page;
mod schedule;
mod svg;
mod text;

pub use chart::{Chart, Series};
pub use page::Page;

#[cfg(test)]
mod tests;
