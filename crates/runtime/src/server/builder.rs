//! Choosing what a server is.

use std::net::SocketAddr;
use std::sync::Arc;

use headway_fiber::Mechanism;
use headway_net::classify::{AnyClassifier, Classifier, WireType};
use headway_net::datapath::Datapath;
use headway_net::pool::MAX_SLOTS;
use headway_net::udp::{BindError, UdpDatapath};
use headway_policy::role::{Ingress, Local, Monitor, Owner};
use headway_policy::spec::{Params, Spec, SpecError, Value};
use headway_policy::systems::{self, Replicas, System, Visit};
use headway_policy::{ClassHint, MAX_CLASSES, MAX_WORKERS, Resume, Shape};

use super::{Server, Stopper};
use crate::central::{self, Dispatched};
use crate::crew::Pin;
use crate::error::StartError;
use crate::intake::BATCH;
use crate::park::Idle;
use crate::parts::{Config, Engine, Layout, Parts};
use crate::service::Service;
use crate::steered;

/// Requests that may wait in one queue, unless chosen otherwise: a millisecond's worth at a million a second.
const QUEUE_LIMIT: usize = 1024;

/// Of a fiber's stack, unless chosen otherwise.
const STACK_BYTES: usize = 256 << 10;

/// A request class, as declared.
#[derive(Clone, PartialEq, Debug)]
pub struct Class {
    /// What reports call it.
    pub name: String,
    /// What is known of it before the first request.
    pub hint: ClassHint,
}

/// What is to be chosen before a server starts. A service and a datapath must be; the rest has defaults.
#[derive(Clone, Debug)]
#[must_use]
pub struct Builder<S = (), D = (), C = AnyClassifier> {
    service: S,
    datapath: D,
    classifier: C,
    policy: Result<Spec, SpecError>,
    workers: usize,
    classes: Vec<Class>,
    queue_limit: usize,
    slots: Option<usize>,
    seed: u64,
    idle: Idle,
    layout: Layout,
    pin: Pin,
    stalls: usize,
    resume: Resume,
    stack_bytes: usize,
    mechanism: Mechanism,
    feedback: bool,
}

impl Default for Builder {
    fn default() -> Self {
        Self {
            service: (),
            datapath: (),
            classifier: AnyClassifier::Header(WireType::identity()),
            policy: "darc".parse(),
            workers: 1,
            classes: Vec::new(),
            queue_limit: QUEUE_LIMIT,
            slots: None,
            seed: 0,
            idle: Idle::default(),
            layout: Layout::default(),
            pin: Pin::default(),
            stalls: 0,
            resume: Resume::OwnWorker,
            stack_bytes: STACK_BYTES,
            mechanism: Mechanism::Flag,
            feedback: false,
        }
    }
}

impl<S, D, C> Builder<S, D, C> {
    /// How many workers, 1 to [`MAX_WORKERS`]; 1 unless chosen.
    pub fn workers(mut self, workers: usize) -> Self {
        self.workers = workers;
        self
    }

    /// The policy, as in `darc,delta=3`; `darc` unless chosen. Errors are told by [`start`](Self::start).
    pub fn policy(mut self, spec: &str) -> Self {
        self.policy = spec.parse();
        self
    }

    /// The policy, parsed.
    pub fn policy_spec(mut self, spec: Spec) -> Self {
        self.policy = Ok(spec);
        self
    }

    /// Declares the next class, with its expected service time in ns, by which fixed policies order the classes.
    /// Shares of the requests are taken as equal; see [`classes`](Self::classes).
    pub fn class(mut self, name: &str, mean_ns: u64) -> Self {
        let hint = ClassHint::new(mean_ns as f64, 0.0);
        self.classes.push(Class {
            name: name.to_owned(),
            hint,
        });
        let share = 1.0 / self.classes.len() as f64;
        self.classes
            .iter_mut()
            .for_each(|class| class.hint.share = share);
        self
    }

    /// Declares all classes. A request of another class, or none, is UNKNOWN.
    pub fn classes(mut self, classes: Vec<Class>) -> Self {
        self.classes = classes;
        self
    }

    /// Most requests that wait in one queue (one per class where the policy has typed queues); 1024 unless chosen. What
    /// comes on top is answered as shed.
    pub fn queue_limit(mut self, requests: usize) -> Self {
        self.queue_limit = requests.max(1);
        self
    }

    /// Buffers of some 2 KiB each, hence the most requests in the server at once. Unless chosen, as many as the queues may hold
    /// and some more, so that one class's full queue never keeps another class out.
    pub fn slots(mut self, slots: usize) -> Self {
        self.slots = Some(slots);
        self
    }

    /// Seed of the policy's own randomness.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// What threads without work do.
    pub fn idle(mut self, idle: Idle) -> Self {
        self.idle = idle;
        self
    }

    /// Who carries the dispatcher out.
    pub fn layout(mut self, layout: Layout) -> Self {
        self.layout = layout;
        self
    }

    /// Whether threads are bound to cores.
    pub fn pin(mut self, pin: Pin) -> Self {
        self.pin = pin;
        self
    }

    /// Keeps up to so many [stalls](Server::stalls) for who asks; none unless chosen, since noting one takes a lock.
    pub fn keep_stalls(mut self, most: usize) -> Self {
        self.stalls = most;
        self
    }

    /// Bytes of the stack that a request is given where the policy interrupts requests; 256 KiB unless chosen. Only what is touched takes memory.
    pub fn stack_bytes(mut self, bytes: usize) -> Self {
        self.stack_bytes = bytes;
        self
    }

    /// Interrupts requests only where their handlers say that they are long ([`Call::long`](crate::Call::long)), as SYNERGY does: who says nothing is run to its end,
    /// whatever its quantum. Quanta are counted from where the request began. A request that waits for what another does must be in a
    /// long part: else it keeps its worker, and the other may be behind it. Off unless chosen: then all are interrupted alike.
    pub fn by_feedback(mut self, heard: bool) -> Self {
        self.feedback = heard;
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
        self.mechanism = Mechanism::Signal;
        self
    }

    /// Lets interrupted requests go on at any worker, as in the papers, instead of where they were begun.
    ///
    /// # Safety
    /// No handler may rely, across a place where it can be interrupted, on being on the same thread: it holds nothing then that is the
    /// thread's own (a reference into a thread-local, a lock guard that must be released by the thread that took it, the address of `errno`).
    #[expect(
        unsafe_code,
        reason = "only the author of a handler can know that it may change threads"
    )]
    pub unsafe fn resume_anywhere(mut self) -> Self {
        self.resume = Resume::Anywhere;
        self
    }

    /// How requests are told apart; by the wire header's type unless chosen.
    pub fn classifier<C2: Classifier + 'static>(self, classifier: C2) -> Builder<S, D, C2> {
        self.with(|service, datapath, _| (service, datapath, classifier))
    }

    /// What answers the requests.
    pub fn service<S2: Service>(self, service: S2) -> Builder<S2, D, C> {
        self.with(|_, datapath, classifier| (service, datapath, classifier))
    }

    /// Where requests come from.
    pub fn datapath<D2: Datapath>(self, datapath: D2) -> Builder<S, Custom<D2>, C> {
        self.with(|service, _, classifier| (service, Custom(datapath), classifier))
    }

    /// Requests come over UDP, to this address; port 0 lets the system choose. Errors are told by [`start`](Self::start).
    pub fn listen_udp(self, addr: SocketAddr) -> Builder<S, Udp, C> {
        self.with(|service, _, classifier| (service, Udp(addr), classifier))
    }

    fn with<S2, D2, C2>(self, change: impl FnOnce(S, D, C) -> (S2, D2, C2)) -> Builder<S2, D2, C2> {
        let (service, datapath, classifier) = change(self.service, self.datapath, self.classifier);
        Builder {
            service,
            datapath,
            classifier,
            policy: self.policy,
            workers: self.workers,
            classes: self.classes,
            queue_limit: self.queue_limit,
            slots: self.slots,
            seed: self.seed,
            idle: self.idle,
            layout: self.layout,
            pin: self.pin,
            stalls: self.stalls,
            resume: self.resume,
            stack_bytes: self.stack_bytes,
            mechanism: self.mechanism,
            feedback: self.feedback,
        }
    }

    fn shape(&self) -> Result<Shape, StartError> {
        let (workers, classes) = (self.workers, self.classes.len());
        if !(1..=MAX_WORKERS).contains(&workers) {
            let max = MAX_WORKERS;
            return Err(StartError::Workers { workers, max });
        }
        if classes > MAX_CLASSES {
            let max = MAX_CLASSES;
            return Err(StartError::Classes { classes, max });
        }
        let mut shape = Shape::new(workers);
        shape.classes = self.classes.iter().map(|class| class.hint).collect();
        shape.queue_limit = self.queue_limit;
        shape.seed = self.seed;
        shape.resume = self.resume;
        shape.job_capacity = self.slots.map_or_else(|| self.slots_needed(), Ok)?;
        Ok(shape)
    }

    /// Full queues, what the workers hold, and a batch that is being refused.
    fn slots_needed(&self) -> Result<usize, StartError> {
        let queues = self.classes.len() + 1;
        let held = self.workers * 2 * BATCH;
        // With hundreds of classes the default limit asks for too much. Nobody chose it, so their queues share what there is.
        let most = ((MAX_SLOTS - held - 2 * BATCH) / queues).max(QUEUE_LIMIT);
        let requests = self.queue_limit;
        if requests > most {
            return Err(StartError::QueueLimit { requests, most });
        }
        Ok((requests * queues + held + 2 * BATCH).min(MAX_SLOTS))
    }
}

impl<S, D, C> Builder<S, D, C>
where
    S: Service,
    D: Source<Path: Datapath<Rx: 'static, Tx: 'static>>,
    C: Classifier + 'static,
{
    /// Starts the server.
    ///
    /// # Errors
    /// [`StartError`], which says what to do.
    pub fn start(self) -> Result<Server, StartError> {
        self.mechanism.check()?;
        let shape = self.shape()?;
        let spec = self.policy?;
        systems::check(&spec, &shape)?;
        let (datapath, addr) = self.datapath.open()?;
        let names = self.classes.into_iter().map(|class| class.name);
        let class_names: Vec<String> = names.chain(["unknown".to_owned()]).collect();
        let config = Config {
            class_names: class_names.clone(),
            idle: self.idle,
            layout: self.layout,
            pin: self.pin,
            stalls: self.stalls,
            slots: shape.job_capacity,
            stack_bytes: self.stack_bytes,
            mechanism: self.mechanism,
            feedback: self.feedback,
        };
        let parts = Parts {
            datapath,
            classifier: Arc::new(self.classifier),
            service: Arc::new(self.service),
            shape: shape.clone(),
            config,
        };
        let (engine, policy) = systems::with(&spec, &shape, Launch(parts))??;
        Ok(Server {
            stopper: Stopper::of(&engine),
            engine,
            addr,
            policy,
            workers: self.workers,
            idle: self.idle,
            classes: class_names,
        })
    }
}

/// Starts the engine that the system asks for.
struct Launch<D, C, S>(Parts<D, C, S>);

impl<D, C, S> Visit for Launch<D, C, S>
where
    D: Datapath,
    D::Rx: 'static,
    D::Tx: 'static,
    C: Classifier + 'static,
    S: Service,
{
    type Output = Result<(Engine, (&'static str, Params)), StartError>;

    fn visit<I, L, M>(self, system: System<I, L, M>) -> Self::Output
    where
        I: Ingress + Send + 'static,
        L: Local + Send + 'static,
        M: Monitor + Send + 'static,
    {
        let policy = system.name;
        if system.params.contains(&("profile", Value::Word("known"))) {
            return Err(StartError::KnownProfile { policy });
        }
        let engine = match I::OWNER {
            Owner::Dispatcher => {
                let dispatched = Dispatched {
                    ingress: system.ingress,
                    locals: system.locals,
                    monitor: system.monitor,
                    depth: system.depth,
                };
                central::launch(dispatched, self.0)
            }
            Owner::Nobody => Err(StartError::Unplaced { policy }),
            Owner::Steering if M::PREEMPTS || L::SLICES => Err(StartError::Preemptive { policy }),
            Owner::Steering => steered::launch((system.locals, system.shared_queues), self.0),
        };
        Ok((engine?, (system.name, system.params)))
    }

    fn visit_replicas<I, L, M>(self, replicas: Replicas<I, L, M>) -> Self::Output
    where
        I: Ingress + Send + 'static,
        L: Local + Send + 'static,
        M: Monitor + Send + 'static,
    {
        let policy = replicas.instances[0].name;
        Err(StartError::Dispatchers { policy })
    }
}

/// Something that becomes a datapath when the server starts.
pub trait Source {
    /// What it becomes.
    type Path: Datapath<Rx: 'static, Tx: 'static>;

    /// The datapath, and the address it listens on, if it does.
    ///
    /// # Errors
    /// [`BindError`] when it cannot listen.
    fn open(self) -> Result<(Self::Path, Option<SocketAddr>), BindError>;
}

/// A UDP address to listen on.
#[derive(Clone, Copy, Debug)]
pub struct Udp(SocketAddr);

impl Source for Udp {
    type Path = UdpDatapath;

    fn open(self) -> Result<(UdpDatapath, Option<SocketAddr>), BindError> {
        let datapath = UdpDatapath::bind(self.0)?;
        let addr = datapath.local_addr();
        Ok((datapath, Some(addr)))
    }
}

/// A datapath made elsewhere.
#[derive(Clone, Copy, Debug)]
pub struct Custom<D>(D);

impl<D: Datapath<Rx: 'static, Tx: 'static>> Source for Custom<D> {
    type Path = D;

    fn open(self) -> Result<(D, Option<SocketAddr>), BindError> {
        Ok((self.0, None))
    }
}
