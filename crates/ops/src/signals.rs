//! Signals of a process that serves: SIGTERM and SIGINT drain it.

use std::io::{self, Write as _};
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGUSR2};
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
    let mut signals = Signals::new([SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2])?;
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
                    _ => refuse(signal),
                }
            }
        })?;
    Ok(())
}

/// Says that a signal has no effect. The write may fail: a terminal that sends SIGHUP has closed standard error.
fn refuse(signal: i32) {
    let name = signal_name(signal).unwrap_or("a signal");
    let _ = writeln!(
        io::stderr(),
        "{name} is ignored: a running server does not read its settings anew; `headway ctl set` changes its policy's parameters, and for the \
         rest stop it with SIGTERM and start it anew"
    );
}
