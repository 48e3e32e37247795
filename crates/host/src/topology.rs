//! The division of the machine's cores: dealt out, the daemon's, the shared one.

use headway_machine::Topology;
use headway_policy::host::{CoreId, HostTopology};
use nix::sched::CpuSet;

/// The cores of a host, by the kernel's numbers.
#[derive(Clone, Debug)]
pub struct HostCores {
    /// The cores that the allocator deals out; a core's index here is the allocator's number of it.
    pub dealt: Vec<usize>,
    /// The hyper-thread siblings of these cores.
    pub siblings: HostTopology,
    /// The daemon's own core, on which it spins; `None` for a daemon that sleeps between its looks.
    pub own: Option<usize>,
    /// The core for threads without a granted core: kthreads that refuse to leave, and programs.
    pub shared: usize,
}

/// Why a division of the cores is refused.
#[derive(PartialEq, Eq, thiserror::Error)]
pub enum CoresError {
    /// A named core does not exist.
    #[error(
        "there is no core {core} that this process may use; there are: {}",
        list(there)
    )]
    NotThere {
        /// The core.
        core: usize,
        /// The existing cores.
        there: Vec<usize>,
    },
    /// The daemon would take the only core.
    #[error(
        "the daemon would spin on core {0}, the only one, and none is left to deal out: use --share-core, which wakes at intervals"
    )]
    OnlyCore(usize),
}

headway_words::debug_is_display!(CoresError);

/// The number of cores from which on the daemon keeps one.
const SPINS_FROM: usize = 4;

impl HostCores {
    /// Divides the cores. `shares`: whether the daemon does without a core of its own; by default it has one on machines of
    /// at least four. `dealt`: the cores to deal out; all others by default.
    ///
    /// # Errors
    /// [`CoresError`].
    pub fn new(
        topology: &Topology,
        shares: Option<bool>,
        dealt: Option<&[usize]>,
    ) -> Result<Self, CoresError> {
        let there: Vec<usize> = topology.cores().iter().map(|core| core.id).collect();
        let mut chosen = there.clone();
        if let Some(dealt) = dealt {
            if let Some(&core) = dealt.iter().find(|core| !there.contains(core)) {
                return Err(CoresError::NotThere { core, there });
            }
            chosen = dealt.to_vec();
            chosen.sort_unstable();
            chosen.dedup();
        }
        let shares = shares.unwrap_or(there.len() < SPINS_FROM);
        let own = if shares {
            None
        } else {
            let outside = there.iter().find(|core| !chosen.contains(core));
            let own = outside.or(chosen.first()).copied();
            let own = own.ok_or(CoresError::OnlyCore(0))?;
            chosen.retain(|&core| core != own);
            if chosen.is_empty() {
                return Err(CoresError::OnlyCore(own));
            }
            Some(own)
        };
        // A core that is neither dealt out nor the daemon's stays unused.
        let free = there
            .iter()
            .find(|&&core| !chosen.contains(&core) && Some(core) != own);
        let shared = free.or(chosen.last()).copied();
        let shared = shared.ok_or(CoresError::NotThere { core: 0, there })?;
        let sibling = |core: &usize| {
            let known = topology.cores().iter().find(|one| one.id == *core)?;
            let other = known.siblings.iter().find(|id| *id != core)?;
            let place = chosen.iter().position(|id| id == other)?;
            Some(CoreId(place as u16))
        };
        // Only cores with two hyper-threads form pairs.
        let siblings = HostTopology::from_siblings(chosen.iter().map(sibling).collect())
            .unwrap_or_else(|| HostTopology::flat(chosen.len()));
        Ok(Self {
            dealt: chosen,
            siblings,
            own,
            shared,
        })
    }

    /// The number of cores dealt out.
    pub fn count(&self) -> usize {
        self.dealt.len()
    }

    /// The kernel's number of a core.
    pub(crate) fn number(&self, core: CoreId) -> usize {
        self.dealt[core.index()]
    }

    /// The core with this kernel number, if it is dealt out.
    pub(crate) fn find(&self, number: usize) -> Option<CoreId> {
        let place = self.dealt.iter().position(|&core| core == number)?;
        Some(CoreId(place as u16))
    }

    pub(crate) fn only(&self, number: usize) -> CpuSet {
        mask([number])
    }
}

/// A set of cores by their numbers.
pub(crate) fn mask(cores: impl IntoIterator<Item = usize>) -> CpuSet {
    let mut mask = CpuSet::new();
    for core in cores {
        // Cores come from the kernel's own lists, which fit.
        let _ = mask.set(core);
    }
    mask
}

fn list(cores: &[usize]) -> String {
    let cores: Vec<_> = cores.iter().map(ToString::to_string).collect();
    cores.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use tempfile::TempDir;

    /// A machine of `cores` cores, in pairs of hyper-threads: 0 and half, and so on.
    fn sysfs(cores: usize) -> TempDir {
        let sysfs = tempfile::tempdir().unwrap();
        let cpu = sysfs.path().join("devices/system/cpu");
        for core in 0..cores {
            let place = cpu.join(format!("cpu{core}/topology"));
            fs::create_dir_all(&place).unwrap();
            let (low, high) = (core % (cores / 2), core % (cores / 2) + cores / 2);
            fs::write(
                place.join("thread_siblings_list"),
                format!("{low},{high}\n"),
            )
            .unwrap();
        }
        fs::write(cpu.join("online"), format!("0-{}\n", cores - 1)).unwrap();
        sysfs
    }

    fn topology(cores: usize) -> Topology {
        let all: Vec<usize> = (0..cores).collect();
        Topology::read_allowed(sysfs(cores).path(), &all).unwrap()
    }

    #[test]
    fn a_large_machine_has_a_core_for_the_daemon_and_siblings_are_pairs() {
        let cores = HostCores::new(&topology(8), None, None).unwrap();
        assert_eq!((cores.own, cores.shared), (Some(0), 7));
        assert_eq!(cores.dealt, [1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(cores.siblings.sibling(CoreId(0)), Some(CoreId(4)));
        assert_eq!(cores.siblings.sibling(CoreId(3)), None, "4 is beside 0");
    }

    #[test]
    fn a_small_machine_shares() {
        let cores = HostCores::new(&topology(2), None, None).unwrap();
        assert_eq!((cores.own, cores.shared), (None, 1));
        assert_eq!(cores.dealt, [0, 1]);
    }

    #[test]
    fn cores_that_are_kept_back_serve_the_daemon_and_who_has_none() {
        let cores = HostCores::new(&topology(8), None, Some(&[4, 2, 3])).unwrap();
        assert_eq!((cores.own, cores.shared), (Some(0), 1));
        assert_eq!(cores.dealt, [2, 3, 4]);
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let absent = HostCores::new(&topology(2), None, Some(&[5])).unwrap_err();
        assert_eq!(
            absent.to_string(),
            "there is no core 5 that this process may use; there are: 0, 1"
        );
        let one = Topology::read_allowed(sysfs(2).path(), &[1]).unwrap();
        let only = HostCores::new(&one, Some(false), None).unwrap_err();
        assert_eq!(only, CoresError::OnlyCore(1));
        assert!(HostCores::new(&one, None, None).is_ok());
    }
}
