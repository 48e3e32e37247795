//! Values that are words.

use std::net::{SocketAddr, ToSocketAddrs};
use std::time::Duration;

use headway_policy::spec::SpecError;
use headway_policy::systems::ServerSpec;
use headway_policy::{MAX_WORKERS, Shape};
use headway_runtime::Pin;
use headway_words::hint;
use headway_workload::duration;

/// A server's policy and its parameters: `darc,delta=3`. A value that only some numbers of workers or classes can have is checked where
/// the server starts.
///
/// # Errors
/// There is no such policy, parameter or value.
pub fn policy(text: &str) -> Result<ServerSpec, String> {
    let read = || -> Result<ServerSpec, SpecError> {
        let policy: ServerSpec = text.parse()?;
        policy.check(&Shape::new(MAX_WORKERS))?;
        Ok(policy)
    };
    read().map_err(|error| explain(&error))
}

/// What is wrong with a policy, with the nearest valid word.
#[must_use]
pub fn explain(error: &SpecError) -> String {
    let alternatives = error.alternatives();
    let hint = alternatives.map_or(String::new(), |(word, valid)| hint(word, valid));
    format!("{error}{hint}")
}

/// The cores that threads are bound to, of `auto`, `off` or `0,1,2`.
///
/// # Errors
/// It is none of these.
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
/// The scheme is missing or another, or the host is unknown.
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

/// How often workers that take turns as the dispatcher poll for arrivals while a request runs: a time of at least 1 µs.
///
/// # Errors
/// It is no time, or a shorter one: polling costs a good part of a microsecond.
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

    /// One weight a class: how many classes there are the workload says later.
    #[test]
    fn values_that_depend_on_the_classes_are_left_to_the_server() {
        let weighted = policy("wrr,weights=3/1").unwrap();
        assert_eq!(weighted.to_string(), "wrr,weights=3/1");
        assert!(policy("wrr,weights=3/0").is_err());
        assert!(policy("dacr").unwrap_err().contains("'darc'?"));
    }
}
