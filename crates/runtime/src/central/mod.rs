//! Systems with a dispatcher: one thread at a time decides for all.

mod dedicated;
mod desk;
mod dispatcher;
mod inline;
mod launch;

pub(crate) use launch::launch;
