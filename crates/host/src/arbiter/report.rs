//! The engine's report.

use super::engine::Arbiter;
use super::journal::{Durations, NotedChange};
use super::member::{Member, MemberWork};
use super::unusable::UnusableCore;
use crate::peer::HostPeer;
use headway_machine::histogram::TimeHistogram;
use headway_policy::host::{Allocator, AppId, CoreId};
use serde::Serialize;

/// A core that got or lost a tenant.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct TenancyChange {
    /// The time of the change, ns.
    pub at_ns: u64,
    /// The core, by the kernel's number.
    pub core: usize,
    /// The new tenant's name.
    pub app: Option<String>,
}

/// A core's current state.
#[derive(Clone, Debug, Serialize)]
pub struct CoreReport {
    /// The kernel's number of the core.
    pub core: usize,
    /// The application that has it.
    pub app: Option<String>,
    /// Whether the tenant was ordered to leave.
    pub leaving: bool,
}

/// An application's current state.
#[derive(Clone, Debug, Serialize)]
pub struct AppReport {
    /// Its name.
    pub name: String,
    /// `latency-critical` or `batch`.
    pub class: &'static str,
    /// `kthreads` or `program`.
    pub kind: &'static str,
    /// Its guaranteed cores.
    pub guaranteed: usize,
    /// The most cores that it may have.
    pub most: usize,
    /// The cores that it has.
    pub cores: Vec<usize>,
    /// Cores that it was granted and may not use, since its cpuset has them no more.
    pub unusable_cores: Vec<usize>,
    /// Entries in its queues, or threads without a core.
    pub waiting: u64,
    /// Grants of cores so far.
    pub grants: u64,
    /// Orders to leave a core.
    pub revocations: u64,
    /// Orders that it ignored until its thread was moved away.
    pub evictions: u64,
    /// Requests for a core while it had none.
    pub wants: u64,
    /// Its core time, ns.
    pub core_ns: u64,
}

/// Durations of one kind.
#[derive(Clone, Debug, Serialize)]
pub struct TimesReport {
    /// Their number.
    pub count: u64,
    /// The median, ns.
    pub p50_ns: u64,
    /// The 99th percentile, ns.
    pub p99_ns: u64,
    /// The longest, ns.
    pub max_ns: u64,
    /// Their sum, ns.
    pub sum_ns: u64,
    /// The cumulative count for each bound, ns.
    pub cumulative: Vec<(u64, u64)>,
}

/// The data plane's state.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct NetworkReport {
    /// The device.
    pub device: String,
    /// Frames given to applications.
    pub delivered: u64,
    /// Frames of applications given to the device.
    pub sent: u64,
    /// Lost: addressed to no application here.
    pub unknown: u64,
    /// Lost: the application did not take its packets.
    pub lane_full: u64,
    /// Lost: the device had no room.
    pub device_full: u64,
    /// Lost: an application sent with an address that is not its own, or what is neither IPv4 nor ARP.
    pub spoofed: u64,
    /// Lost: an application wrote an impossible length.
    pub invalid: u64,
    /// Lost: an application sent more than the device takes in a packet.
    pub too_long: u64,
    /// Lost: they were for one of `broken`.
    pub for_broken: u64,
    /// Lost: the daemon did not take them from the device in time.
    pub missed: u64,
    /// Applications that wrote an impossible index, and get no more packets.
    pub broken: Vec<String>,
}

/// The whole report.
#[derive(Clone, Debug, Serialize)]
pub struct HostReport {
    /// The time of the report by the daemon's clock, ns.
    pub at_ns: u64,
    /// The cores.
    pub cores: Vec<CoreReport>,
    /// The applications.
    pub apps: Vec<AppReport>,
    /// The allocator's part of a look.
    pub look: TimesReport,
    /// Carrying a grant out.
    pub grant: TimesReport,
    /// Sending a revocation.
    pub revoke: TimesReport,
    /// From a revocation until the core was free.
    pub leave: TimesReport,
    /// Core changes since the requested moment.
    pub changes: Vec<TenancyChange>,
    /// The data plane, where there is one.
    pub network: Option<NetworkReport>,
}

impl<A: Allocator, P: HostPeer> Arbiter<A, P> {
    /// The report, with the newest `most` changes since a moment.
    pub fn report(&self, now_ns: u64, since_ns: u64, most: usize) -> HostReport {
        let cores = self.allocator.cores();
        let name = |app: AppId| {
            let member = self.members[app.index()].as_ref();
            member.map_or(String::new(), |member| member.name.clone())
        };
        let core = |core: usize| {
            let id = CoreId(core as u16);
            CoreReport {
                core: self.cores.dealt[core],
                app: cores.tenant(id).map(|tenant| name(tenant.app)),
                leaving: cores.is_leaving(id),
            }
        };
        let Durations {
            look,
            grant,
            revoke,
            leave,
        } = &self.times;
        let changes = self.journal.newest_first();
        let changes = changes.take_while(|change: &&NotedChange| change.at_ns > since_ns);
        let change = |noted: &NotedChange| TenancyChange {
            at_ns: noted.at_ns,
            core: noted.core,
            app: noted.app.as_deref().map(str::to_owned),
        };
        let mut changes: Vec<_> = changes.take(most).map(change).collect();
        changes.reverse();
        HostReport {
            at_ns: now_ns,
            cores: (0..self.cores.count()).map(core).collect(),
            apps: self.apps(now_ns),
            look: times(look),
            grant: times(grant),
            revoke: times(revoke),
            leave: times(leave),
            changes,
            network: None,
        }
    }

    /// The first core that each application was granted and may not use, once.
    pub fn take_unusable(&mut self) -> Vec<UnusableCore> {
        self.unusable.take()
    }

    fn apps(&self, now_ns: u64) -> Vec<AppReport> {
        let members = self.members.iter().enumerate();
        let members = members.filter_map(|(index, member)| Some((index, member.as_ref()?)));
        let app = |(index, member): (usize, &Member<P>)| {
            let active = self.allocator.cores().active(AppId(index as u16));
            let held = active
                .iter()
                .map(|core| now_ns.saturating_sub(self.since_ns[core]));
            AppReport {
                name: member.name.clone(),
                class: if member.is_batch() {
                    "batch"
                } else {
                    "latency-critical"
                },
                kind: match member.work {
                    MemberWork::Kthreads(_) => "kthreads",
                    MemberWork::Program(_) => "program",
                },
                guaranteed: member.shape.guaranteed,
                most: member.shape.most,
                cores: active.iter().map(|core| self.cores.dealt[core]).collect(),
                unusable_cores: match &member.work {
                    MemberWork::Kthreads(book) => book.unusable.clone(),
                    MemberWork::Program(_) => Vec::new(),
                },
                waiting: member.waiting(),
                grants: member.counts.grants,
                revocations: member.counts.revocations,
                evictions: member.counts.evictions,
                wants: member.counts.wants,
                core_ns: member.counts.core_ns + held.sum::<u64>(),
            }
        };
        members.map(app).collect()
    }
}

fn times(times: &TimeHistogram) -> TimesReport {
    TimesReport {
        count: times.count(),
        p50_ns: times.quantile_ns(0.5).unwrap_or(0),
        p99_ns: times.quantile_ns(0.99).unwrap_or(0),
        max_ns: times.max_ns().unwrap_or(0),
        sum_ns: times.sum_ns(),
        cumulative: times
            .octaves()
            .scan(0, |below, (bound_ns, count)| {
                *below += count;
                Some((bound_ns, *below))
            })
            .collect(),
    }
}
