//! The same systems for several racks behind a core switch.
//!
//! | system | core switch |
//! |---|---|
//! | random, netclone | any rack |
//! | round-robin | one rack after the other |
//! | pallas, pallas-paper | groups of types, weighted turns: a rack is a large server |
//! | the others | as horus: a rack with an idle core, else the less loaded of two |

use super::{
    BoundedSwitch, Cloning, ControlPlane, DUPLICATE_SLOTS, Horus, NetClone, RackShape, RackSystem,
    RackVisit, RandomSwitch, RoundRobinSwitch, Shaper, Shaping, ShortestSwitch, Spec, SpecError,
    SwitchSpec, SystemSettings,
};
use crate::rack::Tiers;
use alloc::vec::Vec;

/// Builds the racks a spec asks for and hands them to the visitor: the servers of the shape stand in `racks` equal racks, each with a switch of its
/// own. One rack is what [`with`](super::with) builds.
///
/// # Errors
/// As [`check`](super::check).
///
/// # Panics
/// When the servers cannot be divided among so many racks.
pub fn behind_core_switch<V: RackVisit>(
    spec: &Spec,
    shape: &RackShape,
    racks: usize,
    visitor: V,
) -> Result<V::Output, SpecError> {
    let settings = SystemSettings::read(spec, shape)?;
    Ok(if racks == 1 {
        settings.build(shape, visitor)
    } else {
        settings.build_tiers(shape, racks, visitor)
    })
}

impl SystemSettings {
    fn build_tiers<V: RackVisit>(self, shape: &RackShape, racks: usize, visitor: V) -> V::Output {
        let Self {
            name,
            params,
            step,
            rtt_ns,
        } = self;
        let plain = RackSystem::plain(name, params, rtt_ns);
        let (cores, seed) = (&shape.cores, shape.seed);
        let of_racks: Vec<usize> = cores
            .chunks(cores.len() / racks)
            .map(|cores| cores.iter().sum())
            .collect();
        let seed_of = |rack: u64| seed ^ (rack + 1).rotate_left(48);
        let idle_first = Horus::new(&of_racks, seed);
        match step {
            SwitchSpec::Random => {
                let core = RandomSwitch::new(racks, seed);
                visitor.visit(
                    plain.switched_by(Tiers::new(core, cores, racks, |cores, rack| {
                        RandomSwitch::new(cores.len(), seed_of(rack))
                    })),
                )
            }
            SwitchSpec::RoundRobin => {
                let core = RoundRobinSwitch::new(racks);
                visitor.visit(
                    plain.switched_by(Tiers::new(core, cores, racks, |cores, _| {
                        RoundRobinSwitch::new(cores.len())
                    })),
                )
            }
            SwitchSpec::Shortest { reported, choices } => visitor.visit(plain.switched_by(
                Tiers::new(idle_first, cores, racks, |cores, rack| {
                    ShortestSwitch::new(cores.len(), reported, choices, seed_of(rack))
                }),
            )),
            SwitchSpec::Bounded { most } => visitor.visit(plain.switched_by(Tiers::new(
                idle_first,
                cores,
                racks,
                |cores, rack| BoundedSwitch::new(cores.len(), most, shape.room, seed_of(rack)),
            ))),
            SwitchSpec::OneQueue => visitor.visit(plain.switched_by(Tiers::new(
                idle_first,
                cores,
                racks,
                |cores, rack| BoundedSwitch::per_core(cores, 1, shape.room, seed_of(rack)),
            ))),
            SwitchSpec::NetClone => {
                let core = RandomSwitch::new(racks, seed);
                visitor.visit(
                    plain.switched_by(Tiers::new(core, cores, racks, |cores, rack| {
                        NetClone::new(cores, DUPLICATE_SLOTS, seed_of(rack))
                    })),
                )
            }
            SwitchSpec::Horus => visitor.visit(plain.switched_by(Tiers::new(
                idle_first,
                cores,
                racks,
                |cores, rack| Horus::new(cores, seed_of(rack)),
            ))),
            SwitchSpec::Shaped(shaping) => {
                visitor.visit(shaped_tiers(plain, &shaping, shape, &of_racks))
            }
        }
    }
}

/// Racks whose switches are each shaped for all types, behind a core switch that is shaped for the racks.
fn shaped_tiers(
    plain: RackSystem<()>,
    shaping: &Shaping,
    shape: &RackShape,
    of_racks: &[usize],
) -> RackSystem<Tiers<Shaper, Shaper>> {
    let (turns, types, racks) = (shaping.turns, shape.types.len(), of_racks.len());
    let total = of_racks.iter().sum();
    let core = Shaper::new(types, total, turns, Cloning::Off, DUPLICATE_SLOTS);
    let switch = Tiers::new(core, &shape.cores, racks, |cores, _| {
        Shaper::new(
            types,
            cores.iter().sum(),
            turns,
            shaping.cloning,
            DUPLICATE_SLOTS,
        )
        .overflowing(cores.len(), shaping.overflow)
    });
    let control = ControlPlane::new(&shape.cores, &shape.types, shaping.rules);
    RackSystem {
        control: Some(control.behind_core_switch(racks)),
        bouncing: shaping.bouncing,
        adapting: shaping.adapting,
        ..plain.switched_by(switch)
    }
}
