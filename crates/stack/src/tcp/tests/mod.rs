//! Tables against each other in virtual time, over a wire that is as bad as a seed says.

mod attacks;
mod dropped;
mod exact;
mod scripts;
mod wire;
