//! The values of flags about the server's threads.

use clap::ValueEnum;
use headway_runtime::{Idle, Layout};

/// Where the dispatcher runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, ValueEnum)]
pub(crate) enum LayoutFlag {
    /// Dedicated where there are more cores than workers, else inline
    #[default]
    Auto,
    /// A thread of its own
    Dedicated,
    /// The workers in turn
    Inline,
}

impl From<LayoutFlag> for Layout {
    fn from(flag: LayoutFlag) -> Self {
        match flag {
            LayoutFlag::Auto => Self::Auto,
            LayoutFlag::Dedicated => Self::Dedicated,
            LayoutFlag::Inline => Self::Inline,
        }
    }
}

/// How idle threads wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, ValueEnum)]
pub(crate) enum IdleFlag {
    /// Never sleep
    Spin,
    /// Spin for a while, then sleep
    #[default]
    SpinThenPark,
    /// Sleep at once
    Park,
}

impl From<IdleFlag> for Idle {
    fn from(flag: IdleFlag) -> Self {
        match flag {
            IdleFlag::Spin => Self::Spin,
            IdleFlag::SpinThenPark => Self::default(),
            IdleFlag::Park => Self::Park,
        }
    }
}
