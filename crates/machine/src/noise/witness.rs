//! A witness: threads beside a run that record when the machine stopped.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use nix::sys::prctl;

use crate::Clock;
use crate::thread::{pin_current, stay_responsive};
use crate::topology::Topology;

/// The time between two looks of the witness, ns. A look takes some 10 µs of a core, half of that for the timer in a virtual machine.
const PERIOD_NS: u64 = 500_000;

/// The most cores that the witness watches.
const MOST_CORES: usize = 16;

/// A time within which a thread or a core was kept from running.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stop {
    /// It began no earlier, ns on the scale of [`Clock::global`].
    pub from_ns: u64,
    /// It ended no later.
    pub to_ns: u64,
    /// For how long, ns.
    pub lost_ns: u64,
}

/// Watches some threads and the cores until it testifies.
///
/// It has two sources, and neither depends on the work of the threads. The kernel's account gives the time that each thread was ready while
/// another had its core. And a sleeper on each core notices when it wakes too late: it was kept from its core itself, as by a hypervisor, of
/// which the kernel's account knows nothing. A hypervisor's pause that is shorter than the sleeper's period may pass unseen.
#[derive(Debug)]
pub struct Witness {
    over: Arc<AtomicBool>,
    watchers: Vec<JoinHandle<Vec<Stop>>>,
}

impl Witness {
    /// Watches the threads of this process whose names begin with `prefix`, and the cores. Ignores stops of up to `floor_ns`.
    ///
    /// # Errors
    ///
    /// When the kernel keeps no account of waiting (`CONFIG_SCHED_INFO`), or refuses a thread.
    pub fn of_threads(prefix: &str, floor_ns: u64) -> io::Result<Witness> {
        let mut accounts = accounts(prefix)?;
        let mut witness = Witness {
            over: Arc::default(),
            watchers: Vec::new(),
        };
        for core in cores() {
            let watcher = CoreWatcher {
                clock: Clock::global(),
                floor_ns,
                // The first watcher reads all accounts.
                accounts: std::mem::take(&mut accounts),
                stops: Vec::new(),
            };
            let over = Arc::clone(&witness.over);
            let thread = thread::Builder::new().name("headway-witness".to_owned());
            witness.watchers.push(thread.spawn(move || {
                // If the kernel refuses, the sleeper watches the core that it runs on.
                let _ = core.map(pin_current);
                watcher.watch(&over)
            })?);
        }
        Ok(witness)
    }

    /// Ends the watch and returns the stops that it saw, in no particular order.
    pub fn testify(mut self) -> Vec<Stop> {
        self.over.store(true, Ordering::Relaxed);
        std::mem::take(&mut self.watchers)
            .into_iter()
            .flat_map(|watcher| watcher.join().expect("watching does not panic"))
            .collect()
    }
}

impl Drop for Witness {
    /// Ends the watchers, also those of a witness that did not testify.
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
    }
}

/// The cores to watch; a single unnamed core if the topology cannot be read.
fn cores() -> Vec<Option<usize>> {
    let Ok(topology) = Topology::read("/sys") else {
        return vec![None];
    };
    let order = topology.pinning_order().into_iter();
    order.take(MOST_CORES).map(Some).collect()
}

/// A thread's account, kept open: a look is one system call.
#[derive(Debug)]
struct Account {
    file: File,
    run_delay_ns: u64,
}

/// The accounts of this process's threads whose names begin with `prefix`.
fn accounts(prefix: &str) -> io::Result<Vec<Account>> {
    let mut accounts = Vec::new();
    for task in fs::read_dir("/proc/self/task")? {
        let task = task?.path();
        // A thread that ended meanwhile has no name any more.
        let name = fs::read_to_string(task.join("comm")).unwrap_or_default();
        if name.starts_with(prefix) {
            accounts.push(Account::open(File::open(task.join("schedstat"))?)?);
        }
    }
    Ok(accounts)
}

impl Account {
    fn open(file: File) -> io::Result<Self> {
        let mut account = Self {
            file,
            run_delay_ns: 0,
        };
        account.run_delay_ns = account.read()?;
        Ok(account)
    }

    fn read(&self) -> io::Result<u64> {
        let mut bytes = [0; 96];
        let len = self.file.read_at(&mut bytes, 0)?;
        let text = std::str::from_utf8(&bytes[..len]).ok();
        let stat = text.and_then(super::schedstat::parse);
        stat.map(|stat| stat.run_delay_ns)
            .ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    /// The time that the thread waited since the last look; 0 once it has ended.
    fn waited_ns(&mut self) -> u64 {
        let now_ns = self.read().unwrap_or(self.run_delay_ns);
        let waited_ns = now_ns.saturating_sub(self.run_delay_ns);
        self.run_delay_ns = now_ns;
        waited_ns
    }
}

/// A sleeper on one core.
struct CoreWatcher {
    clock: Clock,
    floor_ns: u64,
    accounts: Vec<Account>,
    stops: Vec<Stop>,
}

impl CoreWatcher {
    fn watch(mut self, over: &AtomicBool) -> Vec<Stop> {
        // By default each sleep ends up to 50 µs late.
        let _ = prctl::set_timerslack(1);
        stay_responsive();
        let mut last_ns = self.clock.now_ns();
        while !over.load(Ordering::Relaxed) {
            thread::sleep(Duration::from_nanos(PERIOD_NS));
            let now_ns = self.clock.now_ns();
            self.look(last_ns, now_ns);
            last_ns = now_ns;
        }
        self.stops
    }

    fn look(&mut self, last_ns: u64, now_ns: u64) {
        let due_ns = last_ns + PERIOD_NS;
        self.note(due_ns, now_ns, now_ns.saturating_sub(due_ns));
        for index in 0..self.accounts.len() {
            // The kernel enters a wait when it ends. It ended since the last look, but may have begun long before.
            let waited_ns = self.accounts[index].waited_ns();
            self.note(last_ns.saturating_sub(waited_ns), now_ns, waited_ns);
        }
    }

    fn note(&mut self, from_ns: u64, to_ns: u64, lost_ns: u64) {
        if lost_ns > self.floor_ns {
            self.stops.push(Stop {
                from_ns,
                to_ns,
                lost_ns,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FLOOR_NS: u64 = 100_000;

    /// An account of a file with this run delay.
    fn account(run_delay_ns: u64) -> (tempfile::NamedTempFile, Account) {
        let file = tempfile::NamedTempFile::new().unwrap();
        write(&file, run_delay_ns);
        let account = Account::open(File::open(file.path()).unwrap()).unwrap();
        (file, account)
    }

    fn write(file: &tempfile::NamedTempFile, run_delay_ns: u64) {
        fs::write(file.path(), format!("123456789 {run_delay_ns} 77\n")).unwrap();
    }

    fn watcher(accounts: Vec<Account>) -> CoreWatcher {
        CoreWatcher {
            clock: Clock::global(),
            floor_ns: FLOOR_NS,
            accounts,
            stops: Vec::new(),
        }
    }

    #[test]
    fn a_wait_that_ended_since_the_last_look_may_have_begun_before_it() {
        let (file, account) = account(5_000_000);
        let mut watcher = watcher(vec![account]);
        watcher.look(10_000_000, 10_500_000);
        write(&file, 5_000_000 + FLOOR_NS);
        watcher.look(10_500_000, 11_000_000);
        assert_eq!(watcher.stops, [], "no longer than the floor");
        write(&file, 8_000_000 + FLOOR_NS);
        watcher.look(11_000_000, 11_500_000);
        let stop = Stop {
            from_ns: 8_000_000,
            to_ns: 11_500_000,
            lost_ns: 3_000_000,
        };
        assert_eq!(watcher.stops, [stop]);
    }

    #[test]
    fn who_wakes_late_was_stopped_since_the_time_to_wake() {
        let mut watcher = watcher(Vec::new());
        watcher.look(10_000_000, 10_000_000 + PERIOD_NS + FLOOR_NS);
        assert_eq!(watcher.stops, []);
        watcher.look(20_000_000, 23_500_000);
        let stop = Stop {
            from_ns: 20_500_000,
            to_ns: 23_500_000,
            lost_ns: 3_000_000,
        };
        assert_eq!(watcher.stops, [stop]);
    }

    fn spin_until(over: &Arc<AtomicBool>, core: Option<usize>) -> JoinHandle<()> {
        let over = Arc::clone(over);
        let thread = thread::Builder::new().name("crowd-spin".to_owned());
        let spinner = thread.spawn(move || {
            let _ = core.map(pin_current);
            while !over.load(Ordering::Relaxed) {
                std::hint::spin_loop();
            }
        });
        spinner.expect("the system starts a thread")
    }

    #[test]
    fn two_that_want_one_core_are_seen_to_wait() {
        let core = cores()[0];
        assert!(core.is_some(), "this machine names its cores");
        let over = Arc::new(AtomicBool::new(false));
        let spinners = [(); 2].map(|()| spin_until(&over, core));
        while accounts("crowd-").unwrap().len() < 2 {
            thread::yield_now();
        }
        let witness = Witness::of_threads("crowd-", FLOOR_NS).unwrap();
        thread::sleep(Duration::from_millis(300));
        let stops = witness.testify();
        over.store(true, Ordering::Relaxed);
        spinners
            .into_iter()
            .for_each(|spinner| spinner.join().unwrap());
        let lost_ns: u64 = stops.iter().map(|stop| stop.lost_ns).sum();
        assert!(
            lost_ns > 100_000_000,
            "one of the two waits at any time: {stops:?}"
        );
        assert!(
            stops
                .iter()
                .all(|stop| stop.to_ns - stop.from_ns >= stop.lost_ns)
        );
    }
}
