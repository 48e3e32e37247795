//! The services that `serve` can run and `load` can talk to.

mod promises;

use super::serve::early::EarlySignals;
use crate::error::usage;
use anyhow::Result;
use clap::ValueEnum;
#[cfg(feature = "kv")]
use headway_kv::{Kv, KvError};
use headway_policy::{BitSet, ClassHint, Shape};
use headway_runtime::{Call, DeclaredClass, Service, Spin};
use headway_workload::Workload;
use serde::Deserialize;
use std::path::PathBuf;
use std::time::Duration;

/// A service.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum BuiltInApp {
    /// Keys and values in an ordered store: GET, SCAN, PUT, DELETE
    Kv,
    /// Computes for the time that each request asks for
    #[default]
    Spin,
    /// Sleeps for the time that each request asks for: many servers on few cores
    Sleep,
    /// Sends each request's body back
    Echo,
}

/// The key-value service's data.
#[derive(clap::Args, Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct KvFlags {
    /// Keys of a new key-value store [default: 100000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    pub(crate) keys: Option<u64>,
    /// Folder of the key-value store [default: a temporary one, filled at the start]
    #[arg(long, value_name = "FOLDER")]
    pub(crate) data: Option<PathBuf>,
    /// What cuts off the filling of a temporary store.
    #[arg(skip)]
    #[serde(skip)]
    pub(crate) early: Option<EarlySignals>,
}

/// The error that names the feature `kv`, where the build lacks it.
const NO_STORE: &str =
    "this build has no key-value store; build it with the feature kv, or serve spin or echo";

#[cfg(feature = "kv")]
const VALUE_BYTES: usize = 100;
/// Rough service times of the store; fixed policies order the classes by them.
const KV_HINTS_NS: [(&str, f64); 4] = [
    ("GET", 2_000.0),
    ("SCAN", 500_000.0),
    ("PUT", 5_000.0),
    ("DELETE", 5_000.0),
];

impl KvFlags {
    /// Fills each unset value from `other`.
    pub(crate) fn or(self, other: Self) -> Self {
        Self {
            keys: self.keys.or(other.keys),
            data: self.data.or(other.data),
            early: self.early.or(other.early),
        }
    }

    /// Opens or fills the store and returns the service.
    #[cfg(feature = "kv")]
    fn service(&self) -> Result<AnyService> {
        let opened = match &self.data {
            None => {
                let keys = self.keys.unwrap_or(Kv::DEFAULT_KEYS);
                let goes_on = || !self.early.as_ref().is_some_and(EarlySignals::came);
                Kv::filled_while(keys, VALUE_BYTES, 1, goes_on)
            }
            Some(path) => Kv::open_filled(path, self.keys, VALUE_BYTES, 1),
        };
        opened.map(AnyService::Kv).map_err(|error| match error {
            KvError::OtherKeys { .. } => usage("--keys", error),
            KvError::Open { .. } => usage("--data", error),
            other => other.into(),
        })
    }

    /// Refuses the service: this build has no store.
    #[cfg(not(feature = "kv"))]
    fn service(&self) -> Result<AnyService> {
        Err(usage("--app", NO_STORE))
    }
}

impl BuiltInApp {
    /// The name that `--app` takes.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Kv => "kv",
            Self::Spin => "spin",
            Self::Sleep => "sleep",
            Self::Echo => "echo",
        }
    }

    /// The classes of its requests, in the order of the header's type byte.
    pub(crate) fn classes(self, workload: &Workload) -> Vec<DeclaredClass> {
        let class = |name: &str, mean_ns: f64, share: f64| DeclaredClass {
            name: name.into(),
            hint: ClassHint::new(mean_ns, share),
        };
        match self {
            Self::Kv => KV_HINTS_NS
                .iter()
                .map(|&(name, mean_ns)| class(name, mean_ns, 0.25))
                .collect(),
            Self::Echo => vec![class("request", 1_000.0, 1.0)],
            Self::Spin | Self::Sleep => headway::config::classes(workload),
        }
    }

    /// Refuses a service that this build lacks.
    pub(crate) fn check_built(self) -> Result<()> {
        if self == Self::Kv && !cfg!(feature = "kv") {
            return Err(usage("--app", NO_STORE));
        }
        Ok(())
    }

    /// The classes whose handlers declare their whole run as long.
    pub(crate) fn longs(self, workload: &Workload) -> BitSet {
        let mut shape = Shape::new(1);
        let classes = self.classes(workload).into_iter();
        shape.classes = classes.map(|class| class.hint).collect();
        shape.longs()
    }

    /// Builds the service. `spin` and `sleep` take at most `max_spin_ns` per request.
    pub(crate) fn service(
        self,
        kv: &KvFlags,
        workload: &Workload,
        max_spin_ns: u64,
    ) -> Result<AnyService> {
        Ok(match self {
            Self::Kv => kv.service()?,
            Self::Spin => AnyService::Spin {
                spin: Spin::default().longest(Duration::from_nanos(max_spin_ns)),
                longs: self.longs(workload),
            },
            Self::Sleep => AnyService::Sleep {
                longest_ns: max_spin_ns,
            },
            Self::Echo => AnyService::Echo,
        })
    }
}

/// The chosen service.
pub(crate) enum AnyService {
    #[cfg(feature = "kv")]
    Kv(Kv),
    Spin {
        spin: Spin,
        /// The classes whose handlers declare themselves long.
        longs: BitSet,
    },
    Sleep {
        /// The longest time that a request may ask for; the service refuses longer ones.
        longest_ns: u64,
    },
    Echo,
}

impl Service for AnyService {
    #[inline]
    fn handle(&self, call: &mut Call<'_>) {
        match self {
            #[cfg(feature = "kv")]
            Self::Kv(kv) => kv.handle(call),
            Self::Spin { spin, longs } if longs.contains(call.class().index()) => {
                call.long(|call| spin.handle(call));
            }
            Self::Spin { spin, .. } => spin.handle(call),
            Self::Sleep { longest_ns } => match u64::from(call.header_time_ns()) {
                asked_ns if asked_ns > *longest_ns => call.bad_request(),
                asked_ns => std::thread::sleep(Duration::from_nanos(asked_ns)),
            },
            Self::Echo => call.reply_in_place(),
        }
    }
}
