//! What must hold in the rack, looked at as it happens.

use headway_policy::ClassId;
use headway_policy::rack::{ServerId, Switch};
use headway_rack::ControlCycle;

use super::{RackRoom, TICK_NS};
use crate::rack::scenario::{DELAY_MAX_NS, KNOWN_DEAD_NS, SILENT_NS};
use crate::scheduler::now_ns;

impl<S: Switch> RackRoom<'_, S> {
    /// No request goes to a server that left, beyond the stated time.
    pub(super) fn check_living(&mut self, server: usize) {
        let allowed_ns = if self.has_control { KNOWN_DEAD_NS } else { 0 };
        // One that came back in this step is asked at once.
        let is_dead = self.switch.switch().cores(ServerId(server as u16)) == Some(0);
        let Some(dead_ns) = self.servers[server].dead_ns.filter(|_| is_dead) else {
            return;
        };
        let since_ns = now_ns().saturating_sub(dead_ns.max(self.jumped_ns));
        if since_ns > allowed_ns {
            self.faults.push(format!(
                "a request went to server {server}, which left {since_ns} ns ago"
            ));
        }
    }

    /// Nothing goes to a server whose departure was confirmed.
    pub(super) fn check_departed(&mut self, server: usize) {
        if self.servers[server].has_left {
            self.faults.push(format!(
                "a request went to server {server} at {} ns, and its departure was confirmed before",
                now_ns()
            ));
        }
    }

    /// Notes who left. A server that says nothing for so long has left, unless it is the last.
    pub(super) fn check_servers(&mut self) {
        let now_ns = now_ns();
        let cores = |number| self.switch.switch().cores(ServerId(number as u16));
        let present = (0..self.servers.len()).filter(|&number| cores(number) > Some(0));
        if present.count() < 2 {
            self.alone_ns = now_ns;
        }
        // An agent's report that waits while the clock jumps counts as of after the jump.
        let excused_ns = self.jumped_ns.max(self.alone_ns);
        for number in 0..self.servers.len() {
            let is_dead = cores(number) == Some(0);
            let server = &mut self.servers[number];
            if is_dead {
                server.dead_ns.get_or_insert(now_ns);
                continue;
            }
            server.dead_ns = None;
            let silent_ns = server
                .awaited_ns
                .map(|at_ns| now_ns.saturating_sub(at_ns.max(excused_ns)));
            let allowed_ns = SILENT_NS + DELAY_MAX_NS + 3 * TICK_NS;
            if silent_ns.is_some_and(|ns| ns > allowed_ns) {
                self.faults.push(format!(
                    "server {number} is in service after {silent_ns:?} ns of silence"
                ));
                server.awaited_ns = None;
            }
        }
    }

    /// Every type has a core, and no server more in use than it has.
    pub(super) fn check_plan(&mut self) {
        let generation = self.tables.generation();
        let Some(control) = self.control.as_ref().map(ControlCycle::control) else {
            return;
        };
        if generation == self.generation {
            return;
        }
        self.generation = generation;
        let (layout, grouping) = (control.layout(), control.grouping());
        for class in 0..3 {
            let group = grouping.of(ClassId(class).index());
            if layout.total() > 0 && layout.of_group(group) == 0 {
                self.faults.push(format!(
                    "type {class} has no core in plan {generation}: {layout:?}"
                ));
            }
        }
        for server in 0..layout.servers() {
            let used: usize = (0..grouping.groups())
                .map(|group| layout.cores(server, group))
                .sum();
            if used > layout.capacity(server) {
                self.faults.push(format!(
                    "server {server} has {used} cores in plan {generation}: {layout:?}"
                ));
            }
        }
    }
}
