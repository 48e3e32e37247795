//! Lloyd's k-means on integer points (as Phoenix' kmeans), for a fixed number of rounds.
mod suite;

use suite::{Digest, Kernel, Random};

const DIMENSIONS: usize = 12;
const CLUSTERS: usize = 16;

type Point = [i32; DIMENSIONS];

struct KMeans {
    points: Vec<Point>,
    rounds: usize,
    means: [Point; CLUSTERS],
    nearest: Vec<i32>,
    spread_first: i64,
    spread_last: i64,
}

fn distance(a: &Point, b: &Point) -> i64 {
    let squares = a.iter().zip(b).map(|(a, b)| i64::from((a - b) * (a - b)));
    squares.sum()
}

impl KMeans {
    fn assign(&mut self) -> i64 {
        let mut spread = 0;
        for (point, nearest) in self.points.iter().zip(&mut self.nearest) {
            let mut best = i64::MAX;
            for (mean, c) in self.means.iter().zip(0..) {
                let away = distance(point, mean);
                if away < best {
                    (best, *nearest) = (away, c);
                }
            }
            spread += best;
        }
        spread
    }

    fn recompute_means(&mut self) {
        let (mut sums, mut sizes) = ([[0_i64; DIMENSIONS]; CLUSTERS], [0_i64; CLUSTERS]);
        for (point, &nearest) in self.points.iter().zip(&self.nearest) {
            sizes[nearest as usize] += 1;
            for (sum, &x) in sums[nearest as usize].iter_mut().zip(point) {
                *sum += i64::from(x);
            }
        }
        for ((mean, sum), size) in self.means.iter_mut().zip(sums).zip(sizes) {
            if size > 0 {
                *mean = sum.map(|sum| (sum / size) as i32);
            }
        }
    }
}

impl Kernel for KMeans {
    const PASSES: u32 = 2;
    const EXPECTED: [u64; 2] = [0x29f3466418600dce, 0xbf3b4741a3f0f92c];

    fn setup(full: bool) -> Self {
        let mut random = Random(3);
        let (count, rounds) = if full { (6000, 10) } else { (400, 4) };
        let mut point = |_| {
            let centre = u64::from(random.below(CLUSTERS as u32));
            std::array::from_fn(|d| {
                let mut place = Random(centre * 64 + d as u64);
                (place.word() % 1000) as i32 + random.below(300) as i32
            })
        };
        Self {
            points: (0..count).map(&mut point).collect(),
            rounds,
            means: [[0; DIMENSIONS]; CLUSTERS],
            nearest: vec![0; count],
            spread_first: 0,
            spread_last: 0,
        }
    }

    fn run(&mut self) {
        self.means = std::array::from_fn(|c| self.points[c * self.points.len() / CLUSTERS]);
        for round in 0..self.rounds {
            self.spread_last = self.assign();
            if round == 0 {
                self.spread_first = self.spread_last;
            }
            self.recompute_means();
        }
    }

    fn digest(&self) -> u64 {
        let means = self.means.iter().flatten().flat_map(|x| x.to_le_bytes());
        let nearest = self.nearest.iter().flat_map(|c| c.to_le_bytes());
        let mut digest = Digest::new();
        digest
            .word(self.spread_first as u64)
            .word(self.spread_last as u64);
        digest.bytes(means).bytes(nearest).0
    }

    /// Rounds never widen the clusters, and here they gain much.
    fn valid(&self) -> bool {
        self.spread_last < self.spread_first && self.spread_last > 0
    }
}

suite::export!(KMeans);
