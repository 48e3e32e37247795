//! Values that are words.

use std::net::{SocketAddr, ToSocketAddrs};
use std::time::Duration;

use headway_runtime::Pin;
use headway_workload::duration;

/// The cores that threads are bound to, of `auto`, `off` or `0,1,2`.
///
/// # Errors
/// It is none of these.
pub fn pin(text: &str) -> Result<Pin, String> {
    let core = |part: &str| part.trim().parse::<usize>().ok();
    match text {
        "auto" => Ok(Pin::Auto),
        "off" => Ok(Pin::Off),
        list => match list.split(',').map(core).collect() {
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
