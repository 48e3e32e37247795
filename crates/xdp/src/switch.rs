//! The loaded program, its tables and its registers.

use crate::grace::GracePeriods;
use crate::head::{HeadMap, head_of};
use crate::layout::{
    CLONE_MAGIC, CLONING_CALMEST, CLONING_LONGER, CLONING_OFF, CPU_REGISTERS_BYTES, CpuRegisters,
    MODE_DIRECT, MODE_NAT, NAT_SLOTS, OrderBytes, RACK_TABLES_BYTES, Raw, SwitchConfig, TablesHead,
    bytes_of,
};
use crate::pins::{MAPS, SwitchPins};
use crate::ticks::{TickError, in_ticks, ticks_a_second};
use crate::{Registers, XdpTables, tags};
use aya::maps::{Array, MapData, MapError, PerCpuArray, PerCpuValues};
use aya::programs::{ProgramError, ProgramFd, SchedClassifier, TestRun, TestRunOptions, Xdp};
use aya::{Ebpf, EbpfError, EbpfLoader};
use headway_policy::rack::Cloning;
use nix::errno::Errno;
use std::collections::hash_map::DefaultHasher;
use std::error::Error;
use std::hash::{Hash as _, Hasher as _};
use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::Duration;
use std::{io, iter};

/// The path of responses to clients.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// Through the switch: it replaces the client's address and index by its own, and puts them back into the response.
    Nat,
    /// Past the switch: a request keeps its client's address, the server answers there in its own name. The switch keeps no state of a
    /// request and learns no execution times.
    Direct,
}

/// The configuration, constant from the load on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct XdpSwitchConfig {
    /// The switch's IPv4 address.
    pub own_ip4: Option<Ipv4Addr>,
    /// The switch's IPv6 address.
    pub own_ip6: Option<Ipv6Addr>,
    /// The UDP port of the service, 1 to 65535.
    pub port: u16,
    /// Declared types: the type bytes 0 to `types` − 1. All others are UNKNOWN.
    pub types: u16,
    /// The path of responses to clients.
    pub mode: Mode,
    /// The rule for cloning.
    pub cloning: Cloning,
    /// Whether requests that find no idle core of their group go elsewhere, by the loads of the published [`Shaper`](headway_policy::rack::Shaper). In
    /// [direct mode](Mode::Direct) none do: there no response tells what servers have.
    pub overflows: bool,
    /// Whether senders may leave their UDP checksums to hardware that no packet of theirs meets, as those behind virtual devices do. Then such a
    /// checksum is finished; else it would arrive as a wrong one.
    pub unfinished_checksums: bool,
    /// The time after which an unanswered request makes room for another.
    pub answer: Duration,
}

/// Why loading, attaching or using a switch failed.
#[derive(thiserror::Error)]
pub enum SwitchError {
    /// The kernel refused the program or its maps.
    #[error(
        "the kernel does not load the XDP program; it needs Linux 5.15, and root or CAP_BPF with CAP_NET_ADMIN and CAP_PERFMON (`headway doctor` says what is missing): {0}"
    )]
    Load(#[from] EbpfError),
    /// The program's object lacks a part.
    #[error("the XDP object has no {0}: compile it anew")]
    Missing(&'static str),
    /// The kernel refused the program itself.
    #[error(
        "the kernel refuses the XDP program; it needs Linux 5.15, and root or CAP_BPF with CAP_NET_ADMIN and CAP_PERFMON: {0}"
    )]
    Program(#[source] ProgramError),
    /// The interface does not take the program.
    #[error(
        "cannot attach to interface {interface}: {}. {}",
        because(.source),
        attach_remedy(.interface, .source)
    )]
    Attach {
        /// The interface.
        interface: String,
        /// Why.
        source: ProgramError,
    },
    /// The program that copies packets cannot be attached.
    #[error(
        "cannot attach what clones requests to interface {interface}; it needs Linux 6.6, or no cloning: {source}"
    )]
    AttachClones {
        /// The interface.
        interface: String,
        /// Why.
        source: ProgramError,
    },
    /// Cloning needs responses to pass the switch, which they do not in direct mode.
    #[error(
        "in direct mode nobody filters the second response: turn cloning off, or use full translation"
    )]
    DirectClones,
    /// A map could not be read or written.
    #[error("cannot {operation}: {source}")]
    Map {
        /// The failed operation.
        operation: &'static str,
        /// The kernel's error.
        source: MapError,
    },
    /// The thread that waits for packets under way cannot be started.
    #[error("cannot start a thread: {0}")]
    Thread(#[source] io::Error),
    /// An attachment cannot be pinned.
    #[error("cannot pin in the BPF file system: {0}")]
    Pin(#[source] io::Error),
    /// Neither address is given.
    #[error("the switch needs an address: give one of IPv4, of IPv6, or both")]
    NoAddress,
    /// More types than a type byte can name.
    #[error("{0} types: at most 255, since 255 is UNKNOWN")]
    TooManyTypes(u16),
}

headway_words::debug_is_display!(SwitchError);

impl From<TickError> for SwitchError {
    fn from(error: TickError) -> Self {
        match error {
            TickError::Load(source) => Self::Load(source),
            TickError::Missing(part) => Self::Missing(part),
            TickError::Program(source) => Self::Program(source),
        }
    }
}

/// An error with all its causes: that of the system call is the last.
fn because(error: &ProgramError) -> String {
    let causes = iter::successors(error.source(), |&cause| cause.source());
    let causes: String = causes.map(|cause| format!(": {cause}")).collect();
    format!("{error}{causes}")
}

/// What to do about an interface that takes no program, by the system's error.
fn attach_remedy(interface: &str, error: &ProgramError) -> String {
    let first: &(dyn Error + 'static) = error;
    let mut causes = iter::successors(Some(first), |&cause| cause.source());
    let system = causes.find_map(|cause| cause.downcast_ref::<io::Error>());
    match system
        .and_then(io::Error::raw_os_error)
        .map(Errno::from_raw)
    {
        Some(Errno::ERANGE | Errno::EINVAL) => format!(
            "Its MTU, or that of a veth pair's other end, may be more than its driver takes with an XDP program: `ip link set {interface} mtu 1500` at both ends, or name another interface"
        ),
        _ => format!(
            "`ip link show {interface}` shows whether it exists and has another XDP program: end that one, or name another interface"
        ),
    }
}

/// The program's result for one packet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RunPacket {
    /// `XDP_DROP` 1, `XDP_PASS` 2, `XDP_TX` 3, `XDP_REDIRECT` 4.
    pub action: u32,
    /// The packet afterwards.
    pub bytes: Vec<u8>,
    /// The order of copies to the program behind, for a packet passed on to it.
    pub order: Option<CloneOrder>,
    /// The mean time of a run. For a single run this is mostly the cost of measuring.
    pub duration: Duration,
}

/// An order to send a request to two servers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CloneOrder {
    /// The copy of the tables that has the servers' addresses: the generation modulo 2.
    pub tables: u32,
    /// The original's server and the clone's.
    pub servers: [u16; 2],
}

type TablesMap = Array<MapData, [u8; RACK_TABLES_BYTES]>;
type RegistersMap = PerCpuArray<MapData, [u8; CPU_REGISTERS_BYTES]>;

/// The switch in the kernel. When it is dropped, and when its process ends however it ends, the kernel removes program and maps, unless they are
/// [pinned](Self::load_pinned).
pub struct XdpSwitch {
    pub(crate) program: Ebpf,
    head: HeadMap,
    pub(crate) tables: TablesMap,
    registers: RegistersMap,
    generation: u64,
    pub(crate) grace: GracePeriods,
    question_index: u32,
    pub(crate) classes: usize,
    pub(crate) clones: bool,
    /// Whether the object has a program for veth pairs that this kernel takes.
    pub(crate) sees_tags: bool,
    pub(crate) lease_ticks: u64,
    pub(crate) pins: Option<SwitchPins>,
}

pub(crate) const PROGRAM: &str = "rack";

impl XdpSwitch {
    /// Loads the program `rack` of an object that [`compile`](crate::compile) made. It sees no packet before it is attached, and sheds every
    /// request until tables are published.
    ///
    /// # Errors
    /// [`SwitchError`] when the configuration is invalid, or the kernel refuses the program.
    pub fn load(object: &[u8], config: &XdpSwitchConfig) -> Result<Self, SwitchError> {
        Self::loaded(object, config, None)
    }

    /// The same with maps, and later attachments, that outlive this process by their pins. If an earlier process left maps of the same layout, types and
    /// mode there, this switch goes on with them: its [`generation`](Self::generation) is not 0 then.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    pub fn load_pinned(
        object: &[u8],
        config: &XdpSwitchConfig,
        pins: SwitchPins,
    ) -> Result<Self, SwitchError> {
        match Self::loaded(object, config, Some(&pins)) {
            Ok(mut switch) => {
                switch.pins = Some(pins);
                Ok(switch)
            }
            Err(error) => {
                // Maps alone are of no use to anybody.
                if !pins.has_attachments() {
                    pins.remove();
                }
                Err(error)
            }
        }
    }

    fn loaded(
        object: &[u8],
        config: &XdpSwitchConfig,
        pins: Option<&SwitchPins>,
    ) -> Result<Self, SwitchError> {
        let rate = ticks_a_second(object)?;
        let lease = pins.map_or(Duration::ZERO, SwitchPins::lease);
        let constants = config_of(config, lease, rate)?;
        let bytes: [u8; SwitchConfig::BYTES] = bytes_of(&constants);
        let mut loader = EbpfLoader::new();
        loader.override_global("config", &bytes, true);
        let stamp = stamp_of(config);
        if let Some(pins) = pins {
            pins.keep_maps_of(stamp);
            for name in MAPS {
                loader.map_pin_path(name, pins.map(name));
            }
        }
        let looking = tags::looking(object);
        let mut program = loader.load(looking.as_deref().unwrap_or(object))?;
        for name in [PROGRAM, "renew", "lose"] {
            let program = xdp(&mut program, name)?;
            program.load().map_err(SwitchError::Program)?;
        }
        let clones = config.cloning != Cloning::Off;
        if clones {
            let copier = classifier(&mut program)?;
            copier.load().map_err(SwitchError::Program)?;
        }
        let mut registers: RegistersMap = map(&mut program, "registers")?;
        share_slots(&mut registers)?;
        let head: HeadMap = map(&mut program, "head")?;
        let generation = head_of(&head).map_err(reading)?.generation;
        let mut stamps: Array<MapData, u64> = map(&mut program, "stamp")?;
        stamps.set(0, stamp, 0).map_err(writing)?;
        let grace = GracePeriods::start().map_err(SwitchError::Thread)?;
        // An earlier process may have published until a moment ago.
        grace.begin(generation);
        Ok(Self {
            head,
            tables: map(&mut program, "tables")?,
            registers,
            clones,
            sees_tags: looking.is_some(),
            program,
            generation,
            grace,
            question_index: constants.question_index,
            classes: usize::from(config.types) + 1,
            lease_ticks: constants.lease_ticks,
            pins: None,
        })
    }

    /// Renews the lease of a pinned switch: from now on the program waits so long for the next renewal before it passes every packet on. Returns the ticks
    /// by which the last renewal came too late, 0 if it did not.
    ///
    /// # Errors
    /// [`SwitchError`] when the kernel refuses.
    pub fn renew_lease(&mut self) -> Result<u64, SwitchError> {
        let before = head_of(&self.head).map_err(reading)?.lease_tick;
        let packet = [0; 64];
        xdp(&mut self.program, "renew")?
            .test_run(TestRunOptions {
                data_in: Some(&packet),
                ..TestRunOptions::default()
            })
            .map_err(SwitchError::Program)?;
        let now = head_of(&self.head)
            .map_err(reading)?
            .lease_tick
            .wrapping_sub(self.lease_ticks);
        let is_first = before == 0;
        Ok(if is_first {
            0
        } else {
            now.saturating_sub(before)
        })
    }

    /// Ends what earlier processes pinned: attachments of this switch to other interfaces, and switches whose lease has run out. Call it once all is
    /// attached and the lease renewed.
    ///
    /// # Errors
    /// [`SwitchError`] when the kernel does not tell the time.
    pub fn end_leftovers(&self, interfaces: &[u32]) -> Result<(), SwitchError> {
        if let Some(pins) = &self.pins {
            pins.keep_links_of(interfaces, self.clones);
            let lease_tick = head_of(&self.head).map_err(reading)?.lease_tick;
            pins.remove_abandoned(lease_tick.wrapping_sub(self.lease_ticks));
        }
        Ok(())
    }

    /// Removes the pins, so that a pinned switch ends with this value as others do.
    pub fn unpin(&mut self) {
        if let Some(pins) = self.pins.take() {
            pins.remove();
        }
    }

    /// The generation such that no packet under way goes by older tables. It follows [`generation`](Self::generation) by milliseconds, or by seconds on a machine
    /// whose cores all have other work.
    #[must_use]
    pub fn settled_generation(&self) -> u64 {
        self.grace.settled()
    }

    /// Waits until no packet goes by older tables than the last.
    pub fn settle(&self) {
        self.grace.wait(self.generation);
    }

    /// Publishes these tables. A packet sees either the old ones or the new ones. Waits until no packet uses the copy that it overwrites: not at all where
    /// [the last ones are settled](Self::settled_generation).
    ///
    /// # Errors
    /// [`SwitchError::Map`] when the kernel refuses; then the old tables stay in force.
    pub fn publish(&mut self, tables: &XdpTables) -> Result<(), SwitchError> {
        let next = self.generation + 1;
        self.settle();
        let bytes: [u8; RACK_TABLES_BYTES] = bytes_of(&*tables.0);
        // Only this process writes the head, also by a renewal.
        let head = TablesHead {
            generation: next,
            ..head_of(&self.head).map_err(reading)?
        };
        self.tables
            .set((next % 2) as u32, bytes, 0)
            .and_then(|()| self.head.set(0, bytes_of(&head), 0))
            .map_err(writing)?;
        self.grace.begin(next);
        self.generation = next;
        Ok(())
    }

    /// The loaded program, for a program that calls it.
    ///
    /// # Errors
    /// [`SwitchError::Program`] when it is not loaded.
    pub fn program_fd(&mut self) -> Result<&ProgramFd, SwitchError> {
        xdp(&mut self.program, PROGRAM)?
            .fd()
            .map_err(SwitchError::Program)
    }

    /// The index of the control plane's own probes, drawn at random at the load. The program passes a server's response with it to the kernel.
    #[must_use]
    pub fn question_index(&self) -> u32 {
        self.question_index
    }

    /// The number of tables published so far.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// The program's counts and measurements so far.
    ///
    /// # Errors
    /// [`SwitchError::Map`] when the kernel refuses.
    pub fn registers(&self) -> Result<Registers, SwitchError> {
        let cpus = self.registers.get(&0, 0).map_err(reading)?;
        let cpus: Vec<_> = cpus.iter().map(|bytes| CpuRegisters::get(bytes)).collect();
        Ok(Registers::sum(&cpus, self.classes))
    }

    /// Runs the program over one packet `repeat` times without an interface (`BPF_PROG_TEST_RUN`). Each further run sees the packet as the
    /// previous run left it.
    ///
    /// # Errors
    /// [`SwitchError::Program`] when the kernel refuses, as for packets shorter than an Ethernet header.
    pub fn run(&mut self, packet: &[u8], repeat: u32) -> Result<RunPacket, SwitchError> {
        self.run_from(0, packet, repeat)
    }

    /// The same for a packet that came in by the interface of this number; 0 stands for loopback.
    ///
    /// # Errors
    /// As [`run`](Self::run), and when this network namespace has no such interface.
    pub fn run_from(
        &mut self,
        ifindex: u32,
        packet: &[u8],
        repeat: u32,
    ) -> Result<RunPacket, SwitchError> {
        let mut bytes = vec![0; packet.len() + 256];
        // An `xdp_md`: the packet begins at its first word, ends at the second. The program's metadata lies before it. The fourth is the interface.
        let mut context = [0; 24];
        context[12..16].copy_from_slice(&ifindex.to_ne_bytes());
        context[4..8].copy_from_slice(&(packet.len() as u32).to_ne_bytes());
        let before_run = context;
        let result = xdp(&mut self.program, PROGRAM)?
            .test_run(TestRunOptions {
                data_in: Some(packet),
                data_out: Some(&mut bytes),
                ctx_in: Some(&before_run),
                ctx_out: Some(&mut context),
                repeat,
                ..TestRunOptions::default()
            })
            .map_err(SwitchError::Program)?;
        bytes.truncate(result.data_size_out as usize);
        let before = (u32::get(&context) as usize).min(bytes.len());
        let before: Vec<u8> = bytes.drain(..before).collect();
        let order = order_of(&before);
        Ok(RunPacket {
            action: result.return_value,
            bytes,
            order,
            duration: result.duration,
        })
    }
}

/// The order in the metadata that the program left before the packet.
fn order_of(before: &[u8]) -> Option<CloneOrder> {
    if before.len() < OrderBytes::BYTES {
        return None;
    }
    let order = OrderBytes::get(before);
    (order.magic as usize == CLONE_MAGIC).then_some(CloneOrder {
        tables: order.copy,
        servers: order.servers,
    })
}

pub(crate) fn xdp<'a>(
    program: &'a mut Ebpf,
    name: &'static str,
) -> Result<&'a mut Xdp, SwitchError> {
    program
        .program_mut(name)
        .and_then(|program| program.try_into().ok())
        .ok_or(SwitchError::Missing(name))
}

pub(crate) fn classifier(program: &mut Ebpf) -> Result<&mut SchedClassifier, SwitchError> {
    program
        .program_mut("clones")
        .and_then(|program| program.try_into().ok())
        .ok_or(SwitchError::Missing("program `clones`"))
}

fn map<M: TryFrom<aya::maps::Map>>(
    program: &mut Ebpf,
    name: &'static str,
) -> Result<M, SwitchError> {
    program
        .take_map(name)
        .and_then(|map| map.try_into().ok())
        .ok_or(SwitchError::Missing(name))
}

/// What maps must have in common for a switch to go on with them: their layout, and what the numbers of types mean.
fn stamp_of(config: &XdpSwitchConfig) -> u64 {
    let mut hasher = DefaultHasher::new();
    crate::layout::asserts(&crate::registers::COUNT_NAMES).hash(&mut hasher);
    (config.types, config.mode == Mode::Nat).hash(&mut hasher);
    hasher.finish()
}

pub(crate) fn writing(source: MapError) -> SwitchError {
    SwitchError::Map {
        operation: "write the tables",
        source,
    }
}

pub(crate) fn reading(source: MapError) -> SwitchError {
    SwitchError::Map {
        operation: "read the registers",
        source,
    }
}

/// Gives each CPU its part of the slots for requests under way, unless an earlier process has.
fn share_slots(registers: &mut RegistersMap) -> Result<(), SwitchError> {
    let cpus = registers.get(&0, 0).map_err(reading)?;
    let is_shared = |bytes: &[u8; CPU_REGISTERS_BYTES]| CpuRegisters::get(bytes).nat_mask > 0;
    if cpus.iter().any(is_shared) {
        return Ok(());
    }
    let each = NAT_SLOTS / cpus.len().next_power_of_two().min(NAT_SLOTS);
    let shared: Vec<_> = (0..cpus.len())
        .map(|cpu| {
            let mut of_cpu = CpuRegisters::get(&[0; CPU_REGISTERS_BYTES]);
            of_cpu.nat_first = (cpu * each) as u32;
            of_cpu.nat_mask = each as u32 - 1;
            bytes_of(&of_cpu)
        })
        .collect();
    let shared = PerCpuValues::try_from(shared).map_err(|source| reading(source.into()))?;
    registers.set(0, shared, 0).map_err(reading)
}

/// `rate`: ticks a second.
fn config_of(
    config: &XdpSwitchConfig,
    lease: Duration,
    rate: u32,
) -> Result<SwitchConfig, SwitchError> {
    if config.own_ip4.is_none() && config.own_ip6.is_none() {
        return Err(SwitchError::NoAddress);
    }
    if config.mode == Mode::Direct && config.cloning != Cloning::Off {
        return Err(SwitchError::DirectClones);
    }
    if config.types > 255 {
        return Err(SwitchError::TooManyTypes(config.types));
    }
    let (cloning, window_ns) = match config.cloning {
        Cloning::Off => (CLONING_OFF, 1),
        Cloning::Calmest(ns) => (CLONING_CALMEST, ns),
        Cloning::Longer(ns) => (CLONING_LONGER, ns),
    };
    let mode = match config.mode {
        Mode::Nat => MODE_NAT,
        Mode::Direct => MODE_DIRECT,
    };
    Ok(SwitchConfig {
        own_ip6: config.own_ip6.map_or([0; 16], |ip| ip.octets()),
        own_ip4: config.own_ip4.map_or([0; 4], |ip| ip.octets()),
        answer_ticks: in_ticks(config.answer, rate),
        port: config.port.to_be_bytes(),
        types: config.types,
        window_ns: window_ns.max(1),
        mode: mode as u8,
        cloning: cloning as u8,
        overflows: u8::from(config.overflows && config.mode == Mode::Nat),
        unfinished: u8::from(config.unfinished_checksums),
        index_seed: getrandom::u64().expect("the system gives random numbers"),
        lease_ticks: u64::from(in_ticks(lease, rate)),
        question_index: getrandom::u32().expect("the system gives random numbers"),
    })
}
