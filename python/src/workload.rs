//! Workloads: by name, of a file, of a text, or of arrays.

use crate::errors::{HeadwayError, mistaken_at};
use headway_workload::log::{Format, ServiceModel};
use headway_workload::{Arrivals, Trace, TraceOptions, Workload};
use numpy::PyReadonlyArray1;
use pyo3::prelude::*;

/// The requests that arrive, but for their rate.
#[pyclass(frozen, module = "headway._native")]
pub(crate) struct NativeWorkload(pub(crate) Workload);

fn refused(error: headway_workload::Error) -> PyErr {
    mistaken_at("workload", error)
}

#[pymethods]
impl NativeWorkload {
    /// By name or of a file; a trace or log is read as the options say.
    #[staticmethod]
    fn resolve(
        py: Python<'_>,
        name_or_file: &str,
        trace_format: Option<&str>,
        service: Option<&str>,
        skip_zero: bool,
    ) -> PyResult<Self> {
        let format = trace_format.map(Format::from_name).transpose();
        let services = service.map(str::parse::<ServiceModel>).transpose();
        let is_given = trace_format.is_some() || service.is_some() || skip_zero;
        let options = TraceOptions {
            format: format.map_err(|error| mistaken_at("trace_format", error))?,
            services: services
                .map_err(|error| mistaken_at("service", error))?
                .unwrap_or_default(),
            skip_zero,
        };
        let read = || Workload::resolve_with(name_or_file, &options);
        let workload = py.detach(read).map_err(refused)?;
        if is_given && !matches!(workload.arrivals, Arrivals::Trace(_)) {
            let why = format!("'{name_or_file}' is no trace or log, so it is not read as one");
            return Err(mistaken_at("workload", why));
        }
        Ok(Self(workload))
    }

    /// Of the text of a workload file.
    #[staticmethod]
    fn from_toml(text: &str, path: &str) -> PyResult<Self> {
        Ok(Self(Workload::from_toml_str(text, path).map_err(refused)?))
    }

    /// Of arrays: each request's arrival in ns, its class as an index, its service time in ns.
    #[staticmethod]
    fn from_arrays(
        py: Python<'_>,
        name: &str,
        classes: Vec<String>,
        arrivals_ns: PyReadonlyArray1<'_, u64>,
        class_: PyReadonlyArray1<'_, u16>,
        service_ns: PyReadonlyArray1<'_, u64>,
    ) -> PyResult<Self> {
        let contiguous = |_| HeadwayError::new_err("arrays: must be contiguous");
        let at_ns = arrivals_ns.as_slice().map_err(contiguous)?;
        let class = class_.as_slice().map_err(contiguous)?;
        let service_ns = service_ns.as_slice().map_err(contiguous)?;
        let build = || Trace::from_columns(name, classes, at_ns, class, service_ns);
        let workload = py.detach(|| build().map(|trace| trace.into_workload(name)));
        Ok(Self(workload.map_err(refused)?))
    }

    /// The name in reports.
    #[getter]
    fn name(&self) -> &str {
        &self.0.name
    }

    /// The names of the classes, in the order of their indices.
    #[getter]
    fn classes(&self) -> Vec<&str> {
        self.0.class_names()
    }

    /// The mean service time, µs.
    #[getter]
    fn mean_service_us(&self) -> f64 {
        self.0.mean_service_ns() / 1e3
    }

    /// The number of recorded requests; none where the workload is not a trace.
    #[getter]
    fn requests(&self) -> Option<usize> {
        match &self.0.arrivals {
            Arrivals::Trace(trace) => Some(trace.records().len()),
            _ => None,
        }
    }

    /// The rate, requests per second, that loads so many workers to a fraction.
    fn rate_for_load(&self, load: f64, workers: usize) -> f64 {
        self.0.rate_for_load(load, workers)
    }

    /// The text of a workload file.
    fn to_toml(&self) -> String {
        self.0.to_toml()
    }
}
