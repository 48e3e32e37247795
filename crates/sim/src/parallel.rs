//! Parallel runs, with the results in the order of the inputs.

use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread::Builder;

/// Number of threads that this machine runs at once.
#[must_use]
pub fn available_threads() -> usize {
    std::thread::available_parallelism().map_or(1, NonZero::get)
}

/// Applies `run` to every input on `threads` threads and gives the results in the inputs' order;
/// `done` is called on the calling thread with every result as it arrives.
///
/// # Panics
/// When `run` or `done` panics, the latter once the runs that have begun end; or when the system refuses a thread.
pub fn in_parallel<In: Sync, Out: Send>(
    inputs: &[In],
    threads: usize,
    run: impl Fn(&In) -> Out + Sync,
    mut done: impl FnMut(&In, &Out),
) -> Vec<Out> {
    let next = AtomicUsize::new(0);
    let (sender, results) = mpsc::channel();
    let mut outputs: Vec<Option<Out>> = inputs.iter().map(|_| None).collect();
    std::thread::scope(|scope| {
        for number in 0..threads.clamp(1, inputs.len().max(1)) {
            let (sender, next, run) = (sender.clone(), &next, &run);
            let named = Builder::new().name(format!("hw-sim-{number}"));
            named
                .spawn_scoped(scope, move || {
                    while let Some((index, input)) = claim(inputs, next) {
                        // Without a receiver `done` has panicked: nobody wants the rest.
                        if sender.send((index, run(input))).is_err() {
                            break;
                        }
                    }
                })
                .expect("the system has a thread to spare");
        }
        drop(sender);
        for (index, output) in results {
            done(&inputs[index], &output);
            outputs[index] = Some(output);
        }
    });
    outputs
        .into_iter()
        .map(|output| output.expect("a run panicked"))
        .collect()
}

fn claim<'a, In>(inputs: &'a [In], next: &AtomicUsize) -> Option<(usize, &'a In)> {
    let index = next.fetch_add(1, Ordering::Relaxed);
    Some((index, inputs.get(index)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::thread::sleep;
    use std::time::Duration;

    #[test]
    fn a_caller_that_panics_does_not_wait_for_the_runs_that_have_not_begun() {
        let begun = AtomicUsize::new(0);
        let runs = [(); 600];
        let run = |(): &()| {
            begun.fetch_add(1, Ordering::Relaxed);
            sleep(Duration::from_millis(100));
        };
        let all = || {
            in_parallel(&runs, 2, run, |(), ()| {
                std::panic::resume_unwind(Box::new(()))
            })
        };
        catch_unwind(AssertUnwindSafe(all)).expect_err("the caller panics");
        assert!(begun.into_inner() < runs.len());
    }
}
