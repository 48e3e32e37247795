//! The loaded program: its attachment to interfaces, its tables and its registers.

use crate::layout::{
    CLONE_MAGIC, CLONING_CALMEST, CLONING_LONGER, CLONING_OFF, CPU_REGISTERS_BYTES, CpuRegisters,
    MODE_DIRECT, MODE_NAT, NAT_SLOTS, OrderBytes, RACK_TABLES_BYTES, Raw, SwitchConfig, bytes_of,
};
use crate::ticks::{TickError, in_ticks, ticks_a_second};
use crate::{Registers, XdpTables, grace};
use aya::maps::{Array, MapData, MapError, PerCpuArray, PerCpuValues};
use aya::programs::tc::{TcAttachOptions, TcAttachType};
use aya::programs::{
    LinkOrder, ProgramError, ProgramFd, SchedClassifier, TestRun, TestRunOptions, Xdp, XdpMode,
};
use aya::{Ebpf, EbpfError, EbpfLoader};
use headway_policy::rack::Cloning;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::Duration;

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
        "the kernel does not load the XDP program; it needs Linux 5.15, and root or CAP_BPF with CAP_NET_ADMIN (`headway doctor` says what is missing): {0}"
    )]
    Load(#[from] EbpfError),
    /// The program's object lacks a part.
    #[error("the XDP object has no {0}: compile it anew")]
    Missing(&'static str),
    /// The kernel refused the program itself.
    #[error(
        "the kernel refuses the XDP program; it needs Linux 5.15, and root or CAP_BPF with CAP_NET_ADMIN: {0}"
    )]
    Program(#[source] ProgramError),
    /// The interface does not take the program.
    #[error(
        "cannot attach to interface {interface}: {source}. `ip link show {interface}` shows whether it exists and has another XDP program: end that one, or name another interface"
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

/// The switch in the kernel. When it is dropped, and when its process ends however it ends, the kernel removes program and maps.
pub struct XdpSwitch {
    program: Ebpf,
    head: Array<MapData, u64>,
    tables: TablesMap,
    registers: RegistersMap,
    generation: u64,
    question_index: u32,
    classes: usize,
    clones: bool,
}

const PROGRAM: &str = "rack";

impl XdpSwitch {
    /// Loads the program `rack` of an object that [`compile`](crate::compile) made. It sees no packet before it is attached, and sheds every
    /// request until tables are published.
    ///
    /// # Errors
    /// [`SwitchError`] when the configuration is invalid, or the kernel refuses the program.
    pub fn load(object: &[u8], config: &XdpSwitchConfig) -> Result<Self, SwitchError> {
        let rate = ticks_a_second(object)?;
        let constants = config_of(config, rate)?;
        let bytes: [u8; SwitchConfig::BYTES] = bytes_of(&constants);
        let mut program = EbpfLoader::new()
            .override_global("config", &bytes, true)
            .load(object)?;
        xdp(&mut program)?.load().map_err(SwitchError::Program)?;
        let clones = config.cloning != Cloning::Off;
        if clones {
            let copier = classifier(&mut program)?;
            copier.load().map_err(SwitchError::Program)?;
        }
        let mut registers: RegistersMap = map(&mut program, "registers")?;
        share_slots(&mut registers)?;
        Ok(Self {
            head: map(&mut program, "head")?,
            tables: map(&mut program, "tables")?,
            registers,
            clones,
            program,
            generation: 0,
            question_index: constants.question_index,
            classes: usize::from(config.types) + 1,
        })
    }

    /// Gives the interface's packets to the program. The attachment belongs to this switch: it ends with it.
    ///
    /// # Errors
    /// [`SwitchError::Attach`] when there is no such interface, it has a program, or its driver takes none.
    pub fn attach(&mut self, interface: &str, mode: XdpMode) -> Result<(), SwitchError> {
        if self.clones {
            let order = TcAttachOptions::TcxOrder(LinkOrder::last());
            classifier(&mut self.program)?
                .attach_with_options(interface, TcAttachType::Ingress, order)
                .map_err(|source| SwitchError::AttachClones {
                    interface: interface.to_owned(),
                    source,
                })?;
        }
        let attached = xdp(&mut self.program)?.attach(interface, mode);
        attached.map(|_| ()).map_err(|source| SwitchError::Attach {
            interface: interface.to_owned(),
            source,
        })
    }

    /// Publishes these tables. A packet sees either the old ones or the new ones. Takes milliseconds: it waits until no packet uses the copy
    /// that it overwrites.
    ///
    /// # Errors
    /// [`SwitchError::Map`] when the kernel refuses; then the old tables stay in force.
    pub fn publish(&mut self, tables: &XdpTables) -> Result<(), SwitchError> {
        let next = self.generation + 1;
        grace::wait();
        let bytes: [u8; RACK_TABLES_BYTES] = bytes_of(&*tables.0);
        self.tables
            .set((next % 2) as u32, bytes, 0)
            .and_then(|()| self.head.set(0, next, 0))
            .map_err(|source| SwitchError::Map {
                operation: "write the tables",
                source,
            })?;
        self.generation = next;
        Ok(())
    }

    /// The loaded program, for a program that calls it.
    ///
    /// # Errors
    /// [`SwitchError::Program`] when it is not loaded.
    pub fn program_fd(&mut self) -> Result<&ProgramFd, SwitchError> {
        xdp(&mut self.program)?.fd().map_err(SwitchError::Program)
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
        let result = xdp(&mut self.program)?
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

fn xdp(program: &mut Ebpf) -> Result<&mut Xdp, SwitchError> {
    program
        .program_mut(PROGRAM)
        .and_then(|program| program.try_into().ok())
        .ok_or(SwitchError::Missing("program `rack`"))
}

fn classifier(program: &mut Ebpf) -> Result<&mut SchedClassifier, SwitchError> {
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

fn reading(source: MapError) -> SwitchError {
    SwitchError::Map {
        operation: "read the registers",
        source,
    }
}

/// Gives each CPU its part of the slots for requests under way.
fn share_slots(registers: &mut RegistersMap) -> Result<(), SwitchError> {
    let cpus = registers.get(&0, 0).map_err(reading)?;
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
fn config_of(config: &XdpSwitchConfig, rate: u32) -> Result<SwitchConfig, SwitchError> {
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
        question_index: getrandom::u32().expect("the system gives random numbers"),
    })
}
