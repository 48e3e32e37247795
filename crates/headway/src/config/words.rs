//! Values that are words.

use std::fs;
use std::net::{SocketAddr, SocketAddrV6, ToSocketAddrs};
use std::time::Duration;

use headway_policy::server::systems::ServerSpec;
use headway_policy::spec::SpecError;
use headway_policy::{MAX_WORKERS, Shape};
use headway_runtime::{Pin, ServerSettings};
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
    resolve(place).map_err(|why| wrong(&why))
}

/// The address of `HOST:PORT`: of several that a name has the first. A link-local address may name its interface: `[fe80::1%eth0]:7000`.
///
/// # Errors
/// Why there is none, as the end of a sentence.
pub fn resolve(place: &str) -> Result<SocketAddr, String> {
    if let Some(scoped) = scoped(place) {
        return scoped.map(SocketAddr::V6);
    }
    let found = place.to_socket_addrs();
    let mut found = found.map_err(|error| format!("cannot be resolved ({error})"))?;
    found.next().ok_or_else(|| "names no address".to_owned())
}

/// An address with an interface's name or number; `None` for any other.
fn scoped(place: &str) -> Option<Result<SocketAddrV6, String>> {
    let (host, port) = place.rsplit_once(':')?;
    let host = host.strip_prefix('[').and_then(|it| it.strip_suffix(']'));
    let (ip, interface) = host.unwrap_or(place).split_once('%')?;
    let (Some(_), Ok(ip)) = (host, ip.parse()) else {
        let end = "names an interface without brackets: write [fe80::1%eth0]:7000";
        return Some(Err(end.to_owned()));
    };
    let Ok(port) = port.parse() else {
        return Some(Err(format!("has no port: '{port}' is none")));
    };
    let by_name = || {
        let index = fs::read_to_string(format!("/sys/class/net/{interface}/ifindex"));
        index.ok()?.trim().parse().ok()
    };
    let scope = interface.parse::<u32>().ok().or_else(by_name);
    let address = scope.map(|scope| SocketAddrV6::new(ip, port, 0, scope));
    Some(address.ok_or_else(|| {
        format!("names the interface '{interface}', which this machine does not have (`ip link` lists them)")
    }))
}

/// The interval between polls for arrivals while a request runs, where no dispatcher has a thread for it: 1 µs to 1 s.
///
/// # Errors
/// When the word is no time, or out of range.
pub fn look_every(text: &str) -> Result<Duration, String> {
    let ns = duration::parse(text).map_err(|error| error.to_string())?;
    let interval = Duration::from_nanos(ns);
    let checked = ServerSettings::check_look_interval(interval);
    checked.map_err(|error| error.to_string())?;
    Ok(interval)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_local_address_names_its_interface() {
        let parsed = address("udp://[fe80::1%lo]:7000").unwrap();
        let lo = fs::read_to_string("/sys/class/net/lo/ifindex").unwrap();
        assert_eq!(parsed.to_string(), format!("[fe80::1%{}]:7000", lo.trim()));
        assert_eq!(
            resolve("[fe80::1%3]:7"),
            Ok("[fe80::1%3]:7".parse().unwrap())
        );
        let refused = address("udp://[fe80::1%no-such]:7000").unwrap_err();
        assert!(refused.contains("'no-such'"), "{refused}");
        let refused = address("udp://fe80::1%lo:7000").unwrap_err();
        assert!(refused.contains("[fe80::1%eth0]:7000"), "{refused}");
        assert_eq!(address("udp://[::1]:7").unwrap().to_string(), "[::1]:7");
    }

    /// One weight per class; the number of classes is checked later, with the workload.
    #[test]
    fn values_that_depend_on_the_classes_are_left_to_the_server() {
        let weighted = policy("wrr,weights=3/1").unwrap();
        assert_eq!(weighted.to_string(), "wrr,weights=3/1");
        assert!(policy("wrr,weights=3/0").is_err());
        assert!(policy("dacr").unwrap_err().contains("'darc'?"));
    }
}
