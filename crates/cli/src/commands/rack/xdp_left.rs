//! The program in the kernel, and what an earlier process left of it.

use super::named::NamedServer;
use super::settings::RackSettings;
use super::xdp_devices::some_lack_checksums;
use super::xdp_expiry::ANSWER;
use crate::commands::serve::config::Sourced;
use crate::error::usage;
use anyhow::Result;
use headway_policy::rack::{ControlPlane, ServerId, Shaper};
use headway_rack::{Membership, RackControl, RackMember, RackRoster, SwitchTables};
use headway_xdp::{
    HiddenTags, LeftTables, Mode, Neighbour, PinsError, SwitchError, SwitchPins, XdpMode,
    XdpSwitch, XdpSwitchConfig, compile,
};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The program, which this process attaches, or takes up from an earlier one.
pub(super) struct KernelSwitch {
    switch: XdpSwitch,
    /// Whether it goes on with what an earlier process left.
    is_taken_up: bool,
    is_leased: bool,
    /// Time between two renewals of the lease.
    renew_every: Duration,
    next_renewal: Instant,
    /// Whether a failure leaves the switch to the next process: an earlier one's, or this one once it is attached.
    stays: bool,
}

impl KernelSwitch {
    /// Compiles the program, and loads it beside or in place of an earlier one. Until it is attached an earlier one goes on.
    pub(super) fn load(
        settings: &RackSettings,
        at: SocketAddr,
        shaper: &Shaper,
        interfaces: &Sourced<Vec<String>>,
    ) -> Result<Self> {
        let objects = compile().map_err(|error| interfaces.refused(error))?;
        let config = config(settings, at, shaper, &interfaces.value);
        let pins = settings.lease.map(|lease| SwitchPins::take(at, lease));
        let pins = match pins.transpose() {
            Ok(pins) => pins,
            Err(error @ PinsError::InUse { .. }) => return Err(settings.listen.refused(error)),
            Err(error) => {
                say!("the switch ends with this process: {error}");
                None
            }
        };
        let is_leased = pins.is_some();
        let stays = pins.as_ref().is_some_and(SwitchPins::has_attachments);
        let switch = match pins {
            Some(pins) => XdpSwitch::load_pinned(&objects.rack, &config, pins),
            None => XdpSwitch::load(&objects.rack, &config),
        };
        let switch = switch.map_err(|error| interfaces.refused(error))?;
        let is_taken_up = switch.generation() > 0;
        Ok(Self {
            switch,
            is_taken_up,
            is_leased,
            renew_every: renewal_of(settings.lease),
            next_renewal: Instant::now(),
            stays,
        })
    }

    /// The tables that an earlier process left.
    pub(super) fn left(&mut self, settings: &RackSettings) -> Result<Option<LeftTables>> {
        let left = self.switch.left_tables()?;
        let places = left.as_ref().map_or(0, |left| left.servers.len());
        if places > settings.places {
            let why = format!(
                "the switch that an earlier process left has {places} places for servers: start with at least as many, or remove it by `headway rack detach`"
            );
            return Err(usage("--most-servers", why));
        }
        Ok(left)
    }

    pub(super) fn switch(&self) -> &XdpSwitch {
        &self.switch
    }

    pub(super) fn switch_mut(&mut self) -> &mut XdpSwitch {
        &mut self.switch
    }

    /// Gives an interface's packets to the program, and returns what becomes of those whose VLAN tag lies beside them.
    pub(super) fn attach(
        &mut self,
        interface: &str,
        interfaces: &Sourced<Vec<String>>,
    ) -> Result<HiddenTags> {
        self.renew_lease()
            .map_err(|error| interfaces.refused(error))?;
        let attached = self.switch.attach(interface, XdpMode::Default);
        attached.map_err(|error| interfaces.refused(error))
    }

    /// All interfaces, of these numbers, are attached. From here on a crash leaves the switch to the next process.
    pub(super) fn attached(&mut self, interfaces: &[u32]) -> Result<()> {
        self.switch.end_leftovers(interfaces)?;
        self.stays = true;
        if self.is_taken_up {
            say!(
                "an earlier process left the switch in the kernel, and this one goes on with its tables"
            );
        }
        Ok(())
    }

    /// Renews the lease when that is due.
    pub(super) fn keep_lease(&mut self) -> Result<(), SwitchError> {
        if Instant::now() < self.next_renewal {
            return Ok(());
        }
        self.renew_lease()
    }

    fn renew_lease(&mut self) -> Result<(), SwitchError> {
        if !self.is_leased {
            return Ok(());
        }
        self.next_renewal = Instant::now() + self.renew_every;
        if self.switch.renew_lease()? > 0 {
            say!("the switch's lease had run out: it passed packets on until now");
        }
        Ok(())
    }

    /// The switch is to end with this process.
    pub(super) fn end(&mut self) {
        self.switch.unpin();
    }
}

impl Drop for KernelSwitch {
    fn drop(&mut self) {
        // A first start that failed leaves nothing half attached.
        if !self.stays {
            self.end();
        }
    }
}

/// Four renewals in a lease, so that one which comes late does not end it; one a second is enough.
fn renewal_of(lease: Option<Duration>) -> Duration {
    let most = Duration::from_secs(1);
    lease.map_or(most, |lease| (lease / 4).min(most))
}

fn config(
    settings: &RackSettings,
    at: SocketAddr,
    shaper: &Shaper,
    interfaces: &[String],
) -> XdpSwitchConfig {
    let (own_ip4, own_ip6) = match at.ip() {
        IpAddr::V4(ip) => (Some(ip), None),
        IpAddr::V6(ip) => (None, Some(ip)),
    };
    XdpSwitchConfig {
        own_ip4,
        own_ip6,
        port: at.port(),
        types: settings.types.len() as u16,
        mode: if settings.direct.is_some() {
            Mode::Direct
        } else {
            Mode::Nat
        },
        cloning: shaper.cloning(),
        overflows: shaper.loads().is_some(),
        unfinished_checksums: some_lack_checksums(interfaces),
        answer: ANSWER,
    }
}

/// The servers in the places that they had. Those that the settings do not name stay, unless they drained: they may have been added while the switch ran.
pub(super) fn roster(settings: &RackSettings, left: Option<&LeftTables>) -> Result<RackRoster> {
    let Some(left) = left else {
        return Ok(settings.roster());
    };
    let mut places = vec![None; settings.places];
    let mut named = settings.servers.clone();
    for (place, server) in left.servers.iter().enumerate() {
        let Some(Neighbour { address, .. }) = *server else {
            continue;
        };
        let by_name = named.iter().position(|server| server.addr == address);
        let (cores, membership) = match (by_name, left.member_cores[place]) {
            (Some(at), _) => (named.remove(at).cores, Membership::Serves),
            (None, 0) => (1, Membership::Drains),
            (None, cores) => (usize::from(cores), Membership::Serves),
        };
        places[place] = Some(RackMember {
            address,
            cores,
            membership,
        });
    }
    place_new(&mut places, &named)?;
    for member in places.iter().flatten() {
        let is_named = |server: &NamedServer| server.addr == member.address;
        if member.membership == Membership::Serves && !settings.servers.iter().any(is_named) {
            say!(
                "{} is not in the settings any more, or was added while the switch ran: it stays, until `headway rack drain`",
                member.address
            );
        }
    }
    Ok(RackRoster::of_places(places))
}

/// Gives each server that the settings name, and that an earlier process did not have, a vacant place.
fn place_new(places: &mut [Option<RackMember>], named: &[NamedServer]) -> Result<()> {
    let taken = places.iter().flatten().count();
    if let Some(first) = named.get(places.len() - taken) {
        let why = format!(
            "there is no place for {}: {taken} of {} are those of servers that an earlier process left, which stay. Start with at least {}, and have those drain that are to go (`headway rack drain`); or remove that switch by `headway rack detach`",
            first.addr,
            places.len(),
            taken + named.len()
        );
        return Err(usage("--most-servers", why));
    }
    let vacant = places.iter_mut().filter(|place| place.is_none());
    for (place, server) in vacant.zip(named) {
        *place = Some(RackMember {
            address: server.addr,
            cores: server.cores,
            membership: Membership::Serves,
        });
    }
    Ok(())
}

/// Has a control plane lay out the servers in the places that they have.
pub(super) fn place_servers(control: &mut ControlPlane, roster: &RackRoster) {
    for (place, member) in roster.members().into_iter().enumerate() {
        let serving = member.filter(|member| member.membership == Membership::Serves);
        let cores = serving.map_or(0, |member| member.cores);
        if control.layout().capacity(place) != cores {
            control.capacity(ServerId(place as u16), cores);
        }
    }
}

/// The control plane that goes on with what an earlier one left: its groups, layout, demand and counts. A fresh one is handed back where nothing is left
/// that fits.
pub(super) fn take_up(
    mut control: ControlPlane,
    left: Option<&LeftTables>,
    switch: &XdpSwitch,
    tables: &Arc<SwitchTables>,
) -> Result<Result<RackControl, Box<ControlPlane>>> {
    let registers = switch.registers()?;
    tables.set_readings(&registers.readings());
    tables.set_overflowed(registers.counts.overflowed);
    let resumed = left.is_some_and(|left| {
        let mut layout = left.layout.clone();
        let groups = layout.cores.first().map_or(0, Vec::len);
        // Places without a server at the end were not in the tables.
        layout
            .cores
            .resize(control.layout().servers(), vec![0; groups]);
        control.resume(&layout)
    });
    if !resumed {
        return Ok(Err(Box::new(control)));
    }
    tables.publish(&control);
    let taken_up = RackControl::take_up(Arc::clone(tables));
    Ok(taken_up.ok_or_else(|| Box::new(control)))
}
