//! Which of the machine's cores are dealt out.

use headway_machine::Topology;
use headway_policy::host::{CoreId, HostTopology};
use nix::sched::CpuSet;

/// The cores of a host, by the kernel's numbers.
#[derive(Clone, Debug)]
pub struct HostCores {
    /// Those that the allocator deals out; its number of a core is the place here.
    pub dealt: Vec<usize>,
    /// Their siblings.
    pub siblings: HostTopology,
    /// The daemon's own, on which it spins; none where it sleeps between its looks.
    pub own: Option<usize>,
    /// The one that all share who have no other: who refuses to leave a core, and programs without one.
    pub shared: usize,
}

/// Why the cores cannot be divided so.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum CoresError {
    /// A core that was named is not there.
    #[error(
        "there is no core {core} that this process may use; there are: {}",
        list(there)
    )]
    NotThere {
        /// The core.
        core: usize,
        /// Those that are there.
        there: Vec<usize>,
    },
    /// The daemon takes the only core.
    #[error(
        "the daemon would spin on core {0}, the only one, and none is left to deal out: use --share-core, which wakes at intervals"
    )]
    OnlyCore(usize),
}

/// From how many cores on one is kept for the daemon.
const SPINS_FROM: usize = 4;

impl HostCores {
    /// Divides the cores. `shares`: the daemon has no core of its own; unless said it has one where there are at least four.
    /// `dealt`: the cores to deal out; all others unless said.
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
        // A core that is neither dealt out nor the daemon's hurts nobody.
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
        // More than two hyper-threads of a core are no pairs.
        let siblings = HostTopology::from_siblings(chosen.iter().map(sibling).collect())
            .unwrap_or_else(|| HostTopology::flat(chosen.len()));
        Ok(Self {
            dealt: chosen,
            siblings,
            own,
            shared,
        })
    }

    /// How many are dealt out.
    pub fn count(&self) -> usize {
        self.dealt.len()
    }

    /// The kernel's number of a core.
    pub(crate) fn number(&self, core: CoreId) -> usize {
        self.dealt[core.index()]
    }

    /// The core of this number, where it is dealt out.
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

    /// A machine of so many cores, in pairs of hyper-threads: 0 and half, and so on.
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
