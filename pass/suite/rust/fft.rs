//! A one-dimensional complex Fourier transform in six steps over a square matrix (as Splash-2's fft):
//! transpose, transform rows, multiply by roots of unity, transpose, transform rows, transpose.
mod suite;

use std::f64::consts::PI;
use std::ops::{Add, Mul, Sub};
use suite::{Digest, Kernel, Random};

#[derive(Clone, Copy, Default)]
struct Complex {
    re: f64,
    im: f64,
}

impl Complex {
    fn root(angle: f64) -> Self {
        Self {
            re: angle.cos(),
            im: angle.sin(),
        }
    }

    fn energy(self) -> f64 {
        self.re * self.re + self.im * self.im
    }
}

impl Add for Complex {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self {
            re: self.re + other.re,
            im: self.im + other.im,
        }
    }
}

impl Sub for Complex {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self {
            re: self.re - other.re,
            im: self.im - other.im,
        }
    }
}

impl Mul for Complex {
    type Output = Self;
    fn mul(self, other: Self) -> Self {
        Self {
            re: self.re * other.re - self.im * other.im,
            im: self.re * other.im + self.im * other.re,
        }
    }
}

struct Transform {
    side: usize,
    input: Vec<Complex>,
    /// At r·side + c: e^(-2πi·rc / side²).
    roots: Vec<Complex>,
    /// e^(-2πi·k / side).
    row_roots: Vec<Complex>,
    result: Vec<Complex>,
    other: Vec<Complex>,
}

/// In tiles, so that neither side strides through the cache.
fn transpose(side: usize, from: &[Complex], to: &mut [Complex]) {
    const TILE: usize = 8;
    for top in (0..side).step_by(TILE) {
        for left in (0..side).step_by(TILE) {
            for r in top..top + TILE {
                for c in left..left + TILE {
                    to[c * side + r] = from[r * side + c];
                }
            }
        }
    }
}

fn reverse_bits(row: &mut [Complex]) {
    let mut j = 0;
    for i in 1..row.len() {
        let mut bit = row.len() >> 1;
        while j & bit != 0 {
            j ^= bit;
            bit >>= 1;
        }
        j ^= bit;
        if i < j {
            row.swap(i, j);
        }
    }
}

fn transform_row(row: &mut [Complex], roots: &[Complex]) {
    reverse_bits(row);
    let side = row.len();
    let mut half = 1;
    while half < side {
        for pair in row.chunks_exact_mut(2 * half) {
            let (low, high) = pair.split_at_mut(half);
            let roots = roots.iter().step_by(side / 2 / half);
            for ((low, high), &root) in low.iter_mut().zip(high).zip(roots) {
                let turned = *high * root;
                *high = *low - turned;
                *low = *low + turned;
            }
        }
        half *= 2;
    }
}

impl Kernel for Transform {
    const PASSES: u32 = 16;
    const EXPECTED: [u64; 2] = [0x6158001ebfbddf97, 0xaf852aa05b44afef];

    fn setup(full: bool) -> Self {
        let mut random = Random(13);
        let side = if full { 128 } else { 32 };
        let turn = -2.0 * PI;
        let places = (0..side).flat_map(|r| (0..side).map(move |c| (r, c)));
        let root = |(r, c)| Complex::root(turn * r as f64 * c as f64 / (side * side) as f64);
        let drawn = |_| Complex {
            re: random.uniform() - 0.5,
            im: random.uniform() - 0.5,
        };
        Self {
            side,
            roots: places.clone().map(root).collect(),
            input: places.map(drawn).collect(),
            row_roots: (0..side)
                .map(|k| Complex::root(turn * k as f64 / side as f64))
                .collect(),
            result: vec![Complex::default(); side * side],
            other: vec![Complex::default(); side * side],
        }
    }

    fn run(&mut self) {
        let side = self.side;
        transpose(side, &self.input, &mut self.other);
        for (row, roots) in self
            .other
            .chunks_exact_mut(side)
            .zip(self.roots.chunks_exact(side))
        {
            transform_row(row, &self.row_roots);
            for (number, &root) in row.iter_mut().zip(roots) {
                *number = *number * root;
            }
        }
        transpose(side, &self.other, &mut self.result);
        for row in self.result.chunks_exact_mut(side) {
            transform_row(row, &self.row_roots);
        }
        transpose(side, &self.result, &mut self.other);
    }

    fn digest(&self) -> u64 {
        let mut digest = Digest::new();
        for number in &self.other {
            digest.real(number.re).real(number.im);
        }
        digest.0
    }

    /// Some frequencies by the definition, and Parseval's equation.
    fn valid(&self) -> bool {
        let n = self.input.len();
        let energy =
            |numbers: &[Complex]| numbers.iter().map(|number| number.energy()).sum::<f64>();
        let before = energy(&self.input);
        let mut frequencies =
            std::iter::successors(Some(1), |f| Some(f * 7 + 3)).take_while(|&f| f < n);
        (energy(&self.other) / n as f64 - before).abs() <= 1e-6 * before
            && frequencies.all(|f| {
                let sum =
                    self.input
                        .iter()
                        .enumerate()
                        .fold(Complex::default(), |sum, (i, &number)| {
                            let power = (f * i % n) as f64;
                            sum + number * Complex::root(-2.0 * PI * power / n as f64)
                        });
                (sum - self.other[f]).energy() < 1e-14
            })
    }
}

suite::export!(Transform);
