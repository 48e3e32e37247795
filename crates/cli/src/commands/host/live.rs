//! Runs the daemon until a signal.

use super::args::HostRunArgs;
use super::settings::{HostChoices, explain};
use super::status::HostSubject;
use crate::commands::http;
use anyhow::{Context, Result, anyhow};
use headway_host::daemon::{DaemonSettings, HostDaemon, HostObserver, Notifier};
use headway_host::topology::HostCores;
use headway_machine::Clock;
use headway_ops::place::SocketKind;
use headway_ops::signals;
use headway_workload::duration;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// What the daemon's main thread is asked to do by others, which unpark it then.
#[derive(Default)]
struct HostWishes {
    stop: AtomicBool,
    reload: AtomicBool,
}

pub(super) fn run(args: &HostRunArgs) -> Result<ExitCode> {
    let HostChoices {
        daemon: settings,
        metrics,
        ctl,
    } = args.settings()?;
    if args.check {
        let cores = HostDaemon::check(&settings).map_err(explain)?;
        println!("{}", sentence(&settings, &cores));
        return Ok(ExitCode::SUCCESS);
    }
    let metrics = metrics.as_ref().map(http::bind).transpose()?;
    let wishes = heed_signals()?;
    let daemon = HostDaemon::start(settings.clone(), Clock::global()).map_err(explain)?;
    let cores = daemon.cores();
    let subject = Arc::new(HostSubject::new(
        daemon.observer(),
        &settings.socket,
        settings.policy.to_string(),
        cores.own,
        cores.shared,
    ));
    let socket = crate::commands::control_socket::bind(&ctl, SocketKind::Host, "")?;
    let _socket = socket
        .map(|socket| socket.answer(Arc::clone(&subject)))
        .transpose()
        .context("cannot start the thread that answers headway host status")?;
    let metrics = metrics.map(|metrics| http::answer(metrics, Arc::clone(&subject)));
    let _metrics = metrics.transpose()?;
    say!("{}", sentence(&settings, cores));
    if daemon.took_over() {
        say!(
            "the last daemon did not end in order: its applications go on with the cores that they have"
        );
    }
    let notifier = Notifier::from_environment().context("NOTIFY_SOCKET")?;
    tell(notifier.as_ref(), "READY=1");
    watch_over(&subject)?;
    if settings.device.is_some() {
        end_with_device(daemon.observer(), &wishes)?;
    }
    while !wishes.stop.load(Ordering::Acquire) {
        if !wishes.reload.swap(false, Ordering::Acquire) {
            thread::park();
            continue;
        }
        tell(notifier.as_ref(), "RELOADING=1");
        match reload(args, &daemon) {
            Ok(policy) => subject.set_policy(policy),
            Err(error) => say!("nothing changes: {error:#}"),
        }
        tell(notifier.as_ref(), "READY=1");
    }
    tell(notifier.as_ref(), "STOPPING=1");
    let observer = daemon.observer();
    daemon.stop();
    match observer.failure() {
        Some(why) => Err(anyhow!("{why}")),
        None => Ok(ExitCode::SUCCESS),
    }
}

/// Turns signals into wishes to this thread. A second signal to stop ends the process at once.
fn heed_signals() -> Result<Arc<HostWishes>> {
    let wishes = Arc::new(HostWishes::default());
    let raise = |wish: fn(&HostWishes) -> &AtomicBool| {
        let (wishes, main) = (Arc::clone(&wishes), thread::current());
        move || {
            wish(&wishes).store(true, Ordering::Release);
            main.unpark();
        }
    };
    let (stop, reload) = (raise(|wishes| &wishes.stop), raise(|wishes| &wishes.reload));
    signals::heed_reloading(stop, reload).context("cannot watch for signals")?;
    Ok(wishes)
}

/// Ends the wait for signals when the daemon's device is no longer what it was.
fn end_with_device(observer: HostObserver, wishes: &Arc<HostWishes>) -> Result<()> {
    const LOOK: Duration = Duration::from_millis(200);
    let (wishes, main) = (Arc::clone(wishes), thread::current());
    thread::Builder::new()
        .name("hw-device".into())
        .spawn(move || {
            while observer.failure().is_none() {
                thread::sleep(LOOK);
            }
            wishes.stop.store(true, Ordering::Release);
            main.unpark();
        })
        .context("cannot start the thread that watches the device")?;
    Ok(())
}

/// Reads the settings again, applies them and returns the policy.
fn reload(args: &HostRunArgs, daemon: &HostDaemon) -> Result<String> {
    let settings = args.settings()?.daemon;
    let policy = settings.policy.to_string();
    let names: Vec<_> = settings.apps.iter().map(|rule| rule.name.clone()).collect();
    daemon.reload(settings).map_err(explain)?;
    say!(
        "policy {policy}; applications {}: who is registered keeps what it had until it registers anew",
        names.join(", ")
    );
    Ok(policy)
}

/// Starts the watchdog thread if the service manager asks for one. It reports that the daemon is alive only while its passes go on.
fn watch_over(subject: &Arc<HostSubject>) -> Result<()> {
    let Some(notifier) = Notifier::from_environment().context("NOTIFY_SOCKET")? else {
        return Ok(());
    };
    let Some(every) = notifier.every() else {
        return Ok(());
    };
    let subject = Arc::clone(subject);
    thread::Builder::new()
        .name("hw-watchdog".into())
        .spawn(move || {
            loop {
                if subject.is_alive() {
                    tell(Some(&notifier), "WATCHDOG=1");
                }
                thread::sleep(every);
            }
        })
        .context("cannot start the thread that tells the service manager")?;
    Ok(())
}

fn tell(notifier: Option<&Notifier>, what: &str) {
    // The daemon goes on if the manager does not receive the message.
    let _ = notifier.map(|notifier| notifier.say(what));
}

/// The daemon's use of the cores, in one line.
fn sentence(settings: &DaemonSettings, cores: &HostCores) -> String {
    let list = cores.dealt.iter().map(usize::to_string);
    let list = list.collect::<Vec<_>>().join(", ");
    let own = match cores.own {
        Some(core) => format!("it spins on core {core}"),
        None => format!(
            "it has no core of its own and wakes every {} while an application is busy, and when one rings",
            duration::format(settings.tick_ns)
        ),
    };
    format!(
        "headway host at {} deals out cores {list} by {}; {own}; core {} is shared by those that have none",
        settings.socket.display(),
        settings.policy,
        cores.shared
    )
}
