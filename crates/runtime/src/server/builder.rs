//! Choosing what a server is.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use headway_fiber::Mechanism;
use headway_kthread::CoreSource;
use headway_machine::Clock;
use headway_net::classify::Classifier;
use headway_net::datapath::Datapath;
use headway_net::udp::Steering;
use headway_policy::Resume;
use headway_policy::server::systems::ServerSpec;
use headway_policy::spec::SpecError;

use super::Server;
use super::source::{Custom, NoSource, Udp};
use crate::engine::class::DeclaredClass;
use crate::engine::layout::Layout;
use crate::engine::layout_costs::LayoutCosts;
use crate::engine::settings::ServerSettings;
use crate::pull::{Pull, PullService};
use crate::request::classifier::ServerClassifier;
use crate::request::service::{Call, Service};
use crate::threads::hosted::ServerCores;
use crate::threads::park::Idle;
use crate::threads::server_threads::Pin;

/// For a stop, unless chosen otherwise.
const DRAIN: Duration = Duration::from_secs(10);

/// Stands for the service that a [`Builder`] has not been given yet: [`service`](Builder::service) and [`handler`](Builder::handler) do.
#[derive(Clone, Copy, Debug)]
pub struct NoService;

/// What is to be chosen before a server starts. A service and a datapath must be; the rest has defaults.
///
/// ```
/// use headway_runtime::{Builder, Server};
/// use std::time::Duration;
///
/// fn configured() -> Builder {
///     Server::builder().class("get", Duration::from_micros(2)).workers(2)
/// }
/// let server = configured()
///     .handler(|call| call.reply(b"pong"))
///     .listen_udp("127.0.0.1:0".parse().unwrap())
///     .start()?;
/// # drop(server);
/// # Ok::<(), headway_runtime::StartError>(())
/// ```
///
/// Without a service it does not compile, and the compiler says what is missing:
///
/// ```compile_fail
/// # use headway_runtime::Server;
/// Server::builder().listen_udp("127.0.0.1:0".parse().unwrap()).start()?;
/// # Ok::<(), headway_runtime::StartError>(())
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct Builder<S = NoService, D = NoSource> {
    pub(super) service: S,
    pub(super) datapath: D,
    pub(super) classifier: ServerClassifier,
    pub(super) policy: Result<ServerSpec, SpecError>,
    pub(super) settings: ServerSettings,
    /// A class that was declared to take no time.
    pub(super) timeless: Option<String>,
    pub(super) idle: Idle,
    pub(super) drain: Duration,
    /// Whether the rack's control plane says what the server runs, in place of a policy.
    pub(super) directed: bool,
    pub(super) cores: Option<ServerCores>,
    /// The process's, unless given.
    pub(super) clock: Option<Clock>,
    #[cfg(feature = "ops")]
    pub(super) doors: super::doors::chosen::ChosenDoors,
}

/// What of a builder has a type of its own, changed by [`Builder::with`].
pub(super) struct BuilderParts<S, D> {
    pub(super) service: S,
    pub(super) datapath: D,
}

impl Default for Builder {
    fn default() -> Self {
        Self {
            service: NoService,
            datapath: NoSource,
            classifier: ServerClassifier::default(),
            policy: "darc".parse(),
            settings: ServerSettings::default(),
            timeless: None,
            idle: Idle::default(),
            drain: DRAIN,
            directed: false,
            cores: None,
            clock: None,
            #[cfg(feature = "ops")]
            doors: super::doors::chosen::ChosenDoors::default(),
        }
    }
}

impl Server {
    /// What is to be chosen before a server starts.
    pub fn builder() -> Builder {
        Builder::default()
    }
}

impl<S, D> Builder<S, D> {
    /// How many workers, 1 to [`MAX_WORKERS`](headway_policy::MAX_WORKERS); 1 unless chosen.
    pub fn workers(mut self, workers: usize) -> Self {
        self.settings.workers = workers;
        self
    }

    /// The policy, as in `darc,delta=3`; `darc` unless chosen. Errors are told by [`start`](Self::start).
    pub fn policy(mut self, spec: &str) -> Self {
        self.policy = spec.parse();
        self
    }

    /// The policy, parsed.
    pub fn policy_spec(mut self, spec: ServerSpec) -> Self {
        self.policy = Ok(spec);
        self
    }

    /// Declares the next class, with its expected service time, more than 0, by which fixed policies order the classes.
    /// Shares of the requests are taken as equal; see [`classes`](Self::classes).
    pub fn class(mut self, name: &str, mean: Duration) -> Self {
        if mean.is_zero() {
            self.timeless.get_or_insert_with(|| name.to_owned());
        }
        self.settings.classes.push(DeclaredClass::new(name, mean));
        let share = 1.0 / self.settings.classes.len() as f64;
        self.settings
            .classes
            .iter_mut()
            .for_each(|class| class.hint.share = share);
        self
    }

    /// Declares all classes, in place of those declared before. A request of another class, or none, is UNKNOWN. Here a service time of 0 is
    /// allowed, and says that nobody knows it; times are finite and not negative, shares 0 to 1.
    pub fn classes(mut self, classes: Vec<DeclaredClass>) -> Self {
        self.settings.classes = classes;
        self.timeless = None;
        self
    }

    /// Most requests that wait in one queue of the server (one per class where the policy has typed queues), at least 1; 1024 unless chosen. What
    /// comes on top is answered as shed. [`start`](Self::start) refuses it where requests wait in the network's receive queues (`synergy`, `d-fcfs`): choose [`slots`](Self::slots) there.
    pub fn queue_limit(mut self, requests: usize) -> Self {
        self.settings.queue_limit = Some(requests);
        self
    }

    /// Buffers of 2 KiB, hence the most requests in the server at once, interrupted ones of `synergy` apart: one per worker to [`MAX_SLOTS`](headway_net::pool::MAX_SLOTS). Unless chosen, as many as the queues
    /// may hold and some more, so that one class's full queue never keeps another class out. Where fewer are chosen, queues hold no more than fits for the
    /// same reason. Several dispatchers divide them.
    pub fn slots(mut self, slots: usize) -> Self {
        self.settings.slots = Some(slots);
        self
    }

    /// Seed of the policy's own randomness.
    pub fn seed(mut self, seed: u64) -> Self {
        self.settings.seed = seed;
        self
    }

    /// What threads without work do.
    pub fn idle(mut self, idle: Idle) -> Self {
        self.idle = idle;
        self
    }

    /// Who carries the dispatcher out, or the monitor of a policy without a dispatcher that interrupts requests. [`start`](Self::start) refuses a choice
    /// under a policy that has neither.
    pub fn layout(mut self, layout: Layout) -> Self {
        self.settings.layout = layout;
        self
    }

    /// What the layouts cost on this machine, by which [`Layout::Auto`] chooses; as `headway calibrate` measured it elsewhere unless given.
    pub fn layout_costs(mut self, costs: LayoutCosts) -> Self {
        self.settings.layout_costs = costs;
        self
    }

    /// Whether threads are bound to cores.
    pub fn pin(mut self, pin: Pin) -> Self {
        self.settings.pin = pin;
        self
    }

    /// Keeps up to `most` [stalls](Server::stalls), 0 to 16 777 216; 0 unless chosen, since noting one takes a lock.
    pub fn keep_stalls(mut self, most: usize) -> Self {
        self.settings.stalls = most;
        self
    }

    /// How long a stop is to answer what was accepted, for who stops the server: [`Server::drain`] has it; 10 s unless chosen.
    pub fn drain(mut self, time: Duration) -> Self {
        self.drain = time;
        self
    }

    /// The server stands behind the switch of a rack (Pallas): it drops clones that cannot start at once, and hands requests back, as the orders say that
    /// [`Server::rack_link`] passes on. The policy stays the server's own. [`start`](Self::start) refuses a policy without a dispatcher.
    pub fn behind_switch(mut self) -> Self {
        self.settings.behind_switch = true;
        self
    }

    /// The same, and the orders also say which groups of classes the server serves on how many workers: c-FCFS for one group, DARC with the
    /// reservation given for several. Replaces the policy. Before the first order it is c-FCFS.
    pub fn directed(mut self) -> Self {
        self.settings.behind_switch = true;
        self.directed = true;
        self.policy = "c-fcfs".parse();
        self
    }

    /// An arbiter grants and revokes the workers' cores: worker `n` is kthread `n`. Workers come and go, and the policy hears of it. A request
    /// that runs when the core is revoked is interrupted where the policy interrupts, else it is finished first. Nothing is pinned here.
    /// [`start`](Self::start) refuses what needs a core that nobody could take away.
    pub fn cores_from(mut self, source: Arc<dyn CoreSource>) -> Self {
        self.cores = Some(ServerCores(source));
        self
    }

    /// Keeps a [journal](crate::Observer::take_journal) with room for so many requests of each worker that nobody has read yet; none unless chosen. A
    /// request costs 24 bytes of it, and a few nanoseconds. At most 4 194 304.
    pub fn journal(mut self, requests: usize) -> Self {
        self.settings.journal = requests;
        self
    }

    /// Bytes of the stack that a request is given where the policy interrupts requests; 256 KiB unless chosen, at most
    /// [`MAX_STACK_BYTES`](headway_fiber::MAX_STACK_BYTES); less than [`MIN_STACK_BYTES`](headway_fiber::MIN_STACK_BYTES) is rounded up. Only what is touched takes memory.
    pub fn stack_bytes(mut self, bytes: usize) -> Self {
        self.settings.stack_bytes = bytes;
        self
    }

    /// How often a worker looks for arrivals while its request runs, where the workers of a policy that interrupts take turns as the
    /// dispatcher ([`Layout::Inline`]) or at the receive queue (`tardis`), or have a receive queue each (`synergy`, `tiny-quanta`). Every 5 µs unless chosen, every 25 µs
    /// where a look is a system call: one in vain takes 0.8 µs there. With a receive queue each, and where a look is none, at the end of every slice. From 1 µs to 1 s; [`start`](Self::start) refuses
    /// another, and any where nobody looks: under a policy that interrupts nothing, or where a dispatcher has a thread.
    pub fn look_every(mut self, interval: Duration) -> Self {
        self.settings.look_ns = Some(interval.as_nanos().try_into().unwrap_or(u64::MAX));
        self
    }

    /// Interrupts requests only where their handlers say that they are long ([`Call::long`](crate::Call::long)), as SYNERGY does: who says nothing is run to its end,
    /// whatever its quantum. Quanta are counted from where the request began, under `synergy` from where it first says so. A request that waits for what another does must be in a
    /// long part: else it keeps its worker, and the other may be behind it. Off unless chosen: then all are interrupted alike. [`start`](Self::start) refuses it
    /// under a policy that interrupts nothing.
    pub fn by_feedback(mut self, heard: bool) -> Self {
        self.settings.feedback = heard;
        self
    }

    /// Has the dispatcher set flags that the handlers' probes look at, which it does unless another mechanism is chosen. [`start`](Self::start) refuses this
    /// choice, and the two that follow, under a policy without a dispatcher that interrupts.
    pub fn interrupt_by_flag(mut self) -> Self {
        self.settings.mechanism = Some(Mechanism::Flag);
        self
    }

    /// Has the handlers' probes read the clock, instead of a flag that the dispatcher sets: a request's quantum ends by its worker's own clock, and the
    /// worker then looks whether the dispatcher wants it to yield. Nothing crosses from core to core while a quantum lasts; in return a probe
    /// takes as long as a reading of the clock. Where the workers take turns as the dispatcher they do so anyway. Policies that interrupt when a more urgent request
    /// comes (`srpt`, `on-blocked`) need flags beside a dispatcher's thread: [`start`](Self::start) refuses them.
    pub fn interrupt_by_clock(mut self) -> Self {
        self.settings.mechanism = Some(Mechanism::Tsc);
        self
    }

    /// Has the dispatcher interrupt by POSIX signals (`SIGURG`) instead of flags that probes look at: for handlers without probes. One costs
    /// microseconds at both ends, so quanta should be 100 µs or more. Workers that keep time themselves do so as before.
    ///
    /// # Safety
    /// Any instruction of a handler may be followed by an interruption, and another request may run then on the same thread. So whatever keeps
    /// state of the thread or the process (the allocator, locks, the standard library's thread-locals and output) is called within
    /// [`NoPreempt`](headway_fiber::NoPreempt) sections only; see [`BySignal::new`](headway_fiber::BySignal::new).
    #[expect(
        unsafe_code,
        reason = "only the author of a handler can know that it may be interrupted anywhere"
    )]
    pub unsafe fn interrupt_by_signal(mut self) -> Self {
        self.settings.mechanism = Some(Mechanism::Signal);
        self
    }

    /// Where interrupted requests go on: at any worker, as in the papers, unless chosen. Each has what a thread has, its thread-local variables and the locks that
    /// it holds among them, and takes it along. What the kernel keeps for a thread changes: its number, signal mask, priority, affinity. `synergy`, `tardis` and
    /// others whose workers go on with what others began refuse [`Resume::OwnWorker`] at [`start`](Self::start). It does not hold a request back that its own thread
    /// goes on with, since a worker slept ([`ClassStats::rescued`](crate::ClassStats::rescued)). With signals requests stay, unless chosen otherwise.
    pub fn resume(mut self, resume: Resume) -> Self {
        self.settings.resume = Some(resume);
        self
    }

    /// At most so many threads of the process lend requests their state; as many as requests are suspended at once unless chosen. A request that could be interrupted
    /// and finds none runs to its end, and is [counted](crate::ClassStats::without_thread).
    pub fn most_lent_threads(mut self, threads: usize) -> Self {
        self.settings.most_lent_threads = Some(threads);
        self
    }

    /// Runs requests that may be interrupted on stacks alone, without a thread's state of their own: a switch takes 3 ns in place of 30, a request no
    /// thread of the process.
    ///
    /// # Safety
    /// No handler keeps anything of its thread across a place where it can be interrupted, nor does any code that it calls there: no reference into a thread-local
    /// variable, no value of one that it relies on later, no lock (another request of the thread would take it, or wait for it for ever), no address of
    /// `errno`, no `call_once` under way. [What a handler must mind](https://docs.rs/headway-fiber) lists more.
    #[expect(
        unsafe_code,
        reason = "only the author of a handler can know what it keeps of its thread"
    )]
    pub unsafe fn plain_fibers(mut self) -> Self {
        self.settings.plain_fibers = true;
        self
    }

    /// What the server's threads read the time from; [`Clock::global`] unless given. For servers that run in virtual time.
    pub fn clock(mut self, clock: Clock) -> Self {
        self.clock = Some(clock);
        self
    }

    /// How requests are told apart; by the wire header's type unless chosen.
    pub fn classifier(mut self, classifier: impl Classifier + 'static) -> Self {
        self.classifier = ServerClassifier::of(classifier);
        self
    }

    /// What answers the requests: a type of your own, or a closure whose parameter's type is written out (`|call: &mut Call<'_>| …`).
    pub fn service<S2: Service>(self, service: S2) -> Builder<S2, D> {
        self.with(|parts| BuilderParts {
            service,
            datapath: parts.datapath,
        })
    }

    /// A closure that answers the requests; the compiler knows what its parameter is.
    pub fn handler<F>(self, handler: F) -> Builder<F, D>
    where
        F: Fn(&mut Call<'_>) + Send + Sync + 'static,
    {
        self.service(handler)
    }

    /// A loop that takes the requests itself, with [`Requests::recv`](crate::Requests::recv), instead of a function that is called with each. Every worker has one, and
    /// more while its requests are interrupted. See [`Pull`] to choose what a loop may hold.
    pub fn pull<P: PullService>(self, program: P) -> Builder<Pull<P>, D> {
        self.service(Pull::new(program))
    }

    /// Where requests come from.
    pub fn datapath<D2: Datapath + 'static>(self, datapath: D2) -> Builder<S, Custom<D2>> {
        self.custom(datapath, None)
    }

    /// Where requests come from, and the address that [`Server::local_addr`] tells.
    pub fn datapath_at<D2: Datapath + 'static>(
        self,
        datapath: D2,
        addr: SocketAddr,
    ) -> Builder<S, Custom<D2>> {
        self.custom(datapath, Some(addr))
    }

    fn custom<D2>(self, datapath: D2, addr: Option<SocketAddr>) -> Builder<S, Custom<D2>> {
        self.with(|parts| BuilderParts {
            service: parts.service,
            datapath: Custom { datapath, addr },
        })
    }

    /// Requests come over UDP, to this address; port 0 lets the system choose. Errors are told by [`start`](Self::start).
    pub fn listen_udp(self, addr: SocketAddr) -> Builder<S, Udp> {
        let udp = Udp {
            addr,
            steering: None,
        };
        self.with(|parts| BuilderParts {
            service: parts.service,
            datapath: udp,
        })
    }

    pub(super) fn with<S2, D2>(
        self,
        change: impl FnOnce(BuilderParts<S, D>) -> BuilderParts<S2, D2>,
    ) -> Builder<S2, D2> {
        let BuilderParts { service, datapath } = change(BuilderParts {
            service: self.service,
            datapath: self.datapath,
        });
        Builder {
            service,
            datapath,
            classifier: self.classifier,
            policy: self.policy,
            settings: self.settings,
            timeless: self.timeless,
            idle: self.idle,
            drain: self.drain,
            directed: self.directed,
            cores: self.cores,
            clock: self.clock,
            #[cfg(feature = "ops")]
            doors: self.doors,
        }
    }
}

impl<S> Builder<S, Udp> {
    /// How the kernel chooses the receive queue, hence the worker, of a request under a policy without a dispatcher; by flow unless
    /// chosen. [`start`](Self::start) refuses a choice under a policy with a dispatcher, which has one queue.
    pub fn steer(mut self, steering: Steering) -> Self {
        self.datapath.steering = Some(steering);
        self
    }
}
