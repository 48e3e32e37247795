//! The threads of a process and of its descendants, found one by one.
//!
//! Descendants whose parent has ended are not among them, nor are those beyond a number: only a control group knows them.

use super::handle::ProcessHandle;
use nix::sched::CpuSet;
use std::collections::BTreeMap;
use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The most descendants of a program that are tracked. Further ones stay on its first cores.
const FAMILY_MAX: usize = 256;

/// The descendants of all programs of this process, each of which has a descriptor.
static TRACKED: AtomicUsize = AtomicUsize::new(0);

/// A descriptor's place among those that may be open for descendants: half of them, so that registrations find some.
#[derive(Debug)]
struct DescriptorPlace;

impl DescriptorPlace {
    fn take() -> Option<Self> {
        let most = open_files_max() / 2;
        let taken = TRACKED.fetch_add(1, Ordering::Relaxed);
        let place = Self;
        (taken < most).then_some(place)
    }
}

impl Drop for DescriptorPlace {
    fn drop(&mut self) {
        TRACKED.fetch_sub(1, Ordering::Relaxed);
    }
}

/// How many files this process may have open.
fn open_files_max() -> usize {
    const LEAST: usize = 64;
    let limits = fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let files = limits
        .lines()
        .find_map(|line| line.strip_prefix("Max open files"));
    let soft = files.and_then(|line| line.split_whitespace().next()?.parse().ok());
    soft.unwrap_or(LEAST)
}

/// The threads of a process, and its descendants.
#[derive(Debug, Default)]
pub(super) struct Family {
    threads: Vec<u32>,
    relatives: BTreeMap<i32, Relative>,
}

#[derive(Debug)]
struct Relative {
    process: ProcessHandle,
    threads: Vec<u32>,
    place: DescriptorPlace,
}

impl Family {
    /// Reads the current threads and descendants. It opens a descriptor for each descendant when it first sees it.
    pub(super) fn look(&mut self, leader: &ProcessHandle) {
        self.threads = threads_of(leader.pid);
        let mut open: Vec<i32> = children_of(leader.pid, &self.threads);
        let mut seen = BTreeMap::new();
        while let Some(pid) = open.pop() {
            if seen.len() >= FAMILY_MAX || seen.contains_key(&pid) {
                continue;
            }
            let known = self.relatives.remove(&pid);
            let known = known.filter(|known| known.process.is_unchanged());
            let found = known.map(|known| (known.process, known.place));
            let found = found.or_else(|| {
                let place = DescriptorPlace::take()?;
                Some((ProcessHandle::open(pid, leader.uid)?, place))
            });
            let Some((process, place)) = found else {
                continue;
            };
            let threads = threads_of(pid);
            open.extend(children_of(pid, &threads));
            let relative = Relative {
                process,
                threads,
                place,
            };
            seen.insert(pid, relative);
        }
        self.relatives = seen;
    }

    /// Confines every thread to these cores. Returns their number.
    pub(super) fn pin_all(&mut self, leader: &ProcessHandle, cores: &CpuSet) -> usize {
        // A new thread inherits the mask of its creator, which may be the old one: repeat until no thread is new.
        const LOOKS_MAX: usize = 4;
        let mut before = usize::MAX;
        for _ in 0..LOOKS_MAX {
            self.look(leader);
            let relatives = self.relatives.values();
            let count = self.threads.len() + relatives.map(|one| one.threads.len()).sum::<usize>();
            if count == before {
                break;
            }
            before = count;
            self.each(leader, |process, tid| {
                process.pin(tid, cores);
            });
        }
        before
    }

    /// Calls `act` for each thread that was found last.
    pub(super) fn each(&self, leader: &ProcessHandle, act: impl Fn(&ProcessHandle, u32)) {
        self.threads.iter().for_each(|&tid| act(leader, tid));
        for Relative {
            process, threads, ..
        } in self.relatives.values()
        {
            threads.iter().for_each(|&tid| act(process, tid));
        }
    }

    #[cfg(test)]
    pub(super) fn processes(&self) -> Vec<i32> {
        self.relatives.keys().copied().collect()
    }
}

pub(crate) fn threads_of(pid: i32) -> Vec<u32> {
    let Ok(entries) = fs::read_dir(format!("/proc/{pid}/task")) else {
        return Vec::new();
    };
    let names = entries.flatten().map(|entry| entry.file_name());
    names
        .filter_map(|name| name.to_str()?.parse().ok())
        .collect()
}

fn children_of(pid: i32, threads: &[u32]) -> Vec<i32> {
    let lists = threads
        .iter()
        .filter_map(|tid| fs::read_to_string(format!("/proc/{pid}/task/{tid}/children")).ok());
    let mut children = Vec::new();
    for list in lists {
        children.extend(
            list.split_whitespace()
                .filter_map(|pid| pid.parse::<i32>().ok()),
        );
    }
    children
}
