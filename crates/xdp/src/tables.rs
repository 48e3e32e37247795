//! The program's tables, made from those of a policy.

use crate::layout::{
    BUCKETS, FAMILY_IP4, FAMILY_IP6, GroupTable, MAX_PROBES, RackTables, Raw, ServerEntry,
    ServerShare, TypeProfile,
};
use headway_policy::ClassHint;
use headway_policy::rack::{GroupTurns, ServerLoads, Shaper, StepTables, StepTablesError};
use std::net::{IpAddr, SocketAddr};

/// A server, and the link to it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Neighbour {
    /// The server's address and port.
    pub address: SocketAddr,
    /// The Ethernet address that its packets are sent to: the server's, or a router's.
    pub mac: [u8; 6],
    /// The interface that leads to it.
    pub ifindex: u32,
    /// That interface's own Ethernet address.
    pub own_mac: [u8; 6],
}

/// One copy of the tables, ready to be published.
#[derive(Clone)]
pub struct XdpTables(pub(crate) Box<RackTables>);

/// The tables of a policy as it is now, over these servers. The switch has UNKNOWN and `types` other types; the first of them belong to these
/// type bytes, by number.
///
/// # Errors
/// [`StepTablesError`] when the tables exceed the program's limits, or a server is missing.
pub fn tables_of(
    shaper: &Shaper,
    types: usize,
    type_bytes: &[u8],
    servers: &[Neighbour],
) -> Result<XdpTables, StepTablesError> {
    let places: Vec<_> = servers.iter().copied().map(Some).collect();
    tables_of_places(shaper, types, type_bytes, &places)
}

/// The same over places, some of them without a server. The policy gives these no cores.
///
/// # Errors
/// As [`tables_of`].
pub fn tables_of_places(
    shaper: &Shaper,
    types: usize,
    type_bytes: &[u8],
    servers: &[Option<Neighbour>],
) -> Result<XdpTables, StepTablesError> {
    let step = StepTables::of(shaper, types, servers.len())?;
    let mut tables = empty();
    tables.groups = step.groups.len() as u32;
    tables.group_of[..step.group_of.len()].copy_from_slice(&step.group_of);
    tables.class_of.fill(types as u8);
    for (class, &byte) in type_bytes.iter().enumerate().take(types) {
        tables.class_of[usize::from(byte)] = class as u8;
    }
    let mut first = 0;
    for (group, GroupTurns { round, threshold }) in step.groups.iter().enumerate() {
        tables.turns[first..first + round.len()].copy_from_slice(round);
        tables.group[group] = GroupTable {
            first: first as u32,
            round: round.len() as u32,
            threshold: *threshold,
            between_looks: between_looks(*threshold),
        };
        first += round.len();
    }
    for (entry, server) in tables.server.iter_mut().zip(servers) {
        if let Some(server) = server {
            *entry = entry_of(server);
        }
    }
    tables.servers = servers.len() as u32;
    if let Some(loads) = shaper.loads() {
        share(&mut tables, loads, servers.len(), step.groups.len());
    }
    hash(&mut tables, servers.len());
    Ok(XdpTables(tables))
}

impl XdpTables {
    /// Tells the next control plane how many cores each place's server has by order, 0 if it drains. Those that the tables give it turns for are
    /// fewer while it is silent.
    #[must_use]
    pub fn for_members(mut self, cores: &[u16]) -> Self {
        for (entry, &cores) in self.0.server.iter_mut().zip(cores) {
            entry.member_cores = cores;
        }
        self
    }

    /// Tells the next control plane the demand that the tables were made for, by type.
    #[must_use]
    pub fn for_demand(mut self, types: &[ClassHint]) -> Self {
        for (profile, hint) in self.0.profile.iter_mut().zip(types) {
            *profile = TypeProfile {
                mean_ns: hint.mean_ns.to_bits(),
                share: hint.share.to_bits(),
            };
        }
        self
    }
}

/// Each server's cores, and each group's part of them.
fn share(tables: &mut RackTables, loads: &ServerLoads, servers: usize, groups: usize) {
    let word = |cores: u32| u16::try_from(cores).unwrap_or(u16::MAX);
    for server in 0..servers {
        tables.cores[server] = word(loads.cores(server));
        for group in 0..groups {
            let load = loads.of(server, group);
            tables.share[server][group] = ServerShare {
                cores: word(load.cores),
                full: word(load.full),
            };
        }
    }
}

/// Tables without types and servers.
pub(crate) fn empty() -> Box<RackTables> {
    Box::new(RackTables::get(&[0; RackTables::BYTES]))
}

/// The mask for arrival numbers: an arrival reads the clock only if its number has none of these bits. Readings are at most an eighth of the
/// threshold apart.
fn between_looks(threshold: u32) -> u32 {
    let most = (threshold / 8).max(1);
    (1 << most.ilog2()) - 1
}

fn entry_of(server: &Neighbour) -> ServerEntry {
    let mut ip = [0; 16];
    let family = match server.address.ip() {
        IpAddr::V4(v4) => {
            ip[..4].copy_from_slice(&v4.octets());
            FAMILY_IP4
        }
        IpAddr::V6(v6) => {
            ip = v6.octets();
            FAMILY_IP6
        }
    };
    ServerEntry {
        ip,
        ifindex: server.ifindex,
        port: server.address.port().to_be_bytes(),
        mac: server.mac,
        own_mac: server.own_mac,
        family: family as u8,
        member_cores: 0,
    }
}

/// Fills the hash table, under the first seed by which every server is found within [`MAX_PROBES`] buckets.
fn hash(tables: &mut RackTables, servers: usize) {
    tables.seed = (0..u32::MAX)
        .find(|&seed| try_hash(tables, servers, seed))
        .expect("a quarter of the buckets is in use at most: some seed spreads them");
}

fn try_hash(tables: &mut RackTables, servers: usize, seed: u32) -> bool {
    tables.bucket.fill(0);
    let is_there = |number: &usize| tables.server[*number].family != 0;
    let there: Vec<usize> = (0..servers).filter(is_there).collect();
    there.into_iter().all(|number| {
        let first = bucket(&tables.server[number], seed);
        let free = (first..first + MAX_PROBES)
            .map(|at| at % BUCKETS)
            .find(|&at| tables.bucket[at] == 0);
        if let Some(at) = free {
            tables.bucket[at] = number as u16 + 1;
        }
        free.is_some()
    })
}

/// `bucket_of` in `rack.bpf.c`.
fn bucket(server: &ServerEntry, seed: u32) -> usize {
    let words = server.ip.chunks_exact(4).map(u32::get);
    let folded = words.fold(0, |mixed, word| mixed ^ word);
    let port = u32::from(u16::get(&server.port));
    let mixed = (folded ^ port ^ seed).wrapping_mul(0x9E37_79B1);
    (mixed >> 22) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::MAX_SERVERS;
    use headway_policy::rack::{Cloning, Demand, Grouping, RackLayout, Turns};

    fn shaper(servers: usize, cores: usize) -> Shaper {
        let hint = |mean_ns, share| ClassHint::new(mean_ns, share);
        let demand = Demand::declared(&[hint(10_000.0, 0.9), hint(90_000.0, 0.1)]);
        let grouping = Grouping::new(&[0, 1], &demand);
        let half = servers * cores / 2;
        let layout = RackLayout::new(&vec![cores; servers], 1)
            .updated(&[half, servers * cores - half], &[None, None]);
        let mut shaper = Shaper::new(2, servers * cores, Turns::Even, Cloning::Off, 1);
        shaper.install(&grouping, &layout, &demand);
        shaper
    }

    fn neighbours(count: usize) -> Vec<Neighbour> {
        (0..count)
            .map(|number| Neighbour {
                address: SocketAddr::from((
                    [10, 0, (number / 200) as u8, (number % 200) as u8],
                    7000,
                )),
                mac: [2; 6],
                ifindex: 1,
                own_mac: [4; 6],
            })
            .collect()
    }

    #[test]
    fn the_turns_of_each_group_are_the_policys() {
        let shaper = shaper(4, 2);
        let tables = tables_of(&shaper, 2, &[0, 77], &neighbours(4)).unwrap().0;
        for group in 0..2 {
            let GroupTable { first, round, .. } = tables.group[group];
            let turns = &tables.turns[first as usize..(first + round) as usize];
            assert_eq!(turns, shaper.round_of(group));
        }
        assert_eq!(tables.group_of[..3], [0, 1, 1]);
        assert_eq!(tables.class_of[..3], [0, 2, 2]);
        assert_eq!(tables.class_of[77], 1);
    }

    #[test]
    fn a_window_misses_at_most_an_eighth_of_its_threshold() {
        let expected = [(0, 0), (1, 0), (15, 0), (16, 1), (64, 7), (500, 31)];
        for (threshold, bits) in expected {
            assert_eq!(between_looks(threshold), bits, "{threshold}");
        }
        for threshold in (0..1 << 14).chain([u32::MAX]) {
            let bits = between_looks(threshold);
            assert!((bits + 1).is_power_of_two());
            assert!(bits == 0 || bits < threshold / 8, "{threshold}: {bits}");
        }
    }

    #[test]
    fn every_server_of_a_full_rack_is_found_within_the_probes() {
        let servers = neighbours(MAX_SERVERS);
        let tables = tables_of(&shaper(MAX_SERVERS, 4), 2, &[0, 1], &servers)
            .unwrap()
            .0;
        for number in 0..MAX_SERVERS {
            let first = bucket(&tables.server[number], tables.seed);
            let found = (first..first + MAX_PROBES)
                .map(|at| usize::from(tables.bucket[at % BUCKETS]))
                .take_while(|&number| number != 0)
                .any(|found| found == number + 1);
            assert!(found, "server {number}");
        }
    }

    #[test]
    fn what_does_not_fit_is_refused_with_its_number() {
        let most = MAX_SERVERS + 1;
        let error = tables_of(&shaper(4, 2), 2, &[0, 1], &neighbours(most)).err();
        assert_eq!(
            error,
            Some(StepTablesError::TooMany {
                what: "servers",
                found: most,
                most: MAX_SERVERS
            })
        );
        let error = tables_of(&shaper(4, 2), 2, &[0, 1], &neighbours(3)).err();
        assert_eq!(
            error,
            Some(StepTablesError::NoServer {
                server: 3,
                servers: 3
            })
        );
    }
}
