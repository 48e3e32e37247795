//! The complete settings of a switch: flags override the file, and the file overrides defaults.

use super::args::{RackFormat, RunArgs};
use super::file::{KEYS, RackFile};
use crate::args::{host_port as address, rack_policy, server_host_port, time};
use crate::commands::serve::config::Sourced;
use crate::device_port::DevicePort;
use anyhow::Result;
use headway_ops::socket::ControlPlace;
use headway_plan::RackSlo;
use headway_policy::spec::Spec;
use headway_policy::{ClassHint, MAX_WORKERS};
use headway_rack::agent::AgentKey;
use headway_rack::slo::SloWatch;
use headway_rack::{AddressError, ServerAddresses};
use headway_report::{Slo, SloError};
use headway_sim::class_hints;
use headway_workload::Workload;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::path::PathBuf;

const LISTEN: &str = "127.0.0.1:7100";
const TYPES: u64 = 32;
/// Type bytes that name a type: all but UNKNOWN.
const MOST_TYPES: u64 = 255;
/// The assumed execution time of a type before its first measurement: long, so that it does not delay shorter types.
const UNSEEN_NS: f64 = 1e9;

/// The complete settings. Those that the system may still refuse keep their source for the error message.
pub(super) struct RackSettings {
    pub(super) listen: Sourced<RackListen>,
    pub(super) servers: Vec<SocketAddr>,
    pub(super) cores: Vec<usize>,
    pub(super) addresses: ServerAddresses,
    pub(super) policy: Sourced<Spec>,
    /// The names of the declared types.
    pub(super) declared: Vec<String>,
    /// The declared types, then room for others.
    pub(super) types: Vec<ClassHint>,
    /// Time after which a silent server leaves; none: servers never leave.
    pub(super) silent_ns: Option<u64>,
    /// None: candidates compete by the policy's own score, and no bound is watched.
    pub(super) slo: Option<RackSlo>,
    /// None: the switch ignores agents.
    pub(super) agents: Option<AgentSettings>,
    pub(super) metrics: Option<Sourced<SocketAddr>>,
    pub(super) ctl: Sourced<ControlPlace>,
    /// The interfaces of the switch in the kernel; none: the switch runs in user space.
    pub(super) xdp: Option<Sourced<Vec<String>>>,
    /// The source of the setting that servers answer clients directly; none: answers pass the switch. Only with `xdp`.
    pub(super) direct: Option<Sourced<()>>,
    pub(super) seed: u64,
    pub(super) format: RackFormat,
}

/// The value of `--listen`.
pub(super) enum RackListen {
    Udp(SocketAddr),
    /// A port of a device, on all of its addresses, for a switch in user space.
    Device(DevicePort),
}

impl RackListen {
    fn parse(text: &str) -> Result<Self, String> {
        match DevicePort::parse(text) {
            Some(device) => device.map(Self::Device),
            None => address(text).map(Self::Udp),
        }
    }

    /// The address in the form of the flag, with the port that the system chose.
    pub(super) fn shown(&self, at: SocketAddr) -> String {
        match self {
            Self::Udp(_) => format!("udp://{at}"),
            Self::Device(DevicePort { device, .. }) => DevicePort {
                device: device.clone(),
                port: at.port(),
            }
            .to_string(),
        }
    }

    /// The default address for agents' reports: the port after this one.
    fn agents(&self) -> SocketAddr {
        let (ip, port) = match self {
            Self::Udp(at) => (at.ip(), at.port()),
            Self::Device(device) => (Ipv4Addr::UNSPECIFIED.into(), device.port),
        };
        // If the system chooses the switch's port, or that port is the last one, the system chooses the agents' port too.
        let next = match port {
            0 => 0,
            port => port.checked_add(1).unwrap_or(0),
        };
        SocketAddr::new(ip, next)
    }
}

/// The address for agents' reports, and the agents' key.
pub(super) struct AgentSettings {
    pub(super) at: Sourced<SocketAddr>,
    pub(super) key: AgentKey,
}

/// A server from a flag or the file.
struct NamedServer {
    addr: SocketAddr,
    cores: usize,
}

impl RunArgs {
    /// Merges the settings: flags override the file, and the file overrides defaults.
    pub(super) fn settings(self) -> Result<RackSettings> {
        let file = self
            .config
            .as_deref()
            .map(|path| RackFile::read(path, KEYS));
        let file = file.transpose()?;
        let file = file.unwrap_or_default();
        let set = &file.config;
        let listen = file
            .given("listen", self.listen, set.listen.as_ref(), || LISTEN.into())
            .parse(|text| RackListen::parse(text))?;
        let servers = servers(&self.server, &file)?;
        let addresses = check_servers(&servers, &listen)?;
        let workload = declared_workload(self.workload, &file)?;
        let declared: Vec<String> = workload.as_ref().map_or(Vec::new(), |workload| {
            let names = workload.class_names();
            names.into_iter().map(str::to_owned).collect()
        });
        let room = type_room(self.types, &file, declared.len())?;
        let mut types = workload.map_or(Vec::new(), |workload| class_hints(&workload));
        types.resize(room, ClassHint::new(UNSEEN_NS, 0.0));
        let silent_ns = file
            .given("silence", self.silence, set.silence.as_ref(), || {
                "50ms".into()
            })
            .parse(|text| time(text))?
            .value;
        let metrics = file.given_if_set("metrics", self.metrics, set.metrics.as_ref());
        let metrics = metrics.map(|text| text.parse(|text| address(text)));
        let metrics = metrics.transpose()?;
        let slo = file.given_if_set("slo", self.slo, set.slo.as_ref());
        let slo = slo.map(|text| text.parse(|text| watched_slo(text, &declared)));
        let slo = slo.transpose()?.map(|slo| slo.value);
        let agents = agents(self.agent_key, self.agents, &file, &listen.value)?;
        let xdp = file.given_if_set("xdp", self.xdp, set.xdp.as_ref());
        let xdp = xdp.map(|text| text.parse(|text| interface_names(text)));
        let xdp = xdp.transpose()?;
        let direct = direct(self.direct, &file);
        if let (Some(direct), None) = (&direct, &xdp) {
            let why = "only the switch in the kernel can leave responses to the servers: add --xdp DEV[,DEV]";
            return Err(direct.refused(why));
        }
        let ctl = control_place(self.ctl, self.no_ctl, &file);
        Ok(RackSettings {
            listen,
            cores: servers.iter().map(|server| server.value.cores).collect(),
            servers: servers.iter().map(|server| server.value.addr).collect(),
            addresses,
            policy: file
                .given("policy", self.policy, set.policy.as_ref(), || {
                    "pallas".into()
                })
                .parse(|text| rack_policy(text))?,
            declared,
            types,
            silent_ns: (silent_ns > 0).then_some(silent_ns),
            slo,
            agents,
            metrics,
            ctl,
            xdp,
            direct,
            seed: self
                .seed
                .or(set.seed.as_ref().map(|seed| *seed.get_ref()))
                .unwrap_or(1),
            format: self.format,
        })
    }
}

/// The workload whose classes are the declared types.
fn declared_workload(flag: Option<String>, file: &RackFile) -> Result<Option<Workload>> {
    let text = file.given_if_set("workload", flag, file.config.workload.as_ref());
    let workload = text.map(|text| text.parse(|name| Workload::resolve(name)));
    Ok(workload.transpose()?.map(|workload| workload.value))
}

/// Number of types that the switch has room for, the declared ones among them.
fn type_room(flag: Option<u64>, file: &RackFile, declared: usize) -> Result<usize> {
    let set = file.config.types.as_ref();
    let room = file.given("types", flag, set, || TYPES.max(declared as u64));
    let room = room.parse(|&types| {
        let fewest = declared.max(1) as u64;
        if (fewest..=MOST_TYPES).contains(&types) {
            Ok(types as usize)
        } else {
            Err(format!(
                "a switch of these settings has {fewest} to {MOST_TYPES} types"
            ))
        }
    });
    Ok(room?.value)
}

/// The place of the control socket: flags over file over the place by port.
fn control_place(path: Option<PathBuf>, off: bool, file: &RackFile) -> Sourced<ControlPlace> {
    let set = &file.config;
    let is_off = off || (path.is_none() && set.no_ctl.as_ref().is_some_and(|no| *no.get_ref()));
    let path = path.or_else(|| Some(set.ctl.as_ref()?.get_ref().clone()));
    let place = match path {
        _ if is_off => ControlPlace::Off,
        Some(path) => ControlPlace::At(path),
        None => ControlPlace::Usual,
    };
    Sourced::new(place, "--ctl".into())
}

/// The source of `direct`: the flag, or the file's key if it is true.
fn direct(flag: bool, file: &RackFile) -> Option<Sourced<()>> {
    if flag {
        return Some(Sourced::new((), "--direct".into()));
    }
    let set = file.config.direct.as_ref()?;
    set.get_ref()
        .then(|| Sourced::new((), file.place("direct", set)))
}

/// Parses an SLO whose bounds a switch can count, of classes that are declared.
fn watched_slo(text: &str, declared: &[String]) -> Result<RackSlo, String> {
    let slo: Slo = text.parse().map_err(|error: SloError| error.to_string())?;
    slo.check_classes(declared.iter().map(String::as_str))
        .map_err(|error| match declared {
            [] => format!(
                "{error}: declare the types' names by --workload NAME|FILE, or bound class.*"
            ),
            _ => error.to_string(),
        })?;
    SloWatch::new(&slo, 0).map_err(|error| error.to_string())?;
    Ok(RackSlo {
        slo,
        declared: declared.to_vec(),
    })
}

/// Parses `DEV[,DEV]`.
fn interface_names(text: &str) -> Result<Vec<String>, String> {
    let names: Vec<String> = text.split(',').map(|name| name.trim().to_owned()).collect();
    for (number, name) in names.iter().enumerate() {
        if name.is_empty() {
            return Err(format!(
                "'{text}' names no interface in one place: write DEV[,DEV], such as eth0,eth1"
            ));
        }
        if names[..number].contains(name) {
            return Err(format!(
                "{name} is named twice: an interface has one XDP program"
            ));
        }
    }
    Ok(names)
}

/// The agents' address and key; none without a key.
fn agents(
    key: Option<PathBuf>,
    at: Option<String>,
    file: &RackFile,
    listen: &RackListen,
) -> Result<Option<AgentSettings>> {
    let set = &file.config;
    let key = file.given_if_set("agent-key", key, set.agent_key.as_ref());
    let at = file.given_if_set("agents", at, set.agents.as_ref());
    let Some(key) = key else {
        return match at {
            Some(at) => Err(at.refused("agents are heard by a key only: add --agent-key FILE")),
            None => Ok(None),
        };
    };
    let key = key.parse(|path| AgentKey::read(path))?.value;
    let at = match at {
        Some(at) => at.parse(|text| address(text))?,
        None => Sourced::new(listen.agents(), "--agents".into()),
    };
    Ok(Some(AgentSettings { at, key }))
}

/// The servers of the flags; without flags, those of the file.
fn servers(flags: &[String], file: &RackFile) -> Result<Vec<Sourced<NamedServer>>> {
    let set = &file.config.server;
    let named: Vec<Sourced<String>> = if flags.is_empty() {
        let named = set
            .iter()
            .map(|server| Sourced::new(server.get_ref().clone(), file.place("server", server)));
        named.collect()
    } else {
        let named = flags.iter().cloned();
        named
            .map(|text| Sourced::new(text, "--server".into()))
            .collect()
    };
    named
        .into_iter()
        .map(|server| server.parse(|text| named_server(text)))
        .collect()
}

/// Parses `ADDR:PORT[,cores=N]`.
fn named_server(text: &str) -> Result<NamedServer, String> {
    let (place, cores) = match text.split_once(',') {
        None => (text, 1),
        Some((place, rest)) => {
            let cores = rest.trim().strip_prefix("cores=");
            let cores = cores.and_then(|cores| cores.parse::<usize>().ok());
            let cores = cores.filter(|cores| (1..=MAX_WORKERS).contains(cores));
            let cores = cores.ok_or_else(|| {
                format!("'{rest}' is not cores=N with 1 to {MAX_WORKERS} workers, such as cores=4")
            })?;
            (place, cores)
        }
    };
    Ok(NamedServer {
        addr: server_host_port(place)?,
        cores,
    })
}

fn check_servers(
    servers: &[Sourced<NamedServer>],
    listen: &Sourced<RackListen>,
) -> Result<ServerAddresses> {
    for server in servers {
        if is_own(&listen.value, server.value.addr) {
            return Err(server.refused(format!(
                "{} is where the switch itself listens: name the server's own address, or another --listen",
                server.value.addr
            )));
        }
    }
    let addresses: Vec<_> = servers.iter().map(|server| server.value.addr).collect();
    ServerAddresses::new(&addresses).map_err(|error| {
        let at_fault = match &error {
            AddressError::Twice { server } | AddressError::Unspecified { server } => servers
                .iter()
                .rev()
                .find(|other| other.value.addr == *server),
            AddressError::None | AddressError::TooMany { .. } => servers.last(),
        };
        match at_fault {
            Some(server) => server.refused(error),
            None => crate::error::usage("--server", error),
        }
    })
}

/// Whether a packet to `server` would reach the switch itself.
fn is_own(listen: &RackListen, server: SocketAddr) -> bool {
    let RackListen::Udp(listen) = *listen else {
        return false;
    };
    if listen.port() == 0 || listen.port() != server.port() {
        return false;
    }
    let is_of_this_machine = || UdpSocket::bind((server.ip(), 0)).is_ok();
    server.ip().to_canonical() == listen.ip().to_canonical()
        || (listen.ip().is_unspecified() && is_of_this_machine())
}
