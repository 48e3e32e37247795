//! Signals of a process that serves: SIGTERM and SIGINT drain it.

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use headway_machine::stderr;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGUSR2, SIGXFSZ};
use signal_hook::iterator::Signals;
use signal_hook::low_level::{emulate_default_handler, signal_name};

/// A wrapper such as `timeout` signals the server and its group. A second signal this soon after the first belongs to the same stop.
const SAME_STOP: Duration = Duration::from_millis(200);

/// Has SIGTERM and SIGINT call `stop`, on a thread of their own; a second one ends the process at once. Signals that make other servers reload
/// their settings are ignored with a sentence, since their default ends the process.
///
/// # Errors
/// The system has no thread or descriptor for it.
pub fn heed(stop: impl Fn() + Send + 'static) -> io::Result<()> {
    watch(&[SIGHUP, SIGUSR1, SIGUSR2], stop, refuse)
}

/// As [`heed`], for a process that reads its settings anew on SIGHUP. `reload` must not wait: it has another thread do the work, so that a second
/// signal to stop is seen meanwhile.
///
/// # Errors
/// The system has no thread or descriptor for it.
pub fn heed_reloading(
    stop: impl Fn() + Send + 'static,
    reload: impl Fn() + Send + 'static,
) -> io::Result<()> {
    watch(&[SIGHUP], stop, move |_| reload())
}

/// Watches these signals beside the two that stop. Neither `stop` nor `other` may wait: the thread has to see a second signal.
fn watch(
    others: &[i32],
    stop: impl Fn() + Send + 'static,
    other: impl Fn(i32) + Send + 'static,
) -> io::Result<()> {
    let mut signals = Signals::new([&[SIGTERM, SIGINT], others].concat())?;
    let mut first: Option<Instant> = None;
    std::thread::Builder::new()
        .name("hw-signals".into())
        .spawn(move || {
            for signal in signals.forever() {
                match (signal, first) {
                    (SIGTERM | SIGINT, Some(first)) if first.elapsed() < SAME_STOP => {}
                    (SIGTERM | SIGINT, Some(_)) => {
                        // The call ends the process, so its failure has no remedy.
                        let _ = emulate_default_handler(signal);
                    }
                    (SIGTERM | SIGINT, None) => {
                        first = Some(Instant::now());
                        stop();
                    }
                    _ => other(signal),
                }
            }
        })?;
    Ok(())
}

/// Has a write beyond the limit of a file's size (`ulimit -f`) fail with `EFBIG`, as a full disk does: by default the signal of that limit ends the
/// process. Programs that this one executes have the default again.
///
/// # Errors
/// Those of the system.
pub fn outlive_file_limits() -> io::Result<()> {
    // A handler that nobody asks: an ignored signal would stay ignored in programs that are executed.
    signal_hook::flag::register(SIGXFSZ, Arc::new(AtomicBool::new(false)))?;
    Ok(())
}

/// Says that a signal has no effect.
fn refuse(signal: i32) {
    let name = signal_name(signal).unwrap_or("a signal");
    stderr::write_line(&format!(
        "{name} is ignored: a running server does not read its settings anew; `headway ctl set` changes its policy's parameters, and for the \
         rest stop it with SIGTERM and start it anew"
    ));
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn programs_that_are_executed_have_the_default_at_limits_of_files() {
        outlive_file_limits().unwrap();
        let bit = |status: &str, mask: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(mask));
            let mask = u64::from_str_radix(line.unwrap().trim(), 16).unwrap();
            mask >> (SIGXFSZ - 1) & 1 == 1
        };
        let own = std::fs::read_to_string("/proc/self/status").unwrap();
        assert!(bit(&own, "SigCgt:"));
        let child = Command::new("cat").arg("/proc/self/status").output();
        let child = String::from_utf8(child.unwrap().stdout).unwrap();
        assert!(!bit(&child, "SigCgt:") && !bit(&child, "SigIgn:"));
    }
}
