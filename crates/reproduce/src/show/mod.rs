//! Results as text, Markdown and HTML, with the same content.

mod html;
mod markdown;
mod tables;

#[cfg(feature = "live")]
pub(crate) use html::chart;
pub use html::page;
pub use markdown::markdown;
#[cfg(feature = "live")]
pub(crate) use markdown::rows;
#[cfg(feature = "live")]
pub(crate) use tables::list;
pub use tables::{claims, curves, few_samples, listing, overview, reasons, singles, systems, text};
