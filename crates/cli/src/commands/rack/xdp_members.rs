//! The program's tables, and the servers that come to the switch in the kernel, drain and go.

use super::xdp_left::KernelSwitch;
use super::xdp_servers::ServerWatch;
use headway_policy::rack::{ServerId, Shaper, Switch as _};
use headway_rack::{Membership, RackMember, RosterPlane, SwitchTables, TypeTable};
use headway_xdp::{Neighbour, SwitchError, neighbour_of, tables_of_places};
use std::sync::Arc;
use std::time::Duration;

/// Why the program no longer follows the control plane.
#[derive(Debug, thiserror::Error)]
pub(super) enum RelayError {
    #[error(transparent)]
    Switch(#[from] SwitchError),
    #[error(transparent)]
    Tables(#[from] headway_policy::rack::StepTablesError),
}

/// The program, and what its tables are made of.
pub(super) struct ProgramTables {
    pub(super) kernel: KernelSwitch,
    /// A copy of the control plane's tables, from which the relay makes the program's.
    pub(super) shaper: Shaper,
    pub(super) tables: Arc<SwitchTables>,
    /// By place.
    pub(super) servers: Vec<Option<Neighbour>>,
    /// By place: the generation of the first tables without the server that was there.
    pub(super) gone_since: Vec<u64>,
    /// The cores that each has by order, for the next process; 0: it drains.
    pub(super) member_cores: Vec<u16>,
    pub(super) types: TypeTable,
    /// Whether what the program's tables are made of changed since.
    pub(super) are_stale: bool,
}

impl ProgramTables {
    /// Publishes tables of the shaper and the servers as they are now, if they changed and no packet goes by the tables before the last any more. It never
    /// waits for that: the lease is renewed meanwhile.
    pub(super) fn publish(&mut self) -> Result<(), RelayError> {
        let switch = self.kernel.switch();
        if !self.are_stale || switch.settled_generation() < switch.generation() {
            return Ok(());
        }
        let types = self.types.unknown().index();
        let tables = tables_of_places(&self.shaper, types, self.types.bytes(), &self.servers)?;
        let control = self.tables.last();
        let demand = control
            .as_ref()
            .map_or(&[][..], |control| control.demand().types());
        let tables = tables.for_demand(demand).for_members(&self.member_cores);
        self.kernel.switch_mut().publish(&tables)?;
        self.are_stale = false;
        Ok(())
    }

    /// Frees a place. Once no packet goes by tables that had its server, what it has is lost: returns the copies of requests.
    fn remove(&mut self, server: ServerId) -> Result<Option<u64>, RelayError> {
        let place = server.index();
        let switch = self.kernel.switch();
        if self.servers[place].take().is_some() {
            self.gone_since[place] = switch.generation() + 1;
            self.member_cores[place] = 0;
            self.are_stale = true;
        }
        let gone_since = self.gone_since[place];
        if switch.settled_generation() < gone_since {
            return Ok(None);
        }
        Ok(Some(self.kernel.switch_mut().lose(server, gone_since)?))
    }
}

/// The cores of a member that serves.
pub(super) fn cores_of(member: Option<&RackMember>) -> u16 {
    let serves = member.filter(|member| member.membership == Membership::Serves);
    serves.map_or(0, |member| u16::try_from(member.cores).unwrap_or(u16::MAX))
}

/// The servers of the switch in the kernel at one moment.
pub(super) struct KernelMembers<'a> {
    pub(super) watch: &'a mut ServerWatch,
    pub(super) program: &'a mut ProgramTables,
    /// By place.
    pub(super) unanswered: Vec<u64>,
    /// Why an order could not be carried out.
    pub(super) failed: Option<RelayError>,
}

impl RosterPlane for KernelMembers<'_> {
    /// The order's own check has made the kernel ask for the server's address.
    fn join(&mut self, server: ServerId, member: &RackMember) -> bool {
        let Ok(neighbour) = neighbour_of(member.address, Duration::ZERO) else {
            return false;
        };
        self.program.servers[server.index()] = Some(neighbour);
        self.program.member_cores[server.index()] = cores_of(Some(member));
        self.watch.join(server, member.address, member.cores);
        self.program.are_stale = true;
        true
    }

    fn drain(&mut self, server: ServerId) {
        self.watch.drain(server);
        self.program.member_cores[server.index()] = 0;
        self.program.are_stale = true;
    }

    fn is_drained(&self, server: ServerId) -> bool {
        let may_get = self.program.are_stale || self.program.shaper.may_send(server);
        self.unanswered[server.index()] == 0 && !may_get
    }

    fn remove(&mut self, server: ServerId) -> Option<u64> {
        self.watch.vacate(server);
        let removed = self.program.remove(server);
        removed.unwrap_or_else(|why| {
            self.failed = Some(why);
            None
        })
    }
}
