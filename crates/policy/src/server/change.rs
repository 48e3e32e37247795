//! Changes of parameters while a server serves: which may change, and what follows from the change.

use crate::server::Shape;
use crate::server::role::{Ingress, Local, Monitor};
use crate::server::systems::{Replicas, ServerSpec, System, Visit, check, with};
use crate::spec::{Params, SpecError, Value};
use alloc::boxed::Box;
use alloc::string::String;
use alloc::{vec, vec::Vec};
use core::any::Any;

/// A parameter that another value was chosen for, or follows for.
#[derive(Clone, PartialEq, Debug)]
pub struct ParamChange {
    /// The parameter.
    pub key: &'static str,
    /// Its value so far.
    pub old: Value,
    /// Its value from now on.
    pub new: Value,
}

/// A spec with some parameters changed, and what that changes.
#[derive(Clone, PartialEq, Debug)]
pub struct Changed {
    /// The spec from now on.
    pub spec: ServerSpec,
    /// All parameters as used from now on.
    pub params: Params,
    /// The parameters whose values differ, those included that follow from others.
    pub changes: Vec<ParamChange>,
}

/// Sets parameters of a policy that serves on a server of this shape: `key` and value of each, as in a spec. Builds nothing.
///
/// # Errors
/// [`SpecError`], and then nothing changes: the policy has no such parameter, or takes it at the start only
/// ([`SpecError::SetAtStart`]), or the value is out of range.
pub fn change(
    spec: &ServerSpec,
    shape: &Shape,
    wanted: &[(String, String)],
) -> Result<Changed, SpecError> {
    let about = &spec.policy().about;
    let mut next = spec.spec().clone();
    for (key, value) in wanted {
        // The last of repeated keys wins.
        next.params.retain(|(given, _)| given != key);
        next.params.push((key.clone(), value.clone()));
    }
    let next = ServerSpec::parse(next)?;
    let before = check(spec, shape)?;
    let params = check(&next, shape)?;
    let mut changes = Vec::new();
    for (key, new) in &params {
        let old = before.iter().find(|(before, _)| before == key);
        if let Some((key, old)) = old.filter(|(_, old)| old != new) {
            let (old, new) = (old.clone(), new.clone());
            changes.push(ParamChange { key, old, new });
        }
    }
    // One that the policy did not use so far, and would use now, builds another system.
    let newly_used = params
        .iter()
        .find(|(key, _)| before.iter().all(|(used, _)| used != key));
    let differs = changes.iter().map(|change| change.key);
    let differs = differs.chain(newly_used.map(|(key, _)| *key));
    // Whoever names one is told so, even where its value stays.
    let mut keys: Vec<&str> = wanted.iter().map(|(key, _)| key.as_str()).collect();
    keys.extend(differs);
    if let Some(param) = keys
        .into_iter()
        .find_map(|key: &str| about.param(key).filter(|param| !param.while_serving))
    {
        return Err(SpecError::SetAtStart {
            policy: about.name,
            key: param.key,
            changeable: about.changeable(),
        });
    }
    Ok(Changed {
        spec: next,
        params,
        changes,
    })
}

/// Builds the instances that a [changed](change) spec asks for, one for each dispatcher, of the types that the spec had before: roles that
/// serve [adopt](crate::server::role::Ingress::adopt) their rules.
///
/// # Errors
/// As [`check`]; [`SpecError::SetAtStart`] when the spec builds a system of other types.
pub fn rebuild<I, L, M>(spec: &ServerSpec, shape: &Shape) -> Result<Vec<System<I, L, M>>, SpecError>
where
    I: Ingress + Send + 'static,
    L: Local + Send + 'static,
    M: Monitor + Send + 'static,
{
    let built = build_erased(spec, shape)?;
    let about = &spec.policy().about;
    let built = built.downcast::<Vec<System<I, L, M>>>();
    built
        .map(|built| *built)
        .map_err(|_| SpecError::SetAtStart {
            policy: about.name,
            key: about.params.first().map_or("", |param| param.key),
            changeable: about.changeable(),
        })
}

/// The instances of the spec's system, as a `Vec<System<I, L, M>>` of its own types. Compiled once, where asking each caller's types of each policy would
/// compile every policy once for each.
fn build_erased(spec: &ServerSpec, shape: &Shape) -> Result<Box<dyn Any>, SpecError> {
    with(spec, shape, Erased)
}

/// Hands the instances of a system on, whatever their types.
struct Erased;

impl Visit for Erased {
    type Output = Box<dyn Any>;

    fn visit<I, L, M>(self, system: System<I, L, M>) -> Box<dyn Any>
    where
        I: Ingress + Send + 'static,
        L: Local + Send + 'static,
        M: Monitor + Send + 'static,
    {
        Box::new(vec![system])
    }

    fn visit_replicas<I, L, M>(self, replicas: Replicas<I, L, M>) -> Box<dyn Any>
    where
        I: Ingress + Send + 'static,
        L: Local + Send + 'static,
        M: Monitor + Send + 'static,
    {
        Box::new(replicas.instances)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    fn changed(spec: &str, wanted: &[(&str, &str)]) -> Result<Changed, SpecError> {
        let shape = Shape::new(4).class(1_000, 0.5).class(100_000, 0.5);
        let wanted = wanted
            .iter()
            .map(|&(key, value)| (key.to_string(), value.to_string()));
        change(&spec.parse().unwrap(), &shape, &wanted.collect::<Vec<_>>())
    }

    #[test]
    fn a_change_says_what_follows_from_it() {
        let changed = changed("synergy", &[("factor", "5")]).unwrap();
        let said: Vec<_> = changed
            .changes
            .iter()
            .map(|change| (change.key, change.old.to_string(), change.new.to_string()))
            .collect();
        let each = |key| (key, "2".to_string(), "5".to_string());
        assert_eq!(said, [each("factor"), each("congested_factor")]);
        assert_eq!(changed.spec.to_string(), "synergy,factor=5");
    }

    #[test]
    fn a_later_change_replaces_an_earlier_one() {
        let once = changed("darc,delta=3", &[("delta", "4"), ("delta", "5")]).unwrap();
        assert_eq!(once.spec.to_string(), "darc,delta=5");
        assert_eq!(
            changed("darc,delta=5", &[("delta", "5")]).unwrap().changes,
            []
        );
    }

    #[test]
    fn what_cannot_change_is_refused_with_what_can() {
        let error = changed("concord", &[("q", "7us"), ("k", "3")]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "policy 'concord' takes k at the start only: start the server anew, or change: q"
        );
        let error = changed("jbsq", &[("k", "3")]).unwrap_err();
        assert!(
            error
                .to_string()
                .contains("has no parameter that may change")
        );
        let range = changed("synergy", &[("alpha", "7")]).unwrap_err();
        assert!(matches!(range, SpecError::BadValue { key: "alpha", .. }));
        let unknown = changed("synergy", &[("fator", "7")]).unwrap_err();
        assert!(matches!(unknown, SpecError::UnknownParam { .. }));
    }
}
