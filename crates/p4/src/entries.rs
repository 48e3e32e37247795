//! The entries that a control plane writes into the tables of either program.

use headway_policy::rack::{GroupTurns, Shaper, StepTables, StepTablesError};
use std::net::SocketAddrV4;

/// Most types, UNKNOWN included. All sizes here equal those in the programs' `sizes.p4`.
pub const MAX_TYPES: usize = StepTables::MAX_TYPES;
/// Most groups.
pub const MAX_GROUPS: usize = StepTables::MAX_GROUPS;
/// Most turns of all groups together: the rack's cores.
pub const MAX_TURNS: usize = StepTables::MAX_TURNS;
/// Most servers.
pub const MAX_SERVERS: usize = StepTables::MAX_SERVERS;
/// A window of bursts is 2 to this many ns long, 16.4 µs: a pipeline cannot divide by the paper's 20 µs.
pub const WINDOW_SHIFT: u32 = 14;

/// One entry: a table, the values that it matches exactly, an action and its parameters, each in the order in which the programs declare them.
#[derive(Clone, PartialEq, Eq, Debug, Hash)]
pub struct Entry {
    /// The table's name.
    pub table: &'static str,
    /// The values it matches; empty for the table's default.
    pub keys: Vec<u64>,
    /// The action's name.
    pub action: &'static str,
    /// Its parameters.
    pub params: Vec<u64>,
}

/// The constant entries: they recognise the rack's packets, with the switch at `own`, and map type bytes to classes. UNKNOWN follows the `types`
/// declared ones.
///
/// # Errors
/// [`StepTablesError`] when the programs' tables are too small.
pub fn constant_entries(
    own: SocketAddrV4,
    types: usize,
    servers: &[SocketAddrV4],
) -> Result<Vec<Entry>, StepTablesError> {
    StepTables::check(types, servers.len())?;
    let mut entries = vec![
        Entry {
            table: "services",
            keys: words_of(own),
            action: "to_rack",
            params: Vec::new(),
        },
        Entry {
            table: "types",
            keys: Vec::new(),
            action: "set_class",
            params: vec![types as u64],
        },
    ];
    entries.extend((0..types as u64).map(|class| Entry {
        table: "types",
        keys: vec![class],
        action: "set_class",
        params: vec![class],
    }));
    entries.extend(servers.iter().map(|&server| Entry {
        table: "returning",
        keys: words_of(server),
        action: "from_server",
        params: words_of(own),
    }));
    Ok(entries)
}

/// The entries of one copy of the tables, for the policy's present state, UNKNOWN and `types` declared types, and these servers. Copies are 0 and 1: the
/// packets of generation `g` use copy `g mod 2`, so the control plane can write the other one meanwhile. Without `clones`, no arrival counts as excess.
///
/// # Errors
/// [`StepTablesError`] when the programs' tables are too small, or a server is missing.
pub fn entries_of(
    shaper: &Shaper,
    types: usize,
    servers: &[SocketAddrV4],
    clones: bool,
    copy: u8,
) -> Result<Vec<Entry>, StepTablesError> {
    let tables = StepTables::of(shaper, types, servers.len())?;
    let copy = u64::from(copy);
    let mut entries = Vec::new();
    for (class, &group) in tables.group_of.iter().enumerate() {
        entries.push(Entry {
            table: "groups",
            keys: vec![copy, class as u64],
            action: "set_group",
            params: vec![u64::from(group)],
        });
    }
    for group in 0..tables.groups.len() {
        entries.push(limits_of(&tables, group, clones, copy));
        for (turn, &server) in tables.groups[group].round.iter().enumerate() {
            entries.push(Entry {
                table: "turns",
                keys: vec![copy, group as u64, turn as u64],
                action: "to_server",
                params: words_of(servers[usize::from(server)]),
            });
        }
    }
    Ok(entries)
}

fn words_of(address: SocketAddrV4) -> Vec<u64> {
    vec![
        u64::from(u32::from(*address.ip())),
        u64::from(address.port()),
    ]
}

/// A group's limits: the length of its round, the size of a burst, and the group for the excess, which is the next one, or the last group itself.
fn limits_of(tables: &StepTables, group: usize, clones: bool, copy: u64) -> Entry {
    let GroupTurns { round, threshold } = &tables.groups[group];
    let next = (group + 1).min(tables.groups.len() - 1);
    let threshold = if clones { *threshold } else { u32::MAX };
    Entry {
        table: "limits",
        keys: vec![copy, group as u64],
        action: "set_limits",
        params: vec![round.len() as u64, u64::from(threshold), next as u64],
    }
}
