//! The messages between an application and the daemon: one JSON object a packet.
//!
//! | from | packet | descriptors |
//! |---|---|---|
//! | application; with `"network":true` it asks for packets | `{"register":{"name":"kv","kthreads":2}}` | |
//! | application, after the daemon was started anew | `{"resume":{"name":"kv","kthreads":2}}` | its memory, its lanes |
//! | `headway run` | `{"program":{"name":"pricer"}}` | |
//! | daemon | `{"registered":{"kthreads":2}}` | the memory, the doorbell, the lanes |
//! | daemon | `{"refused":"why"}` | |
//! | daemon, before it ends in order | `{"farewell":{}}` | |

use serde::{Deserialize, Serialize};
use std::net::Ipv4Addr;

/// The longest name of an application.
pub const NAME_BYTES_MAX: usize = 64;

/// A message of an application.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum ClientMessage {
    /// The application registers.
    Register(Registration),
    /// The application was registered with an earlier daemon, and brings its memory to the new one.
    Resume(Registration),
    /// This process is about to run a program without support for the daemon.
    Program(ProgramRegistration),
}

/// An application's registration.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Registration {
    /// Its name in the daemon's settings.
    pub name: String,
    /// The most cores that it uses at once.
    pub kthreads: usize,
    /// Cores that it asks to be guaranteed; the settings' number by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guaranteed: Option<usize>,
    /// Whether its kthreads look at their orders every few microseconds, and need no signal.
    #[serde(default)]
    pub probes: bool,
    /// Whether it wants packets of the daemon's device.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub network: bool,
}

/// An application's addresses and route in the network.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct NetworkPlace {
    /// Its Ethernet address.
    pub mac: [u8; 6],
    /// Its IPv4 address.
    pub ip: Ipv4Addr,
    /// The length of the network prefix in bits.
    pub prefix: u8,
    /// The gateway to other networks, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gateway: Option<Ipv4Addr>,
    /// The longest packet without its Ethernet header.
    pub mtu: usize,
}

/// A program's registration.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ProgramRegistration {
    /// Its name in the daemon's settings.
    pub name: String,
    /// The most cores that it uses at once; the settings' number by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cores: Option<usize>,
}

/// A message of the daemon.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum DaemonMessage {
    /// The application is registered.
    Registered {
        /// The most cores that it gets at once.
        kthreads: usize,
        /// Its addresses and route in the network, if it asked for packets.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        network: Option<NetworkPlace>,
    },
    /// The registration is refused, for this reason.
    Refused(String),
    /// The daemon ends, and its threads are confined no more.
    Farewell {},
}

impl ClientMessage {
    /// Reads a packet.
    ///
    /// # Errors
    /// The fault, in a sentence.
    pub fn parse(bytes: &[u8]) -> Result<Self, String> {
        let message: Self = serde_json::from_slice(bytes).map_err(|error| {
            format!(
                "{error}; a registration is {{\"register\":{{\"name\":\"NAME\",\"kthreads\":N}}}}"
            )
        })?;
        let name = message.name();
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        if name.is_empty() || name.len() > NAME_BYTES_MAX || !name.chars().all(is_plain) {
            return Err(format!(
                "an application's name is 1 to {NAME_BYTES_MAX} letters, digits, '-', '_' and '.'"
            ));
        }
        Ok(message)
    }

    /// The packet that says it.
    pub fn packet(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("plain data can be written")
    }

    /// The application's name.
    pub fn name(&self) -> &str {
        match self {
            Self::Register(registration) | Self::Resume(registration) => &registration.name,
            Self::Program(program) => &program.name,
        }
    }
}

impl DaemonMessage {
    /// Reads a packet.
    ///
    /// # Errors
    /// The fault.
    pub fn parse(bytes: &[u8]) -> Result<Self, String> {
        serde_json::from_slice(bytes).map_err(|error| format!("the daemon's answer: {error}"))
    }

    /// The packet that says it.
    pub fn packet(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("plain data can be written")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_reads_back() {
        let registration = Registration {
            name: "kv".into(),
            kthreads: 2,
            guaranteed: Some(1),
            probes: true,
            network: true,
        };
        for message in [
            ClientMessage::Register(registration.clone()),
            ClientMessage::Resume(registration),
            ClientMessage::Program(ProgramRegistration {
                name: "pricer-2".into(),
                cores: None,
            }),
        ] {
            assert_eq!(ClientMessage::parse(&message.packet()), Ok(message));
        }
        for message in [
            DaemonMessage::Registered {
                kthreads: 3,
                network: None,
            },
            DaemonMessage::Registered {
                kthreads: 3,
                network: Some(NetworkPlace {
                    mac: [2, 0, 0, 0, 0, 9],
                    ip: [10, 0, 0, 9].into(),
                    prefix: 24,
                    gateway: None,
                    mtu: 1500,
                }),
            },
            DaemonMessage::Refused("no".into()),
            DaemonMessage::Farewell {},
        ] {
            assert_eq!(DaemonMessage::parse(&message.packet()), Ok(message));
        }
    }

    #[test]
    fn what_is_no_registration_is_refused_in_a_sentence() {
        let refused = |text: &str| ClientMessage::parse(text.as_bytes()).unwrap_err();
        assert!(refused("").contains("a registration is"));
        assert!(refused("[]").contains("a registration is"));
        assert!(refused(r#"{"register":{"name":"kv"}}"#).contains("kthreads"));
        assert!(
            refused(r#"{"register":{"name":"kv","kthreads":-1}}"#).contains("a registration is")
        );
        assert!(refused(r#"{"register":{"name":"a/b","kthreads":1}}"#).contains("name is"));
        assert!(refused(r#"{"program":{"name":""}}"#).contains("name is"));
        assert!(refused(r#"{"program":{"name":"a","root":true}}"#).contains("unknown field"));
    }
}
