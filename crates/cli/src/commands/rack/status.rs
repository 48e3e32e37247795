//! The status of a running switch.

use super::orders::ServerOrders;
use super::recent::RecentRequests;
use super::settings::RackSettings;
use super::slo_status;
use headway_ops::protocol::{CtlRequest, CtlResponse};
use headway_ops::socket::Responder;
use headway_policy::rack::{ControlPlane, ServerId};
use headway_policy::spec::Params;
use headway_policy::{ClassId, MAX_WORKERS};
use headway_rack::agent::{AgentHub, AgentReport};
use headway_rack::{
    KernelCounts, Membership, PacketCounts, RackMember, SwitchReport, SwitchTables,
};
use headway_report::Slo;
use serde_json::{Map, Value, json};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// A copy of the control plane after its last update, and the requests of the last second.
pub(super) struct ObservedPlane {
    tables: Arc<SwitchTables>,
    last: Mutex<(Option<ControlPlane>, RecentRequests)>,
}

impl ObservedPlane {
    /// Nothing observed yet, of the switch of these tables.
    pub(super) fn new(tables: &Arc<SwitchTables>) -> Self {
        Self {
            tables: Arc::clone(tables),
            last: Mutex::default(),
        }
    }

    pub(super) fn set(&self, control: &ControlPlane) {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let (plane, recent) = &mut *last;
        match plane {
            Some(plane) => plane.clone_from(control),
            None => *plane = Some(control.clone()),
        }
        recent.note(Instant::now(), self.counts());
    }

    fn get(&self) -> Option<ControlPlane> {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        last.0.clone()
    }

    /// Each type's share of the last second's requests.
    fn shares(&self) -> Option<Vec<f64>> {
        let counts: Vec<u64> = self.counts().collect();
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        last.1.shares(&counts)
    }

    fn counts(&self) -> impl Iterator<Item = u64> {
        let classes = 0..self.tables.classes() as u16;
        classes.map(|class| self.tables.reading(ClassId(class)).count)
    }
}

/// The switch whose status clients request.
pub(super) struct RackSubject {
    /// The switch's address, as a URL.
    listens: String,
    orders: Arc<ServerOrders>,
    policy: &'static str,
    params: Map<String, Value>,
    declared: Vec<String>,
    slo: Option<Slo>,
    tables: Arc<SwitchTables>,
    observed: Arc<ObservedPlane>,
    agents: Option<Arc<AgentHub>>,
    since: Instant,
}

impl RackSubject {
    /// Describes a switch that is about to start.
    pub(super) fn new(
        settings: &RackSettings,
        at: SocketAddr,
        policy: (&'static str, &Params),
        tables: &Arc<SwitchTables>,
        observed: &Arc<ObservedPlane>,
        orders: Arc<ServerOrders>,
    ) -> Self {
        let (policy, params) = policy;
        // A switch does not know the policies of its servers.
        let own = params.iter().filter(|(key, _)| *key != "inner");
        let params = own.map(|(key, value)| ((*key).to_owned(), json!(value.to_string())));
        Self {
            listens: settings.listen.value.shown(at),
            orders,
            policy,
            params: params.collect(),
            declared: settings.declared.clone(),
            slo: settings.slo.as_ref().map(|slo| slo.slo.clone()),
            tables: Arc::clone(tables),
            observed: Arc::clone(observed),
            agents: None,
            since: Instant::now(),
        }
    }

    /// Sets the agents that report to the switch.
    pub(super) fn with_agents(mut self, agents: Option<Arc<AgentHub>>) -> Self {
        self.agents = agents;
        self
    }

    /// The policy with all its parameters.
    pub(super) fn spec(&self) -> String {
        let params = self.params.iter();
        let params = params.map(|(key, value)| format!(",{key}={}", value.as_str().unwrap_or("")));
        params.fold(self.policy.to_owned(), |spec, param| spec + &param)
    }

    /// The object of `headway rack status`.
    pub(super) fn status(&self) -> Value {
        let report = self.tables.report();
        let control = self.observed.get();
        let control = control.as_ref();
        json!({
            "pid": std::process::id(),
            "version": env!("CARGO_PKG_VERSION"),
            "listen": self.listens,
            "policy": self.policy,
            "spec": self.spec(),
            "params": self.params,
            "uptime_s": self.since.elapsed().as_secs_f64(),
            "under_way": report.under_way,
            "layouts": self.tables.generation(),
            "overflowed": self.tables.overflowed(),
            "load": control.map(ControlPlane::load),
            "discrepancy_cores": control.map(ControlPlane::discrepancy_cores),
            "servers": self.servers(&report, control),
            "groups": control.map(|control| self.groups(&report, control)),
            "types": self.types(&report, control),
            "slo": self.slo.as_ref().map(|slo| self.bounds(slo, &report)),
            "counts": all_counts(&report.counts, report.kernel.as_ref()),
            "port": report.lost.map(|lost| json!({ "unsent": lost.unsent, "rejected": lost.rejected, "other_source": lost.other_source })),
            "agents": self.agents.as_deref().map(agents),
        })
    }

    fn servers(&self, report: &SwitchReport, control: Option<&ControlPlane>) -> Vec<Value> {
        let members = self.orders.roster.members().into_iter().enumerate();
        let members = members.filter_map(|(number, member)| Some((number, member?)));
        let server = |(number, member): (usize, RackMember)| {
            let RackMember {
                address,
                cores: named,
                membership,
            } = member;
            let agent = self.agent(number);
            // To the switch too an agent's word counts, whatever was named.
            let said = agent.map(|report| usize::from(report.workers).min(MAX_WORKERS));
            let cores = said.unwrap_or(named);
            let counted = report.cores.get(number).copied().unwrap_or(cores);
            let serves = membership == Membership::Serves;
            let groups = control.map(|control| {
                let groups = 0..control.grouping().groups();
                let cores = groups.map(|group: usize| control.layout().cores(number, group));
                cores.collect::<Vec<_>>()
            });
            json!({
                "server": address.to_string(),
                "state": if serves { "serves" } else { "drains" },
                "cores": cores,
                "counted_cores": counted,
                "silent": serves && counted == 0,
                "unanswered": report.awaited.get(number),
                "group_cores": groups,
                "agent": agent.map(|report| json!({
                    "workers": report.workers,
                    "draining": report.draining,
                    "order": report.in_force,
                    "clones_dropped": report.clones_dropped,
                    "handed_back": report.handed_back,
                })),
            })
        };
        members.map(server).collect()
    }

    /// The servers that the switch has.
    pub(super) fn members(&self) -> Vec<RackMember> {
        self.orders.roster.members().into_iter().flatten().collect()
    }

    /// The last report of a server's agent.
    fn agent(&self, number: usize) -> Option<AgentReport> {
        let state = self.agents.as_ref()?.agent(ServerId(number as u16));
        state.map(|state| state.report)
    }

    fn groups(&self, report: &SwitchReport, control: &ControlPlane) -> Vec<Value> {
        let (grouping, demand) = (control.grouping(), control.demand());
        let total = control.layout().total() as f64;
        let group = |group: usize| {
            let known = 0..report.type_bytes.len();
            let types = known.filter(|&class| grouping.of(class) == group);
            let names = types.map(|class| self.name(class, &report.type_bytes));
            json!({
                "group": group,
                "types": names.collect::<Vec<_>>(),
                "cores": control.layout().of_group(group),
                "demand_cores": demand.of_types(grouping.members(group)) * total,
                "mean_us": demand.mean_of_types_ns(grouping.members(group)) / 1e3,
            })
        };
        (0..grouping.groups()).map(group).collect()
    }

    fn types(&self, report: &SwitchReport, control: Option<&ControlPlane>) -> Vec<Value> {
        let known = report.type_bytes.iter().enumerate();
        let shares = self.observed.shares();
        let shaped = |class: usize| {
            let control = control?;
            let reading = self.tables.reading(ClassId(class as u16));
            let hint = control.demand().types().get(class)?;
            let is_measured = reading.execution_ns > 0 || class < self.declared.len();
            Some(json!({
                "group": control.grouping().of(class),
                "requests": reading.count,
                "mean_us": is_measured.then_some(hint.mean_ns / 1e3),
                "share": shares.as_ref().map_or(hint.share, |shares| shares[class]),
                "demand_cores": control.demand().of_type(class) * control.layout().total() as f64,
            }))
        };
        let types = known.map(|(class, byte)| {
            let mut value = json!({
                "type": byte,
                "name": self.name(class, &report.type_bytes),
            });
            if let (Some(value), Some(Value::Object(shaped))) =
                (value.as_object_mut(), shaped(class))
            {
                value.extend(shaped);
            }
            value
        });
        types.collect()
    }

    fn bounds(&self, slo: &Slo, report: &SwitchReport) -> Vec<Value> {
        let known = 0..report.type_bytes.len();
        let names = known.map(|class| self.name(class, &report.type_bytes));
        let names: Vec<_> = names.collect();
        slo_status::bounds(slo, &names, self.tables.classes(), report.slo.as_ref())
    }

    fn name(&self, class: usize, bytes: &[u8]) -> String {
        match self.declared.get(class) {
            Some(name) => name.clone(),
            None => bytes
                .get(class)
                .map_or("?".into(), |byte| format!("type {byte}")),
        }
    }
}

impl Responder for RackSubject {
    fn respond(&self, request: CtlRequest) -> CtlResponse {
        match request {
            CtlRequest::Status => Ok(self.status()),
            CtlRequest::Server(order, server) => self.orders.respond(order, &server),
            CtlRequest::Stacks => Err("a switch runs no requests: ask a server".into()),
            CtlRequest::Set(_) => {
                Err("a switch's parameters do not change while it runs: start it anew".into())
            }
        }
    }
}

/// The address for agents' reports, and counts of their packets.
fn agents(hub: &AgentHub) -> Value {
    let counts = hub.counts();
    json!({
        "listen": hub.local_addr().ok().map(|at| format!("udp://{at}")),
        "reports": counts.reports,
        "sessions": counts.sessions,
        "greeted": counts.greeted,
        "wrong_key": counts.wrong_key,
        "replayed": counts.replayed,
        "malformed": counts.malformed,
        "misaddressed": counts.misaddressed,
        "strangers": counts.strangers,
        "announced": counts.announced,
    })
}

/// Numbers of packets by outcome, those that only a switch in the kernel tells apart among them.
pub(super) fn all_counts(common: &PacketCounts, kernel: Option<&KernelCounts>) -> Value {
    let mut all = counts(common);
    if let Some(kernel) = kernel {
        all["fragment"] = kernel.fragment.into();
        all["options"] = kernel.options.into();
        all["other_family"] = kernel.other_family.into();
        all["no_server"] = kernel.no_server.into();
        all["hidden_tag"] = kernel.hidden_tag.into();
    }
    all
}

/// Numbers of packets by outcome.
pub(super) fn counts(counts: &PacketCounts) -> Value {
    json!({
        "requests": counts.requests,
        "answered": counts.answered,
        "cloned": counts.cloned,
        "filtered": counts.filtered,
        "copies_refused": counts.copies_refused,
        "bounced": counts.bounced,
        "shed": counts.shed,
        "expired": counts.expired,
        "lost": counts.lost,
        "left": counts.left,
        "returned": counts.returned,
        "asked": counts.asked,
        "truncated": counts.truncated,
        "too_long": counts.too_long,
        "unexpected": counts.unexpected,
        "spoofed": counts.spoofed,
        "wrong_side": counts.wrong_side,
        "unknown_type": counts.unknown_type,
    })
}
