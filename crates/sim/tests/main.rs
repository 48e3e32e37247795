//! The simulator against theory, against the papers, and against what must always hold.

mod admission;
mod changes;
mod host;
mod ordered;
mod persephone;
#[path = "preemption/main.rs"]
mod preemption;
mod rack;
mod racks;
mod removal;
mod slices;
mod stable;
mod theory;
