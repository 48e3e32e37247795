//! The complete settings of a switch: flags override the file, and the file overrides defaults.

use super::args::{RackFormat, RunArgs};
use super::file::{KEYS, RackFile};
use super::listen::RackListen;
use super::named::{NamedServer, check_servers, named_servers};
use crate::args::{host_port as address, rack_policy, time};
use crate::commands::serve::config::Sourced;
use anyhow::Result;
use headway_ops::socket::ControlPlace;
use headway_plan::RackSlo;
use headway_policy::ClassHint;
use headway_policy::rack::StepTables;
use headway_policy::spec::Spec;
use headway_rack::agent::AgentKey;
use headway_rack::slo::SloWatch;
use headway_rack::{RackRoster, ServerAddresses};
use headway_report::{Slo, SloError};
use headway_sim::class_hints;
use headway_workload::Workload;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;
use toml::Spanned;

const LISTEN: &str = "127.0.0.1:7100";
const TYPES: u64 = 32;
/// Time for a control plane of the switch in the kernel to come back: for a person, too.
const LEASE: &str = "600s";
/// The process renews a lease four times while it lasts: a quarter of this is more than a busy machine keeps it waiting.
const SHORTEST_LEASE: Duration = Duration::from_secs(1);
const NO_KEY: &str = "agents are heard by a key only: add --agent-key FILE";
/// Places for servers at least, unless told otherwise.
const SPARE: usize = 16;
/// Type bytes that name a type: all but UNKNOWN.
const MOST_TYPES: u64 = 255;
/// The assumed execution time of a type before its first measurement: long, so that it does not delay shorter types.
const UNSEEN_NS: f64 = 1e9;

/// The complete settings. Those that the system may still refuse keep their source for the error message.
pub(super) struct RackSettings {
    pub(super) listen: Sourced<RackListen>,
    /// The servers that are named.
    pub(super) servers: Vec<NamedServer>,
    /// Places for servers, those named among them.
    pub(super) places: usize,
    /// The file that names the servers, to be read anew on SIGHUP; none: flags name them.
    pub(super) servers_file: Option<PathBuf>,
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
    /// How long the switch in the kernel outlives its process; none: it ends with it. Only with `xdp`.
    pub(super) lease: Option<Duration>,
    pub(super) seed: u64,
    pub(super) format: RackFormat,
}

impl RackSettings {
    /// The named servers in their places.
    pub(super) fn roster(&self) -> RackRoster {
        let named = self.servers.iter();
        let named: Vec<_> = named.map(|server| (server.addr, server.cores)).collect();
        RackRoster::new(&named, self.places)
    }
}

/// The address for agents' reports, and the agents' key.
pub(super) struct AgentSettings {
    pub(super) at: Sourced<SocketAddr>,
    pub(super) key: AgentKey,
    /// Whether agents with the key announce servers that are not in the rack.
    pub(super) may_join: bool,
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
        let servers = named_servers(&self.server, &file)?;
        let servers = check_servers(&servers, &listen.value)?;
        let servers_file = self.config.clone().filter(|_| self.server.is_empty());
        let workload = declared_workload(self.workload, &file)?;
        let declared: Vec<String> = workload.as_ref().map_or(Vec::new(), |workload| {
            let names = workload.class_names();
            names.into_iter().map(str::to_owned).collect()
        });
        let room = type_room(self.types, &file, declared.len())?;
        let mut types = workload.map_or(Vec::new(), |workload| class_hints(&workload));
        types.resize(room, ClassHint::new(UNSEEN_NS, 0.0));
        let silent_ns = time_of("silence", self.silence, set.silence.as_ref(), "50ms", &file)?;
        let metrics = file.given_if_set("metrics", self.metrics, set.metrics.as_ref());
        let metrics = metrics.map(|text| text.parse(|text| address(text)));
        let metrics = metrics.transpose()?;
        let slo = file.given_if_set("slo", self.slo, set.slo.as_ref());
        let slo = slo.map(|text| text.parse(|text| watched_slo(text, &declared)));
        let slo = slo.transpose()?.map(|slo| slo.value);
        let may_join = self.agents_join || is_set(file.config.agents_join.as_ref());
        let agents = agents(self.agent_key, self.agents, may_join, &file, &listen.value)?;
        let xdp = file.given_if_set("xdp", self.xdp, set.xdp.as_ref());
        let xdp = xdp.map(|text| text.parse(|text| interface_names(text)));
        let xdp = xdp.transpose()?;
        let direct = direct(self.direct, &file);
        if let (Some(direct), None) = (&direct, &xdp) {
            let why = "only the switch in the kernel can leave responses to the servers: add --xdp DEV[,DEV]";
            return Err(direct.refused(why));
        }
        let lease = file.given("lease", self.lease, set.lease.as_ref(), || LEASE.into());
        let lease = lease.parse(|text| lease_of(text))?.value;
        let ctl = control_place(self.ctl, self.no_ctl, &file);
        Ok(RackSettings {
            listen,
            places: places(self.most_servers, &file, servers.len(), xdp.is_some())?,
            servers,
            servers_file,
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
            lease,
            seed: self
                .seed
                .or(set.seed.as_ref().map(|seed| *seed.get_ref()))
                .unwrap_or(1),
            format: self.format,
        })
    }
}

/// A time in ns.
fn time_of(
    key: &str,
    flag: Option<String>,
    set: Option<&Spanned<String>>,
    usual: &str,
    file: &RackFile,
) -> Result<u64> {
    let given = file.given(key, flag, set, || usual.into());
    Ok(given.parse(|text| time(text))?.value)
}

/// Parses a lease; none: 0.
fn lease_of(text: &str) -> Result<Option<Duration>, String> {
    let lease = Duration::from_nanos(time(text)?);
    if !lease.is_zero() && lease < SHORTEST_LEASE {
        return Err(format!(
            "a lease of {text} can run out while the process waits for a CPU, and the switch passes requests on then: give it {}s or more, or 0ms to have the switch end with its process",
            SHORTEST_LEASE.as_secs()
        ));
    }
    Ok((!lease.is_zero()).then_some(lease))
}

/// The switch's places for servers.
fn places(flag: Option<u64>, file: &RackFile, named: usize, in_kernel: bool) -> Result<usize> {
    let most = if in_kernel {
        StepTables::MAX_SERVERS
    } else {
        ServerAddresses::MOST
    };
    let set = file.config.most_servers.as_ref();
    let usual = || (2 * named).max(SPARE).min(most).max(named) as u64;
    let places = file.given("most-servers", flag, set, usual);
    let places = places.parse(|&places| {
        if (named.max(1) as u64..=most as u64).contains(&places) || places == named as u64 {
            Ok(places as usize)
        } else {
            Err(format!(
                "a switch of these settings has {named} to {most} places for servers"
            ))
        }
    });
    Ok(places?.value)
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

fn is_set(key: Option<&Spanned<bool>>) -> bool {
    key.is_some_and(|key| *key.get_ref())
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
    may_join: bool,
    file: &RackFile,
    listen: &RackListen,
) -> Result<Option<AgentSettings>> {
    let set = &file.config;
    let key = file.given_if_set("agent-key", key, set.agent_key.as_ref());
    let at = file.given_if_set("agents", at, set.agents.as_ref());
    let Some(key) = key else {
        return match at {
            Some(at) => Err(at.refused(NO_KEY)),
            None if may_join => Err(crate::error::usage("--agents-join", NO_KEY)),
            None => Ok(None),
        };
    };
    let key = key.parse(|path| AgentKey::read(path))?.value;
    let at = match at {
        Some(at) => at.parse(|text| address(text).and_then(|at| listen.with_agents_at(at)))?,
        None => Sourced::new(listen.agents(), "--agents".into()),
    };
    Ok(Some(AgentSettings { at, key, may_join }))
}
