//! Values that are words.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6, ToSocketAddrs, UdpSocket};
use std::time::Duration;
use std::{fs, io};

use headway_policy::server::systems::ServerSpec;
use headway_policy::spec::SpecError;
use headway_policy::{MAX_WORKERS, Shape};
use headway_runtime::{Pin, ServerSettings};
use headway_study::explain;
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
    of_url(url, resolve)
}

/// The address of a server that listens at `udp://HOST:PORT`; of several that a host's name has the [one that does](resolve_server).
///
/// # Errors
/// As [`address`].
pub fn server_address(url: &str) -> Result<SocketAddr, String> {
    of_url(url, resolve_server)
}

fn of_url(
    url: &str,
    resolve: impl FnOnce(&str) -> Result<SocketAddr, String>,
) -> Result<SocketAddr, String> {
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
    resolve_all(place).map(|found| found[0])
}

/// The address of a server at `HOST:PORT`. Of several that a name has (`localhost` is `::1` and `127.0.0.1`) the first that does not refuse an
/// empty datagram, which takes up to 50 ms each and which servers count as malformed; if all refuse it, the first.
///
/// # Errors
/// As [`resolve`].
pub fn resolve_server(place: &str) -> Result<SocketAddr, String> {
    resolve_all(place).map(|found| listening(&found))
}

/// Of several addresses the first that does not refuse a datagram; the first if all do, or there is no other.
fn listening(found: &[SocketAddr]) -> SocketAddr {
    let listens = match found {
        [_] => None,
        _ => found.iter().find(|addr| !refuses(**addr)),
    };
    *listens.unwrap_or(&found[0])
}

/// Whether the machine at this address says that nobody listens there, or there is no way to it.
fn refuses(addr: SocketAddr) -> bool {
    const PATIENCE: Duration = Duration::from_millis(50);
    let any: SocketAddr = match addr {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    };
    let ask = || -> io::Result<()> {
        let socket = UdpSocket::bind(any)?;
        socket.connect(addr)?;
        socket.set_read_timeout(Some(PATIENCE))?;
        socket.send(&[])?;
        socket.recv(&mut [0; 1]).map(|_| ())
    };
    // Silence is what a server answers.
    let is_silence = |kind| matches!(kind, io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut);
    ask().is_err_and(|error| !is_silence(error.kind()))
}

/// Every address of `HOST:PORT`, at least one.
fn resolve_all(place: &str) -> Result<Vec<SocketAddr>, String> {
    if let Some(scoped) = scoped(place) {
        return scoped.map(|addr| vec![SocketAddr::V6(addr)]);
    }
    let found = place.to_socket_addrs();
    let found: Vec<SocketAddr> = found
        .map_err(|error| format!("cannot be resolved ({error})"))?
        .collect();
    if found.is_empty() {
        return Err("names no address".to_owned());
    }
    Ok(found)
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
    fn of_several_addresses_a_server_has_the_one_that_does_not_refuse() {
        let listens = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let addr = listens.local_addr().unwrap();
        assert!(!refuses(addr));
        // Of this process's own, and a port that the system gives to no socket that asks for any.
        let [_, high, middle, low] = std::process::id().to_be_bytes();
        let gone = SocketAddr::from(([127, 128 | high, middle, low], 9));
        assert!(refuses(gone));
        assert_eq!(listening(&[gone, addr]), addr);
        assert_eq!(listening(&[addr, gone]), addr);
        assert_eq!(listening(&[gone, gone]), gone);
        // `localhost` may be `::1` first, where nobody listens at this port of 127.0.0.1.
        let url = format!("udp://localhost:{}", addr.port());
        assert_eq!(server_address(&url), Ok(addr));
        assert!(server_address("udp://127.0.0.1:9").is_ok(), "the only one");
    }

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
