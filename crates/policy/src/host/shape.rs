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

impl AppShape {
    /// A slot that no application has: see [`HostShape::vacant`].
    pub const VACANT: Self = Self {
        guaranteed: 0,
        most: 0,
        kind: AppKind::Latency,
    };

    /// Whether an application has the slot.
    #[inline]
    #[must_use]
    pub fn is_vacant(&self) -> bool {
        self.most == 0
    }

    fn check(self, app: usize, cores: usize) -> Result<(), ShapeError> {
        let Self {
            guaranteed, most, ..
        } = self;
        if guaranteed > most || most == 0 || most > cores {
            return Err(ShapeError::Limits {
                app,
                guaranteed,
                most,
                cores,
            });
        }
        Ok(())
    }
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
#[derive(Clone, Copy, PartialEq, Eq)]
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
    /// An application has the slot already, or there is no such slot.
    Taken {
        /// Its index.
        app: usize,
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
            Self::Taken { app } => write!(f, "slot {app} is not vacant"),
            Self::Oversubscribed { guaranteed, cores } => write!(
                f,
                "{guaranteed} cores are guaranteed, but there are only {cores}"
            ),
        }
    }
}

/// The sentence: `fn main() -> Result<(), Box<dyn Error>>` prints errors by `Debug`.
impl fmt::Debug for ShapeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl core::error::Error for ShapeError {}

impl HostShape {
    /// A host without applications yet: `slots` of them can be there at once, and come and go by
    /// [`Allocator::admit`](super::Allocator::admit) and [`retire`](super::Allocator::retire).
    #[must_use]
    pub fn vacant(topology: HostTopology, slots: usize, seed: u64) -> Self {
        Self {
            topology,
            apps: alloc::vec![AppShape::VACANT; slots],
            seed,
        }
    }

    /// Whether it can be, with an application in every slot (Shenango § 4.1.1: guarantees are never oversubscribed).
    ///
    /// # Errors
    /// [`ShapeError`] with what is wrong first.
    pub fn check(&self) -> Result<(), ShapeError> {
        self.check_size()?;
        let cores = self.topology.cores();
        for (app, shape) in self.apps.iter().enumerate() {
            shape.check(app, cores)?;
        }
        self.check_guarantees()
    }

    /// Whether it can be. Slots may be vacant.
    ///
    /// # Errors
    /// As [`Self::check`].
    pub fn check_slots(&self) -> Result<(), ShapeError> {
        self.check_size()?;
        let cores = self.topology.cores();
        for (app, shape) in self.apps.iter().enumerate() {
            if !shape.is_vacant() {
                shape.check(app, cores)?;
            }
        }
        self.check_guarantees()
    }

    fn check_size(&self) -> Result<(), ShapeError> {
        let (cores, apps) = (self.topology.cores(), self.apps.len());
        if !(1..=MAX_CORES).contains(&cores) {
            return Err(ShapeError::Cores { cores });
        }
        if !(1..=MAX_APPS).contains(&apps) {
            return Err(ShapeError::Apps { apps });
        }
        Ok(())
    }

    fn check_guarantees(&self) -> Result<(), ShapeError> {
        let cores = self.topology.cores();
        let guaranteed = self.apps.iter().map(|app| app.guaranteed).sum();
        if guaranteed > cores {
            return Err(ShapeError::Oversubscribed { guaranteed, cores });
        }
        Ok(())
    }
}
