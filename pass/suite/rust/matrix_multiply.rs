//! The product of two integer matrices by the definition (as Phoenix' matrix_multiply).
mod suite;

use suite::{Digest, Kernel, Random};

struct Matrices {
    size: usize,
    a: Vec<i32>,
    b: Vec<i32>,
    product: Vec<i32>,
}

impl Kernel for Matrices {
    const PASSES: u32 = 3;
    const EXPECTED: [u64; 2] = [0xf26921d5e7691aba, 0x34a98f9943c858ee];

    fn setup(full: bool) -> Self {
        let mut random = Random(7);
        let size = if full { 192 } else { 40 };
        let mut entry = || random.below(100) as i32 - 50;
        let (a, b) = (0..size * size).map(|_| (entry(), entry())).unzip();
        Self {
            size,
            a,
            b,
            product: vec![0; size * size],
        }
    }

    fn run(&mut self) {
        let size = self.size;
        for (row, products) in self
            .a
            .chunks_exact(size)
            .zip(self.product.chunks_exact_mut(size))
        {
            for (j, product) in products.iter_mut().enumerate() {
                let column = self.b[j..].iter().step_by(size);
                *product = row.iter().zip(column).map(|(a, b)| a * b).sum();
            }
        }
    }

    fn digest(&self) -> u64 {
        let bytes = self.product.iter().flat_map(|entry| entry.to_le_bytes());
        Digest::new().bytes(bytes).0
    }

    /// Freivalds: the product times a vector is what the factors make of it.
    fn valid(&self) -> bool {
        let mut random = Random(70);
        let vector: Vec<i64> = (0..self.size)
            .map(|_| i64::from(random.below(1000)))
            .collect();
        let times = |matrix: &[i32], vector: &[i64]| -> Vec<i64> {
            let rows = matrix.chunks_exact(self.size);
            rows.map(|row| row.iter().zip(vector).map(|(&x, y)| i64::from(x) * y).sum())
                .collect()
        };
        times(&self.product, &vector) == times(&self.a, &times(&self.b, &vector))
    }
}

suite::export!(Matrices);
