//! Exponential variates by the ziggurat: Marsaglia & Tsang, "The Ziggurat Method for Generating
//! Random Variables", Journal of Statistical Software 5(8), 2000.
//!
//! A logarithm per arrival would cost more than all the rest of the generator. Of 100 draws here,
//! about 99 need one word, one table look-up and one multiplication.

use std::sync::LazyLock;

use crate::random::{Stream, unit_interval};

const LAYERS: usize = 256;
/// Start of the base layer's tail, for 256 layers (section 4 of the paper).
const TAIL_START: f64 = 7.697_117_470_131_05;
/// The area of each layer.
const LAYER_AREA: f64 = 3.949_659_822_581_557e-3;

static TABLES: LazyLock<Tables> = LazyLock::new(Tables::new);

/// Draws exponential variates with mean 1. It holds the tables' address, so a draw skips the check
/// whether they are built.
#[derive(Clone, Copy)]
pub(crate) struct Exponential(&'static Tables);

/// Layer `i` reaches from 0 to `edge[i]` and from `density(edge[i])` up to `density(edge[i + 1])`.
struct Tables {
    edge: [f64; LAYERS + 1],
    density: [f64; LAYERS + 1],
}

impl Exponential {
    pub(crate) fn new() -> Self {
        Self(&TABLES)
    }

    /// One variate with mean 1. The low 8 bits of a word choose the layer, the top 53 the position
    /// in it.
    #[inline]
    pub(crate) fn sample(self, stream: &mut Stream) -> f64 {
        let word = stream.word();
        let layer = (word & 0xff) as usize;
        let x = unit_interval(word) * self.0.edge[layer];
        if x < self.0.edge[layer + 1] {
            x
        } else {
            self.edge_case(layer, x, stream)
        }
    }

    /// The position may lie above the curve: compare it with the density, and draw again if it does.
    #[cold]
    fn edge_case(self, layer: usize, x: f64, stream: &mut Stream) -> f64 {
        if layer == 0 {
            // The tail of an exponential is the same exponential again.
            return TAIL_START - libm::log(stream.uniform());
        }
        let Tables { density, .. } = self.0;
        let y = density[layer + 1] + (density[layer] - density[layer + 1]) * stream.uniform();
        if y < libm::exp(-x) {
            x
        } else {
            self.sample(stream)
        }
    }
}

impl std::fmt::Debug for Exponential {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Exponential")
    }
}

impl Tables {
    fn new() -> Self {
        let mut edge = [0.0; LAYERS + 1];
        // The base layer is a rectangle of the same area with the tail folded in.
        edge[0] = LAYER_AREA / libm::exp(-TAIL_START);
        edge[1] = TAIL_START;
        for layer in 2..LAYERS {
            let below = edge[layer - 1];
            edge[layer] = -libm::log(LAYER_AREA / below + libm::exp(-below));
        }
        Self {
            edge,
            density: edge.map(|x| libm::exp(-x)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The constants are right exactly when the last layer ends at the density's peak.
    #[test]
    fn layers_close_at_the_peak() {
        let Tables { edge, density } = &*TABLES;
        let top = edge[LAYERS - 1] * (1.0 - density[LAYERS - 1]);
        assert!(
            (top / LAYER_AREA - 1.0).abs() < 1e-9,
            "area of the last layer: {top}"
        );
        assert!(edge.windows(2).all(|pair| pair[0] > pair[1]));
    }
}
