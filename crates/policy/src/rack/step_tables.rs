//! The tables of the [step](super::Shaper) as other planes hold them: the XDP program and the P4 programs are filled from this one description.

use core::fmt;

use super::Shaper;
use crate::ClassId;
use alloc::vec::Vec;

/// The tables of a policy at one moment, known to fit a plane's rooms.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StepTables {
    /// Each type's group, UNKNOWN last.
    pub group_of: Vec<u8>,
    /// By group.
    pub groups: Vec<GroupTurns>,
}

/// One group's table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GroupTurns {
    /// The servers of one round of turns; without any the group's requests are shed.
    pub round: Vec<u16>,
    /// Requests in one window beyond which there is a burst.
    pub threshold: u32,
}

/// Why a plane cannot hold a policy's tables.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum StepTablesError {
    /// More of something than there is room for.
    TooMany {
        /// Of what there are too many.
        what: &'static str,
        /// How many there are.
        found: usize,
        /// How many there may be.
        most: usize,
    },
    /// A turn of a server that is not in the list.
    NoServer {
        /// The server.
        server: usize,
        /// Servers listed.
        servers: usize,
    },
}

impl fmt::Display for StepTablesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooMany { what, found, most } => write!(
                f,
                "{found} {what}: the switch's tables have room for {most}. Use the user-space switch"
            ),
            Self::NoServer { server, servers } => write!(
                f,
                "the policy sends requests to server {server}, and {servers} servers are listed: list all"
            ),
        }
    }
}

/// The sentence: `fn main() -> Result<(), Box<dyn Error>>` prints errors by `Debug`.
impl fmt::Debug for StepTablesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl core::error::Error for StepTablesError {}

impl StepTables {
    /// Types at most, UNKNOWN included.
    pub const MAX_TYPES: usize = 256;
    /// Groups at most.
    pub const MAX_GROUPS: usize = 64;
    /// Turns of all groups together at most: the rack's cores.
    pub const MAX_TURNS: usize = 4096;
    /// Servers at most.
    pub const MAX_SERVERS: usize = 256;

    /// Those of the step as it is now, with UNKNOWN and `types` other types, over so many servers.
    ///
    /// # Errors
    /// [`StepTablesError`] when there is no room for so much, or a server is missing.
    pub fn of(shaper: &Shaper, types: usize, servers: usize) -> Result<Self, StepTablesError> {
        Self::check(types, servers)?;
        within("groups", shaper.groups(), Self::MAX_GROUPS)?;
        let rounds = (0..shaper.groups()).map(|group| shaper.round_of(group));
        within("turns", rounds.map(<[u16]>::len).sum(), Self::MAX_TURNS)?;
        let groups = (0..shaper.groups()).map(|group| {
            let round = shaper.round_of(group);
            match round.iter().find(|&&server| usize::from(server) >= servers) {
                Some(&server) => Err(StepTablesError::NoServer {
                    server: usize::from(server),
                    servers,
                }),
                None => Ok(GroupTurns {
                    round: round.to_vec(),
                    threshold: u32::try_from(shaper.threshold_of(group)).unwrap_or(u32::MAX),
                }),
            }
        });
        let classes = 0..=types as u16;
        Ok(Self {
            group_of: classes
                .map(|class| shaper.group_of(ClassId(class)) as u8)
                .collect(),
            groups: groups.collect::<Result<_, _>>()?,
        })
    }

    /// Whether there is room for so many types beside UNKNOWN, and servers.
    ///
    /// # Errors
    /// [`StepTablesError::TooMany`].
    pub fn check(types: usize, servers: usize) -> Result<(), StepTablesError> {
        within("types", types + 1, Self::MAX_TYPES)?;
        within("servers", servers, Self::MAX_SERVERS)
    }
}

fn within(what: &'static str, found: usize, most: usize) -> Result<(), StepTablesError> {
    if found > most {
        return Err(StepTablesError::TooMany { what, found, most });
    }
    Ok(())
}
