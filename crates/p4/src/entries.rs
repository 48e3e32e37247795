//! What a control plane writes into the tables of either program.

use headway_policy::ClassId;
use headway_policy::rack::Shaper;
use std::net::SocketAddrV4;

/// Declared types and UNKNOWN, at most. The programs' `sizes.p4` says the same, as do all sizes here.
pub const MAX_TYPES: usize = 256;
/// Groups, at most.
pub const MAX_GROUPS: usize = 64;
/// Turns of all groups together, at most: the rack's cores.
pub const MAX_TURNS: usize = 4096;
/// Servers, at most.
pub const MAX_SERVERS: usize = 256;
/// A window of bursts is 2 to this many ns long, 16.4 µs: a pipeline cannot divide by the paper's 20 µs.
pub const WINDOW_SHIFT: u32 = 14;

/// One entry: a table, the values that it matches exactly, an action and its parameters, each in the order in which the programs declare them.
#[derive(Clone, PartialEq, Eq, Debug, Hash)]
pub struct Entry {
    /// The table's name.
    pub table: &'static str,
    /// What it matches; nothing: it is the table's default.
    pub keys: Vec<u64>,
    /// The action's name.
    pub action: &'static str,
    /// Its parameters.
    pub params: Vec<u64>,
}

/// Why there are no entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum EntryError {
    /// More of something than the programs have room for.
    #[error("{found} {what}: the P4 programs have room for {most}. Use the user-space switch")]
    TooMany {
        /// Of what there are too many.
        what: &'static str,
        /// How many there are.
        found: usize,
        /// How many there may be.
        most: usize,
    },
    /// A turn of a server that is not in the list.
    #[error(
        "the policy sends requests to server {server}, and {servers} servers are listed: list all"
    )]
    NoServer {
        /// The server.
        server: usize,
        /// Servers listed.
        servers: usize,
    },
}

/// The entries that stay: which packets are the rack's, with the switch at `own`, and which class a type byte is of; UNKNOWN comes after `types`
/// declared ones.
///
/// # Errors
/// [`EntryError`] when the programs have no room for so many.
pub fn constant_entries(
    own: SocketAddrV4,
    types: usize,
    servers: &[SocketAddrV4],
) -> Result<Vec<Entry>, EntryError> {
    within("types", types + 1, MAX_TYPES)?;
    within("servers", servers.len(), MAX_SERVERS)?;
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

/// The entries of one copy of the tables for a policy as it is now, with UNKNOWN and `types` declared types, over these servers. Copies are 0 and 1: the
/// packets of generation `g` use copy `g mod 2`, so that the other one can be written meanwhile. Without `clones` no arrival is in excess.
///
/// # Errors
/// [`EntryError`] when the programs have no room for so much, or a server is missing.
pub fn entries_of(
    shaper: &Shaper,
    types: usize,
    servers: &[SocketAddrV4],
    clones: bool,
    copy: u8,
) -> Result<Vec<Entry>, EntryError> {
    let groups = shaper.groups();
    within("types", types + 1, MAX_TYPES)?;
    within("groups", groups, MAX_GROUPS)?;
    within("servers", servers.len(), MAX_SERVERS)?;
    let turns = (0..groups).map(|group| shaper.round_of(group).len()).sum();
    within("turns", turns, MAX_TURNS)?;
    let copy = u64::from(copy);
    let mut entries = Vec::new();
    for class in 0..=types {
        entries.push(Entry {
            table: "groups",
            keys: vec![copy, class as u64],
            action: "set_group",
            params: vec![shaper.group_of(ClassId(class as u16)) as u64],
        });
    }
    for group in 0..groups {
        entries.push(limits_of(shaper, group, clones, copy));
        for (turn, &server) in shaper.round_of(group).iter().enumerate() {
            let address = servers
                .get(usize::from(server))
                .ok_or(EntryError::NoServer {
                    server: usize::from(server),
                    servers: servers.len(),
                })?;
            entries.push(Entry {
                table: "turns",
                keys: vec![copy, group as u64, turn as u64],
                action: "to_server",
                params: words_of(*address),
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

fn within(what: &'static str, found: usize, most: usize) -> Result<(), EntryError> {
    if found > most {
        return Err(EntryError::TooMany { what, found, most });
    }
    Ok(())
}

/// How long a group's round is, how much is a burst, and which group takes the excess: the next one, or itself where it is the last.
fn limits_of(shaper: &Shaper, group: usize, clones: bool, copy: u64) -> Entry {
    let next = (group + 1).min(shaper.groups() - 1);
    let threshold = if clones {
        shaper.threshold_of(group)
    } else {
        u64::MAX
    };
    Entry {
        table: "limits",
        keys: vec![copy, group as u64],
        action: "set_limits",
        params: vec![
            shaper.round_of(group).len() as u64,
            threshold.min(u64::from(u32::MAX)),
            next as u64,
        ],
    }
}
