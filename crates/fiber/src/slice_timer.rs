//! A timer of the kernel's that raises a self-timed thread's flag when its slice is about to end. Until then the flag is down, and a probe is one
//! comparison.
//!
//! The timer's signal costs the thread microseconds, on a virtual machine tens of them: a system call, an interrupt, the signal's handler. Probes that
//! read the clock cost about half of the time ([`PROBES_SHARE`]). So the timer is worth it for slices that are longer than its signal takes, by that factor.
//! What it takes on this machine is measured once. The handler only stores to the thread's own line; the probes' readings end the slice, as without it.
#![expect(unsafe_code, reason = "a timer of the kernel's and its signal")]

use std::cell::Cell;
use std::sync::OnceLock;
use std::time::Duration;
use std::{hint, io, mem, ptr};

use headway_machine::Clock;

use crate::abi::words::{NEVER, SELF_TIMED};
use crate::local;
use crate::signal_handler::{HandlerStack, SIGNAL, install, is_installed, slice_timer_value};

/// Probes that read the clock take one part in so many of a handler's time: libraries pay between a sixth and all of it, half on average
/// (docs/preemption-overhead.md).
const PROBES_SHARE: u64 = 2;

/// The timers set to find out what one takes.
const TRIALS: usize = 9;
/// For how long each is set. Longer than setting it takes anywhere.
const TRIAL_NS: u64 = 100_000;
/// A trial that took longer was disturbed, or the timer does not work here.
const MOST_TRIAL_NS: u64 = 50_000_000;

/// What a timer takes in virtual time, short enough to be worth it for the slices of a [world](crate::checkpoint_at).
const VIRTUAL_COST: TimerCost = TimerCost {
    stolen_ns: 1_000,
    late_ns: 500,
};

/// What a timer takes on this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimerCost {
    /// The time that one takes from its thread, from its setting to the handler's end, ns: the median of some trials.
    pub stolen_ns: u64,
    /// How late its handler has raised the flag, ns: the latest of most trials.
    pub late_ns: u64,
}

impl TimerCost {
    /// The shortest time for which a timer costs less than probes that read the clock, ns.
    pub const fn worth_ns(self) -> u64 {
        let least_ns = self.stolen_ns * PROBES_SHARE;
        if least_ns > 2 * self.late_ns {
            least_ns
        } else {
            2 * self.late_ns
        }
    }

    /// What a timer takes here, measured by the first caller.
    ///
    /// # Errors
    /// [`NoTimer`]: the machine or the program does not let a timer raise flags.
    pub fn measured() -> Result<TimerCost, NoTimer> {
        static COST: OnceLock<Result<TimerCost, NoTimer>> = OnceLock::new();
        COST.get_or_init(|| KernelTimer::create()?.measure())
            .clone()
    }
}

/// Why no timer can raise flags here. Probes read the clock then.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error("no timer can raise a flag: {0}")]
pub struct NoTimer(String);

headway_words::debug_is_display!(NoTimer);

/// A timer of the calling thread, and when it is worth its cost.
#[derive(Debug)]
pub(crate) struct SliceTimer {
    source: TimerSource,
    /// The shortest time for which it is set, ticks.
    worth_ticks: u64,
    /// How much before a slice's end it is to raise the flag, ticks.
    lead_ticks: u64,
    clock: Clock,
}

impl SliceTimer {
    /// For the calling thread, whose deadlines are readings of this clock.
    ///
    /// # Errors
    /// [`NoTimer`]: none can be had.
    pub(crate) fn new(clock: Clock) -> Result<SliceTimer, NoTimer> {
        let (source, cost) = if clock.reader().is_some() {
            (TimerSource::Probes, VIRTUAL_COST)
        } else {
            let cost = TimerCost::measured()?;
            (TimerSource::Kernel(KernelTimer::create()?), cost)
        };
        Ok(SliceTimer {
            source,
            worth_ticks: clock.ticks_in(cost.worth_ns()),
            lead_ticks: clock.ticks_in(cost.late_ns),
            clock,
        })
    }

    /// The shortest time for which it is worth its cost, ticks.
    #[inline]
    pub(crate) fn worth_ticks(&self) -> u64 {
        self.worth_ticks
    }

    /// Puts the thread's flag down until a slice ends that goes on for `left_ticks` from now on, at least [`worth_ticks`](Self::worth_ticks).
    #[cold]
    pub(crate) fn lower_for(&self, left_ticks: u64) {
        let after_ticks = left_ticks - self.lead_ticks;
        // Down first: the timer may raise it at once.
        local::lower_self_timed();
        match &self.source {
            TimerSource::Kernel(timer) => {
                // Without its handler the signal would raise nothing.
                if !is_installed() || timer.set(self.clock.ns_in(after_ticks)).is_err() {
                    local::raise_self_timed();
                }
            }
            TimerSource::Probes => RAISE_AT.set(self.clock.ticks() + after_ticks),
        }
    }
}

/// Who raises the flag when a timer's time has come.
#[derive(Debug)]
enum TimerSource {
    Kernel(KernelTimer),
    /// Virtual time passes between probes only, so the next [probe](raise_if_due) does.
    Probes,
}

thread_local! {
    /// When a virtual timer raises the flag.
    static RAISE_AT: Cell<u64> = const { Cell::new(NEVER) };
}

/// In virtual time: raises the flag of the calling thread if its timer's time has come.
pub(crate) fn raise_if_due(ticks: u64) {
    if ticks >= RAISE_AT.get() {
        RAISE_AT.set(NEVER);
        local::raise_self_timed();
    }
}

/// A timer that sends its thread the [signal](SIGNAL). Children do not inherit it, and a program that replaces this one has none.
#[derive(Debug)]
struct KernelTimer(libc::timer_t);

impl KernelTimer {
    /// For the calling thread.
    fn create() -> Result<KernelTimer, NoTimer> {
        install(HandlerStack::Any).map_err(NoTimer)?;
        // SAFETY: a zeroed structure is valid, and so are the addresses during the call.
        unsafe {
            let mut event: libc::sigevent = mem::zeroed();
            event.sigev_notify = libc::SIGEV_THREAD_ID;
            event.sigev_signo = SIGNAL;
            event.sigev_value.sival_ptr = slice_timer_value();
            event.sigev_notify_thread_id = libc::gettid();
            let mut timer: libc::timer_t = ptr::null_mut();
            if libc::timer_create(libc::CLOCK_MONOTONIC, &raw mut event, &raw mut timer) != 0 {
                let why = io::Error::last_os_error();
                return Err(NoTimer(format!("timer_create: {why}")));
            }
            Ok(KernelTimer(timer))
        }
    }

    /// Raises the thread's flag in so long, once. Replaces an earlier setting.
    fn set(&self, after_ns: u64) -> io::Result<()> {
        let after = Duration::from_nanos(after_ns.max(1));
        let once = libc::itimerspec {
            it_interval: libc::timespec {
                tv_sec: 0,
                tv_nsec: 0,
            },
            it_value: libc::timespec {
                tv_sec: after.as_secs() as libc::time_t,
                tv_nsec: libc::c_long::from(after.subsec_nanos()),
            },
        };
        // SAFETY: this timer, and an address that is valid during the call.
        let set = unsafe { libc::timer_settime(self.0, 0, &raw const once, ptr::null_mut()) };
        if set == 0 {
            Ok(())
        } else {
            Err(io::Error::last_os_error())
        }
    }

    /// Measures what it takes, on the calling thread, its own.
    fn measure(&self) -> Result<TimerCost, NoTimer> {
        let resting = local::resting();
        local::rest_at(SELF_TIMED);
        let trials: Result<Vec<_>, _> = (0..TRIALS).map(|_| self.trial()).collect();
        local::rest_at(resting);
        let trials = trials?;
        let of = |pick: fn(&TimerCost) -> u64| {
            let mut all: Vec<u64> = trials.iter().map(pick).collect();
            all.sort_unstable();
            all
        };
        Ok(TimerCost {
            stolen_ns: of(|trial| trial.stolen_ns)[TRIALS / 2],
            late_ns: of(|trial| trial.late_ns)[TRIALS - 1 - TRIALS / 4],
        })
    }

    /// Sets the timer once and watches the clock until the flag is up.
    fn trial(&self) -> Result<TimerCost, NoTimer> {
        let clock = Clock::global();
        local::lower_self_timed();
        let start_ns = clock.now_ns();
        let set = self.set(TRIAL_NS);
        set.map_err(|why| NoTimer(format!("timer_settime: {why}")))?;
        let set_ns = clock.now_ns() - start_ns;
        let (mut last_ns, mut gap_ns) = (start_ns + set_ns, 0);
        loop {
            let is_up = local::asked() != 0;
            let now_ns = clock.now_ns();
            gap_ns = gap_ns.max(now_ns - last_ns);
            last_ns = now_ns;
            if is_up {
                break;
            }
            if now_ns - start_ns > MOST_TRIAL_NS {
                return Err(NoTimer("a timer's signal did not come".into()));
            }
            hint::spin_loop();
        }
        Ok(TimerCost {
            stolen_ns: set_ns + gap_ns,
            late_ns: (last_ns - start_ns).saturating_sub(TRIAL_NS),
        })
    }
}

impl Drop for KernelTimer {
    fn drop(&mut self) {
        // SAFETY: this timer, for the last time. A signal that is on its way has come when the call returns.
        unsafe { libc::timer_delete(self.0) };
    }
}
