//! The steering XDP program, loaded and attached.

use std::os::fd::BorrowedFd;

use aya::maps::{HashMap, Map, MapData, XskMap};
use aya::programs::{ProgramError, Xdp, XdpMode};
use aya::{Btf, Ebpf, EbpfLoader};
use headway_bpf::ObjectError;
use headway_net::udp::{HeaderByte, Steering};

use crate::device::NetDevice;
use crate::error::XskError;
use crate::mac::MacAddress;
use crate::tags::{self, StrippedTags};

const SOURCES: [(&str, &str); 2] = [
    ("steer.bpf.c", include_str!("../bpf/steer.bpf.c")),
    headway_bpf::KERNEL_BUFFER,
];

/// Compiles the object, in half a second.
pub(crate) fn compile() -> Result<Vec<u8>, ObjectError> {
    let [object] = headway_bpf::objects(&SOURCES, ["steer.bpf"])?;
    Ok(object)
}

/// The program's rule for choosing a socket.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SteerConfig {
    /// Sockets per queue of the device.
    pub(crate) sockets: u32,
    /// The served UDP port, if there is one.
    pub(crate) port: Option<u16>,
    pub(crate) steering: Steering,
}

impl SteerConfig {
    /// Mirrors `struct steer_config` of the program.
    fn bytes(self, mac: MacAddress, may_look: bool) -> [u8; 16] {
        let (how, byte) = match self.steering {
            Steering::Flow => (0, 0),
            Steering::Random => (1, 0),
            Steering::Byte(byte) => (2, HeaderByte::number(byte)),
        };
        let mut bytes = [0; 16];
        bytes[..6].copy_from_slice(&mac.0);
        bytes[6..8].copy_from_slice(&self.port.unwrap_or(0).to_be_bytes());
        bytes[8..12].copy_from_slice(&self.sockets.to_ne_bytes());
        bytes[12..15].copy_from_slice(&[how, byte, u8::from(may_look)]);
        bytes
    }
}

/// The loaded program. Attachment and maps end when it is dropped, and with the process however that ends.
pub(crate) struct SteerProgram {
    program: Ebpf,
    sockets: XskMap<MapData>,
    host_macs: HashMap<MapData, [u8; 8], u32>,
    host_ips: HashMap<MapData, [u8; 4], u32>,
    tags: StrippedTags,
}

impl SteerProgram {
    /// Loads the program for a device. It steers nothing before it is attached.
    pub(crate) fn load(
        object: &[u8],
        device: &NetDevice,
        config: SteerConfig,
    ) -> Result<Self, XskError> {
        let kernel = Btf::from_sys_fs().ok();
        let looking = tags::looking_at(object, device, kernel.as_ref());
        // A process without the right to read the kernel's memory does without.
        let looks = looking.map(|object| Self::load_as(&object, device, config, true));
        match looks {
            Some(Ok(program)) => Ok(program),
            _ => Self::load_as(&tags::without_a_look(object), device, config, false),
        }
    }

    fn load_as(
        object: &[u8],
        device: &NetDevice,
        config: SteerConfig,
        may_look: bool,
    ) -> Result<Self, XskError> {
        let bytes = config.bytes(device.mac, may_look);
        let mut program = EbpfLoader::new()
            .override_global("config", &bytes, true)
            .map_max_entries("sockets", device.queues * config.sockets)
            .load(object)
            .map_err(or_denied(XskError::Load))?;
        let loaded = xdp(&mut program)?.load();
        loaded.map_err(or_denied(XskError::Program))?;
        let mut addresses: HashMap<MapData, [u8; 16], u32> = take(&mut program, "addresses")?;
        for address in &device.addresses {
            insert(&mut addresses, *address, "addresses")?;
        }
        Ok(Self {
            sockets: take(&mut program, "sockets")?,
            host_macs: take(&mut program, "host_macs")?,
            host_ips: take(&mut program, "host_ips")?,
            tags: StrippedTags::new(take(&mut program, "tags")?, may_look),
            program,
        })
    }

    /// Gives the packets of a queue and number to a socket.
    pub(crate) fn set_socket(&mut self, place: u32, fd: BorrowedFd<'_>) -> Result<(), XskError> {
        let set = self.sockets.set(place, fd, 0);
        set.map_err(|source| XskError::Map {
            what: "sockets",
            source,
        })
    }

    /// Also takes the packets of a host behind the device.
    pub(crate) fn add_host(&mut self, mac: MacAddress, ip: [u8; 4]) -> Result<(), XskError> {
        insert(&mut self.host_macs, mac_key(mac), "hosts")?;
        insert(&mut self.host_ips, ip, "hosts")
    }

    /// Leaves the packets of that host to the kernel again.
    pub(crate) fn remove_host(&mut self, mac: MacAddress, ip: [u8; 4]) {
        // An error means that the entry is gone already.
        let _ = self.host_macs.remove(&mac_key(mac));
        let _ = self.host_ips.remove(&ip);
    }

    /// Packets that were dropped since their device had taken their VLAN tags out.
    pub(crate) fn stripped(&self) -> u64 {
        self.tags.dropped()
    }

    /// Attaches the program in the driver, or behind the driver if that lacks support. Returns which.
    pub(crate) fn attach(&mut self, device: &NetDevice) -> Result<XdpMode, XskError> {
        let mut refused = None;
        for mode in [XdpMode::Driver, XdpMode::Skb] {
            match xdp(&mut self.program)?.attach(&device.name, mode) {
                Ok(_) => {
                    self.tags.look_at(&device.name, mode)?;
                    return Ok(mode);
                }
                Err(error) if code_of(&error) == Some(libc::EBUSY) => {
                    return Err(XskError::Attached {
                        device: device.name.clone(),
                    });
                }
                Err(error) => refused = refused.or(Some(error)),
            }
        }
        let source = refused.unwrap_or(ProgramError::NotLoaded);
        let failed = or_denied(|source| XskError::Attach {
            device: device.name.clone(),
            source,
        });
        Err(failed(source))
    }
}

fn mac_key(mac: MacAddress) -> [u8; 8] {
    let mut key = [0; 8];
    key[..6].copy_from_slice(&mac.0);
    key
}

/// The error for a failed call; [`XskError::Denied`] when the process lacks a capability. A program that the verifier rejects has another code.
fn or_denied<E: std::error::Error + 'static>(
    other: impl FnOnce(E) -> XskError,
) -> impl FnOnce(E) -> XskError {
    |error| match code_of(&error) {
        Some(libc::EPERM) => XskError::Denied,
        _ => other(error),
    }
}

/// The kernel's error behind one of a program's or of a map's.
fn code_of(error: &(dyn std::error::Error + 'static)) -> Option<i32> {
    let mut error = Some(error);
    while let Some(one) = error {
        if let Some(io) = one.downcast_ref::<std::io::Error>() {
            return io.raw_os_error();
        }
        error = one.source();
    }
    None
}

fn xdp(program: &mut Ebpf) -> Result<&mut Xdp, XskError> {
    let xdp = program.program_mut("steer");
    let xdp = xdp.and_then(|program| program.try_into().ok());
    xdp.ok_or(XskError::Program(ProgramError::NotLoaded))
}

fn take<M: TryFrom<Map>>(program: &mut Ebpf, name: &'static str) -> Result<M, XskError> {
    let map = program.take_map(name);
    map.and_then(|map| map.try_into().ok())
        .ok_or(XskError::Program(ProgramError::NotLoaded))
}

fn insert<K: aya::Pod>(
    map: &mut HashMap<MapData, K, u32>,
    key: K,
    what: &'static str,
) -> Result<(), XskError> {
    let inserted = map.insert(key, 1, 0);
    inserted.map_err(|source| XskError::Map { what, source })
}
