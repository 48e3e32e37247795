//! How many cores each group gets (Pallas § 4.3, Equation 1).

use alloc::vec::Vec;

/// Divides `cores` among groups in proportion to their demands, whole cores by the largest remainder (the first among
/// equals), at least one each: `R_g = D_g / Σ D · R_total`. Overwrites `given`.
///
/// # Panics
/// When there are more groups than cores.
pub fn provision(demands: &[f64], cores: usize, given: &mut Vec<usize>) {
    assert!(
        demands.len() <= cores,
        "{} groups cannot share {cores} cores",
        demands.len()
    );
    let total: f64 = demands.iter().sum();
    let exact = |group: usize| {
        if total > 0.0 {
            demands[group] / total * cores as f64
        } else {
            cores as f64 / demands.len() as f64
        }
    };
    given.clear();
    given.extend((0..demands.len()).map(|group| (exact(group) as usize).min(cores)));
    // Rounding errors aside there are fewer cores left over than groups.
    while given.iter().sum::<usize>() < cores {
        let most = largest(demands.len(), |group| exact(group) - given[group] as f64);
        given[most] += 1;
    }
    while given.iter().sum::<usize>() > cores {
        let most = largest(demands.len(), |group| given[group] as f64 - exact(group));
        given[most] -= 1;
    }
    while let Some(without) = given.iter().position(|&cores| cores == 0) {
        // Whoever has the most beyond its demand can spare one; with a core in hand first of all.
        let most = largest(demands.len(), |group| match given[group] {
            0 | 1 => f64::NEG_INFINITY,
            cores => cores as f64 - exact(group),
        });
        given[most] -= 1;
        given[without] += 1;
    }
}

fn largest(groups: usize, key: impl Fn(usize) -> f64) -> usize {
    (0..groups)
        .reduce(|best: usize, other: usize| if key(other) > key(best) { other } else { best })
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn given(demands: &[f64], cores: usize) -> Vec<usize> {
        let mut given = Vec::new();
        provision(demands, cores, &mut given);
        given
    }

    #[test]
    fn pallas_workloads_on_80_cores() {
        assert_eq!(given(&[9.0, 10.0], 80), [38, 42]);
        assert_eq!(given(&[5.0, 50.0], 80), [7, 73]);
        assert_eq!(given(&[5.0, 50.0, 500.0], 80), [1, 7, 72]);
    }

    #[test]
    fn a_group_of_next_to_no_demand_gets_a_core() {
        assert_eq!(given(&[1e-9, 1.0], 4), [1, 3]);
        assert_eq!(given(&[0.0, 0.0, 1.0], 3), [1, 1, 1]);
    }

    proptest! {
        /// All cores are given, at least one a group, and nobody is more than a core away from its share but for those
        /// that got, or gave up, a core for the minimum.
        #[test]
        fn all_cores_are_given(demands in prop::collection::vec(0.0f64..1e3, 1..12), spare in 0usize..500) {
            let cores = demands.len() + spare;
            let given = given(&demands, cores);
            prop_assert_eq!(given.iter().sum::<usize>(), cores);
            prop_assert!(given.iter().all(|&cores| cores >= 1));
            let total: f64 = demands.iter().sum();
            if total > 0.0 {
                let exact: Vec<f64> = demands.iter().map(|d| d / total * cores as f64).collect();
                if exact.iter().all(|&cores| cores >= 1.0) {
                    let off = |(given, exact): (&usize, &f64)| (*given as f64 - exact).abs();
                    prop_assert!(given.iter().zip(&exact).map(off).all(|off| off < 1.0 + 1e-9));
                }
            }
        }
    }
}
