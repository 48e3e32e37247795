//! The complete settings of the daemon: flags override the file, and the file overrides defaults.

use super::args::{HostRunArgs, own_socket};
use super::file::{HostFile, KEYS};
use super::rules;
use crate::args::{host_policy, host_port, time};
use crate::commands::serve::config::Sourced;
use crate::error::usage;
use anyhow::{Context, Result};
use headway_host::SYSTEM_SOCKET;
use headway_host::daemon::{AppRule, DaemonError, DaemonSettings};
use headway_machine::topology::parse_cpu_list;
use headway_ops::place;
use headway_ops::socket::ControlPlace;
use std::net::SocketAddr;
use std::path::PathBuf;

/// The complete settings.
pub(super) struct HostChoices {
    pub(super) daemon: DaemonSettings,
    pub(super) metrics: Option<Sourced<SocketAddr>>,
    pub(super) ctl: Sourced<ControlPlace>,
}

impl HostRunArgs {
    /// Merges the settings: flags override the file, and the file overrides defaults.
    pub(super) fn settings(&self) -> Result<HostChoices> {
        let file = self
            .config
            .as_deref()
            .map(|path| HostFile::read(path, KEYS));
        let file = file.transpose()?.unwrap_or_default();
        let set = &file.config;
        let socket = self.socket.clone();
        let socket = file.given_if_set("socket", socket, set.socket.as_ref());
        let socket = match socket {
            Some(socket) => socket.value,
            None => default_socket()?,
        };
        let policy = file.given("policy", self.policy.clone(), set.policy.as_ref(), || {
            "shenango".into()
        });
        let tick = file.given("tick", self.tick.clone(), set.tick.as_ref(), || {
            "100us".into()
        });
        let tick = tick.parse(|text| match time(text)? {
            tick_ns if (5_000..=1_000_000_000).contains(&tick_ns) => Ok(tick_ns),
            _ => Err("a tick is 5us to 1s".to_owned()),
        })?;
        let cores = file.given_if_set("cores", self.cores.clone(), set.cores.as_ref());
        let cores = cores.map(|text| {
            text.parse(|text| {
                let list = parse_cpu_list(text).filter(|list| !list.is_empty());
                list.ok_or_else(|| format!("'{text}' is no list of cores, such as 1-3,8"))
            })
        });
        let metrics = file.given_if_set("metrics", self.metrics.clone(), set.metrics.as_ref());
        let metrics = metrics
            .map(|text| text.parse(|text| host_port(text)))
            .transpose()?;
        let device = file.given_if_set("device", self.device.clone(), set.device.as_ref());
        let shares = match (self.share_core, self.own_core) {
            (false, false) => set.share_core.as_ref().map(|shares| *shares.get_ref()),
            (shares, _) => Some(shares),
        };
        let no_ctl = self.no_ctl || set.no_ctl.as_ref().is_some_and(|no| *no.get_ref());
        let ctl = if no_ctl {
            ControlPlace::Off
        } else {
            ControlPlace::At(super::status::socket_beside(&socket))
        };
        Ok(HostChoices {
            daemon: DaemonSettings {
                socket,
                policy: policy.parse(|text| host_policy(text))?.value,
                apps: self.apps(&file)?,
                cores: cores.transpose()?.map(|cores| cores.value),
                shares,
                tick_ns: tick.value,
                device: device.map(|device| device.value),
                sysfs: "/sys".into(),
            },
            metrics,
            ctl: Sourced::new(ctl, "--socket".into()),
        })
    }

    /// Flags replace the applications of the file.
    fn apps(&self, file: &HostFile) -> Result<Vec<AppRule>> {
        let mut apps = Vec::new();
        for text in &self.app {
            apps.push(rules::of_flag(text).map_err(|why| usage("--app", why))?);
        }
        if apps.is_empty() {
            for table in &file.config.app {
                let rule = rules::of_table(table.get_ref());
                apps.push(rule.map_err(|why| usage(&file.place("app", table), why))?);
            }
        }
        if apps.is_empty() {
            let why = "no application is named: a daemon without any does nothing; give --app NAME, or [[app]] in the file";
            return Err(usage("--app", why));
        }
        Ok(apps)
    }
}

fn default_socket() -> Result<PathBuf> {
    let uid = place::own_uid().context("cannot tell this process's user")?;
    let path = if uid == 0 {
        PathBuf::from(SYSTEM_SOCKET)
    } else {
        own_socket(uid)
    };
    let directory = path.parent().context("the socket has a directory")?;
    if uid == 0 {
        std::fs::create_dir_all(directory)
            .map_err(|error| usage("--socket", format!("{}: {error}", directory.display())))?;
    } else {
        place::make_own(directory, uid).map_err(|why| usage("--socket", why))?;
    }
    Ok(path)
}

/// Turns refused settings into usage errors that name the flag. Other errors are the system's.
pub(super) fn explain(error: DaemonError) -> anyhow::Error {
    match error {
        DaemonError::Socket(why) => usage("--socket", why),
        DaemonError::Cores(error) => usage("--cores", error),
        DaemonError::Policy(error) => usage("--policy", crate::error::explain(&error)),
        DaemonError::Apps(why) => usage("--app", why),
        DaemonError::Device(_) => usage("--device", error),
        DaemonError::Pin(_) => usage("host", error),
        error => error.into(),
    }
}
