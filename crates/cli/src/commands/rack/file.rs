//! The settings file of `headway rack`.

use crate::commands::settings_file::SettingsFile;
use serde::Deserialize;
use std::path::PathBuf;
use toml::Spanned;

/// The contents of a settings file; the keys are the flags' names.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct RackConfig {
    pub(super) listen: Option<Spanned<String>>,
    #[serde(default)]
    pub(super) server: Vec<Spanned<String>>,
    pub(super) most_servers: Option<Spanned<u64>>,
    pub(super) policy: Option<Spanned<String>>,
    pub(super) workload: Option<Spanned<String>>,
    pub(super) types: Option<Spanned<u64>>,
    pub(super) silence: Option<Spanned<String>>,
    pub(super) slo: Option<Spanned<String>>,
    pub(super) agent_key: Option<Spanned<PathBuf>>,
    pub(super) agents: Option<Spanned<String>>,
    pub(super) agents_join: Option<Spanned<bool>>,
    pub(super) metrics: Option<Spanned<String>>,
    pub(super) ctl: Option<Spanned<PathBuf>>,
    pub(super) no_ctl: Option<Spanned<bool>>,
    pub(super) xdp: Option<Spanned<String>>,
    pub(super) direct: Option<Spanned<bool>>,
    pub(super) lease: Option<Spanned<String>>,
    pub(super) seed: Option<Spanned<u64>>,
}

pub(super) const KEYS: &[&str] = &[
    "listen",
    "server",
    "most-servers",
    "policy",
    "workload",
    "types",
    "silence",
    "slo",
    "agent-key",
    "agents",
    "agents-join",
    "metrics",
    "ctl",
    "no-ctl",
    "xdp",
    "direct",
    "lease",
    "seed",
];

/// A settings file that has been read.
pub(super) type RackFile = SettingsFile<RackConfig>;
