//! What a host is: its cores, and the applications that share them.

use super::topology::HostTopology;
use crate::BitSet;
use alloc::vec::Vec;
use core::fmt;

/// Most logical cores of one host.
pub const MAX_CORES: usize = BitSet::CAPACITY;
/// Most applications on one host.
pub const MAX_APPS: usize = BitSet::CAPACITY;

/// What an application is there for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum AppKind {
    /// It answers requests; its latency matters.
    #[default]
    Latency,
    /// It always has work and soaks up what is left. Shenango need not know (it is simply always
    /// congested); allocators that partition by estimates must.
    Batch,
}

/// What an application is entitled to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AppShape {
    /// Cores nobody takes from it while it uses them.
    pub guaranteed: usize,
    /// Most cores it may have at once, and the number of its kthreads, `1..=MAX_CORES`. What exceeds
    /// `guaranteed` is burstable.
    pub most: usize,
    /// What it is there for.
    pub kind: AppKind,
}

/// What an allocator is built for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HostShape {
    /// The cores that are dealt out.
    pub topology: HostTopology,
    /// The applications.
    pub apps: Vec<AppShape>,
    /// Seed of the allocator's own randomness.
    pub seed: u64,
}

/// Why a host cannot be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ShapeError {
    /// There must be 1 to [`MAX_CORES`] cores.
    Cores {
        /// How many there are.
        cores: usize,
    },
    /// There must be 1 to [`MAX_APPS`] applications.
    Apps {
        /// How many there are.
        apps: usize,
    },
    /// An application must have `guaranteed ≤ most` and `1 ≤ most ≤ cores`.
    Limits {
        /// Its index.
        app: usize,
        /// Its guaranteed cores.
        guaranteed: usize,
        /// Its most cores.
        most: usize,
        /// The cores of the host.
        cores: usize,
    },
    /// More cores are guaranteed than there are.
    Oversubscribed {
        /// Guaranteed to all applications together.
        guaranteed: usize,
        /// The cores of the host.
        cores: usize,
    },
}

impl fmt::Display for ShapeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Cores { cores } => {
                write!(f, "a host has 1 to {MAX_CORES} cores, not {cores}")
            }
            Self::Apps { apps } => {
                write!(f, "a host has 1 to {MAX_APPS} applications, not {apps}")
            }
            Self::Limits {
                app,
                guaranteed,
                most,
                cores,
            } => write!(
                f,
                "application {app} has {guaranteed} guaranteed and at most {most} of {cores} cores: \
                 it needs guaranteed ≤ most and 1 ≤ most ≤ {cores}"
            ),
            Self::Oversubscribed { guaranteed, cores } => write!(
                f,
                "{guaranteed} cores are guaranteed, but there are only {cores}"
            ),
        }
    }
}

impl core::error::Error for ShapeError {}

impl HostShape {
    /// Whether it can be (Shenango § 4.1.1: guarantees are never oversubscribed).
    ///
    /// # Errors
    /// [`ShapeError`] with what is wrong first.
    pub fn check(&self) -> Result<(), ShapeError> {
        let (cores, apps) = (self.topology.cores(), self.apps.len());
        if !(1..=MAX_CORES).contains(&cores) {
            return Err(ShapeError::Cores { cores });
        }
        if !(1..=MAX_APPS).contains(&apps) {
            return Err(ShapeError::Apps { apps });
        }
        for (app, limits) in self.apps.iter().enumerate() {
            let AppShape {
                guaranteed, most, ..
            } = *limits;
            if guaranteed > most || most == 0 || most > cores {
                return Err(ShapeError::Limits {
                    app,
                    guaranteed,
                    most,
                    cores,
                });
            }
        }
        let guaranteed = self.apps.iter().map(|app| app.guaranteed).sum();
        if guaranteed > cores {
            return Err(ShapeError::Oversubscribed { guaranteed, cores });
        }
        Ok(())
    }
}
