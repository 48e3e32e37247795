//! Choice among weighted alternatives in constant time: Vose, "A Linear Algorithm for Generating
//! Random Numbers with a Given Distribution", IEEE TSE 17(9), 1991.

use crate::random::Stream;

/// An alias table over the indices `0..len`.
#[derive(Debug, Clone)]
pub(crate) struct Alias {
    cells: Box<[Cell]>,
}

/// A cell yields its own index for words below `keep` (a fraction of 2⁶⁴), and `other` above.
#[derive(Debug, Clone, Copy)]
struct Cell {
    keep: u64,
    other: u32,
}

impl Alias {
    /// A table that draws index `i` with probability `weights[i]` ÷ their sum.
    ///
    /// # Panics
    /// When there are no weights, or more than `u32::MAX`. The caller checks that each weight is
    /// finite and at least 0, and that the sum is above 0.
    pub(crate) fn new(weights: &[f64]) -> Self {
        let len = u32::try_from(weights.len()).expect("at most u32::MAX alternatives");
        assert!(len > 0, "a choice needs an alternative");
        let scale = f64::from(len) / weights.iter().sum::<f64>();
        let mut scaled: Vec<f64> = weights.iter().map(|weight| weight * scale).collect();
        let mut cells: Vec<Cell> = (0..len)
            .map(|other| Cell {
                keep: u64::MAX,
                other,
            })
            .collect();
        let (mut small, mut large): (Vec<u32>, Vec<u32>) =
            (0..len).partition(|&index| scaled[index as usize] < 1.0);
        while let (Some(&donor), Some(index)) = (large.last(), small.pop()) {
            let kept = scaled[index as usize];
            cells[index as usize] = Cell {
                keep: fraction_of_word(kept),
                other: donor,
            };
            scaled[donor as usize] -= 1.0 - kept;
            if scaled[donor as usize] < 1.0 {
                large.pop();
                small.push(donor);
            }
        }
        Self {
            cells: cells.into(),
        }
    }

    /// The index for one random word: the product's high half is the cell, its low half the position within the cell.
    #[inline]
    pub(crate) fn sample(&self, stream: &mut Stream) -> usize {
        let product = u128::from(stream.word()) * self.cells.len() as u128;
        let cell = (product >> 64) as usize;
        let Cell { keep, other } = self.cells[cell];
        if (product as u64) < keep {
            cell
        } else {
            other as usize
        }
    }
}

fn fraction_of_word(fraction: f64) -> u64 {
    (fraction * 18_446_744_073_709_551_616.0) as u64
}
