//! Fibonacci's numbers by their definition: nothing but calls.
mod suite;

use suite::{Digest, Kernel};

struct Fibonacci {
    index: u64,
    result: u64,
}

fn fibonacci(n: u64) -> u64 {
    if n < 2 {
        n
    } else {
        fibonacci(n - 1) + fibonacci(n - 2)
    }
}

impl Kernel for Fibonacci {
    const PASSES: u32 = 2;
    const EXPECTED: [u64; 2] = [0x571df229d0132b7a, 0x8586ca696d05f95d];

    fn setup(full: bool) -> Self {
        Self {
            index: if full { 31 } else { 20 },
            result: 0,
        }
    }

    fn run(&mut self) {
        self.result = fibonacci(self.index);
    }

    fn digest(&self) -> u64 {
        Digest::new().word(self.result).0
    }

    /// Against the sum from below.
    fn valid(&self) -> bool {
        let (here, _) = (0..self.index).fold((0, 1), |(here, next), _| (next, here + next));
        self.result == here
    }
}

suite::export!(Fibonacci);
