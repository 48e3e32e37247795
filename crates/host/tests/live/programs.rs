//! Programs without support for the daemon: each process that they ever make runs on their cores, and all return.

use crate::processes::{TestProcess, marked};
use crate::stage::{Stage, cores_of, masks, may, report, settings, turn, until};
use headway_host::PeerProcess;
use headway_host::cgroup::ProgramGroups;
use headway_host::daemon::HostDaemon;
use headway_machine::Clock;
use nix::sched::sched_getaffinity;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// More than are found one by one.
const CHILDREN: usize = 300;
/// The longest life of a child, s: its test may have been killed.
const CHILD_LIFE_S: u32 = 600;

/// The role of a program that makes children of its children, each in a session of its own, which lose their parent at once. Then it computes.
pub(crate) fn daemonise(socket: &Path) {
    headway_host::program::register(socket, "batch", None).unwrap();
    for _ in 0..CHILDREN {
        fork_twice();
    }
    loop {
        std::hint::spin_loop();
    }
}

#[expect(unsafe_code, reason = "forks")]
fn fork_twice() {
    // SAFETY: the children only make system calls.
    unsafe {
        let child = libc::fork();
        if child > 0 {
            libc::waitpid(child, std::ptr::null_mut(), 0);
            return;
        }
        libc::setsid();
        if libc::fork() > 0 {
            libc::_exit(0);
        }
        // Whoever reads what the test writes does not wait for this process.
        libc::close(libc::STDERR_FILENO);
        libc::alarm(CHILD_LIFE_S);
        loop {
            libc::pause();
        }
    }
}

/// Registers in place of the program and then runs it, as `headway run` does.
pub(crate) fn spawn_program(
    mut command: Command,
    stage: &Stage,
    name: &'static str,
) -> TestProcess {
    use std::os::unix::process::CommandExt;
    let socket = stage.socket();
    let register = move || {
        headway_host::program::register(&socket, name, None)
            .map_err(|error| std::io::Error::other(error.to_string()))
    };
    // SAFETY: the process has one thread between fork and exec, and what it calls allocates only: the allocator's locks are free, since the test
    // holds the turn.
    #[expect(unsafe_code, reason = "runs between fork and exec")]
    unsafe {
        command.pre_exec(register)
    };
    stage.start(&mut command)
}

/// Whether programs have control groups here; prints the reason if not.
fn may_group(test: &str) -> bool {
    if !may(test) {
        return false;
    }
    let groups = ProgramGroups::open();
    if let Err(why) = &groups {
        eprintln!("SKIPPED {test}: {why}");
    }
    groups.is_ok()
}

/// What a process got from its daemon, or from who started it.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Place {
    cores: Vec<String>,
    groups: String,
    policy: Option<String>,
}

impl Place {
    fn of(pid: u32) -> Self {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let after_name = stat.rsplit_once(')').map(|(_, rest)| rest.to_owned());
        let policy = after_name.and_then(|rest| rest.split(' ').nth(39).map(str::to_owned));
        let mut cores = masks(pid);
        cores.dedup();
        Self {
            cores,
            groups: fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default(),
            policy,
        }
    }
}

/// A program with many children that are no longer its own. They end with it.
struct Daemoniser<'a> {
    stage: &'a Stage,
    process: TestProcess,
    home: Place,
    other: u32,
}

impl<'a> Daemoniser<'a> {
    fn start(stage: &'a Stage) -> Self {
        Self::start_beside(stage, 0)
    }

    /// `other` is a process of the test, and not the program's.
    fn start_beside(stage: &'a Stage, other: u32) -> Self {
        let home = Place::of(std::process::id());
        let process = stage.spawn("daemonises");
        let this = Self {
            stage,
            process,
            home,
            other,
        };
        // On a busy machine the idle time is too short for many new processes.
        let own = this.process.id();
        until("it has a group", || {
            Place::of(own).groups.matches("/headway/").count() == idle_trees()
        });
        let idle = idle_file().expect("it has a group");
        assert_eq!(fs::read_to_string(&idle).unwrap().trim(), "1");
        fs::write(&idle, "0").unwrap();
        until("all children run", || this.all().len() == CHILDREN + 1);
        fs::write(&idle, "1").unwrap();
        this
    }

    fn all(&self) -> Vec<u32> {
        let mut all = marked(self.stage.folder());
        all.retain(|&pid| pid != self.other);
        all
    }

    fn all_are(&self, place: impl Fn(&Place) -> bool) -> bool {
        self.all().iter().all(|&pid| place(&Place::of(pid)))
    }

    fn are_home(&self) -> bool {
        self.all_are(|place| *place == self.home)
    }
}

impl Drop for Daemoniser<'_> {
    fn drop(&mut self) {
        for pid in self.all() {
            let _ = kill(Pid::from_raw(pid as i32), Signal::SIGKILL);
        }
    }
}

/// The trees in which a program has a group: one in version 2.
fn idle_trees() -> usize {
    let is_v1 = Path::new("/sys/fs/cgroup/cpuset").exists();
    1 + usize::from(is_v1)
}

/// The file by which programs get idle time only.
fn idle_file() -> Option<PathBuf> {
    let trees = ["/sys/fs/cgroup/cpu", "/sys/fs/cgroup"].into_iter();
    let mut files = trees.map(|tree| Path::new(tree).join("headway/cpu.idle"));
    files.find(|file| file.exists())
}

/// A daemon under which the program has one core at most.
fn daemon(stage: &Stage) -> HostDaemon {
    let mut settings = settings(&stage.socket(), "shenango");
    settings.apps[2].most = Some(1);
    HostDaemon::start(settings, Clock::global()).unwrap()
}

fn is_confined(place: &Place) -> bool {
    let is_one = |mask: &String| !mask.contains([',', '-']);
    place.groups.contains("/headway/") && place.cores.iter().all(is_one)
}

/// Descendants whose parent ended, in other sessions, and more of them than can be found one by one.
#[test]
fn every_process_of_a_program_runs_on_its_cores_and_returns_when_the_daemon_ends() {
    let _turn = turn();
    if !may_group("every_process_of_a_program_runs_on_its_cores_and_returns_when_the_daemon_ends") {
        return;
    }
    let stage = Stage::new();
    let daemon = daemon(&stage);
    let program = Daemoniser::start(&stage);
    until("it has a core", || {
        cores_of(&report(&daemon), "batch") == Some(1)
    });
    until("all are confined", || program.all_are(is_confined));
    daemon.stop();
    assert!(program.are_home(), "the daemon is gone");
}

#[test]
fn processes_that_outlive_their_program_return() {
    let _turn = turn();
    if !may_group("processes_that_outlive_their_program_return") {
        return;
    }
    let stage = Stage::new();
    let daemon = daemon(&stage);
    let mut program = Daemoniser::start(&stage);
    until("all are confined", || program.all_are(is_confined));
    program.process.kill();
    until("the others are home", || {
        program.are_home() && program.all().len() == CHILDREN
    });
    until("its place is free", || report(&daemon).apps.is_empty());
    daemon.stop();
}

/// A program of a daemon that was killed; its first process too, if it `ends`.
fn left_by_a_killed_daemon(stage: &Stage, ends: bool) -> Daemoniser<'_> {
    let mut killed = stage.spawn("daemon");
    until("it listens", || stage.socket().exists());
    let mut program = Daemoniser::start_beside(stage, killed.id());
    killed.kill();
    if ends {
        program.process.kill();
    }
    program
}

/// The next daemon takes the group over, and what is left of a program that ended meanwhile returns.
#[test]
fn a_group_survives_its_daemon() {
    let _turn = turn();
    if !may_group("a_group_survives_its_daemon") {
        return;
    }
    for ends in [false, true] {
        let stage = Stage::new();
        let program = left_by_a_killed_daemon(&stage, ends);
        let daemon = daemon(&stage);
        if ends {
            until("the others are home", || program.are_home());
        } else {
            until("it is taken over", || {
                cores_of(&report(&daemon), "batch") == Some(1)
            });
            until("all are confined", || program.all_are(is_confined));
        }
        daemon.stop();
        assert!(program.are_home());
    }
}

/// A daemon waits a moment before it takes over programs. One that ends meanwhile leaves none confined, since no later daemon would know them.
#[test]
fn a_daemon_that_ends_at_once_lets_the_programs_of_the_last_one_go() {
    const TEST: &str = "a_daemon_that_ends_at_once_lets_the_programs_of_the_last_one_go";
    let _turn = turn();
    if !may_group(TEST) {
        return;
    }
    for ends in [false, true] {
        let stage = Stage::new();
        let program = left_by_a_killed_daemon(&stage, ends);
        daemon(&stage).stop();
        assert!(program.are_home());
    }
}

/// The groups that a process' program has, in all trees.
fn groups_of(pid: u32) -> Vec<PathBuf> {
    let trees = [
        "/sys/fs/cgroup/cpuset",
        "/sys/fs/cgroup/cpu",
        "/sys/fs/cgroup",
    ];
    let all = trees.map(|tree| fs::read_dir(Path::new(tree).join("headway")));
    let groups = all.into_iter().flatten().flatten().flatten();
    let groups = groups.map(|group| group.path());
    let name = format!("/{pid}-");
    groups
        .filter(|group| group.to_string_lossy().contains(&name))
        .collect()
}

fn sleeper() -> Command {
    let mut sleeper = Command::new("sleep");
    sleeper.arg(CHILD_LIFE_S.to_string());
    sleeper
}

fn started_of(pid: u32) -> u64 {
    let peer = PeerProcess::open(pid as i32).unwrap();
    peer.started().unwrap()
}

/// The end of the first one removes the group of all.
#[test]
fn a_later_program_of_a_daemon_has_a_group_too() {
    const TEST: &str = "a_later_program_of_a_daemon_has_a_group_too";
    let _turn = turn();
    if !may_group(TEST) {
        return;
    }
    let stage = Stage::new();
    let daemon = daemon(&stage);
    for _ in 0..2 {
        let mut program = spawn_program(sleeper(), &stage, "batch");
        let pid = program.id();
        until("it is confined", || is_confined(&Place::of(pid)));
        program.kill();
        until("its place is free", || report(&daemon).apps.is_empty());
        until("its group is gone", || groups_of(pid).is_empty());
    }
    daemon.stop();
}

/// One whose first group is gone goes to the machine's.
#[test]
fn a_process_without_a_home_is_not_left_idle() {
    const TEST: &str = "a_process_without_a_home_is_not_left_idle";
    let _turn = turn();
    if !may_group(TEST) {
        return;
    }
    let stage = Stage::new();
    let process = stage.start(&mut sleeper());
    let pid = process.id();
    let groups = ProgramGroups::open().unwrap();
    let gone = vec![PathBuf::from("/sys/fs/cgroup/gone"); idle_trees()];
    let group = groups.enter(pid as i32, started_of(pid), &gone).unwrap();
    assert_eq!(
        groups.owner_of(pid as i32),
        Some((pid as i32, started_of(pid)))
    );
    group.end(&sched_getaffinity(Pid::from_raw(0)).unwrap());
    assert!(!Place::of(pid).groups.contains("/headway"));
    assert_eq!(groups_of(pid), Vec::<PathBuf>::new());
}

/// A number that is another process' by now.
#[test]
fn a_process_that_was_started_later_is_not_moved() {
    const TEST: &str = "a_process_that_was_started_later_is_not_moved";
    let _turn = turn();
    if !may_group(TEST) {
        return;
    }
    let stage = Stage::new();
    let process = stage.start(&mut sleeper());
    let pid = process.id();
    let before = Place::of(pid);
    let groups = ProgramGroups::open().unwrap();
    assert!(groups.enter(pid as i32, started_of(pid) - 1, &[]).is_err());
    assert_eq!(Place::of(pid), before);
    assert_eq!(groups_of(pid), Vec::<PathBuf>::new(), "nothing is left");
}

/// A daemon that is killed leaves the groups of its programs, and none may follow it at its socket.
#[test]
fn whoever_comes_next_removes_the_groups_of_programs_that_are_gone() {
    const TEST: &str = "whoever_comes_next_removes_the_groups_of_programs_that_are_gone";
    let _turn = turn();
    if !may_group(TEST) {
        return;
    }
    let stage = Stage::new();
    let (mut gone, stays) = (stage.start(&mut sleeper()), stage.start(&mut sleeper()));
    let [gone_pid, stays_pid] = [gone.id(), stays.id()];
    let groups = ProgramGroups::open().unwrap();
    let [_, stays_group] = [gone_pid, stays_pid].map(|pid| {
        let entered = groups.enter(pid as i32, started_of(pid), &[]);
        entered.unwrap()
    });
    gone.kill();
    assert_eq!(groups_of(gone_pid).len(), idle_trees(), "nobody ended it");
    drop(ProgramGroups::open().unwrap());
    assert_eq!(groups_of(gone_pid), Vec::<PathBuf>::new());
    assert_eq!(groups_of(stays_pid).len(), idle_trees(), "its program runs");
    stays_group.end(&sched_getaffinity(Pid::from_raw(0)).unwrap());
}
