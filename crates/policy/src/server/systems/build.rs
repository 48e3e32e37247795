//! How a policy becomes a system: its parameters are read once, against the shape, and what was read is built.

use super::describe::ServerPolicy;
use super::visit::Visit;
use crate::server::{Resume, Shape};
use crate::spec::{Params, Reader, Spec, SpecError};

/// A policy's line in the registry. Reading can fail, building cannot: a check reads and builds nothing, so check and
/// builder cannot disagree.
pub(super) trait Build {
    /// What it says of itself.
    const POLICY: &'static ServerPolicy;

    /// What its parameters set on a server of the shape that they were read for.
    type Settings;

    /// Reads all parameters. Refuses values that no server, or none of this shape, can have.
    fn read(read: &mut Reader<'_>, shape: &Shape) -> Result<Self::Settings, SpecError>;

    /// Hands the system with these settings to the visitor.
    fn build<V: Visit>(
        settings: Self::Settings,
        params: Params,
        shape: &Shape,
        visitor: V,
    ) -> V::Output;
}

/// The settings of a spec on a server of this shape, and its parameters as used.
pub(super) fn read_settings<B: Build>(
    spec: &Spec,
    shape: &Shape,
) -> Result<(B::Settings, Params), SpecError> {
    let mut read = Reader::new(&B::POLICY.about, spec)?;
    let settings = B::read(&mut read, shape)?;
    if shape.resume == Resume::OwnWorker && B::POLICY.facts(spec).roams() {
        return Err(SpecError::Roams {
            policy: B::POLICY.about.name,
        });
    }
    Ok((settings, read.used()))
}

/// The registry's `Entry` of a policy without parameters: what it says of itself, and what makes its system of a shape.
macro_rules! entry_without_params {
    ($policy:ident, $system:ident) => {
        pub(super) enum Entry {}

        impl $crate::server::systems::build::Build for Entry {
            const POLICY: &'static ServerPolicy = &$policy;
            type Settings = ();

            fn read(
                _: &mut $crate::spec::Reader<'_>,
                _: &$crate::server::Shape,
            ) -> Result<(), $crate::spec::SpecError> {
                Ok(())
            }

            fn build<V: $crate::server::systems::Visit>(
                (): (),
                _: $crate::spec::Params,
                shape: &$crate::server::Shape,
                visitor: V,
            ) -> V::Output {
                visitor.visit($system(shape))
            }
        }
    };
}
pub(super) use entry_without_params;
