//! Request classes, service-time and arrival distributions, traces, and the workloads of the literature by name.
