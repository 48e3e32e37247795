//! The ways to interrupt a thread, behind one trait.

use std::fmt;
use std::str::FromStr;

use headway_machine::doctor::{has_steady_tsc, has_user_interrupts};

use crate::attached::{Attached, YieldFlag};
use crate::signal_handler;

/// A way to make a running request yield.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Mechanism {
    /// Another thread stores to the running one's cache line, which probes read.
    Flag,
    /// Probes compare the time-stamp counter with a deadline.
    Tsc,
    /// Another thread sends a POSIX signal, whose handler yields: no probes needed, thousands of nanoseconds each.
    Signal,
    /// User interrupts, sent by one processor to another without the kernel.
    Uintr,
}

impl Mechanism {
    /// All of them.
    pub const ALL: [Mechanism; 4] = [
        Mechanism::Flag,
        Mechanism::Tsc,
        Mechanism::Signal,
        Mechanism::Uintr,
    ];

    /// Its name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Mechanism::Flag => "flag",
            Mechanism::Tsc => "tsc",
            Mechanism::Signal => "signal",
            Mechanism::Uintr => "uintr",
        }
    }

    /// Checks that this machine and this build have it.
    ///
    /// # Errors
    /// One of them lacks it. The error says why, and which mechanisms are available instead.
    pub fn check(self) -> Result<(), Unavailable> {
        self.obstacle().map_or(Ok(()), |why| {
            Err(Unavailable {
                mechanism: self,
                why,
            })
        })
    }

    /// Every mechanism, with the reason why it cannot be used here, if so.
    pub fn available() -> Vec<(Mechanism, Result<(), Unavailable>)> {
        Mechanism::ALL
            .into_iter()
            .map(|mechanism| (mechanism, mechanism.check()))
            .collect()
    }

    fn obstacle(self) -> Option<String> {
        match self {
            Mechanism::Flag => None,
            Mechanism::Tsc if has_steady_tsc() => None,
            Mechanism::Tsc => Some(
                "the time-stamp counter is not steady: neither the CPU (CPUID 8000_0007h, EDX bit 8) nor the kernel (available_clocksource) says so"
                    .into(),
            ),
            Mechanism::Signal => signal_handler::obstacle(),
            Mechanism::Uintr => Some(no_user_interrupts()),
        }
    }
}

/// User interrupts need a CPU that has them and a kernel that lets programs use them. Intel's patched kernel does, and shows the CPU's flag.
/// This build does not send them on any machine yet.
fn no_user_interrupts() -> String {
    if !has_user_interrupts() {
        return "the CPU has no user interrupts (CPUID 7, EDX bit 5)".into();
    }
    let cpus = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    if cpus.split_ascii_whitespace().any(|flag| flag == "uintr") {
        "CPU and kernel have user interrupts, but this build of Headway does not send them".into()
    } else {
        "the CPU has user interrupts, but this kernel does not give them to programs".into()
    }
}

impl fmt::Display for Mechanism {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.pad(self.name())
    }
}

impl FromStr for Mechanism {
    type Err = UnknownMechanism;

    fn from_str(name: &str) -> Result<Mechanism, UnknownMechanism> {
        Mechanism::ALL
            .into_iter()
            .find(|mechanism| mechanism.name() == name)
            .ok_or_else(|| UnknownMechanism(name.into()))
    }
}

/// No mechanism has that name.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error("no way to preempt is called {0:?}; there are flag, tsc, signal and uintr")]
pub struct UnknownMechanism(String);

headway_words::debug_is_display!(UnknownMechanism);

/// A mechanism cannot be used here.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error("preemption by {mechanism} is not available: {why}; {}", alternatives(*mechanism))]
pub struct Unavailable {
    /// The mechanism.
    pub mechanism: Mechanism,
    /// The reason.
    pub why: String,
}

headway_words::debug_is_display!(Unavailable);

fn alternatives(to: Mechanism) -> String {
    let others = Mechanism::ALL
        .into_iter()
        .filter(|other| *other != to && other.obstacle().is_none());
    let names: Vec<_> = others.map(Mechanism::name).collect();
    format!("available are {}", names.join(", "))
}

/// Interrupts one thread. The thread makes it, and reports the beginning of every slice to it.
pub trait Preempter {
    /// Its mechanism.
    fn mechanism(&self) -> Mechanism;

    /// Begins a slice of an assignment that ends at `deadline`, a reading of the time-stamp counter. `epoch` is as in [`Attached::begin`]. Only
    /// a thread that reads the clock itself uses `deadline`; otherwise the asking thread keeps the time.
    fn begin(&self, epoch: u64, deadline: u64);

    /// The handle by which another thread asks this one to yield; none for a thread that reads the clock itself.
    fn asker(&self) -> Option<Asker>;
}

/// Asks a thread to yield, by its mechanism. Keeps the thread [attached](Attached), as a [`YieldFlag`] does.
#[derive(Debug, Clone)]
pub struct Asker {
    pub(crate) flag: YieldFlag,
    /// The thread that receives a signal, if the mechanism sends one.
    pub(crate) thread: Option<libc::pid_t>,
}

impl Asker {
    /// Asks the assignment of that epoch to yield. No effect when it is over.
    #[inline]
    pub fn ask(&self, epoch: u64) {
        self.ask_with(epoch, 0);
    }

    /// As [`ask`](Self::ask), with a message: see [`YieldFlag::raise_with`].
    #[inline]
    pub fn ask_with(&self, epoch: u64, message: u64) {
        self.flag.raise_with(epoch, message);
        if let Some(thread) = self.thread {
            signal_handler::send(thread);
        }
    }
}

/// [`Mechanism::Flag`].
#[derive(Debug)]
pub struct ByFlag<'a>(&'a Attached);

impl<'a> ByFlag<'a> {
    /// The thread's probes read its flag.
    pub fn new(thread: &'a Attached) -> Self {
        ByFlag(thread)
    }
}

impl Preempter for ByFlag<'_> {
    fn mechanism(&self) -> Mechanism {
        Mechanism::Flag
    }

    #[inline]
    fn begin(&self, epoch: u64, _: u64) {
        self.0.begin(epoch);
    }

    fn asker(&self) -> Option<Asker> {
        Some(Asker {
            flag: self.0.flag(),
            thread: None,
        })
    }
}

/// [`Mechanism::Tsc`].
#[derive(Debug)]
pub struct ByClock<'a>(&'a Attached);

impl<'a> ByClock<'a> {
    /// The thread's probes read the clock until this value is dropped.
    ///
    /// # Errors
    /// The time-stamp counter is not usable.
    pub fn new(thread: &'a Attached) -> Result<Self, Unavailable> {
        Mechanism::Tsc.check()?;
        thread.self_timed(true);
        Ok(ByClock(thread))
    }
}

impl Drop for ByClock<'_> {
    fn drop(&mut self) {
        self.0.self_timed(false);
    }
}

impl Preempter for ByClock<'_> {
    fn mechanism(&self) -> Mechanism {
        Mechanism::Tsc
    }

    #[inline]
    fn begin(&self, epoch: u64, deadline: u64) {
        self.0.begin(epoch);
        self.0.set_deadline(deadline);
    }

    fn asker(&self) -> Option<Asker> {
        None
    }
}
