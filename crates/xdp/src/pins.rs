//! The pins by which a switch outlives its process: its maps and attachments in a folder of the BPF file system, which a lease ends if nobody comes back.
//!
//! | name in the folder | what it pins |
//! |---|---|
//! | `head`, `tables`, `nat` and so on | the maps of these names |
//! | `xdp-2`, `copier-2` | the attachments to interface 2, and by them the programs |
//!
//! A folder is named by network namespace, address and port. Whoever runs a switch holds a lock on its folder.

use crate::head::{HeadMap, head_of};
use aya::maps::{Array, Map, MapData};
use aya::programs::links::{FdLink, PinnedLink};
use nix::errno::Errno;
use std::fs::{self, DirBuilder, File, TryLockError};
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// The maps that outlive a process.
pub(crate) const MAPS: [&str; 7] = [
    "head",
    "tables",
    "nat",
    "bursts",
    "loads",
    "registers",
    "stamp",
];

/// Where the BPF file system is mounted.
const BPFFS: &str = "/sys/fs/bpf";

/// Why a switch cannot outlive its process.
#[derive(thiserror::Error)]
pub enum PinsError {
    /// There is no BPF file system, and none can be mounted.
    #[error(
        "no BPF file system is mounted at {BPFFS}, and none can be ({0}): `mount -t bpf bpf {BPFFS}` mounts it"
    )]
    NoFileSystem(String),
    /// There is none, and what this process mounts ends with it.
    #[error(
        "no BPF file system is mounted at {BPFFS}, and one that this process mounted would end with it, since it has a mount namespace of its own (as under \
         `ip netns exec`): mount it there before (`mount -t bpf bpf {BPFFS}`), or enter the network namespace by `nsenter --net`"
    )]
    OwnMounts,
    /// The folder is not to be trusted, or cannot be made.
    #[error("{}: {why}", folder.display())]
    Folder {
        /// The folder.
        folder: PathBuf,
        /// Why.
        why: String,
    },
    /// Another process runs the switch.
    #[error("another process runs the switch of {}", folder.display())]
    InUse {
        /// The folder.
        folder: PathBuf,
    },
}

headway_words::debug_is_display!(PinsError);

/// A switch's folder, which this process holds.
#[derive(Debug)]
pub struct SwitchPins {
    folder: PathBuf,
    lease: Duration,
    /// The lock on the folder ends with this.
    _lock: File,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum LinkKind {
    Xdp,
    Copier,
}

impl LinkKind {
    fn name(self, ifindex: u32) -> String {
        match self {
            Self::Xdp => format!("xdp-{ifindex}"),
            Self::Copier => format!("copier-{ifindex}"),
        }
    }
}

impl SwitchPins {
    /// Takes the folder of the switch at this address, in this network namespace. Without a renewal for so long as `lease` the switch passes packets on.
    ///
    /// # Errors
    /// [`PinsError`]
    pub fn take(at: SocketAddr, lease: Duration) -> Result<Self, PinsError> {
        mount()?;
        let root = root();
        make_own(&root)?;
        let folder = root.join(name_of(at).map_err(|error| refused(&root, &error))?);
        make_own(&folder)?;
        Self::hold(folder, lease)
    }

    fn hold(folder: PathBuf, lease: Duration) -> Result<Self, PinsError> {
        let lock = File::open(&folder).map_err(|error| refused(&folder, &error))?;
        match lock.try_lock() {
            Ok(()) => Ok(Self {
                folder,
                lease,
                _lock: lock,
            }),
            Err(TryLockError::WouldBlock) => Err(PinsError::InUse { folder }),
            Err(TryLockError::Error(error)) => Err(refused(&folder, &error)),
        }
    }

    /// Whether an earlier process left attachments.
    #[must_use]
    pub fn has_attachments(&self) -> bool {
        let is_link = |path: &PathBuf| {
            let name = path.file_name().unwrap_or_default();
            name.to_string_lossy().starts_with("xdp-")
        };
        entries(&self.folder).iter().any(is_link)
    }

    pub(crate) fn lease(&self) -> Duration {
        self.lease
    }

    pub(crate) fn map(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Forgets the pinned maps, unless all are there and of this stamp. The programs that use them go on with them.
    pub(crate) fn keep_maps_of(&self, stamp: u64) {
        let is_there = |name: &&str| self.map(name).exists();
        if MAPS.iter().all(is_there) && self.stamp() == Some(stamp) {
            return;
        }
        for name in MAPS {
            let _ = fs::remove_file(self.map(name));
        }
    }

    fn stamp(&self) -> Option<u64> {
        let map = MapData::from_pin(self.map("stamp")).ok()?;
        let stamps: Array<_, u64> = Map::Array(map).try_into().ok()?;
        stamps.get(&0, 0).ok()
    }

    /// The pinned attachment to an interface.
    pub(crate) fn link(&self, kind: LinkKind, ifindex: u32) -> Option<FdLink> {
        let path = self.folder.join(kind.name(ifindex));
        Some(PinnedLink::from_pin(path).ok()?.into())
    }

    /// Pins an attachment, in place of one that is dead.
    pub(crate) fn keep(
        &self,
        kind: LinkKind,
        ifindex: u32,
        link: impl TryInto<FdLink>,
    ) -> io::Result<()> {
        let path = self.folder.join(kind.name(ifindex));
        let _ = fs::remove_file(&path);
        let link: FdLink = link.try_into().map_err(|_| {
            io::Error::other("the kernel has no links for programs: it needs Linux 5.15")
        })?;
        // The pin holds the attachment from here on.
        link.pin(path).map(drop).map_err(io::Error::other)
    }

    /// Ends the attachments to interfaces that are not among these, and those of the program that copies if there is none.
    pub(crate) fn keep_links_of(&self, interfaces: &[u32], clones: bool) {
        let of = |kind: LinkKind| interfaces.iter().map(move |&ifindex| kind.name(ifindex));
        let copiers = of(LinkKind::Copier).filter(|_| clones);
        let kept: Vec<_> = of(LinkKind::Xdp).chain(copiers).collect();
        for path in entries(&self.folder) {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let is_link = name.starts_with("xdp-") || name.starts_with("copier-");
            if is_link && !kept.iter().any(|kept| *kept == *name) {
                let _ = fs::remove_file(&path);
            }
        }
    }

    /// Removes switches that nobody runs and whose lease ended before this tick.
    pub(crate) fn remove_abandoned(&self, now_tick: u64) {
        for folder in entries(&root()) {
            if folder == self.folder {
                continue;
            }
            let Ok(other) = Self::hold(folder, Duration::ZERO) else {
                continue;
            };
            if other.lease_tick().is_none_or(|tick| tick < now_tick) {
                other.remove();
            }
        }
    }

    fn lease_tick(&self) -> Option<u64> {
        let map = MapData::from_pin(self.map("head")).ok()?;
        let head: HeadMap = Map::Array(map).try_into().ok()?;
        Some(head_of(&head).ok()?.lease_tick)
    }

    /// Removes the pins. What no process holds ends with them.
    pub fn remove(self) {
        for path in entries(&self.folder) {
            let _ = fs::remove_file(path);
        }
        let _ = fs::remove_dir(&self.folder);
    }

    /// The name of the folder.
    #[must_use]
    pub fn name(&self) -> String {
        let name = self.folder.file_name().unwrap_or_default();
        name.to_string_lossy().into_owned()
    }
}

/// The folders of this network namespace's switches, those that another process runs as errors. `at` has one of them alone.
///
/// # Errors
/// Those of the system that does not tell the namespace.
pub fn pinned_switches(at: Option<SocketAddr>) -> io::Result<Vec<Result<SwitchPins, PinsError>>> {
    let own = namespace()?;
    let wanted = at.map(name_of).transpose()?;
    let is_own = |folder: &PathBuf| {
        let name = folder.file_name().unwrap_or_default().to_string_lossy();
        wanted
            .as_ref()
            .map_or_else(|| name.starts_with(&own), |wanted| *wanted == name)
    };
    let folders = entries(&root()).into_iter().filter(is_own);
    Ok(folders
        .map(|folder| SwitchPins::hold(folder, Duration::ZERO))
        .collect())
}

fn root() -> PathBuf {
    Path::new(BPFFS).join("headway")
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).collect()
}

fn refused(folder: &Path, why: &dyn std::fmt::Display) -> PinsError {
    PinsError::Folder {
        folder: folder.to_owned(),
        why: why.to_string(),
    }
}

/// How the names of this network namespace's folders begin.
fn namespace() -> io::Result<String> {
    Ok(format!("{}-", crate::namespace::cookie()?))
}

/// The name of a switch's folder. Names in the BPF file system have no dots.
fn name_of(at: SocketAddr) -> io::Result<String> {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    let ip: String = at.ip().to_string().chars().map(plain).collect();
    Ok(format!("{}{ip}-{}", namespace()?, at.port()))
}

/// Mounts the BPF file system where it is not.
fn mount() -> Result<(), PinsError> {
    if is_mounted() {
        return Ok(());
    }
    if has_own_mounts() {
        return Err(PinsError::OwnMounts);
    }
    let mount = Command::new("mount")
        .args([
            "-t",
            "bpf",
            "-o",
            "nosuid,nodev,noexec,mode=700",
            "bpf",
            BPFFS,
        ])
        .output();
    let why = match mount {
        Ok(output) if output.status.success() && is_mounted() => return Ok(()),
        Ok(output) => String::from_utf8_lossy(&output.stderr).trim().to_owned(),
        Err(error) => error.to_string(),
    };
    Err(PinsError::NoFileSystem(why))
}

/// Whether this process has other mounts than the first one or its own parent: nobody keeps them once it is killed. A process whose mounts it may not see
/// counts as having the same.
fn has_own_mounts() -> bool {
    let namespace_of = |process: &str| fs::read_link(format!("/proc/{process}/ns/mnt"));
    let Ok(own) = namespace_of("self") else {
        return false;
    };
    let parent = nix::unistd::getppid().to_string();
    let mut others = ["1", &parent]
        .into_iter()
        .filter_map(|process| namespace_of(process).ok());
    others.any(|other| other != own)
}

/// Whether the last file system mounted there is one of BPF.
fn is_mounted() -> bool {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let mut kinds = mounts.lines().filter_map(|line| {
        let mut words = line.split(' ').skip(1);
        (words.next()? == BPFFS).then(|| words.next()).flatten()
    });
    // Another file system may hide it since.
    kinds.next_back() == Some("bpf") && Path::new(BPFFS).exists()
}

/// Makes a folder for this user alone: whoever writes into it attaches programs.
fn make_own(folder: &Path) -> Result<(), PinsError> {
    let made = DirBuilder::new().mode(0o700).create(folder);
    match made {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(refused(folder, &error)),
    }
    let found = fs::symlink_metadata(folder).map_err(|error| refused(folder, &error))?;
    let own = fs::metadata("/proc/self").map_err(|error| refused(folder, &error))?;
    if !found.is_dir() || found.uid() != own.uid() || found.mode() & 0o022 != 0 {
        return Err(refused(folder, &Errno::EPERM.desc()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[ignore = "it takes a file system away: another test runs it where that is nobody else's"]
    fn mounts_of_its_own() {
        // There may be one above the other.
        while is_mounted() {
            let taken_away = Command::new("umount").arg(BPFFS).status().unwrap();
            assert!(taken_away.success());
        }
        assert!(matches!(mount(), Err(PinsError::OwnMounts)));
    }

    #[test]
    fn nothing_is_pinned_where_it_would_end_with_the_process() {
        passes_alone("mounts_of_its_own", &["--mount"], ":");
    }

    #[test]
    #[ignore = "it needs a machine whose mounts it may hide: another test runs it in a container"]
    fn a_file_system_that_cannot_be_mounted() {
        let refused = mount().unwrap_err();
        assert!(matches!(refused, PinsError::NoFileSystem(_)), "{refused}");
        let said = refused.to_string();
        assert!(!said.contains("()"), "the command's own words: {said}");
        assert!(
            said.ends_with("`mount -t bpf bpf /sys/fs/bpf` mounts it"),
            "{said}"
        );
    }

    /// The first process of a container, whose mounts are nobody else's, lacks the place for the file system.
    #[test]
    fn a_file_system_that_cannot_be_mounted_is_told_with_the_command() {
        let container = ["--mount", "--pid", "--fork", "--mount-proc"];
        let hides = "mount -t tmpfs none /sys/fs";
        passes_alone("a_file_system_that_cannot_be_mounted", &container, hides);
    }

    /// Runs an ignored test of this module in namespaces of its own, after a command.
    fn passes_alone(test: &str, namespaces: &[&str], first: &str) {
        let may = Command::new("unshare")
            .args(namespaces)
            .arg("true")
            .status();
        if !may.is_ok_and(|status| status.success()) {
            println!("SKIPPED {test}: it needs root, and namespaces of its own");
            return;
        }
        let mut alone = Command::new("unshare");
        alone.args(namespaces).args(["sh", "-ec"]);
        alone.arg(format!("{first}; exec \"$0\" \"$@\""));
        alone.arg(std::env::current_exe().unwrap());
        alone.args(["--exact", &format!("pins::tests::{test}"), "--ignored"]);
        let output = alone.output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        let passes = output.status.success() && said.contains("1 passed");
        assert!(passes, "{said}");
    }

    #[test]
    fn names_have_no_dots_and_differ_by_address_and_port() {
        let at = ["10.0.0.1:7100", "10.0.0.1:7101", "[fe80::1]:7100"];
        let names = at.map(|at| name_of(at.parse().unwrap()).unwrap());
        assert!(names.iter().all(|name| !name.contains(['.', ':', '/'])));
        assert!(names[0].ends_with("-10-0-0-1-7100"), "{}", names[0]);
        assert!(names[0] != names[1] && names[2].ends_with("-fe80--1-7100"));
    }
}
