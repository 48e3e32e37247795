//! The groups of programs: one below the machine's first group, which gets idle time only, and one in it for each program.

use super::hierarchy::{CgroupMount, CgroupTrees};
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// The name of the group of all programs.
const ALL: &str = "headway";
/// The name of an ordinary group for processes that no other group takes.
const LEFT: &str = "headway-left";
/// Rounds over the processes of a group that is to end. Each meets the processes that others made meanwhile.
const ROUNDS_MAX: usize = 64;

/// Where programs have their groups.
#[derive(Clone, Debug)]
pub struct ProgramGroups {
    trees: CgroupTrees,
}

/// The group of a program.
#[derive(Debug)]
pub struct ProgramGroup {
    /// The file with its cores.
    cores: File,
    /// Its place in each tree.
    places: Vec<GroupPlace>,
}

/// A group in one tree.
#[derive(Debug)]
struct GroupPlace {
    mount: CgroupMount,
    folder: PathBuf,
    /// The group from which its processes came, and to which they return.
    home: PathBuf,
}

impl ProgramGroups {
    /// Makes the group of all programs, or takes the one that is there without what earlier daemons had to leave in it.
    ///
    /// # Errors
    /// A sentence: there are no control groups, or this process may not make any.
    pub fn open() -> Result<Self, String> {
        let trees = CgroupTrees::find()?;
        let groups = Self { trees };
        for mount in groups.trees.mounts() {
            sweep(&mount.folder.join(ALL));
        }
        groups.make_all().map_err(|error| error.to_string())?;
        Ok(groups)
    }

    fn make_all(&self) -> io::Result<()> {
        match &self.trees {
            CgroupTrees::V2(mount) => make_v2(&mount.folder),
            CgroupTrees::V1 { cpuset, cpu } => {
                make_cpuset_v1(&cpuset.folder, ALL)?;
                make_idle(&cpu.folder.join(ALL))
            }
        }
    }

    /// Makes the group of a program, in the group of all, which the end of the last program removes.
    fn make_own(&self, name: &str) -> io::Result<()> {
        self.make_all()?;
        let mounts = self.trees.mounts();
        let all = mounts[0].folder.join(ALL);
        for (index, mount) in mounts.into_iter().enumerate() {
            if index == 0 && self.trees.is_v1() {
                make_cpuset_v1(&all, name)?;
            } else {
                make(&mount.folder.join(ALL).join(name))?;
            }
        }
        Ok(())
    }

    /// The program in whose group this process is, by the number and start of its first process.
    pub fn owner_of(&self, pid: i32) -> Option<(i32, u64)> {
        let mount = self.trees.mounts()[0];
        let group = mount.group_of(pid).ok()?;
        let name = group.strip_prefix(mount.folder.join(ALL)).ok()?;
        named_process(name.iter().next()?.to_str()?)
    }

    /// Moves a process, with the threads and processes that it will make, into a group of its own. `started` is when it was started: with its number it
    /// names the process. `homes`: the groups from which the process came, if an earlier daemon moved it already, or those of the program in whose group it
    /// was started.
    ///
    /// # Errors
    /// The system's, with its object. Nothing is left of the group then.
    pub fn enter(&self, pid: i32, started: u64, homes: &[PathBuf]) -> io::Result<ProgramGroup> {
        let homes = match homes {
            [] => {
                let own = self.trees.mounts().into_iter();
                own.map(|mount| home_of(mount, pid))
                    .collect::<io::Result<Vec<_>>>()?
            }
            known => known.to_vec(),
        };
        let home = sched_getaffinity(Pid::from_raw(pid))?;
        let name = name_of(pid, started);
        let places = self.places(&name, &homes)?;
        // The end of the last program may remove the group of all in between.
        let made = self.make_own(&name).or_else(|error| match error.kind() {
            io::ErrorKind::NotFound => self.make_own(&name),
            _ => Err(error),
        });
        let entered = made
            .and_then(|()| take_in(&places, pid, started))
            .and_then(|()| self.of(pid, started, &homes));
        entered.inspect_err(|_| end(&places, &home))
    }

    /// The group that a process has, or had before it ended.
    ///
    /// # Errors
    /// The system's, with its object: there is none.
    pub fn of(&self, pid: i32, started: u64, homes: &[PathBuf]) -> io::Result<ProgramGroup> {
        let places = self.places(&name_of(pid, started), homes)?;
        let cores = named(&places[0].folder.join("cpuset.cpus"), |path| {
            File::options().write(true).open(path)
        })?;
        Ok(ProgramGroup { cores, places })
    }

    fn places(&self, name: &str, homes: &[PathBuf]) -> io::Result<Vec<GroupPlace>> {
        let mounts = self.trees.mounts();
        if mounts.len() != homes.len() {
            return Err(io::Error::other(
                "the machine has other control groups by now",
            ));
        }
        let places = mounts.into_iter().zip(homes);
        let places = places.map(|(mount, home)| GroupPlace {
            mount: mount.clone(),
            folder: mount.folder.join(ALL).join(name),
            home: home.clone(),
        });
        Ok(places.collect())
    }
}

/// Moves the process that was started then. Its number may become another's at any moment, so it is looked at before and after.
fn take_in(places: &[GroupPlace], pid: i32, started: u64) -> io::Result<()> {
    let is_it = || {
        let same = crate::peer::started_of(pid) == Some(started);
        same.then_some(())
            .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "its process is gone"))
    };
    for place in places {
        is_it()?;
        write(&place.folder.join("cgroup.procs"), &pid.to_string())?;
    }
    is_it()
}

/// The group to which a process returns. One that a daemon moved, and then forgot, came from the first.
fn home_of(mount: &CgroupMount, pid: i32) -> io::Result<PathBuf> {
    let group = mount.group_of(pid)?;
    if group.starts_with(mount.folder.join(ALL)) {
        return Ok(mount.folder.clone());
    }
    Ok(group)
}

fn name_of(pid: i32, started: u64) -> String {
    format!("{pid}-{started}")
}

/// The process by which a group is [named](name_of).
fn named_process(name: &str) -> Option<(i32, u64)> {
    let (pid, started) = name.split_once('-')?;
    Some((pid.parse().ok()?, started.parse().ok()?))
}

/// Removes the groups whose program is gone and that no process is in: a daemon that was killed leaves them, and none may ever follow it.
fn sweep(all: &Path) {
    let groups = fs::read_dir(all).into_iter().flatten().flatten();
    for group in groups {
        let process = group.file_name().to_str().and_then(named_process);
        let is_over =
            process.is_some_and(|(pid, started)| crate::peer::started_of(pid) != Some(started));
        if is_over {
            let _ = fs::remove_dir(group.path());
        }
    }
}

impl ProgramGroup {
    /// The groups from which its processes came, one in each tree.
    pub fn homes(&self) -> Vec<PathBuf> {
        self.places.iter().map(|place| place.home.clone()).collect()
    }

    /// Confines every thread of the group to these cores.
    ///
    /// # Errors
    /// The system's.
    pub fn confine(&self, cores: &CpuSet) -> io::Result<()> {
        self.cores.write_all_at(list(cores).as_bytes(), 0)
    }

    /// The number of its threads.
    pub fn threads(&self) -> usize {
        let folder = &self.places[0].folder;
        let threads = fs::read_to_string(folder.join("cgroup.threads"))
            .or_else(|_| fs::read_to_string(folder.join("tasks")));
        threads.map_or(0, |threads| threads.lines().count())
    }

    /// Returns every process to the group from which the first one came, and its threads to these cores; then removes the group. Where that group is gone
    /// or takes none, they go to the tree's first one, or else to one of their own with an ordinary weight.
    pub fn end(&self, home: &CpuSet) {
        end(&self.places, home);
    }
}

fn end(places: &[GroupPlace], home: &CpuSet) {
    for (index, place) in places.iter().enumerate() {
        place.empty((index == 0).then_some(home));
        let _ = fs::remove_dir(&place.folder);
        if let Some(all) = place.folder.parent() {
            sweep(all);
            // It stays while another program is in it.
            let _ = fs::remove_dir(all);
        }
        let _ = fs::remove_dir(place.mount.folder.join(LEFT));
    }
}

impl GroupPlace {
    /// Moves every process out of it; `home` where the tree has the cores.
    fn empty(&self, home: Option<&CpuSet>) {
        let mut last = None;
        for _ in 0..ROUNDS_MAX {
            let processes = processes_of(&self.folder);
            if processes.is_empty() {
                return;
            }
            for pid in processes.into_iter().filter(|&pid| self.has(pid)) {
                if let Err(error) = self.let_go(pid) {
                    last = Some(error);
                }
                if let Some(home) = home {
                    return_to(pid, home);
                }
            }
        }
        let left = processes_of(&self.folder).len();
        if let (Some(error), true) = (last, left > 0) {
            if let Some(home) = home {
                let _ = write(&self.folder.join("cpuset.cpus"), &list(home));
            }
            crate::daemon::say(format_args!(
                "{left} processes stay in the control group {}, at its idle weight: {error}; move them to another group",
                self.folder.display()
            ));
        }
    }

    /// Whether the process is in it. The number of one that ended or left meanwhile may be another's.
    fn has(&self, pid: i32) -> bool {
        let group = self.mount.group_of(pid);
        group.is_ok_and(|group| group == self.folder)
    }

    /// Moves a process out of it.
    fn let_go(&self, pid: i32) -> io::Result<()> {
        let moved = |group: &Path| {
            if !self.has(pid) {
                return Ok(());
            }
            write(&group.join("cgroup.procs"), &pid.to_string())
        };
        moved(&self.home)
            .or_else(|_| moved(&self.mount.folder))
            .or_else(|_| {
                let left = self.mount.folder.join(LEFT);
                if self.mount.is_cpuset_v1() {
                    make_cpuset_v1(&self.mount.folder, LEFT)?;
                } else {
                    make(&left)?;
                }
                moved(&left)
            })
    }
}

/// Lets the threads of a process run on these cores again, where the move to its group did not say so already.
fn return_to(pid: i32, home: &CpuSet) {
    for tid in crate::peer::threads_of(pid) {
        let tid = Pid::from_raw(tid as i32);
        if sched_getaffinity(tid).is_ok_and(|cores| cores != *home) {
            let _ = sched_setaffinity(tid, home);
        }
    }
}

fn processes_of(folder: &Path) -> Vec<i32> {
    let processes = fs::read_to_string(folder.join("cgroup.procs")).unwrap_or_default();
    processes
        .lines()
        .filter_map(|pid| pid.parse().ok())
        .collect()
}

/// A group in version 2, with the controllers for groups in it.
fn make_v2(root: &Path) -> io::Result<()> {
    write(&root.join("cgroup.subtree_control"), "+cpu +cpuset")?;
    let all = root.join(ALL);
    make_idle(&all)?;
    write(&all.join("cgroup.subtree_control"), "+cpu +cpuset")
}

fn make_idle(folder: &Path) -> io::Result<()> {
    make(folder)?;
    write(&folder.join("cpu.idle"), "1")
}

/// A group in the tree of version 1's `cpuset`, which takes no process before it has cores and memory.
fn make_cpuset_v1(parent: &Path, name: &str) -> io::Result<()> {
    let folder = parent.join(name);
    make(&folder)?;
    for file in ["cpuset.cpus", "cpuset.mems"] {
        if read(&folder.join(file))?.trim().is_empty() {
            write(&folder.join(file), read(&parent.join(file))?.trim())?;
        }
    }
    // The first group balances over all cores. A group that does so itself has the kernel rebuild its domains at each change.
    write(&folder.join("cpuset.sched_load_balance"), "0")
}

fn make(folder: &Path) -> io::Result<()> {
    match fs::create_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        made => named(folder, |_| made),
    }
}

fn read(path: &Path) -> io::Result<String> {
    named(path, |path| fs::read_to_string(path))
}

fn write(path: &Path, text: &str) -> io::Result<()> {
    named(path, |path| {
        let file = File::options().write(true).open(path)?;
        file.write_all_at(text.as_bytes(), 0)
    })
}

/// An error that names the file.
fn named<T>(path: &Path, call: impl FnOnce(&Path) -> io::Result<T>) -> io::Result<T> {
    call(path).map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))
}

/// Cores as the kernel writes them.
fn list(cores: &CpuSet) -> String {
    let cores = (0..CpuSet::count()).filter(|&core| cores.is_set(core) == Ok(true));
    let cores: Vec<String> = cores.map(|core| core.to_string()).collect();
    cores.join(",")
}
