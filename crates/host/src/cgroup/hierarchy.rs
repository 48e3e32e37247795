//! Where the system has its control groups: version 2 with all controllers in one tree, or version 1 with a tree for each.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// A mounted tree of control groups.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct CgroupMount {
    /// Where it is mounted.
    pub(super) folder: PathBuf,
    /// The group that is seen there, `/` unless in a container.
    root: PathBuf,
    /// The controller by which a process' entry is found in `/proc/PID/cgroup`; empty in version 2.
    controller: &'static str,
}

/// The trees that confine and weigh processes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum CgroupTrees {
    /// One tree.
    V2(CgroupMount),
    /// A tree for each controller.
    V1 {
        cpuset: CgroupMount,
        cpu: CgroupMount,
    },
}

impl CgroupTrees {
    /// The trees of this machine.
    ///
    /// # Errors
    /// A sentence with what is missing.
    pub(super) fn find() -> Result<Self, String> {
        let mounts = fs::read_to_string("/proc/self/mountinfo")
            .map_err(|error| format!("/proc/self/mountinfo: {error}"))?;
        let v2 = mounts.lines().find_map(|line| mount_of(line, ""));
        if let Some(mount) = v2 {
            let has = fs::read_to_string(mount.folder.join("cgroup.controllers"));
            let has = has.unwrap_or_default();
            let has = |name| has.split_whitespace().any(|one| one == name);
            if has("cpuset") && has("cpu") {
                return Ok(Self::V2(mount));
            }
        }
        let v1 = |controller| mounts.lines().find_map(|line| mount_of(line, controller));
        match (v1("cpuset"), v1("cpu")) {
            (Some(cpuset), Some(cpu)) => Ok(Self::V1 { cpuset, cpu }),
            _ => Err("no control groups with the controllers cpuset and cpu are mounted".into()),
        }
    }
}

impl CgroupTrees {
    /// The trees, first the one with the cores.
    pub(super) fn mounts(&self) -> Vec<&CgroupMount> {
        match self {
            Self::V2(mount) => vec![mount],
            Self::V1 { cpuset, cpu } => vec![cpuset, cpu],
        }
    }

    pub(super) fn is_v1(&self) -> bool {
        matches!(self, Self::V1 { .. })
    }
}

impl CgroupMount {
    /// Whether it is version 1's tree of cores.
    pub(super) fn is_cpuset_v1(&self) -> bool {
        self.controller == "cpuset"
    }

    /// The group that a process is in.
    ///
    /// # Errors
    /// The system's; and the group lies outside of what is mounted here.
    pub(super) fn group_of(&self, pid: i32) -> io::Result<PathBuf> {
        let groups = fs::read_to_string(format!("/proc/{pid}/cgroup"))?;
        let own = groups
            .lines()
            .find_map(|line| group_by(line, self.controller));
        let own = own.and_then(|group| Path::new(group).strip_prefix(&self.root).ok());
        let own = own.filter(|group| !group.starts_with(".."));
        let own = own.ok_or(io::ErrorKind::NotFound)?;
        Ok(self.folder.join(own))
    }
}

/// The mount in a line of mountinfo, proc(5), if it is the tree of this controller.
fn mount_of(line: &str, controller: &'static str) -> Option<CgroupMount> {
    let (place, kind) = line.split_once(" - ")?;
    let mut kind = kind.split(' ');
    let (kind, options) = (kind.next()?, kind.nth(1)?);
    let is_it = if controller.is_empty() {
        kind == "cgroup2"
    } else {
        kind == "cgroup" && options.split(',').any(|one| one == controller)
    };
    let mut place = place.split(' ').skip(3);
    let (root, folder) = (place.next()?, place.next()?);
    is_it.then(|| CgroupMount {
        folder: folder.into(),
        root: root.into(),
        controller,
    })
}

/// The group in a line of `/proc/PID/cgroup`, if the line is that of this controller's tree.
fn group_by<'a>(line: &'a str, controller: &str) -> Option<&'a str> {
    let mut parts = line.splitn(3, ':').skip(1);
    let (controllers, group) = (parts.next()?, parts.next()?);
    let is_it = controllers.split(',').any(|one| one == controller);
    is_it.then_some(group)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trees_are_told_by_their_controllers() {
        let v1 =
            "42 32 0:38 / /sys/fs/cgroup/cpuset rw,relatime shared:9 - cgroup cgroup rw,cpuset";
        let both = "43 32 0:39 /box /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct";
        let v2 = "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate";
        let named = |line, controller| mount_of(line, controller).map(|one| one.folder);
        assert_eq!(named(v1, "cpuset"), Some("/sys/fs/cgroup/cpuset".into()));
        assert_eq!(
            named(both, "cpu"),
            Some("/sys/fs/cgroup/cpu,cpuacct".into())
        );
        assert_eq!(named(v2, ""), Some("/sys/fs/cgroup".into()));
        let others = [(v1, "cpu"), (v1, ""), (both, "cpuset"), (v2, "cpu")];
        assert!(
            others
                .iter()
                .all(|&(line, one)| mount_of(line, one).is_none())
        );
        assert_eq!(group_by("3:cpuset:/a:b", "cpuset"), Some("/a:b"));
        assert_eq!(group_by("4:cpu,cpuacct:/", "cpuacct"), Some("/"));
        assert_eq!(group_by("0::/user.slice", ""), Some("/user.slice"));
        assert_eq!(group_by("3:cpuset:/", "cpu"), None);
    }
}
