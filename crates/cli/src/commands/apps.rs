//! The services that `serve` can run and `load` can talk to.

use crate::error::usage;
use anyhow::Result;
use clap::ValueEnum;
use headway_kv::{Kv, KvWorkload, Store};
use headway_load::Body;
use headway_policy::ClassHint;
use headway_runtime::{Call, Class, Service, Spin};
use headway_workload::Workload;
use serde::Deserialize;
use std::path::PathBuf;
use std::sync::Arc;

/// A service.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum App {
    /// Keys and values in an ordered store: GET, SCAN, PUT, DELETE
    Kv,
    /// Work of the length that each request asks for
    #[default]
    Spin,
    /// Sends back what it is sent
    Echo,
}

/// The key-value service's data.
#[derive(clap::Args, Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct KvFlags {
    /// Keys of the key-value store
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    pub(crate) keys: Option<u64>,
    /// Folder of the key-value store; a temporary one, filled at the start, by default
    #[arg(long, value_name = "FOLDER")]
    pub(crate) data: Option<PathBuf>,
    /// Entries that a SCAN reads
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) scan_entries: Option<u32>,
}

pub(crate) const KEYS: u64 = 100_000;
const VALUE_BYTES: usize = 100;
const SCAN_ENTRIES: u32 = 1_000;
/// Rough service times of the store, by which fixed policies order the classes.
const KV_HINTS_NS: [(&str, f64); 4] = [
    ("GET", 2_000.0),
    ("SCAN", 500_000.0),
    ("PUT", 5_000.0),
    ("DELETE", 5_000.0),
];

impl KvFlags {
    /// What is set here, else what is set there.
    pub(crate) fn or(self, other: Self) -> Self {
        Self {
            keys: self.keys.or(other.keys),
            data: self.data.or(other.data),
            scan_entries: self.scan_entries.or(other.scan_entries),
        }
    }

    /// The service, its store opened or filled.
    pub(crate) fn service(&self) -> Result<Kv> {
        let keys = self.keys.unwrap_or(KEYS);
        let Some(path) = &self.data else {
            return Ok(Kv::filled(keys, VALUE_BYTES, 1)?);
        };
        let store = Store::open(path)?;
        if store.is_empty()? {
            store.fill(keys, VALUE_BYTES, 1)?;
            store.persist()?;
        }
        Ok(Kv::new(store))
    }

    /// Bodies for the classes of a workload, by their names.
    pub(crate) fn bodies(&self, workload: &Workload, seed: u64) -> Result<Body> {
        let bodies = KvWorkload::new(self.keys.unwrap_or(KEYS), seed)
            .with_classes(workload.class_names())
            .map_err(|error| usage("--workload", error))?
            .with_scan_entries(self.scan_entries.unwrap_or(SCAN_ENTRIES));
        Ok(Arc::new(move |class, index, room: &mut [u8]| {
            bodies.body(class, index, room)
        }))
    }
}

impl App {
    /// The classes it is sent, in the order of the header's type byte.
    pub(crate) fn classes(self, workload: &Workload) -> Vec<Class> {
        let class = |name: &str, mean_ns: f64, share: f64| Class {
            name: name.into(),
            hint: ClassHint::new(mean_ns, share),
        };
        match self {
            Self::Kv => KV_HINTS_NS
                .iter()
                .map(|&(name, mean_ns)| class(name, mean_ns, 0.25))
                .collect(),
            Self::Echo => vec![class("request", 1_000.0, 1.0)],
            Self::Spin => headway::config::classes(workload),
        }
    }

    /// The service.
    pub(crate) fn service(self, kv: &KvFlags) -> Result<AnyService> {
        Ok(match self {
            Self::Kv => AnyService::Kv(kv.service()?),
            Self::Spin => AnyService::Spin(Spin::default()),
            Self::Echo => AnyService::Echo,
        })
    }
}

/// The service that was chosen.
pub(crate) enum AnyService {
    Kv(Kv),
    Spin(Spin),
    Echo,
}

impl Service for AnyService {
    #[inline]
    fn handle(&self, call: &mut Call<'_>) {
        match self {
            Self::Kv(kv) => kv.handle(call),
            Self::Spin(spin) => spin.handle(call),
            Self::Echo => call.reply_in_place(),
        }
    }
}
