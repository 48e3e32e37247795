//! The reader of workload files.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use headway_words::nearest;
use toml::de::DeTable;

use crate::check;
use crate::empirical::Empirical;
use crate::error::{Error, Problem};
use crate::file::file_stem;
use crate::section::{Document, TomlSection};
use crate::service::ServiceDistribution;
use crate::trace::Trace;
use crate::workload::{Arrivals, Class, Phase, Workload};

const A_CLASS: &str = "[[class]] tables";
const A_PHASE_CLASS: &str = "[[phase.class]] tables";

pub(crate) fn read(text: &str, path: &Path) -> Result<Workload, Error> {
    let document = Document { path, text };
    let table = DeTable::parse(text).map_err(|error| {
        let offset = error.span().map_or(0, |span| span.start);
        document.error(
            offset,
            String::new(),
            Problem::Syntax(error.message().to_owned()),
        )
    })?;
    workload(&TomlSection::root(document, table.get_ref()))
}

fn workload(root: &TomlSection<'_>) -> Result<Workload, Error> {
    root.only(&["name", "arrivals", "class", "phase"])?;
    let name = match root.string("name")? {
        Some(name) => name.to_owned(),
        None => file_stem(root.document().path),
    };
    let arrivals = arrivals(root)?;
    let sections = root.sections("class", A_CLASS)?;
    let classes = match &arrivals {
        Arrivals::Trace(trace) => traced_classes(&sections, trace)?,
        _ => classes(&sections, &[])?,
    };
    let phases = root.sections("phase", "[[phase]] tables")?;
    if phases.is_empty() || !sections.is_empty() {
        check_mix(root, "class", &sections, &classes)?;
    }
    let phases = phases
        .iter()
        .map(|section| phase(section, &classes))
        .collect::<Result<_, _>>()?;
    let workload = Workload {
        name,
        arrivals,
        classes,
        phases,
    };
    check::across(&workload).map_err(|(key, problem)| root.error(key, problem))?;
    Ok(workload)
}

fn phase(section: &TomlSection<'_>, declared: &[Class]) -> Result<Phase, Error> {
    section.only(&["duration", "class"])?;
    let duration_ns = section.duration("duration")?.ok_or_else(|| {
        section.missing(
            "duration",
            "write how long the phase lasts, such as duration = \"10ms\"",
        )
    })?;
    check::duration(duration_ns).map_err(|problem| section.error("duration", problem))?;
    let sections = section.sections("class", A_PHASE_CLASS)?;
    let classes = if sections.is_empty() {
        declared.to_vec()
    } else {
        classes(&sections, declared)?
    };
    check_mix(section, "class", &sections, &classes)?;
    Ok(Phase {
        duration_ns,
        classes,
    })
}

/// Checks a mix; a wrong sum of shares is reported at the first class.
fn check_mix(
    parent: &TomlSection<'_>,
    key: &str,
    sections: &[TomlSection<'_>],
    classes: &[Class],
) -> Result<(), Error> {
    check::mix(classes).map_err(|violation| {
        match sections.get(violation.class.unwrap_or_default()) {
            Some(section) => section.error(&violation.key, *violation.problem),
            None => parent.error(key, *violation.problem),
        }
    })
}

fn arrivals(root: &TomlSection<'_>) -> Result<Arrivals, Error> {
    let Some(section) = root.section("arrivals", "a table, such as { process = \"poisson\" }")?
    else {
        return Ok(Arrivals::Poisson);
    };
    let process = section.string("process")?.unwrap_or("poisson");
    let arrivals = match process {
        "poisson" => only(&section, "process", &[]).map(|()| Arrivals::Poisson),
        "deterministic" => only(&section, "process", &[]).map(|()| Arrivals::Deterministic),
        "gamma" => gamma(&section),
        "trace" => trace(&section),
        _ => Err(unknown_name(
            &section,
            "process",
            "arrival process",
            process,
            &Arrivals::NAMES,
        )),
    }?;
    check::arrivals(&arrivals).map_err(|(key, problem)| section.error(key, problem))?;
    Ok(arrivals)
}

fn gamma(section: &TomlSection<'_>) -> Result<Arrivals, Error> {
    only(section, "process", &["cv"])?;
    let cv = section.number("cv")?.ok_or_else(|| {
        section.missing(
            "cv",
            "write the gaps' standard deviation ÷ mean, such as cv = 5.0",
        )
    })?;
    Ok(Arrivals::Gamma { cv })
}

fn trace(section: &TomlSection<'_>) -> Result<Arrivals, Error> {
    only(section, "process", &["file"])?;
    let file = section
        .string("file")?
        .ok_or_else(|| section.missing("file", "name the trace, such as file = \"trace.csv\""))?;
    let trace = Trace::read(beside(section, file))?;
    Ok(Arrivals::Trace(Arc::new(trace.named(PathBuf::from(file)))))
}

/// The classes of a trace, in the order of their declarations if there are any. Shares and service
/// times always come from the trace; a declaration adds `long` and `slo`.
fn traced_classes(sections: &[TomlSection<'_>], trace: &Trace) -> Result<Vec<Class>, Error> {
    let mut observed = trace.observed_classes();
    for (index, section) in sections.iter().enumerate() {
        let declared = class(section, &observed)?;
        if observed[..index]
            .iter()
            .any(|class| class.name == declared.name)
        {
            return Err(section.error(
                "name",
                Problem::DuplicateClass {
                    name: declared.name,
                },
            ));
        }
        let Some(found) = observed
            .iter()
            .skip(index)
            .position(|c| c.name == declared.name)
        else {
            let names: Vec<&str> = trace.classes().iter().map(String::as_str).collect();
            return Err(unknown_name(
                section,
                "name",
                "class of the trace",
                &declared.name,
                &names,
            ));
        };
        observed.swap(index, index + found);
        observed[index].long = declared.long;
        observed[index].slo = declared.slo;
    }
    Ok(observed)
}

fn classes(sections: &[TomlSection<'_>], declared: &[Class]) -> Result<Vec<Class>, Error> {
    sections
        .iter()
        .map(|section| class(section, declared))
        .collect()
}

/// A class; its missing keys come from the declaration of that name.
fn class(section: &TomlSection<'_>, declared: &[Class]) -> Result<Class, Error> {
    section.only(&["name", "share", "service", "long", "slo"])?;
    let name = section
        .string("name")?
        .ok_or_else(|| section.missing("name", "a class needs a name"))?;
    let model = declared.iter().find(|class| class.name == name);
    let share = section.number("share")?;
    let service = service(section)?;
    let slo = section.string("slo")?.map(str::to_owned);
    Ok(Class {
        name: name.to_owned(),
        share: share.or(model.map(|class| class.share)).ok_or_else(|| {
            section.missing(
                "share",
                "write the class's fraction of the requests, such as 0.5",
            )
        })?,
        service: service
            .or(model.map(|class| class.service.clone()))
            .ok_or_else(|| {
                let remedy = "write, for example, { dist = \"constant\", mean = \"5us\" }";
                section.missing("service", remedy)
            })?,
        long: section
            .boolean("long")?
            .or(model.and_then(|class| class.long)),
        slo: slo.or(model.and_then(|class| class.slo.clone())),
    })
}

fn service(class: &TomlSection<'_>) -> Result<Option<ServiceDistribution>, Error> {
    let expected = "a table, such as { dist = \"constant\", mean = \"5us\" }";
    let Some(section) = class.section("service", expected)? else {
        return Ok(None);
    };
    let dist = section
        .string("dist")?
        .ok_or_else(|| section.missing("dist", "name the distribution, such as \"constant\""))?;
    let service = match dist {
        "constant" => ServiceDistribution::Constant {
            mean_ns: mean(&section, &["mean"])?,
        },
        "exponential" => ServiceDistribution::Exponential {
            mean_ns: mean(&section, &["mean"])?,
        },
        "lognormal" => ServiceDistribution::Lognormal {
            mean_ns: mean(&section, &["mean", "cv"])?,
            cv: number(
                &section,
                "cv",
                "write the standard deviation ÷ mean, such as cv = 2.0",
            )?,
        },
        "uniform" => {
            let (min_ns, max_ns) = bounds(&section, &["min", "max"])?;
            ServiceDistribution::Uniform { min_ns, max_ns }
        }
        "pareto" => pareto(&section)?,
        "empirical" => ServiceDistribution::Empirical(Arc::new(empirical(&section)?)),
        _ => {
            return Err(unknown_name(
                &section,
                "dist",
                "distribution",
                dist,
                &ServiceDistribution::NAMES,
            ));
        }
    };
    service
        .check()
        .map_err(|(key, problem)| section.error(key, problem))?;
    Ok(Some(service))
}

fn mean(section: &TomlSection<'_>, known: &[&str]) -> Result<u64, Error> {
    only(section, "dist", known)?;
    required_duration(
        section,
        "mean",
        "write the mean service time, such as mean = \"5us\"",
    )
}

fn bounds(section: &TomlSection<'_>, known: &[&str]) -> Result<(u64, u64), Error> {
    only(section, "dist", known)?;
    let min_ns = required_duration(section, "min", "write the least, such as min = \"1us\"")?;
    let max_ns = required_duration(section, "max", "write the most, such as max = \"100us\"")?;
    Ok((min_ns, max_ns))
}

fn pareto(section: &TomlSection<'_>) -> Result<ServiceDistribution, Error> {
    let (min_ns, max_ns) = bounds(section, &["min", "max", "alpha"])?;
    let alpha = number(
        section,
        "alpha",
        "write the tail's exponent, such as alpha = 1.2",
    )?;
    Ok(ServiceDistribution::Pareto {
        min_ns,
        max_ns,
        alpha,
    })
}

fn empirical(section: &TomlSection<'_>) -> Result<Empirical, Error> {
    only(section, "dist", &["file", "samples", "weights"])?;
    if let Some(file) = section.string("file")? {
        if section.has("samples") || section.has("weights") {
            let problem = Problem::Conflict("write either `file`, or `samples` and `weights`");
            return Err(section.error("file", problem));
        }
        return Ok(Empirical::read(&beside(section, file))?.named(PathBuf::from(file)));
    }
    let samples_ns = section.durations("samples")?.ok_or_else(|| {
        section.missing(
            "file",
            "name a file of service times, or list them as `samples`",
        )
    })?;
    let weights = section
        .numbers("weights")?
        .unwrap_or_else(|| vec![1.0; samples_ns.len()]);
    if weights.len() != samples_ns.len() {
        let problem = Problem::Conflict("write as many weights as samples");
        return Err(section.error("weights", problem));
    }
    Ok(Empirical::new(
        samples_ns.into_iter().zip(weights).collect(),
    ))
}

fn required_duration(
    section: &TomlSection<'_>,
    key: &str,
    remedy: &'static str,
) -> Result<u64, Error> {
    section
        .duration(key)?
        .ok_or_else(|| section.missing(key, remedy))
}

fn number(section: &TomlSection<'_>, key: &str, remedy: &'static str) -> Result<f64, Error> {
    section
        .number(key)?
        .ok_or_else(|| section.missing(key, remedy))
}

/// Refuses all keys except the one that names the kind and the kind's own keys.
fn only(section: &TomlSection<'_>, kind: &str, own: &[&str]) -> Result<(), Error> {
    let known: Vec<&str> = std::iter::once(kind).chain(own.iter().copied()).collect();
    section.only(&known)
}

fn unknown_name(
    section: &TomlSection<'_>,
    key: &str,
    what: &'static str,
    given: &str,
    known: &[&str],
) -> Error {
    let problem = Problem::UnknownName {
        what,
        given: given.to_owned(),
        nearest: nearest(given, known).map(str::to_owned),
        known: known.join(", "),
    };
    section.error(key, problem)
}

/// Paths in a workload file are relative to its folder.
fn beside(section: &TomlSection<'_>, file: &str) -> PathBuf {
    section
        .document()
        .path
        .parent()
        .unwrap_or(Path::new(""))
        .join(file)
}
