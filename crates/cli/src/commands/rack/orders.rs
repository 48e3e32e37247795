//! Orders about a running switch's servers: over its control socket, and by its settings file on SIGHUP.

use super::file::{KEYS, RackFile};
use super::listen::RackListen;
use super::named::{
    NamedServer, canonical, check_place, check_servers, named_server, named_servers,
};
use super::settings::RackSettings;
use super::xdp_reach::{ASK_FOR, ReachCheck};
use anyhow::Result;
use headway_ops::protocol::{CtlResponse, ServerOrder};
use headway_rack::agent::{AdmitServer, AnnouncedServer};
use headway_rack::{Membership, RackMember, RackRoster, SwitchTables};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Time for the switch to carry out an order: it looks every millisecond, and what it removes waits for a grace period of the kernel. Less than a client of the
/// control socket waits.
const CARRY_OUT: Duration = Duration::from_secs(4);

/// Takes orders about the servers of a switch.
pub(super) struct ServerOrders {
    pub(super) roster: Arc<RackRoster>,
    pub(super) tables: Arc<SwitchTables>,
    listen: RackListen,
    /// The file that names the servers; none: flags name them.
    file: Option<PathBuf>,
    reaches: ReachCheck,
}

impl ServerOrders {
    /// Orders to the switch of these settings that listens at `at`.
    pub(super) fn new(
        settings: &RackSettings,
        at: SocketAddr,
        rack: (&Arc<RackRoster>, &Arc<SwitchTables>),
        reaches: ReachCheck,
    ) -> Arc<Self> {
        let (roster, tables) = rack;
        Arc::new(Self {
            roster: Arc::clone(roster),
            tables: Arc::clone(tables),
            listen: settings.listen.value.bound(at),
            file: settings.servers_file.clone(),
            reaches,
        })
    }

    /// Carries out an order, and says what became of the server.
    pub(super) fn respond(&self, order: ServerOrder, text: &str) -> CtlResponse {
        let named = named_server(text)?;
        match order {
            ServerOrder::Add => self.add(named),
            ServerOrder::Drain => self.take_out(named.addr, Membership::Drains),
            ServerOrder::Remove => self.take_out(named.addr, Membership::Leaves),
        }
    }

    fn add(&self, named: NamedServer) -> CtlResponse {
        self.check(named.addr, ASK_FOR)?;
        self.serve(named)
    }

    /// Adds a server that was checked.
    fn serve(&self, NamedServer { addr, cores }: NamedServer) -> CtlResponse {
        let revision = self.roster.add(addr, cores);
        self.await_done(revision.map_err(|error| error.to_string())?)?;
        Ok(json!({ "server": addr.to_string(), "state": "serves", "cores": cores }))
    }

    /// Checks that a server may be added, and that packets get there.
    fn check(&self, addr: SocketAddr, patience: Duration) -> Result<(), String> {
        check_place(&self.listen, addr)?;
        (self.reaches)(addr, patience)
    }

    fn take_out(&self, addr: SocketAddr, membership: Membership) -> CtlResponse {
        let place = self.place(addr);
        let revision = self.roster.order(addr, membership);
        self.await_done(revision.map_err(|error| error.to_string())?)?;
        let addr = addr.to_string();
        if membership == Membership::Leaves {
            let lost = place.and_then(|place| self.roster.lost(place));
            return Ok(json!({ "server": addr, "state": "removed", "lost": lost }));
        }
        let unanswered = place.and_then(|place| self.tables.report().awaited.get(place).copied());
        Ok(json!({ "server": addr, "state": "drains", "unanswered": unanswered }))
    }

    fn place(&self, addr: SocketAddr) -> Option<usize> {
        let members = self.roster.members();
        members
            .iter()
            .position(|member| member.is_some_and(|member| member.address == addr))
    }

    fn await_done(&self, revision: u64) -> Result<(), String> {
        if self.roster.await_done(revision, CARRY_OUT) {
            return Ok(());
        }
        Err("the switch has the order, and has not carried it out within four seconds: `headway rack status` shows when it has".into())
    }

    /// Reads the servers of the settings file anew: those that are new are added, those that are no longer there drain. Says on standard error what
    /// was done, or why nothing was.
    pub(super) fn read_anew(&self) {
        let changes = match self.changes_by_file() {
            Ok(changes) => changes,
            Err(error) => return say!("the servers stay as they are: {error:#}"),
        };
        if changes.is_empty() {
            return say!("the settings file names the same servers");
        }
        let mut done = Vec::new();
        for change in changes {
            match self.carry_out(change) {
                Ok(sentence) => done.push(sentence),
                Err(why) => {
                    done.push(format!("and no more: {why}"));
                    break;
                }
            }
        }
        say!("by the settings file, {}", done.join(", "));
    }

    /// What the settings file changes: all of it can be carried out, or there is an error.
    fn changes_by_file(&self) -> Result<Vec<FileChange>> {
        let Some(path) = &self.file else {
            anyhow::bail!(
                "flags name them; to have them read anew, name them in a file and start with -c FILE"
            );
        };
        let file = RackFile::read(path, KEYS)?;
        let servers = named_servers(&[], &file)?;
        let named = check_servers(&servers, &self.listen)?;
        let members = self.roster.members();
        let mut vacant = members.iter().filter(|place| place.is_none()).count();
        let members: Vec<_> = members.into_iter().flatten().collect();
        let mut changes = Vec::new();
        // First those that come, so that the last one that serves never goes before.
        for server in &servers {
            let NamedServer { addr, cores } = server.value;
            let wanted = RackMember {
                address: addr,
                cores,
                membership: Membership::Serves,
            };
            if members.contains(&wanted) {
                continue;
            }
            self.check(addr, ASK_FOR)
                .map_err(|why| server.refused(why))?;
            if !members.iter().any(|member| member.address == addr) {
                let left = vacant.checked_sub(1);
                vacant = left.ok_or_else(|| server.refused(self.full()))?;
            }
            changes.push(FileChange::Serves(server.value));
        }
        let is_named = |member: &RackMember| named.iter().any(|it| it.addr == member.address);
        let leaving = members.iter().filter(|member| !is_named(member));
        let leaving = leaving.filter(|member| member.membership == Membership::Serves);
        changes.extend(leaving.map(|member| FileChange::Drains(member.address)));
        Ok(changes)
    }

    fn full(&self) -> String {
        format!(
            "all {} places are taken, and one that drains keeps its place until it has left: have one drain first, by a file without it, or start the switch with more by --most-servers N",
            self.roster.members().len()
        )
    }

    fn carry_out(&self, change: FileChange) -> Result<String, String> {
        match change {
            FileChange::Serves(named) => {
                self.serve(named)?;
                Ok(format!("{} serves with {}", named.addr, named.cores))
            }
            FileChange::Drains(server) => {
                self.take_out(server, Membership::Drains)?;
                Ok(format!("{server} drains"))
            }
        }
    }
}

/// A change that the settings file makes to the servers.
#[derive(Clone, Copy)]
enum FileChange {
    Serves(NamedServer),
    Drains(SocketAddr),
}

/// Adds servers whose agents announce them. The kernel knows the way to them, since it brought the report; where it does not, the next one is soon.
pub(super) fn admission(orders: &Arc<ServerOrders>) -> AdmitServer {
    let orders = Arc::clone(orders);
    Box::new(move |server| {
        let AnnouncedServer { address, workers } = server;
        let address = canonical(address);
        let reached = orders.check(address, Duration::ZERO);
        let added = reached.and_then(|()| {
            let added = orders.roster.add(address, workers);
            added.map_err(|error| error.to_string())
        });
        if added.is_ok() {
            say!("{address} joins by its agent, with {workers} workers");
        }
    })
}

/// What became of a server, in a sentence.
pub(super) fn sentence(done: &Value) -> String {
    let server = done["server"].as_str().unwrap_or_default();
    let requests = |count: &Value| match count.as_u64() {
        Some(1) => "1 request".to_owned(),
        Some(count) => format!("{count} requests"),
        None => "an unknown number of requests".to_owned(),
    };
    match done["state"].as_str() {
        Some("serves") => format!("{server} serves with {} cores", done["cores"]),
        Some("drains") => format!(
            "{server} drains: it has {}, and leaves once these are answered",
            requests(&done["unanswered"])
        ),
        _ => format!("{server} is removed, and lost {}", requests(&done["lost"])),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_outcome_is_a_sentence() {
        let said = |done: Value| sentence(&done);
        let server = "10.0.0.1:7";
        assert_eq!(
            said(json!({ "server": server, "state": "serves", "cores": 4 })),
            "10.0.0.1:7 serves with 4 cores"
        );
        assert_eq!(
            said(json!({ "server": server, "state": "drains", "unanswered": 3 })),
            "10.0.0.1:7 drains: it has 3 requests, and leaves once these are answered"
        );
        assert_eq!(
            said(json!({ "server": server, "state": "removed", "lost": 1 })),
            "10.0.0.1:7 is removed, and lost 1 request"
        );
    }
}
