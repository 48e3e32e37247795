//! What every engine is made of: its settings, the classes, how a policy is carried out, and by which threads.

pub(crate) mod admission;
pub(crate) mod class;
mod fiber_context;
pub(crate) mod launch;
pub(crate) mod layout;
pub(crate) mod layout_costs;
pub(crate) mod parts;
pub(crate) mod settings;
