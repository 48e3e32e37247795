//! The program's cost per packet, beside a program that only sends the packet back: nanoseconds of BPF_PROG_TEST_RUN, interleaved.

use super::settings::settings;
use super::{Frame, TX};
use aya::Ebpf;
use aya::maps::{Array, MapData, ProgramArray};
use aya::programs::{TestRun, TestRunOptions, Xdp};
use headway_net::header::{Flag, Header};
use headway_policy::ClassHint;
use headway_policy::rack::{Cloning, Demand, Grouping, RackLayout, Shaper, Turns};
use headway_xdp::{Mode, Neighbour, XdpObjects, XdpSwitch, XdpSwitchConfig, tables_of};
use std::net::SocketAddr;
use std::time::Duration;

/// Bytes that the program `again` restores: `TEMPLATE` in bare.bpf.c.
const TEMPLATE: usize = 104;
const MAC: [u8; 6] = [2, 0, 0, 0, 0, 1];
/// Runs of each program in one round. The kernel itself loops over the runs, which spreads the cost of the call.
const REPEAT: u32 = 20_000;

fn own(is_ip4: bool) -> SocketAddr {
    if is_ip4 {
        SocketAddr::from(([10, 0, 0, 1], 7777))
    } else {
        SocketAddr::from(([0xfd00, 0, 0, 0, 0, 0, 0, 1], 7777))
    }
}

/// A switch over four servers. No arrival rate of the test counts as a burst: requests are declared as 320 ns, so a group finishes 1000 in a window of
/// 20 µs.
fn switch(object: &[u8], mode: Mode, is_ip4: bool, cloning: Cloning) -> XdpSwitch {
    let config = XdpSwitchConfig {
        types: 2,
        cloning,
        // A CPU with fewer slots than requests reuses them. They have expired by then, since no server answers here.
        answer: Duration::ZERO,
        ..settings(mode)
    };
    let hint = |mean_ns, share| ClassHint::new(mean_ns, share);
    let demand = Demand::declared(&[hint(320.0, 0.9), hint(2880.0, 0.1)]);
    let layout = RackLayout::new(&[8; 4], 1).updated(&[16, 16], &[None, None]);
    let mut shaper = Shaper::new(2, 32, Turns::Even, cloning, 1);
    shaper.install(&Grouping::new(&[0, 1], &demand), &layout, &demand);
    let servers: Vec<_> = (0..4)
        .map(|number| Neighbour {
            address: SocketAddr::new(own(is_ip4).ip(), 8000 + number),
            mac: [2, 0, 0, 0, 1, number as u8],
            ifindex: 1,
            own_mac: MAC,
        })
        .collect();
    let mut switch = XdpSwitch::load(object, &config).expect("the program loads");
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
    fn time(&mut self, name: &str, packet: &[u8]) -> f64 {
        let run = xdp(&mut self.loaded, name).test_run(TestRunOptions {
            data_in: Some(packet),
            repeat: REPEAT,
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
        packet: &[u8],
    ) -> (f64, f64) {
        self.begin_with(packet);
        let (mut bare, mut beyond) = (Vec::new(), Vec::new());
        for _ in 0..rounds {
            // A new switch has free slots for requests under way, like a switch whose servers answer.
            let mut switch = switch();
            bare.push(self.time("bare", packet));
            let fd = switch.program_fd().expect("loaded");
            self.next.set(0, fd, 0).expect("written");
            let with_switch = self.time("again", packet);
            let counts = switch.registers().expect("registers").counts;
            assert_eq!((counts.requests, counts.shed), (u64::from(REPEAT), 0));
            let program = xdp(&mut self.loaded, "bare");
            let fd = program
                .fd()
                .expect("loaded")
                .try_clone()
                .expect("a descriptor");
            self.next.set(0, &fd, 0).expect("written");
            beyond.push(with_switch - self.time("again", packet));
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
    let (off, watched) = (Cloning::Off, Cloning::Longer(20_000));
    let modes = [
        ("direct, IPv4", Mode::Direct, true, off),
        ("direct, IPv6", Mode::Direct, false, off),
        ("full translation, IPv4", Mode::Nat, true, off),
        ("full translation, IPv6", Mode::Nat, false, off),
        ("the same, IPv4, bursts watched", Mode::Nat, true, watched),
    ];
    let costs = modes.into_iter().map(|(name, mode, is_ip4, cloning)| {
        let switch = || switch(&objects.rack, mode, is_ip4, cloning);
        let (bare_ns, switch_ns) = bench.measure(rounds, switch, &request(is_ip4));
        Cost {
            mode: name,
            switch_ns,
            bare_ns,
        }
    });
    costs.collect()
}
