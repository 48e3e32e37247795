//! The settings file of `headway host`.

use crate::commands::settings_file::SettingsFile;
use serde::Deserialize;
use std::path::PathBuf;
use toml::Spanned;

/// The contents of a settings file. The keys are the flags' names, except that applications are tables.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct HostConfig {
    pub(super) socket: Option<Spanned<PathBuf>>,
    #[serde(default)]
    pub(super) app: Vec<Spanned<AppTable>>,
    pub(super) policy: Option<Spanned<String>>,
    pub(super) cores: Option<Spanned<String>>,
    pub(super) share_core: Option<Spanned<bool>>,
    pub(super) tick: Option<Spanned<String>>,
    pub(super) device: Option<Spanned<String>>,
    pub(super) metrics: Option<Spanned<String>>,
    pub(super) no_ctl: Option<Spanned<bool>>,
}

/// An application that may register.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct AppTable {
    pub(super) name: String,
    #[serde(default)]
    pub(super) guaranteed: usize,
    pub(super) cores: Option<usize>,
    #[serde(default)]
    pub(super) class: AppClass,
    #[serde(default)]
    pub(super) users: Vec<NameOrNumber>,
    #[serde(default)]
    pub(super) groups: Vec<NameOrNumber>,
    /// The application's address and the length of its network prefix: `10.0.0.9/24`.
    pub(super) ip: Option<String>,
    /// The router to other networks.
    pub(super) gateway: Option<String>,
    /// The application's Ethernet address.
    pub(super) mac: Option<String>,
}

/// The kind of an application.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum AppClass {
    /// The application answers requests.
    #[default]
    LatencyCritical,
    /// The application uses the cores that are left.
    Batch,
}

/// A user or a group, by name or number.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum NameOrNumber {
    Number(u32),
    Name(String),
}

pub(super) const KEYS: &[&str] = &[
    "socket",
    "app",
    "policy",
    "cores",
    "share-core",
    "tick",
    "metrics",
    "no-ctl",
    "name",
    "guaranteed",
    "class",
    "users",
    "groups",
    "device",
    "ip",
    "gateway",
    "mac",
];

/// A settings file that has been read.
pub(super) type HostFile = SettingsFile<HostConfig>;
