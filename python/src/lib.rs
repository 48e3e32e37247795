//! The compiled part of the Python package `headway`: the simulator and the planner, asked in words.
//!
//! Arguments arrive as texts and are read by `headway_study`, as the command's flags are; results leave as the JSON that the
//! command prints. So package and command cannot differ in a default, a sentence or a bit. The package's Python files give both
//! their types.

mod answers;
mod asked;
mod custom;
mod custom_contract;
mod custom_run;
mod errors;
mod interrupt;
mod reproduced;
mod views;
mod workload;

use pyo3::prelude::*;

/// The compiled part of the package `headway`.
#[pymodule]
mod _native {
    #[pymodule_export]
    use crate::answers::{
        canonical, capacity, check, fit, intervals_of, loads, mean_interval, meets, plan, policies,
        simulate, slo_use, sweep_point,
    };
    #[pymodule_export]
    use crate::custom_contract::play_contract;
    #[pymodule_export]
    use crate::custom_run::simulate_custom;
    #[pymodule_export]
    use crate::errors::HeadwayError;
    #[pymodule_export]
    use crate::interrupt::Cutoff;
    #[pymodule_export]
    use crate::reproduced::{
        experiment, experiment_task, experiment_tasks, experiments, reproduction,
    };
    #[pymodule_export]
    use crate::views::{JobView, QueuesView, ShapeView};
    #[pymodule_export]
    use crate::workload::NativeWorkload;

    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        let end_runs = wrap_pyfunction!(crate::interrupt::end_runs, module)?;
        let atexit = module.py().import("atexit")?;
        atexit.call_method1("register", (end_runs,))?;
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
