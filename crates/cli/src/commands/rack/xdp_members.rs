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
    /// The cores that each has by order, for the next process; 0: it drains.
    pub(super) member_cores: Vec<u16>,
    pub(super) types: TypeTable,
    /// Whether the servers changed since the program's tables were made.
    pub(super) servers_changed: bool,
}

impl ProgramTables {
    /// Publishes tables of the shaper and the servers as they are now.
    pub(super) fn publish(&mut self) -> Result<(), RelayError> {
        let types = self.types.unknown().index();
        let tables = tables_of_places(&self.shaper, types, self.types.bytes(), &self.servers)?;
        let control = self.tables.last();
        let demand = control
            .as_ref()
            .map_or(&[][..], |control| control.demand().types());
        let tables = tables.for_demand(demand).for_members(&self.member_cores);
        self.kernel.switch_mut().publish(&tables)?;
        self.servers_changed = false;
        Ok(())
    }

    /// Frees a place. What its server has is lost: returns the copies of requests.
    fn remove(&mut self, server: ServerId) -> Result<u64, RelayError> {
        self.servers[server.index()] = None;
        self.member_cores[server.index()] = 0;
        self.publish()?;
        Ok(self.kernel.switch_mut().lose(server)?)
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
        self.program.servers_changed = true;
        true
    }

    fn drain(&mut self, server: ServerId) {
        self.watch.drain(server);
        self.program.member_cores[server.index()] = 0;
        self.program.servers_changed = true;
    }

    fn is_drained(&self, server: ServerId) -> bool {
        self.unanswered[server.index()] == 0 && !self.program.shaper.may_send(server)
    }

    fn remove(&mut self, server: ServerId) -> u64 {
        self.watch.vacate(server);
        let removed = self.program.remove(server);
        removed.unwrap_or_else(|why| {
            self.failed = Some(why);
            0
        })
    }
}
