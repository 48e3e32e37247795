//! The cores of a live server.

use crate::Trial;
use headway_runtime::Layout;
use headway_sim::SystemCores;

impl Trial {
    /// The cores of the server: where the workers take turns as the dispatcher or the monitor, there are none beside them.
    #[must_use]
    pub fn cores(&self) -> SystemCores {
        let cores = self.experiment.server_cores();
        if self.layout == Layout::Dedicated {
            return cores;
        }
        SystemCores {
            beside: 0,
            beside_serving: 0,
            ..cores
        }
    }
}
