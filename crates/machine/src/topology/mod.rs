//! The cores this process may use, from sysfs.

use std::fs;
use std::path::{Path, PathBuf};

use nix::sched::{CpuSet, sched_getaffinity};
use nix::unistd::Pid;

mod list;

pub use list::parse_cpu_list;

/// Why the cores could not be read.
#[derive(thiserror::Error)]
pub enum TopologyError {
    /// A file of sysfs could not be read.
    #[error("cannot read {}: {source}; is sysfs mounted there?", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// A file of sysfs does not have the kernel's format.
    #[error("{}: {text:?} is not {expected}", path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// Its content.
        text: String,
        /// The expected content.
        expected: &'static str,
    },
    /// The process's affinity mask could not be read.
    #[error("cannot read this process's affinity mask: {0}")]
    Affinity(nix::Error),
    /// The affinity mask and the online cores have none in common.
    #[error(
        "none of the cores in this process's affinity mask ({allowed:?}) is online; start it \
         under another mask, such as `taskset -c 0`"
    )]
    NoCores {
        /// The mask.
        allowed: Vec<usize>,
    },
}

headway_words::debug_is_display!(TopologyError);

/// A logical core.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Core {
    /// The kernel's number, as in `/proc/cpuinfo` and `taskset`.
    pub id: usize,
    /// The physical package (socket); 0 where the kernel does not say.
    pub package: usize,
    /// The NUMA node; 0 where there is only one.
    pub numa_node: usize,
    /// The logical cores that share this one's execution units, itself included, ascending.
    pub siblings: Vec<usize>,
    /// Whether the kernel was told to keep ordinary tasks off it (`isolcpus=`).
    pub isolated: bool,
}

/// The cores that are online and in this process's affinity mask, ascending by id, at least one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Topology {
    cores: Vec<Core>,
}

impl Topology {
    /// The cores this process may run on; `sysfs` is `/sys` outside tests.
    ///
    /// # Errors
    ///
    /// [`TopologyError`] when sysfs or the affinity mask cannot be read, or leaves no core.
    pub fn read(sysfs: impl AsRef<Path>) -> Result<Topology, TopologyError> {
        Topology::read_allowed(sysfs, &affinity_mask()?)
    }

    /// The same for a given affinity mask, as a list of core ids.
    ///
    /// # Errors
    ///
    /// As [`Topology::read`].
    pub fn read_allowed(
        sysfs: impl AsRef<Path>,
        allowed: &[usize],
    ) -> Result<Topology, TopologyError> {
        let sysfs = sysfs.as_ref();
        let cpus = sysfs.join("devices/system/cpu");
        let isolated = read_list_or_empty(&cpus.join("isolated"))?;
        let nodes = numa_nodes(&sysfs.join("devices/system/node"))?;
        let cores = read_list(&cpus.join("online"))?
            .into_iter()
            .filter(|id| allowed.contains(id))
            .map(|id| read_core(&cpus, id, &nodes, &isolated))
            .collect::<Result<Vec<_>, _>>()?;
        if cores.is_empty() {
            return Err(TopologyError::NoCores {
                allowed: allowed.to_vec(),
            });
        }
        Ok(Topology { cores })
    }

    /// The cores, ascending by id.
    pub fn cores(&self) -> &[Core] {
        &self.cores
    }

    /// The ids in the order in which threads should be pinned: isolated cores first, then one core of
    /// each sibling pair, then the second siblings; the lowest NUMA node first within each.
    ///
    /// Two spinning threads on one physical core halve each other, so siblings come last.
    pub fn pinning_order(&self) -> Vec<usize> {
        let mut order: Vec<&Core> = self.cores.iter().collect();
        order.sort_by_key(|core| {
            let rank = self.rank_among_siblings(core);
            (!core.isolated, rank, core.numa_node, core.package, core.id)
        });
        order.into_iter().map(|core| core.id).collect()
    }

    /// How many distinct physical cores there are.
    pub fn physical_cores(&self) -> usize {
        self.cores
            .iter()
            .filter(|core| self.rank_among_siblings(core) == 0)
            .count()
    }

    fn rank_among_siblings(&self, core: &Core) -> usize {
        core.siblings
            .iter()
            .filter(|id| self.cores.iter().any(|other| other.id == **id))
            .take_while(|id| **id != core.id)
            .count()
    }
}

fn affinity_mask() -> Result<Vec<usize>, TopologyError> {
    let set = sched_getaffinity(Pid::from_raw(0)).map_err(TopologyError::Affinity)?;
    Ok((0..CpuSet::count())
        .filter(|id| set.is_set(*id).unwrap_or(false))
        .collect())
}

fn read_core(
    cpus: &Path,
    id: usize,
    nodes: &[(usize, Vec<usize>)],
    isolated: &[usize],
) -> Result<Core, TopologyError> {
    let topology = cpus.join(format!("cpu{id}/topology"));
    let mut siblings = read_list_or_empty(&topology.join("thread_siblings_list"))?;
    if siblings.is_empty() {
        siblings.push(id);
    }
    Ok(Core {
        id,
        package: read_package(&topology.join("physical_package_id"))?,
        numa_node: nodes
            .iter()
            .find(|(_, cores)| cores.contains(&id))
            .map_or(0, |(node, _)| *node),
        siblings,
        isolated: isolated.contains(&id),
    })
}

/// The nodes with their cores; none where the kernel was built without NUMA.
fn numa_nodes(nodes: &Path) -> Result<Vec<(usize, Vec<usize>)>, TopologyError> {
    read_list_or_empty(&nodes.join("online"))?
        .into_iter()
        .map(|node| Ok((node, read_list(&nodes.join(format!("node{node}/cpulist")))?)))
        .collect()
}

/// Virtual machines may say -1: unknown.
fn read_package(path: &Path) -> Result<usize, TopologyError> {
    let Some(text) = read_optional(path)? else {
        return Ok(0);
    };
    let package: i64 = text.trim().parse().map_err(|_| TopologyError::Format {
        path: path.to_owned(),
        text: text.clone(),
        expected: "a package number",
    })?;
    Ok(usize::try_from(package).unwrap_or(0))
}

fn read_list_or_empty(path: &Path) -> Result<Vec<usize>, TopologyError> {
    if path.exists() {
        read_list(path)
    } else {
        Ok(Vec::new())
    }
}

fn read_list(path: &Path) -> Result<Vec<usize>, TopologyError> {
    let text = fs::read_to_string(path).map_err(|source| TopologyError::Read {
        path: path.to_owned(),
        source,
    })?;
    parse_cpu_list(&text).ok_or_else(|| TopologyError::Format {
        path: path.to_owned(),
        text,
        expected: "a list of numbers and ranges such as 0-3,8",
    })
}

fn read_optional(path: &Path) -> Result<Option<String>, TopologyError> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(TopologyError::Read {
            path: path.to_owned(),
            source,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes a machine of two nodes with hyper-threads: node 0 has cores 0, 1 with siblings 4, 5; node 1
    /// has 2, 3 with 6, 7; core 3 and 7 are isolated, core 6 is offline.
    fn two_sockets() -> tempfile::TempDir {
        let sysfs = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = sysfs.path().join("devices/system").join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("cpu/online", "0-5,7\n");
        write("cpu/isolated", "3,7\n");
        write("node/online", "0-1\n");
        write("node/node0/cpulist", "0-1,4-5\n");
        write("node/node1/cpulist", "2-3,6-7\n");
        for id in 0..8 {
            let first = id % 4;
            write(
                &format!("cpu/cpu{id}/topology/physical_package_id"),
                &format!("{}\n", first / 2),
            );
            write(
                &format!("cpu/cpu{id}/topology/thread_siblings_list"),
                &format!("{first},{}\n", first + 4),
            );
        }
        sysfs
    }

    fn ids(topology: &Topology) -> Vec<usize> {
        topology.cores().iter().map(|core| core.id).collect()
    }

    #[test]
    fn online_and_allowed_cores_are_read_with_their_place() {
        let sysfs = two_sockets();
        let topology = Topology::read_allowed(sysfs.path(), &[1, 3, 5, 6, 7, 99]).unwrap();
        assert_eq!(ids(&topology), [1, 3, 5, 7]);
        let seven = &topology.cores()[3];
        assert_eq!(
            (seven.package, seven.numa_node, seven.isolated),
            (1, 1, true)
        );
        assert_eq!(seven.siblings, [3, 7]);
        assert_eq!(topology.physical_cores(), 2);
    }

    #[test]
    fn pinning_prefers_isolated_cores_then_whole_ones() {
        let sysfs = two_sockets();
        let topology = Topology::read_allowed(sysfs.path(), &[0, 1, 2, 3, 4, 5, 7]).unwrap();
        assert_eq!(topology.pinning_order(), [3, 7, 0, 1, 2, 4, 5]);
    }

    #[test]
    fn a_sibling_outside_the_mask_does_not_count() {
        let sysfs = two_sockets();
        let topology = Topology::read_allowed(sysfs.path(), &[4, 5]).unwrap();
        assert_eq!(topology.physical_cores(), 2);
    }

    #[test]
    fn a_mask_without_online_cores_is_an_error() {
        let sysfs = two_sockets();
        let error = Topology::read_allowed(sysfs.path(), &[6]).unwrap_err();
        assert!(matches!(error, TopologyError::NoCores { allowed } if allowed == [6]));
    }

    #[test]
    fn a_broken_list_names_the_file() {
        let sysfs = two_sockets();
        fs::write(sysfs.path().join("devices/system/cpu/online"), "0-x").unwrap();
        let error = Topology::read_allowed(sysfs.path(), &[0])
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("cpu/online") && error.contains("0-x"),
            "{error}"
        );
    }

    #[test]
    fn this_machine_has_a_core() {
        let topology = Topology::read("/sys").unwrap();
        assert_eq!(topology.pinning_order().len(), topology.cores().len());
    }
}
