//! What a Rust program of the suite provides, and the little that all of them share: `harness/suite.h` once more.
//!
//! A program computes what the C or C++ program of the same name does, from the same input, as one would write it in Rust: so both have the
//! same digest. The harness is the same too, and calls it by the same names.
#![allow(dead_code, reason = "each program uses a part")]

/// A program of the suite: its input, and the result of its last run.
pub trait Kernel: Sized + Send {
    /// How often it runs in a repetition of the full size.
    const PASSES: u32;
    /// The digest of the small and of the full size.
    const EXPECTED: [u64; 2];

    /// Makes the input, of the size that is measured (`full`) or the small one of the tests.
    fn setup(full: bool) -> Self;

    /// The work that is measured. It leaves the input as it found it, and each time executes the same instructions.
    fn run(&mut self);

    /// A digest of the whole result.
    fn digest(&self) -> u64;

    /// Whether the result has the properties that define it.
    fn valid(&self) -> bool;
}

/// The names by which the harness calls a kernel.
macro_rules! export {
    ($kernel:ty) => {
        static KERNEL: std::sync::Mutex<Option<$kernel>> = std::sync::Mutex::new(None);

        fn with<T>(look: impl FnOnce(&mut $kernel) -> T) -> T {
            look(KERNEL.lock().unwrap().as_mut().expect("set up"))
        }

        #[unsafe(no_mangle)]
        extern "C" fn kernel_setup(full: bool) {
            *KERNEL.lock().unwrap() = Some(<$kernel as $crate::suite::Kernel>::setup(full));
        }

        #[unsafe(no_mangle)]
        extern "C" fn kernel_run() {
            with($crate::suite::Kernel::run);
        }

        #[unsafe(no_mangle)]
        extern "C" fn kernel_digest() -> u64 {
            with(|kernel| $crate::suite::Kernel::digest(kernel))
        }

        #[unsafe(no_mangle)]
        extern "C" fn kernel_valid() -> bool {
            with(|kernel| $crate::suite::Kernel::valid(kernel))
        }

        #[unsafe(no_mangle)]
        #[allow(non_upper_case_globals, reason = "a name of C's")]
        pub static kernel_passes: u32 = <$kernel as $crate::suite::Kernel>::PASSES;

        #[unsafe(no_mangle)]
        #[allow(non_upper_case_globals, reason = "a name of C's")]
        pub static kernel_expected: [u64; 2] = <$kernel as $crate::suite::Kernel>::EXPECTED;
    };
}
pub(crate) use export;

/// splitmix64: a sequence of uniformly distributed words.
pub struct Random(pub u64);

impl Random {
    pub fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Uniform in [0, 1).
    pub fn uniform(&mut self) -> f64 {
        (self.word() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Uniform in [0, bound).
    pub fn below(&mut self, bound: u32) -> u32 {
        (((self.word() >> 32) * u64::from(bound)) >> 32) as u32
    }
}

/// A digest to which words are added; their order matters.
pub struct Digest(pub u64);

impl Digest {
    pub fn new() -> Self {
        Self(0)
    }

    pub fn word(&mut self, word: u64) -> &mut Self {
        self.0 = Random(self.0 ^ word.wrapping_mul(0xff51_afd7_ed55_8ccd)).word();
        self
    }

    /// To a millionth: another library's last bits do not change it.
    pub fn real(&mut self, value: f64) -> &mut Self {
        self.word((value * 1e6).round_ties_even() as i64 as u64)
    }

    pub fn bytes(&mut self, bytes: impl IntoIterator<Item = u8>) -> &mut Self {
        for byte in bytes {
            self.word(u64::from(byte));
        }
        self
    }
}
