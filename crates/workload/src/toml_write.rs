//! The writer of workload files.

use std::fmt::Write;
use std::path::Path;

use crate::duration;
use crate::empirical::Empirical;
use crate::service::ServiceDistribution;
use crate::workload::{Arrivals, Class, Workload};

impl Workload {
    /// Writes a workload file that reads back as an equal workload. Traces and samples that came
    /// from a file are written as that file's name, as it was given.
    #[must_use]
    pub fn to_toml(&self) -> String {
        write(self)
    }
}

fn write(workload: &Workload) -> String {
    let mut out = format!("name = {}\n", quoted(&workload.name));
    put(
        &mut out,
        format_args!("arrivals = {}\n", arrivals(&workload.arrivals)),
    );
    let from_trace = matches!(workload.arrivals, Arrivals::Trace(_));
    for class in &workload.classes {
        out.push_str("\n[[class]]\n");
        put_class(&mut out, class, from_trace);
    }
    for phase in &workload.phases {
        let duration = duration::format(phase.duration_ns);
        put(
            &mut out,
            format_args!("\n[[phase]]\nduration = \"{duration}\"\n"),
        );
        for class in &phase.classes {
            out.push_str("\n[[phase.class]]\n");
            put_class(&mut out, class, from_trace);
        }
    }
    out
}

/// Shares and service times come from the trace; written copies could contradict it.
fn put_class(out: &mut String, class: &Class, from_trace: bool) {
    put(out, format_args!("name = {}\n", quoted(&class.name)));
    if !from_trace {
        put(out, format_args!("share = {:?}\n", class.share));
        put(out, format_args!("service = {}\n", service(&class.service)));
    }
    if let Some(long) = class.long {
        put(out, format_args!("long = {long}\n"));
    }
    if let Some(slo) = &class.slo {
        put(out, format_args!("slo = {}\n", quoted(slo)));
    }
}

fn arrivals(arrivals: &Arrivals) -> String {
    let process = arrivals.name();
    match arrivals {
        Arrivals::Poisson | Arrivals::Deterministic => format!("{{ process = \"{process}\" }}"),
        Arrivals::Gamma { cv } => format!("{{ process = \"{process}\", cv = {cv:?} }}"),
        Arrivals::Trace(trace) => {
            format!(
                "{{ process = \"{process}\", file = {} }}",
                quoted_path(trace.file())
            )
        }
    }
}

fn service(service: &ServiceDistribution) -> String {
    let parameters = match service {
        ServiceDistribution::Constant { mean_ns }
        | ServiceDistribution::Exponential { mean_ns } => ns("mean", *mean_ns),
        ServiceDistribution::Lognormal { mean_ns, cv } => {
            format!("{}, cv = {cv:?}", ns("mean", *mean_ns))
        }
        ServiceDistribution::Uniform { min_ns, max_ns } => bounds(*min_ns, *max_ns),
        ServiceDistribution::Pareto {
            min_ns,
            max_ns,
            alpha,
        } => {
            format!("{}, alpha = {alpha:?}", bounds(*min_ns, *max_ns))
        }
        ServiceDistribution::Empirical(empirical) => samples(empirical),
    };
    format!("{{ dist = \"{}\", {parameters} }}", service.name())
}

fn ns(key: &str, ns: u64) -> String {
    format!("{key} = \"{}\"", duration::format(ns))
}

fn bounds(min_ns: u64, max_ns: u64) -> String {
    format!("{}, {}", ns("min", min_ns), ns("max", max_ns))
}

fn samples(empirical: &Empirical) -> String {
    if let Some(file) = empirical.file() {
        return format!("file = {}", quoted_path(file));
    }
    let list = |item: fn(&(u64, f64)) -> String| {
        empirical
            .points()
            .iter()
            .map(item)
            .collect::<Vec<_>>()
            .join(", ")
    };
    let samples = list(|(service_ns, _)| format!("\"{}\"", duration::format(*service_ns)));
    let weights = list(|(_, weight)| format!("{weight:?}"));
    format!("samples = [{samples}], weights = [{weights}]")
}

fn quoted_path(path: &Path) -> String {
    quoted(&path.display().to_string())
}

/// A basic TOML string on one line, for any content.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c.is_control() => put(&mut out, format_args!("\\u{:04x}", c as u32)),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

fn put(out: &mut String, text: std::fmt::Arguments<'_>) {
    out.write_fmt(text)
        .expect("writing to a string cannot fail");
}
