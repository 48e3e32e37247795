//! The cores of the machine that are two threads of one.

use headway_machine::Topology;

/// The hyper-thread sibling of each core, where the machine reports one.
pub(crate) fn siblings() -> Vec<Option<usize>> {
    let Ok(topology) = Topology::read("/sys") else {
        return Vec::new();
    };
    let cores = topology.cores();
    let most = cores.iter().map(|core| core.id + 1).max().unwrap_or(0);
    let mut siblings = vec![None; most];
    for core in cores {
        siblings[core.id] = core.siblings.iter().copied().find(|&id| id != core.id);
    }
    siblings
}
