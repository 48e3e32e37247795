//! Values that are words.

use std::net::{SocketAddr, ToSocketAddrs};
use std::time::Duration;

use headway_policy::server::systems::ServerSpec;
use headway_policy::spec::SpecError;
use headway_policy::{MAX_WORKERS, Shape};
use headway_runtime::Pin;
use headway_words::hint;
use headway_workload::duration;

/// A server's policy and its parameters: `darc,delta=3`. The server checks at its start the values that depend on the number of workers
/// or classes.
///
/// # Errors
/// When there is no such policy, parameter or value.
pub fn policy(text: &str) -> Result<ServerSpec, String> {
    let read = || -> Result<ServerSpec, SpecError> {
        let policy: ServerSpec = text.parse()?;
        policy.check(&Shape::new(MAX_WORKERS))?;
        Ok(policy)
    };
    read().map_err(|error| explain(&error))
}

/// The error in a policy, with the nearest valid word.
#[must_use]
pub fn explain(error: &SpecError) -> String {
    let alternatives = error.alternatives();
    let hint = alternatives.map_or(String::new(), |(word, valid)| hint(word, valid));
    format!("{error}{hint}")
}

/// The cores that threads are bound to, of `auto`, `off` or `0,1,2`.
///
/// # Errors
/// When the word is none of these.
pub fn pin(text: &str) -> Result<Pin, String> {
    match text {
        "auto" => Ok(Pin::Auto),
        "off" => Ok(Pin::Off),
        list => match list
            .split(',')
            .map(|part: &str| part.trim().parse::<usize>().ok())
            .collect()
        {
            Some(cores) => Ok(Pin::Cores(cores)),
            None => Err(format!(
                "'{list}' is not auto, off or a list of cores such as 0,1,2"
            )),
        },
    }
}

/// The address of `udp://HOST:PORT`; a host's name is resolved.
///
/// # Errors
/// When the scheme is missing or different, or the host is unknown.
pub fn address(url: &str) -> Result<SocketAddr, String> {
    let wrong = |why: &str| format!("'{url}' {why}: write udp://HOST:PORT");
    let Some((scheme, place)) = url.split_once("://") else {
        return Err(wrong("has no scheme"));
    };
    if scheme != "udp" {
        return Err(wrong("is not udp"));
    }
    let mut addresses = place
        .to_socket_addrs()
        .map_err(|error| wrong(&format!("cannot be resolved ({error})")))?;
    addresses.next().ok_or_else(|| wrong("names no address"))
}

/// The interval between polls for arrivals while a request runs, where workers take turns as the dispatcher: at least 1 µs.
///
/// # Errors
/// When the word is no time or below 1 µs: polling costs a good part of a microsecond.
pub fn look_every(text: &str) -> Result<Duration, String> {
    const LEAST_NS: u64 = 1_000;
    match duration::parse(text).map_err(|error| error.to_string())? {
        ns if ns >= LEAST_NS => Ok(Duration::from_nanos(ns)),
        _ => Err(format!(
            "'{text}' is too short, since a look can take a microsecond: at least 1us"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One weight per class; the number of classes is checked later, with the workload.
    #[test]
    fn values_that_depend_on_the_classes_are_left_to_the_server() {
        let weighted = policy("wrr,weights=3/1").unwrap();
        assert_eq!(weighted.to_string(), "wrr,weights=3/1");
        assert!(policy("wrr,weights=3/0").is_err());
        assert!(policy("dacr").unwrap_err().contains("'darc'?"));
    }
}
