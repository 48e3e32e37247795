//! What an earlier control plane left in the program's tables.

use crate::layout::{FAMILY_IP4, FAMILY_IP6, MAX_SERVERS, RackTables, Raw as _, ServerEntry};
use crate::switch::{SwitchError, reading};
use crate::{Neighbour, XdpSwitch};
use headway_policy::ClassHint;
use headway_policy::rack::LastLayout;
use std::net::{IpAddr, SocketAddr};

/// Tables in force, as a control plane made them.
#[derive(Clone, PartialEq, Debug)]
pub struct LeftTables {
    /// The servers by place, up to the last one, and the ways to them.
    pub servers: Vec<Option<Neighbour>>,
    /// The cores that each of them had by order, 0 of one that drained.
    pub member_cores: Vec<u16>,
    /// The type bytes of the types known, by class.
    pub type_bytes: Vec<u8>,
    /// Groups, cores and demand. Of as many servers as `servers` has places.
    pub layout: LastLayout,
}

impl XdpSwitch {
    /// The tables in force; none before any were published.
    ///
    /// # Errors
    /// [`SwitchError::Map`] when the kernel refuses.
    pub fn left_tables(&self) -> Result<Option<LeftTables>, SwitchError> {
        if self.generation() == 0 {
            return Ok(None);
        }
        let copy = (self.generation() % 2) as u32;
        let bytes = self.tables.get(&copy, 0).map_err(reading)?;
        Ok(Some(left_of(&RackTables::get(&bytes), self.classes - 1)))
    }
}

fn left_of(tables: &RackTables, types: usize) -> LeftTables {
    let is_there = |entry: &ServerEntry| entry.family != 0;
    let last = tables.server[..MAX_SERVERS].iter().rposition(is_there);
    let places = last.map_or(0, |last| last + 1);
    let servers = tables.server.iter().take(places).map(neighbour_of_entry);
    let bytes_of = |class: usize| {
        let mut bytes = (0..=u8::MAX).zip(tables.class_of);
        let found = bytes.find(|&(_, of)| usize::from(of) == class);
        found.map(|(byte, _)| byte)
    };
    let hint = |class: usize| {
        let profile = &tables.profile[class];
        ClassHint::new(
            f64::from_bits(profile.mean_ns),
            f64::from_bits(profile.share),
        )
    };
    let groups = tables.groups as usize;
    let mut cores = vec![vec![0; groups]; places];
    for (number, group) in tables.group.iter().take(groups).enumerate() {
        let turns = tables.turns.iter().skip(group.first as usize);
        for &server in turns.take(group.round as usize) {
            if let Some(of_group) = cores.get_mut(usize::from(server)) {
                of_group[number] += 1;
            }
        }
    }
    let entries = tables.server.iter().take(places);
    LeftTables {
        servers: servers.collect(),
        member_cores: entries.map(|entry| entry.member_cores).collect(),
        // Types are numbered as they appeared: the first that has no byte is not there yet.
        type_bytes: (0..types).map_while(bytes_of).collect(),
        layout: LastLayout {
            types: (0..types).map(hint).collect(),
            group_of: tables.group_of[..types]
                .iter()
                .copied()
                .map(u16::from)
                .collect(),
            cores,
        },
    }
}

fn neighbour_of_entry(entry: &ServerEntry) -> Option<Neighbour> {
    let port = u16::from_be_bytes(entry.port);
    let ip = match usize::from(entry.family) {
        FAMILY_IP4 => {
            let octets: [u8; 4] = entry.ip[..4].try_into().ok()?;
            IpAddr::from(octets)
        }
        FAMILY_IP6 => IpAddr::from(entry.ip),
        _ => return None,
    };
    Some(Neighbour {
        address: SocketAddr::new(ip, port),
        mac: entry.mac,
        ifindex: entry.ifindex,
        own_mac: entry.own_mac,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables_of_places;
    use headway_policy::rack::{Cloning, ControlPlane, ControlRules, Shaper, Turns};

    #[test]
    fn tables_tell_the_control_plane_that_made_them() {
        let types = [ClassHint::new(1e4, 0.75), ClassHint::new(1e5, 0.25)];
        let mut control = ControlPlane::new(&[3, 0, 2], &types, ControlRules::default());
        control.choose(&[2.0, 1.0]);
        let mut shaper = Shaper::new(2, 5, Turns::Even, Cloning::Off, 1);
        control.install(&mut shaper);
        let server = |host, port| Neighbour {
            address: SocketAddr::from(([10, 0, 0, host], port)),
            mac: [1; 6],
            ifindex: 3,
            own_mac: [2; 6],
        };
        let servers = [Some(server(1, 7)), None, Some(server(2, 8))];
        let tables = tables_of_places(&shaper, 2, &[0, 77], &servers).unwrap();
        let tables = tables.for_demand(&types).for_members(&[3, 0, 2]);
        let left = left_of(&tables.0, 2);
        assert_eq!(left.servers, servers);
        assert_eq!(left.member_cores, [3, 0, 2]);
        assert_eq!(left.type_bytes, [0, 77]);
        assert_eq!(left.layout.types, types);
        let mut again = ControlPlane::new(&[1, 1, 1], &[types[1]; 2], ControlRules::default());
        assert!(again.resume(&left.layout));
        assert_eq!(again.layout(), control.layout());
        assert_eq!(again.grouping(), control.grouping());
    }
}
