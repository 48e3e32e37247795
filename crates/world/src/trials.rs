//! Worlds that try one thing out: longs and floods of them, granted cores, interruption by signal.

use headway_net::header::Flag;
use headway_policy::server::systems::ServerSpec;
use headway_runtime::Layout;

use crate::granted::Granting;
use crate::network::Datagram;
use crate::random::Random;
use crate::scenario::{Faults, HIDDEN_LONG_NS, Scenario, number};

/// The scenario of a seed. `policy` replaces the one that the seed would choose.
pub(crate) fn draw(random: &mut Random, faults: Faults, policy: Option<&ServerSpec>) -> Scenario {
    let mut scenario = Scenario::draw(random, faults, policy);
    try_out_longs(random, faults, &mut scenario);
    // With draws of their own: seeds stay what they are in worlds without these.
    let apart = &mut random.fork();
    try_out_grants(apart, faults, &mut scenario);
    try_out_signals(apart, faults, &mut scenario);
    scenario
}

/// Worlds that try out what SYNERGY promises: requests of the short class that take as long as the others, and say so; floods of longs.
fn try_out_longs(random: &mut Random, faults: Faults, scenario: &mut Scenario) {
    if scenario.policy.name() != "synergy" {
        return;
    }
    scenario.look_ns = random.once_in(2).then(|| 1_000 + random.below(20_000));
    if faults.handlers && random.once_in(2) {
        scenario.sections = true;
        for datagram in &mut scenario.datagrams {
            if datagram.class == 0 && random.once_in(4) {
                let mean_ns = scenario.means_ns[1] as f64;
                datagram.service_ns = HIDDEN_LONG_NS + random.exponential(mean_ns);
            }
        }
    }
    if faults.buffers && random.once_in(3) {
        flood(random, scenario);
    }
}

/// More longs at once than a single worker has buffers, and shorts behind them.
fn flood(random: &mut Random, scenario: &mut Scenario) {
    let slots = 8 + random.below(24);
    scenario.slots = Some(slots as usize);
    scenario.workers = 1;
    scenario.room = 100_000;
    let last_ns = scenario.datagrams.last().map_or(0, |last| last.at_ns);
    let at_ns = random.below(last_ns + 1);
    let longs = slots + random.below(slots);
    let shorts = 1 + random.below(slots);
    for place in 0..longs + shorts {
        let class = u8::from(place < longs);
        let late_ns = random.below(if class == 1 { 2_000 } else { 300_000 });
        let mean_ns = scenario.means_ns[usize::from(class)] as f64;
        scenario.datagrams.push(Datagram {
            at_ns: at_ns + late_ns,
            class,
            service_ns: random.exponential(mean_ns) + 1,
            by_switch: false,
            flag: Flag::REQUEST,
            delivery: 0,
        });
    }
    number(&mut scenario.datagrams);
}

/// Worlds in which an arbiter grants and revokes the workers' cores, where the server could do without cores of its own.
fn try_out_grants(random: &mut Random, faults: Faults, scenario: &mut Scenario) {
    let may = scenario.behind_switch.is_none() && scenario.admission().dispatchers <= 1;
    if !(faults.orders && may && random.once_in(4)) {
        return;
    }
    if scenario.layout == Layout::Dedicated {
        scenario.layout = Layout::Inline;
    }
    scenario.granting = Some(Granting {
        cores: 1 + random.below(scenario.workers as u64) as usize,
        revoke_ns: random.one_of(&[30_000, 100_000, 1_000_000]),
        change_ns: random.one_of(&[50_000, 500_000]),
    });
}

/// Worlds in which a dispatcher interrupts by signals, which handlers meet anywhere.
fn try_out_signals(random: &mut Random, faults: Faults, scenario: &mut Scenario) {
    let admission = scenario.admission();
    let may = admission.has_dispatcher && admission.dispatcher_interrupts;
    let is_free = scenario.granting.is_none() && !scenario.by_clock;
    if !(may && is_free && random.once_in(3)) {
        return;
    }
    scenario.by_signal = true;
    scenario.layout = Layout::Dedicated;
    // Without probes nothing else interrupts.
    scenario.probes &= !(faults.handlers && random.once_in(2));
}
