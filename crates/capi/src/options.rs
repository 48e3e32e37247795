//! A server's options: a struct of which every field but the size may stay 0.
#![expect(unsafe_code, reason = "reads structs of C programs")]

use std::ffi::c_char;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::available_parallelism;
use std::{ptr, slice};

use headway_host::client::ClientOptions;
use headway_kthread::{AtSignal, CoreSource};
use headway_net::udp::Steering;
use headway_policy::{self as policy, MAX_CLASSES, Resume};
use headway_runtime::{self as runtime, Builder, ControlPlace, Idle, Layout, Pin};

use crate::granted::HostNames;
use crate::status::{CallFailure, HEADWAY_E_ADDRESS};
use crate::text;
use crate::tuning::{HeadwayLayoutCosts, tuned};
use crate::versioned::{self, Versioned};

/// Anywhere for handle_request at probes; at the worker that began it for serve, and for signals.
pub const HEADWAY_RESUME_DEFAULT: u32 = 0;
/// An interrupted request resumes at any worker with time for it, as in the papers, with what a thread has: its thread-local variables, errno, the locks
/// that it holds. See docs/c-api.md, "Threads".
pub const HEADWAY_RESUME_ANYWHERE: u32 = 1;
/// An interrupted request resumes at the worker that began it.
pub const HEADWAY_RESUME_OWN_WORKER: u32 = 2;

/// A request that may be interrupted has what a thread has.
pub const HEADWAY_FIBERS_OF_THREADS: u32 = 0;
/// It has a stack alone, which is faster: its code, and all that it calls, keeps nothing of its thread over a probe. See docs/c-api.md, "Threads".
pub const HEADWAY_FIBERS_PLAIN: u32 = 1;

/// Requests are interrupted at probes: those of the compiler pass, and headway_checkpoint().
pub const HEADWAY_PREEMPT_PROBES: u32 = 0;
/// The dispatcher interrupts by SIGURG, at any instruction, for code without probes. That costs microseconds at both ends, and needs
/// HEADWAY_RESUME_OWN_WORKER; docs/c-api.md, "Interrupting by signal", says which code may be interrupted this way.
pub const HEADWAY_PREEMPT_SIGNAL: u32 = 1;
/// As HEADWAY_PREEMPT_PROBES, but each probe reads the clock, and looks whether the dispatcher wants the request to yield once its quantum is over. Nothing
/// crosses from core to core while a quantum lasts. Not under policies that interrupt for a more urgent request (srpt, on-blocked) with HEADWAY_LAYOUT_DEDICATED.
pub const HEADWAY_PREEMPT_CLOCK: u32 = 2;

/// Requests are interrupted wherever they can be.
pub const HEADWAY_FEEDBACK_OFF: u32 = 0;
/// Requests are interrupted only between headway_feedback_start() and headway_feedback_finished(). Requests without these calls count as short and run
/// to their end.
pub const HEADWAY_FEEDBACK_HEEDED: u32 = 1;

/// The dispatcher has a thread of its own if there is a core for it beside the workers', unless workers that take turns carry a quarter more by
/// headway_options.layout_costs; and if it interrupts by signals. Else as HEADWAY_LAYOUT_INLINE.
pub const HEADWAY_LAYOUT_AUTO: u32 = 0;
/// The dispatcher has a thread of its own.
pub const HEADWAY_LAYOUT_DEDICATED: u32 = 1;
/// The workers take turns as the dispatcher, and each interrupts its own requests. Not with HEADWAY_PREEMPT_SIGNAL where the policy interrupts.
pub const HEADWAY_LAYOUT_INLINE: u32 = 2;

/// One core per thread if there are enough, else none.
pub const HEADWAY_PIN_AUTO: u32 = 0;
/// Threads are not bound to cores.
pub const HEADWAY_PIN_OFF: u32 = 1;

/// Threads without work spin for as long as waking them would take, then sleep.
pub const HEADWAY_IDLE_AUTO: u32 = 0;
/// They never sleep: the shortest reaction, and cores that are always busy.
pub const HEADWAY_IDLE_SPIN: u32 = 1;
/// They sleep at once.
pub const HEADWAY_IDLE_PARK: u32 = 2;

/// The most classes a server may have.
pub const HEADWAY_MAX_CLASSES: usize = 255;
const _: () = assert!(HEADWAY_MAX_CLASSES == MAX_CLASSES);

/// A class of requests.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct HeadwayClass {
    /// Its name in reports: no other class's, and not "unknown". Null for "class-0" and so on.
    pub name: *const c_char,
    /// Its expected service time in ns, by which policies that do not measure order the classes; 0 if unknown.
    pub mean_ns: u64,
}

/// The class is long if its service time is at least ten times the shortest one's.
pub const HEADWAY_CLASS_AUTO: u32 = 0;
/// The class is not long.
pub const HEADWAY_CLASS_SHORT: u32 = 1;
/// The class is long.
pub const HEADWAY_CLASS_LONG: u32 = 2;

/// Further hints about a class for policies. All fields may stay 0.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct HeadwayClassHint {
    /// The class's latency target in the server, ns, by which edf and shinjuku-mq rank requests; 0 for several of its service times.
    pub slo_ns: u64,
    /// Whether policies that treat long requests apart count the class among them: HEADWAY_CLASS_...
    pub length: u32,
    /// 0.
    pub reserved: u32,
}

/// A server's options. Begin with `struct headway_options options = {.size = sizeof options};`: 0 is each field's default.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct HeadwayOptions {
    /// sizeof(struct headway_options).
    pub size: usize,
    /// The policy, as in "concord,q=5us"; null for "darc". docs/policies.md lists them.
    pub policy: *const c_char,
    /// The address, as in "udp://127.0.0.1:9000"; port 0 lets the system choose. Null for "udp://127.0.0.1:0".
    pub listen: *const c_char,
    /// The classes, in the order of their numbers; requests of any other are of class class_count, "unknown".
    pub classes: *const HeadwayClass,
    /// The number of classes, at most HEADWAY_MAX_CLASSES.
    pub class_count: usize,
    /// The number of workers; 0 for 1.
    pub workers: u32,
    /// Where interrupted requests resume: HEADWAY_RESUME_...
    pub resume: u32,
    /// Which threads run the dispatcher: HEADWAY_LAYOUT_...
    pub layout: u32,
    /// Whether threads are bound to cores: HEADWAY_PIN_...
    pub pin: u32,
    /// The behaviour of threads without work: HEADWAY_IDLE_...
    pub idle: u32,
    /// The mechanism that interrupts requests, if the policy does so: HEADWAY_PREEMPT_...
    pub preempt: u32,
    /// The most requests that wait in one queue; further ones are refused. 0 for 1024.
    pub queue_limit: usize,
    /// The size of a request's stack if the policy interrupts requests, and of each loop's (headway_service.serve); 0 for 256 KiB. Only touched pages take
    /// memory.
    pub stack_bytes: usize,
    /// The seed of the policy's own randomness.
    pub seed: u64,
    /// Whether requests state where they may be interrupted: HEADWAY_FEEDBACK_...
    pub feedback: u32,
    /// What a request has that may be interrupted: HEADWAY_FIBERS_...
    pub fibers: u32,
    /// Hints about the classes: one element per class, in the same order; null for none.
    pub class_hints: *const HeadwayClassHint,
    /// The key by which the kernel chooses a request's worker under a policy without a dispatcher: "flow", "random", "class", or "byte=N" of
    /// the header; null for "flow".
    pub steer: *const c_char,
    /// The name under which the server registers with a host's daemon, which grants its workers their cores (docs/host-daemon.md); null for none. Then
    /// 0 workers are one for each core that it may have, and SIGUSR1 is the daemon's.
    pub application: *const c_char,
    /// The daemon's socket; null for /run/headway/host.sock.
    pub host_socket: *const c_char,
    /// Where a thread of its own answers `headway ctl` while the server runs (docs/ctl.md): the path of a socket, or "auto" for the path where `headway ctl`
    /// looks for the server's port; null for nowhere.
    pub control: *const c_char,
    /// The most threads of the process that lend requests their state (HEADWAY_FIBERS_OF_THREADS); 0 for as many as requests are suspended at once. A request that could be
    /// interrupted and finds none runs to its end.
    pub most_lent_threads: usize,
    /// What the layouts cost on this machine, for HEADWAY_LAYOUT_AUTO; null for what `headway calibrate` measured elsewhere.
    pub layout_costs: *const HeadwayLayoutCosts,
    /// How often a busy worker looks for arrivals, ns; 0 for 25 000 where a look is a system call, else 5 000. Refused where no worker looks.
    pub look_every_ns: u64,
    /// Where Prometheus and browsers ask while the server runs, as in "127.0.0.1:9090"; null for nowhere. Who reaches the address may read.
    pub metrics: *const c_char,
}

// SAFETY: as asked: numbers and pointers, the size first.
unsafe impl Versioned for HeadwayOptions {
    const NAME: &'static str = "headway_options";
}

/// The parts of a server except its service.
pub(crate) struct ServerSetup {
    pub(crate) builder: Builder,
    pub(crate) listen: SocketAddr,
    /// `None` if the program chose none.
    pub(crate) steer: Option<Steering>,
    pub(crate) roams: bool,
    pub(crate) plain_fibers: bool,
    pub(crate) by_signal: bool,
    /// 0 for the default.
    pub(crate) stack_bytes: usize,
    host: Option<HostNames>,
    /// The number of workers that the program chose; 0 for the default.
    workers: usize,
}

impl ServerSetup {
    /// Reads the program's options.
    ///
    /// # Safety
    /// `options` is null or points to as many readable bytes as its size says; what it points to is valid for this call.
    pub(crate) unsafe fn read(options: *const HeadwayOptions) -> Result<Self, CallFailure> {
        // SAFETY: the caller's promise.
        let (options, policy, listen, steer, control, classes, host) = unsafe {
            let options = versioned::read(options)?;
            let policy = text::optional(options.policy, "headway_options.policy")?;
            let listen = text::optional(options.listen, "headway_options.listen")?;
            let steer = text::optional(options.steer, "headway_options.steer")?;
            let host = HostNames::read(options.application, options.host_socket)?;
            let control = text::optional(options.control, "headway_options.control")?;
            (
                options,
                policy,
                listen,
                steer,
                control,
                read_classes(&options)?,
                host,
            )
        };
        let mut builder = runtime::Server::builder()
            .policy(policy.unwrap_or("darc"))
            .classes(classes)
            .workers(options.workers.max(1) as usize)
            .layout(layout(options.layout)?)
            .pin(pin(options.pin)?)
            .idle(idle(options.idle)?)
            .by_feedback(feedback(options.feedback)?)
            .seed(options.seed)
            .control(place(control));
        if options.queue_limit > 0 {
            builder = builder.queue_limit(options.queue_limit);
        }
        if options.stack_bytes > 0 {
            builder = builder.stack_bytes(options.stack_bytes);
        }
        if options.most_lent_threads > 0 {
            builder = builder.most_lent_threads(options.most_lent_threads);
        }
        // SAFETY: the caller's promise.
        builder = unsafe {
            let (costs, metrics) = (options.layout_costs, options.metrics);
            tuned(builder, costs, options.look_every_ns, metrics)
        }?;
        let plain_fibers = plain_fibers(options.fibers)?;
        let (resume, by_signal) = (resume(options.resume)?, by_signal(options.preempt)?);
        if options.preempt == HEADWAY_PREEMPT_CLOCK {
            builder = builder.interrupt_by_clock();
        }
        let roams = resume == Some(Resume::Anywhere);
        if let Some(resume) = resume {
            builder = builder.resume(resume);
        }
        if roams && by_signal {
            return Err(CallFailure::argument(
                "headway_options.preempt is HEADWAY_PREEMPT_SIGNAL, which needs resume to be HEADWAY_RESUME_OWN_WORKER or left out: code \
                 interrupted between two probes may hold addresses of its thread",
            ));
        }
        Ok(Self {
            builder,
            steer: steer.map(steering).transpose()?,
            listen: address(listen.unwrap_or("udp://127.0.0.1:0"))?,
            roams,
            plain_fibers,
            by_signal,
            stack_bytes: options.stack_bytes,
            host,
            workers: options.workers as usize,
        })
    }

    /// Registers with a host's daemon, if the program names an application. This starts a thread.
    pub(crate) fn register(&mut self) -> Result<(), CallFailure> {
        let Some(host) = self.host.take() else {
            return Ok(());
        };
        let most = match self.workers {
            0 => available_parallelism().map_or(1, usize::from),
            workers => workers,
        };
        let client = host.register(&ClientOptions {
            // Workers look at their orders between requests, and at probes within.
            probes: true,
            at_signal: AtSignal::GOES_ON,
            ..ClientOptions::new(host.application(), most)
        })?;
        let workers = match self.workers {
            0 => client.kthreads(),
            workers => workers,
        };
        let builder = std::mem::take(&mut self.builder);
        self.builder = builder.workers(workers).cores_from(Arc::new(client));
        Ok(())
    }
}

/// # Safety
/// As [`ServerSetup::read`].
unsafe fn read_classes(
    options: &HeadwayOptions,
) -> Result<Vec<runtime::DeclaredClass>, CallFailure> {
    let count = options.class_count;
    if count > 0 && options.classes.is_null() {
        return Err(CallFailure::argument(format!(
            "headway_options.class_count is {count}, and classes is null"
        )));
    }
    // A mistaken count would make the reads below run past the array.
    if count > MAX_CLASSES {
        return Err(CallFailure::argument(format!(
            "headway_options.class_count is {count}: a server has at most {MAX_CLASSES} classes"
        )));
    }
    let classes = match count {
        0 => ptr::slice_from_raw_parts(ptr::dangling(), 0),
        _ => ptr::slice_from_raw_parts(options.classes, count),
    };
    let mut read = Vec::new();
    // SAFETY: the caller's promise.
    let hints = unsafe { read_hints(options) }?;
    // SAFETY: dangling only if empty; else the caller's promise.
    for (index, class) in unsafe { &*classes }.iter().enumerate() {
        // SAFETY: the caller's promise.
        let name = unsafe { text::optional(class.name, "headway_class.name") }?;
        read.push(runtime::DeclaredClass {
            name: name.map_or_else(|| format!("class-{index}"), str::to_owned),
            hint: policy::ClassHint {
                mean_ns: class.mean_ns as f64,
                share: 1.0 / count as f64,
                ..hints.get(index).copied().unwrap_or_default()
            },
        });
    }
    Ok(read)
}

/// Each class's SLO and length; empty if the program gives no hints.
///
/// # Safety
/// As [`ServerSetup::read`].
unsafe fn read_hints(options: &HeadwayOptions) -> Result<Vec<policy::ClassHint>, CallFailure> {
    if options.class_hints.is_null() {
        return Ok(Vec::new());
    }
    // SAFETY: the caller's promise.
    let hints = unsafe { slice::from_raw_parts(options.class_hints, options.class_count) };
    hints
        .iter()
        .map(|hint| {
            let long = match hint.length {
                HEADWAY_CLASS_AUTO => None,
                HEADWAY_CLASS_SHORT => Some(false),
                HEADWAY_CLASS_LONG => Some(true),
                other => return Err(unknown("class_hints.length", other)),
            };
            if hint.reserved != 0 {
                return Err(unknown("class_hints.reserved", hint.reserved));
            }
            Ok(policy::ClassHint {
                long,
                slo_ns: (hint.slo_ns > 0).then_some(hint.slo_ns),
                ..policy::ClassHint::default()
            })
        })
        .collect()
}

fn address(text: &str) -> Result<SocketAddr, CallFailure> {
    let plain = text.strip_prefix("udp://").unwrap_or(text);
    plain.parse().map_err(|_| {
        CallFailure::new(
            HEADWAY_E_ADDRESS,
            format!("headway_options.listen is '{text}': expected udp://ADDRESS:PORT with a numeric address"),
        )
    })
}

pub(crate) fn place(control: Option<&str>) -> ControlPlace {
    match control {
        None => ControlPlace::Off,
        Some("auto") => ControlPlace::Usual,
        Some(path) => path.into(),
    }
}

fn steering(word: &str) -> Result<Steering, CallFailure> {
    word.parse()
        .map_err(|error| CallFailure::argument(format!("headway_options.steer: {error}")))
}

fn plain_fibers(code: u32) -> Result<bool, CallFailure> {
    match code {
        HEADWAY_FIBERS_OF_THREADS => Ok(false),
        HEADWAY_FIBERS_PLAIN => Ok(true),
        other => Err(unknown("fibers", other)),
    }
}

fn resume(code: u32) -> Result<Option<Resume>, CallFailure> {
    match code {
        HEADWAY_RESUME_DEFAULT => Ok(None),
        HEADWAY_RESUME_ANYWHERE => Ok(Some(Resume::Anywhere)),
        HEADWAY_RESUME_OWN_WORKER => Ok(Some(Resume::OwnWorker)),
        other => Err(unknown("resume", other)),
    }
}

fn feedback(code: u32) -> Result<bool, CallFailure> {
    match code {
        HEADWAY_FEEDBACK_OFF => Ok(false),
        HEADWAY_FEEDBACK_HEEDED => Ok(true),
        other => Err(unknown("feedback", other)),
    }
}

fn by_signal(code: u32) -> Result<bool, CallFailure> {
    match code {
        HEADWAY_PREEMPT_PROBES | HEADWAY_PREEMPT_CLOCK => Ok(false),
        HEADWAY_PREEMPT_SIGNAL => Ok(true),
        other => Err(unknown("preempt", other)),
    }
}

fn layout(code: u32) -> Result<Layout, CallFailure> {
    match code {
        HEADWAY_LAYOUT_AUTO => Ok(Layout::Auto),
        HEADWAY_LAYOUT_DEDICATED => Ok(Layout::Dedicated),
        HEADWAY_LAYOUT_INLINE => Ok(Layout::Inline),
        other => Err(unknown("layout", other)),
    }
}

fn pin(code: u32) -> Result<Pin, CallFailure> {
    match code {
        HEADWAY_PIN_AUTO => Ok(Pin::Auto),
        HEADWAY_PIN_OFF => Ok(Pin::Off),
        other => Err(unknown("pin", other)),
    }
}

fn idle(code: u32) -> Result<Idle, CallFailure> {
    match code {
        HEADWAY_IDLE_AUTO => Ok(Idle::default()),
        HEADWAY_IDLE_SPIN => Ok(Idle::Spin),
        HEADWAY_IDLE_PARK => Ok(Idle::Park),
        other => Err(unknown("idle", other)),
    }
}

fn unknown(field: &str, code: u32) -> CallFailure {
    CallFailure::argument(format!("headway_options.{field} has no value {code}"))
}
