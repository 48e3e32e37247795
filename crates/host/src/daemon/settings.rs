//! A daemon's settings.

use headway_policy::host::{AppKind, AppShape};
use headway_policy::spec::Spec;
use headway_xsk::{HostAddress, MacAddress};
use std::net::Ipv4Addr;
use std::path::PathBuf;

/// An application that may register.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AppRule {
    /// Its name.
    pub name: String,
    /// Its guaranteed cores.
    pub guaranteed: usize,
    /// The most cores that it may have; by default all that are dealt out.
    pub most: Option<usize>,
    /// Its priority class.
    pub kind: AppKind,
    /// Users that may register it, besides the daemon's own and root.
    pub users: Vec<u32>,
    /// Groups whose processes may register it.
    pub groups: Vec<u32>,
    /// Its place in the network of the daemon's device, if it may ask for packets.
    pub network: Option<AppNetwork>,
}

/// An application's place in the network of the daemon's device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AppNetwork {
    /// Its IPv4 address.
    pub ip: Ipv4Addr,
    /// The length of the network prefix in bits.
    pub prefix: u8,
    /// The gateway to other networks, if there is one.
    pub gateway: Option<Ipv4Addr>,
    /// Its Ethernet address; by default 02:00 and the IPv4 address.
    pub mac: Option<MacAddress>,
}

impl AppNetwork {
    /// Its addresses.
    pub fn address(&self) -> HostAddress {
        let [a, b, c, d] = self.ip.octets();
        HostAddress {
            mac: self.mac.unwrap_or(MacAddress([2, 0, a, b, c, d])),
            ip: self.ip,
        }
    }
}

/// All settings.
#[derive(Clone, Debug)]
pub struct DaemonSettings {
    /// The socket at which applications register.
    pub socket: PathBuf,
    /// The allocator.
    pub policy: Spec,
    /// The applications.
    pub apps: Vec<AppRule>,
    /// The cores to deal out; by default all but the daemon's.
    pub cores: Option<Vec<usize>>,
    /// Whether the daemon does without a core of its own; the number of cores decides by default.
    pub shares: Option<bool>,
    /// The interval at which a daemon without a core looks at busy applications, ns.
    pub tick_ns: u64,
    /// The network device whose packets applications get, if any.
    pub device: Option<String>,
    /// The directory in which the kernel lists its cores: `/sys`.
    pub sysfs: PathBuf,
}

impl DaemonSettings {
    /// The rule for a name.
    ///
    /// # Errors
    /// A sentence when no rule has the name.
    pub(super) fn rule(&self, name: &str) -> Result<&AppRule, String> {
        self.apps
            .iter()
            .find(|rule| rule.name == name)
            .ok_or_else(|| {
                let names: Vec<_> = self.apps.iter().map(|rule| rule.name.as_str()).collect();
                format!(
                    "no application is called '{name}' in the daemon's settings; there are: {}",
                    names.join(", ")
                )
            })
    }
}

impl AppRule {
    /// The shape of an application that asks for these cores.
    ///
    /// # Errors
    /// A sentence when it asks for more than it may have.
    pub(super) fn shape(
        &self,
        most: Option<usize>,
        guaranteed: Option<usize>,
        cores: usize,
    ) -> Result<AppShape, String> {
        let name = &self.name;
        let allowed = self.most.unwrap_or(cores).min(cores);
        if most == Some(0) {
            return Err(format!(
                "'{name}' asks for no core at all: ask for 1 to {allowed}"
            ));
        }
        let most = most.unwrap_or(allowed).min(allowed);
        if let Some(asked) = guaranteed {
            let given = self.guaranteed.min(most);
            if asked > given {
                return Err(format!(
                    "'{name}' asks for {asked} guaranteed cores, and has {given}: ask for less, or raise `guaranteed` in the daemon's settings"
                ));
            }
        }
        Ok(AppShape {
            guaranteed: guaranteed.unwrap_or(self.guaranteed).min(most),
            most,
            kind: self.kind,
        })
    }

    /// Whether a process of this user and group may register it.
    ///
    /// # Errors
    /// A sentence with the reason.
    pub(super) fn check_user(&self, uid: u32, gid: u32, own: u32) -> Result<(), String> {
        if uid == own || uid == 0 || self.users.contains(&uid) || self.groups.contains(&gid) {
            return Ok(());
        }
        Err(format!(
            "user {uid} may not register '{}': add it to `users` in the daemon's settings, or its group {gid} to `groups`",
            self.name
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule() -> AppRule {
        AppRule {
            name: "kv".into(),
            guaranteed: 1,
            most: Some(3),
            kind: AppKind::Latency,
            users: vec![1000],
            groups: vec![50],
            network: None,
        }
    }

    #[test]
    fn an_application_gets_what_it_may_have() {
        let shape = |most, guaranteed| rule().shape(most, guaranteed, 8);
        assert_eq!(
            shape(Some(2), None).map(|shape| (shape.guaranteed, shape.most)),
            Ok((1, 2))
        );
        assert_eq!(
            shape(Some(9), Some(0)).map(|shape| (shape.guaranteed, shape.most)),
            Ok((0, 3))
        );
        assert_eq!(shape(None, None).map(|shape| shape.most), Ok(3));
        assert!(
            shape(Some(2), Some(2))
                .unwrap_err()
                .contains("asks for 2 guaranteed cores, and has 1")
        );
        assert!(shape(Some(0), None).unwrap_err().contains("no core at all"));
    }

    #[test]
    fn who_may_register_is_said_by_user_or_group() {
        let may = |uid, gid| rule().check_user(uid, gid, 7).is_ok();
        assert!(may(1000, 1) && may(0, 0) && may(7, 7) && may(9, 50));
        assert!(!may(1001, 1001));
    }
}
