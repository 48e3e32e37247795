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
/// When `run` panics, or the system refuses a thread.
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
                        // The receiver outlives the scope: sending cannot fail.
                        let _ = sender.send((index, run(input)));
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
