//! PageRank by power iteration over a graph in compressed rows; each page pulls from those that link to it.
mod suite;

use suite::{Digest, Kernel, Random};

const DEGREE: usize = 16;

struct PageRank {
    /// Where each page's sources begin, and the end of the last.
    begin: Vec<u32>,
    source: Vec<u32>,
    out_degree: Vec<u32>,
    iterations: usize,
    rank: Vec<f64>,
    share: Vec<f64>,
}

impl PageRank {
    fn pull(&self, page: usize) -> f64 {
        let sources = &self.source[self.begin[page] as usize..self.begin[page + 1] as usize];
        sources
            .iter()
            .map(|&source| self.share[source as usize])
            .fold(0.0, |sum, share| sum + share)
    }
}

impl Kernel for PageRank {
    const PASSES: u32 = 10;
    const EXPECTED: [u64; 2] = [0x0c35d2dd390f5ae8, 0x13d1f88ac965460d];

    fn setup(full: bool) -> Self {
        let mut random = Random(27);
        let (pages, iterations) = if full { (6000, 10) } else { (1000, 4) };
        // Some pages link much more than others.
        let mut drawn = || {
            let u = random.uniform();
            (u * u * f64::from(pages)) as u32
        };
        let source: Vec<u32> = (0..pages as usize * DEGREE).map(|_| drawn()).collect();
        let mut out_degree = vec![0; pages as usize];
        for &page in &source {
            out_degree[page as usize] += 1;
        }
        Self {
            begin: (0..=pages).map(|page| page * DEGREE as u32).collect(),
            source,
            out_degree,
            iterations,
            rank: vec![0.0; pages as usize],
            share: vec![0.0; pages as usize],
        }
    }

    fn run(&mut self) {
        let pages = self.rank.len();
        self.rank.fill(1.0 / pages as f64);
        let mut next = vec![0.0; pages];
        for _ in 0..self.iterations {
            let mut dangling = 0.0;
            for ((share, &rank), &links) in
                self.share.iter_mut().zip(&self.rank).zip(&self.out_degree)
            {
                *share = if links > 0 {
                    rank / f64::from(links)
                } else {
                    0.0
                };
                if links == 0 {
                    dangling += rank;
                }
            }
            for (page, next) in next.iter_mut().enumerate() {
                *next = (0.15 + 0.85 * dangling) / pages as f64 + 0.85 * self.pull(page);
            }
            self.rank.copy_from_slice(&next);
        }
    }

    fn digest(&self) -> u64 {
        let mut digest = Digest::new();
        for rank in &self.rank {
            digest.real(rank * 1e4);
        }
        digest.0
    }

    /// Ranks are a distribution.
    fn valid(&self) -> bool {
        let least = 0.15 / self.rank.len() as f64;
        self.rank.iter().all(|&rank| rank >= least)
            && (self.rank.iter().sum::<f64>() - 1.0).abs() < 1e-9
    }
}

suite::export!(PageRank);
