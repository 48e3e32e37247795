//! The program's cost per packet, beside a program that only sends the packet back: nanoseconds of BPF_PROG_TEST_RUN, interleaved.

use super::settings::settings;
use super::{Frame, TX};
use aya::Ebpf;
use aya::maps::{Array, MapData, ProgramArray};
use aya::programs::{TestRun, TestRunOptions, Xdp};
use headway_net::header::{Flag, Header};
use headway_policy::ClassHint;
use headway_policy::rack::{Cloning, Demand, Grouping, Overflow, RackLayout, Shaper, Turns};
use headway_xdp::{Mode, Neighbour, SwitchPins, XdpObjects, XdpSwitch, XdpSwitchConfig, tables_of};
use std::net::SocketAddr;
use std::time::Duration;

/// Bytes that the program `again` restores: `TEMPLATE` in bare.bpf.c.
const TEMPLATE: usize = 104;
const MAC: [u8; 6] = [2, 0, 0, 0, 0, 1];
/// Runs of each program in one round. The kernel itself loops over the runs, which spreads the cost of the call.
const REPEAT: u32 = 20_000;
/// The time for which a leased switch needs no renewal.
const LEASE: Duration = Duration::from_secs(600);

/// What is measured.
#[derive(Clone, Copy)]
struct Variant {
    name: &'static str,
    mode: Mode,
    is_ip4: bool,
    cloning: Cloning,
    overflow: Overflow,
    /// Whether the program looks at its lease.
    leased: bool,
    /// Of each of the four servers.
    cores: usize,
    /// Runs of a round.
    repeat: u32,
}

impl Variant {
    fn of(name: &'static str, mode: Mode, is_ip4: bool) -> Self {
        Self {
            name,
            mode,
            is_ip4,
            cloning: Cloning::Off,
            overflow: Overflow::Off,
            leased: false,
            cores: 8,
            repeat: REPEAT,
        }
    }

    fn all() -> Vec<Self> {
        let nat = |name| Self::of(name, Mode::Nat, true);
        vec![
            Self::of("direct, IPv4", Mode::Direct, true),
            Self::of("direct, IPv6", Mode::Direct, false),
            nat("full translation, IPv4"),
            Self::of("full translation, IPv6", Mode::Nat, false),
            Self {
                leased: true,
                ..nat("the same, IPv4, leased")
            },
            Self {
                cloning: Cloning::Longer(20_000),
                ..nat("the same, IPv4, bursts watched")
            },
            Self {
                overflow: Overflow::PerCore(2.5),
                cores: 1024,
                // The group of these requests has 2048 cores: each finds an idle one.
                repeat: 2000,
                ..nat("the same, IPv4, overflow, a core is idle")
            },
            Self {
                overflow: Overflow::PerCore(2.5),
                ..nat("the same, IPv4, overflow, no core of 4 servers is idle")
            },
        ]
    }
}

fn own(is_ip4: bool) -> SocketAddr {
    if is_ip4 {
        SocketAddr::from(([10, 0, 0, 1], 7777))
    } else {
        SocketAddr::from(([0xfd00, 0, 0, 0, 0, 0, 0, 1], 7777))
    }
}

/// A switch over four servers. No arrival rate of the test counts as a burst: requests are declared as 320 ns, so a group finishes 1000 in a window of
/// 20 µs.
fn switch(object: &[u8], variant: &Variant) -> XdpSwitch {
    let Variant {
        mode,
        is_ip4,
        cloning,
        overflow,
        cores,
        ..
    } = *variant;
    let config = XdpSwitchConfig {
        types: 2,
        cloning,
        overflows: overflow != Overflow::Off,
        // A CPU with fewer slots than requests reuses them. They have expired by then, since no server answers here.
        answer: Duration::ZERO,
        ..settings(mode)
    };
    let hint = |mean_ns, share| ClassHint::new(mean_ns, share);
    let demand = Demand::declared(&[hint(320.0, 0.9), hint(2880.0, 0.1)]);
    let layout = RackLayout::new(&[cores; 4], 1).updated(&[2 * cores; 2], &[None, None]);
    let shaper = Shaper::new(2, 4 * cores, Turns::Even, cloning, 1);
    let mut shaper = shaper.overflowing(4, overflow);
    shaper.install(&Grouping::new(&[0, 1], &demand), &layout, &demand);
    let servers: Vec<_> = (0..4)
        .map(|number| Neighbour {
            address: SocketAddr::new(own(is_ip4).ip(), 8000 + number),
            mac: [2, 0, 0, 0, 1, number as u8],
            ifindex: 1,
            own_mac: MAC,
        })
        .collect();
    let pins = || SwitchPins::take(own(is_ip4), LEASE).expect("the BPF file system");
    let loaded = if variant.leased {
        XdpSwitch::load_pinned(object, &config, pins())
    } else {
        XdpSwitch::load(object, &config)
    };
    let mut switch = loaded.expect("the program loads");
    if variant.leased {
        switch.renew_lease().expect("renewed");
        // It ends with this process, and keeps its lease.
        switch.unpin();
    }
    let tables = tables_of(&shaper, 2, &[0, 1], &servers).expect("they fit");
    switch.publish(&tables).expect("published");
    switch
}

fn request(is_ip4: bool) -> Vec<u8> {
    let header = Header {
        class: 0,
        flag: Flag::REQUEST,
        index: 7,
        time_ns: 0,
    };
    let from = if is_ip4 {
        SocketAddr::from(([10, 0, 0, 9], 9000))
    } else {
        SocketAddr::from(([0xfd00, 0, 0, 0, 0, 0, 0, 9], 9000))
    };
    let payload = [&header.encode()[..], &[0x55; 64]].concat();
    let frame = Frame {
        to_mac: MAC,
        from_mac: [2, 0, 0, 0, 0, 9],
        tags: 0,
        from,
        to: own(is_ip4),
        has_checksum: true,
        payload,
    };
    frame.bytes()
}

/// The programs that the switch is measured with.
struct Bench {
    loaded: Ebpf,
    next: ProgramArray<MapData>,
}

impl Bench {
    fn load(object: &[u8]) -> Self {
        let mut loaded = Ebpf::load(object).expect("the programs load");
        for name in ["bare", "again"] {
            xdp(&mut loaded, name).load().expect("the program loads");
        }
        let next = loaded.take_map("next").expect("the map next");
        Self {
            next: next.try_into().expect("programs"),
            loaded,
        }
    }

    /// Nanoseconds of one packet through a program, the mean of many. The last packet must be sent back.
    fn time(&mut self, name: &str, packet: &[u8], repeat: u32) -> f64 {
        let run = xdp(&mut self.loaded, name).test_run(TestRunOptions {
            data_in: Some(packet),
            repeat,
            ..TestRunOptions::default()
        });
        let run = run.expect("the packet runs");
        assert_eq!(run.return_value, TX, "the program sends the packet");
        run.duration.as_nanos() as f64
    }

    /// Each run of `again` begins with this packet.
    fn begin_with(&mut self, packet: &[u8]) {
        let mut first: Array<_, [u8; TEMPLATE + 8]> = self
            .loaded
            .map_mut("first")
            .and_then(|map| map.try_into().ok())
            .expect("the map first");
        let mut template = [0; TEMPLATE + 8];
        template[..TEMPLATE].copy_from_slice(&packet[..TEMPLATE]);
        first.set(0, template, 0).expect("written");
    }

    /// Runs both programs in turn, each on a restored packet. Returns the nanoseconds of the bare program and of the switch.
    fn measure(
        &mut self,
        rounds: usize,
        switch: impl Fn() -> XdpSwitch,
        variant: &Variant,
    ) -> (f64, f64) {
        let (packet, repeat) = (&request(variant.is_ip4)[..], variant.repeat);
        // No server answers. A request that overflowed has searched.
        let searches = variant.overflow != Overflow::Off && repeat as usize > 2 * variant.cores;
        self.begin_with(packet);
        let (mut bare, mut beyond) = (Vec::new(), Vec::new());
        for _ in 0..rounds {
            // A new switch has free slots for requests under way, like a switch whose servers answer.
            let mut switch = switch();
            bare.push(self.time("bare", packet, repeat));
            let fd = switch.program_fd().expect("loaded");
            self.next.set(0, fd, 0).expect("written");
            let with_switch = self.time("again", packet, repeat);
            let counts = switch.registers().expect("registers").counts;
            assert_eq!((counts.requests, counts.shed), (u64::from(repeat), 0));
            assert_eq!(counts.overflowed > 0, searches, "{}", variant.name);
            let program = xdp(&mut self.loaded, "bare");
            let fd = program
                .fd()
                .expect("loaded")
                .try_clone()
                .expect("a descriptor");
            self.next.set(0, &fd, 0).expect("written");
            beyond.push(with_switch - self.time("again", packet, repeat));
        }
        let bare_ns = median(&mut bare);
        (bare_ns, bare_ns + median(&mut beyond))
    }
}

fn xdp<'a>(loaded: &'a mut Ebpf, name: &str) -> &'a mut Xdp {
    let program = loaded.program_mut(name);
    program
        .and_then(|program| program.try_into().ok())
        .expect(name)
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Nanoseconds of one packet: medians over rounds in which both ran.
pub(crate) struct Cost {
    pub(crate) mode: &'static str,
    pub(crate) switch_ns: f64,
    pub(crate) bare_ns: f64,
}

/// Sends a request many times through each mode of the switch, and through the bare program.
///
/// # Panics
/// A request was not sent on, was not counted, or was shed.
pub(crate) fn costs(objects: &XdpObjects, rounds: usize) -> Vec<Cost> {
    let mut bench = Bench::load(&objects.bare);
    let costs = Variant::all().into_iter().map(|variant| {
        let switch = || switch(&objects.rack, &variant);
        let (bare_ns, switch_ns) = bench.measure(rounds, switch, &variant);
        Cost {
            mode: variant.name,
            switch_ns,
            bare_ns,
        }
    });
    costs.collect()
}
