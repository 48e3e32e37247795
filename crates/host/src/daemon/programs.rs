//! How the programs of a daemon are confined: each by a control group, or else thread by thread.

use super::access;
use super::given::Speaker;
use super::say::say;
use super::state::KnownProgram;
use crate::cgroup::{Confiner, GroupHandle, ProgramGroups};
use crate::peer::HostPeer;
use std::path::PathBuf;

/// The groups of this daemon's programs, and the thread that serves them. Both are made for the first program.
#[derive(Default)]
pub(super) struct ProgramConfinement {
    made: Option<Result<GroupMaker, String>>,
}

struct GroupMaker {
    groups: ProgramGroups,
    confiner: Confiner,
}

impl ProgramConfinement {
    /// Gives the program of this speaker only the idle time of its cores, and prepares that they change. `homes` are the control groups from which it
    /// came, if an earlier daemon moved it already. Returns these groups; none where it has no group of its own.
    pub(super) fn confine(
        &mut self,
        name: &str,
        homes: &[PathBuf],
        speaker: &mut Speaker,
    ) -> Vec<PathBuf> {
        match self.group_for(homes, speaker) {
            Ok((homes, group)) => {
                speaker.peer.confine_by(group);
                homes
            }
            Err(why) => {
                // An earlier daemon may have moved it.
                self.let_go_of(speaker, homes);
                say(format_args!(
                    "program '{name}' has no control group, so its threads are moved one by one, and those of daemons that it starts are not: {why}"
                ));
                speaker.peer.make_idle();
                Vec::new()
            }
        }
    }

    fn group_for(
        &mut self,
        homes: &[PathBuf],
        speaker: &Speaker,
    ) -> Result<(Vec<PathBuf>, GroupHandle), String> {
        // The limits of its own group (memory.max, pids.max) do not hold in another: only who may set them is moved out of them.
        if !speaker.peer.shares_container() {
            return Err("it is in a container of its own".into());
        }
        if ![0, access::own_uid()].contains(&speaker.peer.uid()) {
            return Err("it is another user's than the daemon's or root's".into());
        }
        let maker = self.made.get_or_insert_with(GroupMaker::new).as_ref()?;
        let (pid, started) = (speaker.peer.pid(), speaker.peer.started());
        let started = started.ok_or("its process is gone")?;
        let group = maker.groups.enter(pid, started, homes);
        let group = group.map_err(|error| error.to_string())?;
        if !speaker.peer.is_unchanged() {
            group.end(&speaker.home);
            return Err("its process is gone, or became another user's".into());
        }
        let homes = group.homes();
        Ok((homes, maker.confiner.serve(group, speaker.home)))
    }

    /// The groups to which a program returns that was started in another one's group: those of the other. None where it came from none of these programs.
    pub(super) fn homes_of<'a>(
        &self,
        speaker: &Speaker,
        mut programs: impl Iterator<Item = &'a KnownProgram>,
    ) -> Vec<PathBuf> {
        let Some(Ok(maker)) = &self.made else {
            return Vec::new();
        };
        let owner = maker.groups.owner_of(speaker.peer.pid());
        let found = programs.find(|known| Some((known.pid, known.started)) == owner);
        found.map_or(Vec::new(), |known| known.groups.clone())
    }

    fn let_go_of(&mut self, speaker: &Speaker, homes: &[PathBuf]) {
        let (Some(started), Some(Ok(maker))) = (speaker.peer.started(), &self.made) else {
            return;
        };
        let left = maker.groups.of(speaker.peer.pid(), started, homes);
        drop(left.map(|group| maker.confiner.serve(group, speaker.home)));
    }

    /// Returns to where it came from what an earlier daemon confined of a program that this one does not take over.
    pub(super) fn let_go(&mut self, known: &KnownProgram) {
        let home = crate::topology::mask(known.home.iter().copied());
        if known.groups.is_empty() {
            // Its threads were confined one by one.
            if let Some(mut peer) = known.process() {
                peer.make_idle();
                peer.let_all_go(&home);
            }
            return;
        }
        if let Ok(maker) = self.made.get_or_insert_with(GroupMaker::new) {
            let left = maker.groups.of(known.pid, known.started, &known.groups);
            drop(left.map(|group| maker.confiner.serve(group, home)));
        }
    }
}

impl GroupMaker {
    fn new() -> Result<Self, String> {
        let groups = ProgramGroups::open()?;
        let confiner = Confiner::start().map_err(|error| error.to_string())?;
        Ok(Self { groups, confiner })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peer::PeerProcess;
    use nix::sched::CpuSet;
    use std::process::Command;

    fn scheduling_of(pid: i32) -> i32 {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        let (_, after_name) = stat.rsplit_once(')').unwrap();
        let policy = after_name.split_whitespace().nth(38).unwrap();
        policy.parse().unwrap()
    }

    /// A daemon of another process left its threads so.
    #[test]
    fn a_program_without_a_group_is_let_go_too() {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let mut peer = PeerProcess::open(child.id() as i32).unwrap();
        let home = peer.affinity().unwrap();
        let cores = (0..CpuSet::count()).filter(|&core| home.is_set(core) == Ok(true));
        let known = KnownProgram {
            name: "pricer".into(),
            pid: peer.pid(),
            uid: Some(peer.uid()),
            started: peer.started().unwrap(),
            home: cores.collect(),
            most: 1,
            groups: Vec::new(),
        };
        peer.make_idle();
        peer.pin_all(&crate::topology::mask(known.home.iter().copied().take(1)));
        assert_eq!(scheduling_of(peer.pid()), libc::SCHED_IDLE);
        let another = KnownProgram {
            started: known.started - 1,
            ..known.clone()
        };
        ProgramConfinement::default().let_go(&another);
        assert_eq!(
            scheduling_of(peer.pid()),
            libc::SCHED_IDLE,
            "it is not that one"
        );
        ProgramConfinement::default().let_go(&known);
        assert_eq!(peer.affinity().unwrap(), home);
        // To give the weight back takes a right.
        if access::own_uid() == 0 {
            assert_eq!(scheduling_of(peer.pid()), libc::SCHED_OTHER);
        }
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
