//! The settings file of a server: what `headway plan --config-out` writes, `headway serve -c` runs, and [`FromConfig::from_config`] builds a server of
//! your own from.
//!
//! ```toml
//! listen = "udp://127.0.0.1:7000"
//! policy = "darc,delta=3"
//! workers = 2
//! workload = "tpcc"       # by name or file: its classes, with their service times, SLOs and which are long
//! classifier = "header"
//! queue-limit = 1024
//! layout = "auto"         # auto, dedicated, inline
//! costs = "costs.json"    # of `headway calibrate -o costs.json`: what `auto` and the number of workers are chosen by
//! resume = "own-worker"   # own-worker, anywhere: where an interrupted request goes on
//! preempt = "flag"        # flag, signal: by what a dispatcher interrupts
//! feedback = false        # true: only where handlers say that they are long
//! most-lent-threads = 1000 # that lend requests their state, at most
//! look-every = "5us"      # how often workers that take turns as the dispatcher poll for arrivals while a request runs
//! idle = "spin-then-park" # spin, spin-then-park, park
//! steer = "flow"          # flow, random, class, byte=N: by what the kernel chooses the worker, under a policy without a dispatcher
//! pin = "auto"            # auto, off, or cores, the dispatcher's first: "0,1,2"
//! drain = "10s"
//! seed = 1
//! host = "kv"             # run on the cores that a daemon (`headway host`) grants, as its application of this name
//! socket = "/run/headway/host.sock" # the daemon, by the socket at which applications register
//! ```
//!
//! Each key may be left out. `resume = "anywhere"` and `preempt = "signal"` need a [promise](HandlerPromises) of the handlers' author. `app`, `max-spin` and `[kv]` choose what `headway serve` serves; a program has a service of its own. `ctl` and `no-ctl` say where `headway serve` listens for `headway ctl`. A program that reads `host` is refused: it registers by itself and gives
//! the builder its [`CoreSource`](Builder::cores_from).

mod costs;
mod file;
mod promises;
mod words;

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

pub use costs::layout_costs;
pub use file::{Config, ConfigError, File};
use headway_net::classify::AnyClassifier;
use headway_runtime::{
    Builder, DeclaredClass, LayoutCosts, LayoutFacts, Mechanism, NoService, Server, Udp,
    WorkersFacts, default_workers, mean_service_ns,
};
use headway_sim::{check_slos, class_hints};
pub use headway_study::{MeasuredCosts, explain, read_costs};
use headway_workload::{Workload, duration};
pub use promises::HandlerPromises;
use serde::de::IgnoredAny;
pub use words::{address, look_every, pin, policy, resolve, resolve_server, server_address};

/// The default address of a server: loopback, port 7000.
pub const LISTEN: &str = "udp://127.0.0.1:7000";

/// A [`Builder`] made from a settings file; in the prelude, so that `Builder::from_config` is at hand.
///
/// ```no_run
/// use headway::prelude::*;
///
/// let server = Builder::from_config("headway.toml")?
///     .handler(|call| call.reply(b"pong"))
///     .start()?;
/// server.wait();
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait FromConfig: Sized {
    /// Builds the server of the file, with the defaults of `headway serve` for missing keys: [as many workers](headway_runtime::default_workers) as leave a core to a
    /// dispatcher's thread, `darc`, port 7000 on loopback. Its classes are those of the file's workload; without one, none is declared yet. A workload's file
    /// is found from the working directory.
    ///
    /// # Errors
    /// [`ConfigError`], which names the file, the line and the key; also for `preempt = "signal"`, which not every handler
    /// tolerates.
    fn from_config(path: impl AsRef<Path>) -> Result<Self, ConfigError> {
        Self::from_config_promising(path, HandlerPromises::none())
    }

    /// The same for handlers with promises: the file may use what their author promised.
    ///
    /// ```no_run
    /// use headway::config::HandlerPromises;
    /// use headway::prelude::*;
    ///
    /// // SAFETY: the handler keeps nothing of its thread's.
    /// let promises = unsafe { HandlerPromises::none().keeping_nothing_in_threads() };
    /// let server = Builder::from_config_promising("headway.toml", promises)?
    ///     .handler(|call| call.reply(b"pong"))
    ///     .start()?;
    /// # drop(server);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`ConfigError`], which names the file, the line and the key.
    fn from_config_promising(
        path: impl AsRef<Path>,
        promises: HandlerPromises,
    ) -> Result<Self, ConfigError>;
}

impl FromConfig for Builder<NoService, Udp> {
    fn from_config_promising(
        path: impl AsRef<Path>,
        promises: HandlerPromises,
    ) -> Result<Self, ConfigError> {
        let file = File::<IgnoredAny, IgnoredAny>::read(path.as_ref())?;
        let set = &file.config;
        let policy = file.parsed("policy", &set.policy, |text| policy(text))?;
        let policy = policy.unwrap_or_else(|| "darc".parse().expect("a policy of ours"));
        let layout = set.layout.as_ref().map(|layout| *layout.get_ref());
        let layout = layout.unwrap_or_default();
        let by_signal = set
            .preempt
            .as_ref()
            .is_some_and(|by| *by.get_ref() == Mechanism::Signal);
        let workers = set.workers.as_ref().map(|workers| *workers.get_ref());
        file.parsed("host", &set.host, |_| {
            Err::<(), _>("`headway serve` alone heeds it: register with the daemon, and give the builder the cores by `cores_from`")
        })?;
        let costs = file.parsed("costs", &set.costs, |path| read_costs(Path::new(path)))?;
        let costs = costs.map_or_else(LayoutCosts::default, |file| layout_costs(&file.costs));
        let workload = file.parsed("workload", &set.workload, |name| workload(name))?;
        let hints = workload.as_ref().map_or(Vec::new(), class_hints);
        let facts = WorkersFacts {
            cores: LayoutFacts::usable_cores(),
            by_signal,
            costs,
            service_ns: mean_service_ns(&hints),
        };
        let mut builder = Server::builder()
            .workers(workers.unwrap_or_else(|| default_workers(&policy, layout, &facts)))
            .layout_costs(costs)
            .policy_spec(policy.clone())
            .seed(set.seed.unwrap_or(1))
            .layout(layout)
            .idle(set.idle.unwrap_or_default());
        if let Some(workload) = &workload {
            builder = builder.classes(classes(workload));
        }
        if let Some(requests) = &set.queue_limit {
            builder = builder.queue_limit(*requests.get_ref() as usize);
        }
        builder = interrupted_as_set(builder, &file, promises)?;
        let listen = file.parsed("listen", &set.listen, |url| address(url))?;
        let listen: SocketAddr = match listen {
            Some(listen) => listen,
            None => address(LISTEN).expect("the default is an address"),
        };
        let classifier: Option<AnyClassifier> =
            file.parsed("classifier", &set.classifier, |text| text.parse())?;
        let steering = file.parsed("steer", &set.steer, |text| text.parse())?;
        if let Some(pin) = file.parsed("pin", &set.pin, |text| pin(text))? {
            builder = builder.pin(pin);
        }
        if let Some(ns) = file.parsed("drain", &set.drain, |text| duration::parse(text))? {
            builder = builder.drain(Duration::from_nanos(ns));
        }
        let mut builder = builder.listen_udp(listen);
        if let Some(steering) = steering {
            builder = builder.steer(steering);
        }
        Ok(match classifier {
            Some(classifier) => builder.classifier(classifier),
            None => builder,
        })
    }
}

/// The builder with the file's interruption mechanism.
fn interrupted_as_set<S, D>(
    mut builder: Builder<S, D>,
    file: &File<IgnoredAny, IgnoredAny>,
    promises: HandlerPromises,
) -> Result<Builder<S, D>, ConfigError> {
    const REMEDY: &str = "Builder::from_config cannot promise: leave it out, or promise it by Builder::from_config_promising";
    let set = &file.config;
    let resume = set.resume.as_ref().map(|resume| *resume.get_ref());
    let mechanism = file.parsed("preempt", &set.preempt, |&mechanism| {
        promises.allow_mechanism(mechanism).then_some(mechanism).ok_or(format!(
            "\"signal\" interrupts handlers between any two instructions, which they must bear, and that {REMEDY}"
        ))
    })?;
    if let Some(interval) = file.parsed("look-every", &set.look_every, |text| look_every(text))? {
        builder = builder.look_every(interval);
    }
    if let Some(feedback) = &set.feedback {
        builder = builder.by_feedback(*feedback.get_ref());
    }
    if let Some(threads) = &set.most_lent_threads {
        builder = builder.most_lent_threads(*threads.get_ref());
    }
    Ok(promises.apply(builder, resume, mechanism))
}

/// The workload of a name or a file, its classes' own SLOs included.
///
/// # Errors
/// When there is no such workload, or it is invalid.
pub fn workload(name: &str) -> Result<Workload, String> {
    let workload = Workload::resolve(name).map_err(|error| error.to_string())?;
    check_slos(&workload).map_err(|error| format!("{name}: {error}"))?;
    Ok(workload)
}

/// The classes of a workload, with the same hints as in a simulation.
#[must_use]
pub fn classes(workload: &Workload) -> Vec<DeclaredClass> {
    let named = workload
        .class_names()
        .into_iter()
        .zip(class_hints(workload));
    named
        .map(|(name, hint)| DeclaredClass {
            name: name.to_owned(),
            hint,
        })
        .collect()
}
