//! Molecular dynamics of rigid-ish water, every pair of molecules (as Splash-2's water-nsquared):
//! three charged sites a molecule, springs inside, Lennard-Jones between oxygens, periodic box,
//! velocity Verlet. Units: ångström, picosecond, atomic mass, energies accordingly.
mod suite;

use std::array::from_fn;
use suite::{Digest, Kernel, Random};

const SITES: usize = 3;
type Vector = [f64; 3];
type Molecule = [Vector; SITES];

const MASS: [f64; SITES] = [16.0, 1.0, 1.0];
const CHARGE: [f64; SITES] = [-0.82, 0.41, 0.41];
const COULOMB: f64 = 138935.5 / 100.0;
const SPRING: f64 = 30000.0;
const BOND: f64 = 1.0;
const ANGLE_BOND: f64 = 1.633;
const CUTOFF: f64 = 8.0;
const LJ_EPSILON: f64 = 65.0;
const LJ_SIGMA: f64 = 3.166;
const DT: f64 = 0.0002;

fn square(way: Vector) -> f64 {
    way.iter().fold(0.0, |sum, x| sum + x * x)
}

/// Pulls two sites of a molecule together or apart; the energy.
fn spring(at: &Molecule, force: &mut Molecule, (a, b): (usize, usize), rest: f64) -> f64 {
    let way: Vector = from_fn(|axis| at[b][axis] - at[a][axis]);
    let length = square(way).sqrt();
    let pull = SPRING * (length - rest) / length;
    for axis in 0..3 {
        force[a][axis] += pull * way[axis];
        force[b][axis] -= pull * way[axis];
    }
    0.5 * SPRING * (length - rest) * (length - rest)
}

fn nearest_image(way: f64, side: f64) -> f64 {
    if way > side / 2.0 {
        way - side
    } else if way < -side / 2.0 {
        way + side
    } else {
        way
    }
}

/// The forces between the sites of two molecules are added to each; `potential` grows by their energies. The shift that brings the
/// oxygen of `b` next to that of `a` holds for all their sites.
fn attract(
    (a, on_a): (&Molecule, &mut Molecule),
    (b, on_b): (&Molecule, &mut Molecule),
    side: f64,
    potential: &mut f64,
) {
    let ways: Vector = from_fn(|axis| b[0][axis] - a[0][axis]);
    let nearest = ways.map(|way| nearest_image(way, side));
    if square(nearest) > CUTOFF * CUTOFF {
        return;
    }
    let shift: Vector = from_fn(|axis| nearest[axis] - ways[axis]);
    for s in 0..SITES {
        for t in 0..SITES {
            let way: Vector = from_fn(|axis| b[t][axis] + shift[axis] - a[s][axis]);
            let inverse = 1.0 / square(way);
            let mut energy = COULOMB * CHARGE[s] * CHARGE[t] * inverse.sqrt();
            let mut push = energy * inverse;
            if s == 0 && t == 0 {
                let ratio = LJ_SIGMA * LJ_SIGMA * inverse;
                let sixth = ratio * ratio * ratio;
                energy += 4.0 * LJ_EPSILON * (sixth * sixth - sixth);
                push += 24.0 * LJ_EPSILON * (2.0 * sixth * sixth - sixth) * inverse;
            }
            *potential += energy;
            for axis in 0..3 {
                on_a[s][axis] -= push * way[axis];
                on_b[t][axis] += push * way[axis];
            }
        }
    }
}

struct Water {
    start: Vec<Molecule>,
    position: Vec<Molecule>,
    velocity: Vec<Molecule>,
    force: Vec<Molecule>,
    steps: usize,
    side: f64,
    potential: f64,
}

impl Water {
    fn compute_forces(&mut self) {
        let mut potential = 0.0;
        self.force.fill(Molecule::default());
        for (at, force) in self.position.iter().zip(&mut self.force) {
            potential += spring(at, force, (0, 1), BOND);
            potential += spring(at, force, (0, 2), BOND);
            potential += spring(at, force, (1, 2), ANGLE_BOND);
        }
        for first in 0..self.position.len() {
            let (upto, behind) = self.force.split_at_mut(first + 1);
            for (b, on_b) in self.position[first + 1..].iter().zip(behind) {
                let a = (&self.position[first], &mut upto[first]);
                attract(a, (b, on_b), self.side, &mut potential);
            }
        }
        self.potential = potential;
    }

    fn kick(&mut self, dt: f64) {
        for (velocity, force) in self.velocity.iter_mut().zip(&self.force) {
            for s in 0..SITES {
                for axis in 0..3 {
                    velocity[s][axis] += force[s][axis] / MASS[s] * dt;
                }
            }
        }
    }

    fn drift(&mut self) {
        let velocities = self.velocity.iter().flatten().flatten();
        for (x, v) in self.position.iter_mut().flatten().flatten().zip(velocities) {
            *x += v * DT;
        }
    }
}

impl Kernel for Water {
    const PASSES: u32 = 2;
    const EXPECTED: [u64; 2] = [0xe76d5d7b65fc0dd5, 0x5d89ba9db0f57d46];

    fn setup(full: bool) -> Self {
        let mut random = Random(16);
        let (side, steps) = if full { (6_usize, 5) } else { (3, 2) };
        let mut molecule = |m: usize| {
            let place = [m % side, m / side % side, m / side / side];
            let at = place.map(|place| 3.1 * place as f64 + 0.2 * random.uniform());
            let [x, y, z] = at;
            [at, [x + 0.8165, y + 0.5774, z], [x - 0.8165, y + 0.5774, z]]
        };
        let start: Vec<Molecule> = (0..side * side * side).map(&mut molecule).collect();
        Self {
            position: start.clone(),
            velocity: vec![Molecule::default(); start.len()],
            force: vec![Molecule::default(); start.len()],
            start,
            steps,
            side: 3.1 * side as f64,
            potential: 0.0,
        }
    }

    fn run(&mut self) {
        self.position.copy_from_slice(&self.start);
        self.velocity.fill(Molecule::default());
        self.compute_forces();
        for _ in 0..self.steps {
            self.kick(DT / 2.0);
            self.drift();
            self.compute_forces();
            self.kick(DT / 2.0);
        }
    }

    fn digest(&self) -> u64 {
        let mut digest = Digest::new();
        digest.real(self.potential);
        for &x in self.position.iter().flatten().flatten() {
            digest.real(x);
        }
        digest.0
    }

    /// Action and reaction: the momentum, zero at first, stays zero. The molecules hold together.
    fn valid(&self) -> bool {
        let momentum = |axis: usize| -> f64 {
            let of =
                |molecule: &Molecule| (0..SITES).map(|s| MASS[s] * molecule[s][axis]).sum::<f64>();
            self.velocity.iter().map(of).sum()
        };
        let together = |molecule: &Molecule| {
            let apart = |site: &Vector| {
                site.iter()
                    .zip(molecule[0])
                    .all(|(x, y)| (x - y).abs() <= 1.3)
            };
            molecule.iter().all(apart)
        };
        (0..3).map(|axis| momentum(axis).abs()).sum::<f64>() < 1e-6
            && self.position.iter().all(together)
    }
}

suite::export!(Water);
