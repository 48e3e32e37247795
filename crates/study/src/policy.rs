//! Policies in words, checked, with the nearest valid word in an error.

use headway_policy::rack::RackShape;
use headway_policy::server::systems::ServerSpec;
use headway_policy::spec::{Spec, SpecError};
use headway_policy::{ClassHint, Level, MAX_WORKERS, Policy, PolicySpec, Shape};
use headway_words::hint;

/// A policy of any level and its parameters: `darc,delta=3`.
///
/// # Errors
/// There is no such policy, parameter or value.
pub fn any_policy(text: &str) -> Result<PolicySpec, String> {
    let spec: Spec = text.parse().map_err(|error| explain(&error))?;
    // A name that no level knows gets suggestions from every level; an error in a rack's inner policy, from servers alone.
    let unknown = Policy::find(&spec.name).is_none();
    let policy = PolicySpec::parse(spec).map_err(|error| {
        if unknown {
            explain_any_level(&error)
        } else {
            explain(&error)
        }
    })?;
    check(&policy).map_err(|error| explain(&error))?;
    Ok(policy)
}

/// A policy of a server or a rack.
///
/// # Errors
/// There is no such policy, parameter or value.
pub fn policy_of_servers(text: &str) -> Result<PolicySpec, String> {
    match any_policy(text)? {
        PolicySpec::Host { spec, .. } => Err(format!(
            "'{}' deals the cores of a host out to applications: 'headway sim' simulates it, and 'headway host' runs it live",
            spec.name
        )),
        policy => Ok(policy),
    }
}

/// A policy of one server that a live server can run, so no ideal.
///
/// # Errors
/// There is no such policy, parameter or value.
pub fn server_policy(text: &str) -> Result<ServerSpec, String> {
    let policy = any_policy(text)?;
    policy.server().cloned().map_err(|error| error.to_string())
}

/// Checks the values against a server, a rack or a host with the largest number of workers.
fn check(policy: &PolicySpec) -> Result<(), SpecError> {
    let shape = Shape::new(MAX_WORKERS);
    match policy {
        PolicySpec::Server(server) => {
            server.check(&shape)?;
        }
        PolicySpec::Fluid => {}
        PolicySpec::Rack { spec, inner, .. } => {
            headway_policy::rack::systems::check(spec, &small_rack())?;
            if let Some(inner) = inner {
                inner.check(&shape)?;
            }
        }
        PolicySpec::Host { spec, .. } => {
            headway_policy::host::systems::check(spec)?;
        }
    }
    Ok(())
}

fn small_rack() -> RackShape {
    RackShape {
        cores: vec![1; 2],
        types: vec![ClassHint::new(1e3, 1.0)],
        room: 1,
        seed: 0,
    }
}

/// The error in a policy, with the nearest valid word.
#[must_use]
pub fn explain(error: &SpecError) -> String {
    let alternatives = error.alternatives();
    let hint = alternatives.map_or(String::new(), |(word, valid)| hint(word, valid));
    format!("{error}{hint}")
}

/// Explains a mistake in a policy of any level, with the nearest valid word.
#[must_use]
pub fn explain_any_level(error: &SpecError) -> String {
    let SpecError::UnknownPolicy { name, .. } = error else {
        return explain(error);
    };
    let [servers, racks, hosts] = Level::ALL.map(Level::names);
    let all = [&servers[..], &racks, &hosts].concat();
    let hint = Some(hint(name, &all)).filter(|hint| !hint.is_empty());
    let end = hint.unwrap_or_else(|| ".".into());
    format!(
        "no policy is called '{name}'{end} Of a server there are: {}; of a rack: {}; of a host: {}",
        servers.join(", "),
        racks.join(", "),
        hosts.join(", "),
    )
}
