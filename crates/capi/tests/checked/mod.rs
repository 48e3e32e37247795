//! Programs that check themselves and are interrupted meanwhile.

use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Where the machine gives the thread that interrupts, or the one that it interrupts, no time, nobody is interrupted: then once more.
pub(crate) const ATTEMPTS: usize = 20;

/// These tests need the machine's cores: one at a time.
pub(crate) fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What a program prints that succeeds.
pub(crate) fn printed(program: &mut Command) -> String {
    let output = program.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program:?}: {said}");
    String::from_utf8(output.stdout).unwrap()
}

/// Runs a program that checks itself and says at its end how often it was interrupted.
pub(crate) fn preemptions(program: &mut Command) -> u64 {
    let counted = printed(program);
    let preemptions = counted.trim().rsplit(' ').next().unwrap();
    preemptions.parse::<u64>().unwrap()
}
