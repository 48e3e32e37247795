//! Core selection (Shenango, Algorithm 2): which core an application is given.

use super::{AppId, CoreId, Cores};
use crate::{BitSet, Rng};

/// What an application may take that another one has, where no core is idle.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Taking {
    /// Nothing.
    Nothing,
    /// Cores of batch applications beyond their guarantees.
    Batch,
    /// Cores beyond guarantees, but from who serves requests not the last one.
    Spare,
    /// Cores beyond guarantees.
    Burst,
}

/// The best core for `app`: a hyper-thread sibling of one it has, the one it left last, any idle one, or,
/// only where no core is idle and `taking` allows, one of a random application that bursts. The core
/// is idle, or must be revoked first.
///
/// Two things the listing leaves open: an application never preempts itself, and a core that is already
/// being left cannot be taken twice.
pub(super) fn select(cores: &Cores, app: AppId, taking: Taking, rng: &mut Rng) -> Option<CoreId> {
    let taking = if cores.idle().is_empty() {
        taking
    } else {
        Taking::Nothing
    };
    let eligible = |core: CoreId| {
        cores.idle().contains(core.index()) || is_preemptible(cores, core, app, taking)
    };
    cores
        .active(app)
        .iter()
        .filter_map(|core| cores.topology().sibling(CoreId(core as u16)))
        .find(|&core| eligible(core))
        .or_else(|| cores.last_released(app).filter(|&core| eligible(core)))
        .or_else(|| cores.idle().first().map(|core| CoreId(core as u16)))
        .or_else(|| random_victim(cores, app, taking, rng))
}

/// Whether the core may be taken from whoever has it.
fn is_preemptible(cores: &Cores, core: CoreId, by: AppId, taking: Taking) -> bool {
    let Some(tenant) = cores.tenant(core) else {
        return false;
    };
    let spares = match taking {
        Taking::Nothing => false,
        Taking::Batch => cores.is_batch(tenant.app),
        Taking::Spare => cores.is_batch(tenant.app) || cores.kept(tenant.app) > 1,
        Taking::Burst => true,
    };
    spares && tenant.app != by && cores.is_bursting(tenant.app) && !cores.is_leaving(core)
}

/// The first core of an application drawn among those that burst.
fn random_victim(cores: &Cores, app: AppId, taking: Taking, rng: &mut Rng) -> Option<CoreId> {
    let bursting: BitSet = cores
        .ids()
        .filter(|&other| other != app && core_of(cores, other, app, taking).is_some())
        .map(AppId::index)
        .collect();
    let chosen = match bursting.len() {
        0 => return None,
        1 => bursting.first()?,
        several => bursting.iter().nth(rng.below(several))?,
    };
    core_of(cores, AppId(chosen as u16), app, taking)
}

fn core_of(cores: &Cores, victim: AppId, by: AppId, taking: Taking) -> Option<CoreId> {
    cores
        .active(victim)
        .iter()
        .map(|core| CoreId(core as u16))
        .find(|&core| is_preemptible(cores, core, by, taking))
}
