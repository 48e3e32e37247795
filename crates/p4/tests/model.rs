//! The model of the pipeline, filled with the entries that the programs get, against the policy's own step: the same random packets, every choice and every
//! register compared, while the tables change.

use headway_p4::{Entry, Pipeline, WINDOW_SHIFT, constant_entries, entries_of};
use headway_policy::rack::{
    Cloning, Demand, Forward, Grouping, Mark, Packet, RackLayout, Reply, ServerId, Shaper, Turns,
    provision,
};
use headway_policy::{ClassHint, ClassId};
use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use std::net::SocketAddrV4;

const SERVERS: usize = 6;
const CORES: usize = 4;
const TYPES: usize = 5;
const PACKETS: usize = 100_000;

fn servers() -> Vec<SocketAddrV4> {
    (0..SERVERS as u8)
        .map(|server| SocketAddrV4::new([10, 0, 0, server].into(), 7_000))
        .collect()
}

struct Planes {
    shaper: Shaper,
    pipeline: Pipeline,
    clones: bool,
}

impl Planes {
    fn new(clones: bool) -> Self {
        let cloning = if clones {
            Cloning::Longer(1 << WINDOW_SHIFT)
        } else {
            Cloning::Off
        };
        let mut pipeline = Pipeline::default();
        let own = SocketAddrV4::new([10, 0, 0, 100].into(), 9_000);
        pipeline.write(&constant_entries(own, TYPES, &servers()).unwrap());
        Self {
            shaper: Shaper::new(TYPES, SERVERS * CORES, Turns::Even, cloning, 1 << 16),
            pipeline,
            clones,
        }
    }

    /// A random layout for both. With clones there are two groups: of more the pipeline does not choose the calmest.
    fn change(&mut self, random: &mut Pcg64Mcg) {
        let most = if self.clones { 2 } else { TYPES };
        let groups = 1 + random.next_u32() as usize % most;
        let hints: Vec<ClassHint> = (0..TYPES)
            .map(|class| ClassHint::new(1_000.0 * 10_f64.powi(class as i32), 0.2))
            .collect();
        let demand = Demand::declared(&hints);
        let of: Vec<u16> = (0..TYPES)
            .map(|class| (class * groups / TYPES) as u16)
            .collect();
        let grouping = Grouping::new(&of, &demand);
        let weights: Vec<f64> = (0..groups)
            .map(|_| 1.0 + f64::from(random.next_u32() % 8))
            .collect();
        let sum: f64 = weights.iter().sum();
        let shares: Vec<f64> = weights.iter().map(|weight| weight / sum).collect();
        let mut totals = Vec::new();
        provision(&shares, SERVERS * CORES, &mut totals);
        let layout = RackLayout::new(&[CORES; SERVERS], 1).updated(&totals, &vec![None; groups]);
        self.shaper.install(&grouping, &layout, &demand);
        let copy = self.pipeline.free_copy();
        let entries: Vec<Entry> =
            entries_of(&self.shaper, TYPES, &servers(), self.clones, copy).unwrap();
        self.pipeline.publish(&entries);
    }

    fn request(&mut self, now_ns: u64, wire_type: u8, index: u32, handed_back: bool) -> usize {
        let class = ClassId(u16::from(wire_type).min(TYPES as u16));
        let mut packet = Packet::new(class, index);
        packet.bounced = handed_back;
        let expected: Vec<ServerId> = match self.shaper.request(now_ns, packet) {
            Forward::To(server) => vec![server],
            Forward::Both(server, other) => vec![server, other],
            Forward::Shed | Forward::Held => Vec::new(),
        };
        let addresses = servers();
        let expected: Vec<Vec<u64>> = expected
            .iter()
            .map(|server| addresses[server.index()])
            .map(|a| vec![u64::from(u32::from(*a.ip())), u64::from(a.port())])
            .collect();
        assert_eq!(
            self.pipeline.request(now_ns, wire_type, handed_back),
            expected,
            "request {index} of type {wire_type}"
        );
        expected.len()
    }

    fn response(&mut self, wire_type: u8, index: u32, mark: Mark, execution_ns: u64) {
        let class = ClassId(u16::from(wire_type).min(TYPES as u16));
        let passes = self.shaper.reply(&Reply {
            server: ServerId(0),
            class,
            index,
            mark,
            execution_ns,
            queue: 0,
        });
        let model = self.pipeline.response(wire_type, index, mark, execution_ns);
        assert_eq!(model, passes, "response {index}");
    }

    fn registers_agree(&mut self) {
        for (class, reading) in self.shaper.monitor().readings().iter().enumerate() {
            let registers = self.pipeline.registers(class);
            assert_eq!(
                (registers.count, registers.execution_ns),
                (reading.count, reading.execution_ns),
                "class {class}"
            );
        }
    }
}

fn compare(clones: bool, seed: u64) -> usize {
    let mut planes = Planes::new(clones);
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    println!("seed {seed}");
    let (mut now_ns, mut cloned) = (0, 0);
    assert_eq!(
        planes.request(0, 0, 0, false),
        0,
        "without tables it is shed"
    );
    for index in 0..PACKETS as u32 {
        now_ns += u64::from(random.next_u32() % 2_000);
        let draw = random.next_u32();
        let wire_type = (random.next_u32() % 8) as u8;
        match draw % 1_000 {
            0 => planes.change(&mut random),
            1..600 => {
                let copies = planes.request(now_ns, wire_type, index, draw % 17 == 0);
                cloned += usize::from(copies == 2);
            }
            _ => {
                let mark = [Mark::Plain, Mark::Original, Mark::Clone][draw as usize % 3];
                let index = random.next_u32() % 64;
                let execution_ns =
                    u64::from(random.next_u32() % 3) * u64::from(random.next_u32() % 100_000);
                planes.response(wire_type, index, mark, execution_ns);
            }
        }
        planes.registers_agree();
    }
    cloned
}

#[test]
fn the_pipeline_does_what_the_policy_does() {
    for seed in 0..3 {
        assert_eq!(compare(false, seed), 0);
    }
}

#[test]
fn with_two_groups_it_clones_as_the_policy_does() {
    for seed in 0..3 {
        assert!(compare(true, seed) > 1_000, "bursts were among it");
    }
}
