//! `--app`: one application of a host, in one argument.

use crate::{Mistake, parse, server_policy};
use headway_sim::host::{App, RateStep};
use headway_words::nearest;
use headway_workload::{Workload, duration, rate};

/// What an application may say.
const KEYS: &[&str] = &["workload", "load", "rate", "cores", "policy"];

/// Reads `NAME:batch[,cores=…]` or `NAME:workload=…,load=…|rate=…[,cores=…][,policy=…]`, with `,refuses` where its kthreads do not leave when they
/// are told to. A load is one of all the host's cores; what follows `policy=` belongs to the policy.
///
/// # Errors
/// The text is none of these, or something in it is wrong.
pub fn app(text: &str, host_cores: usize) -> Result<App, Mistake> {
    let fault = |problem: String| Mistake::at("app", format!("'{text}': {problem}"));
    let (name, rest) = text
        .split_once(':')
        .filter(|(name, _)| !name.is_empty())
        .ok_or_else(|| fault("write NAME:batch or NAME:workload=…,load=…".into()))?;
    let mut fields = Fields::read(rest).map_err(&fault)?;
    let cores = fields.take("cores");
    let refuses = fields.refuses;
    let app = if fields.batch {
        App::batch(name)
    } else {
        server(name, &mut fields, host_cores).map_err(&fault)?
    };
    if let Some((key, _)) = fields.given.first() {
        return Err(fault(format!("a batch application has no '{key}'")));
    }
    let (guaranteed, most) = match cores {
        Some(cores) => limits(&cores, host_cores).map_err(&fault)?,
        None => (0, None),
    };
    Ok(App {
        guaranteed,
        most,
        refuses,
        ..app
    })
}

/// The fields behind the name.
struct Fields {
    batch: bool,
    refuses: bool,
    given: Vec<(String, String)>,
}

impl Fields {
    fn read(text: &str) -> Result<Self, String> {
        let (text, policy) = match text.split_once("policy=") {
            Some((before, policy)) => (before.trim_end_matches(','), Some(policy)),
            None => (text, None),
        };
        let mut fields = Self {
            batch: false,
            refuses: false,
            given: Vec::new(),
        };
        for part in text.split(',').filter(|part| !part.is_empty()) {
            match part.split_once('=') {
                None if part == "batch" => fields.batch = true,
                None if part == "refuses" => fields.refuses = true,
                None => {
                    return Err(format!(
                        "'{part}' is neither 'batch', 'refuses' nor key=value"
                    ));
                }
                Some((key, value)) if KEYS.contains(&key) => {
                    fields.given.push((key.into(), value.into()));
                }
                Some((key, _)) => return Err(unknown(key)),
            }
        }
        fields
            .given
            .extend(policy.map(|policy| ("policy".into(), policy.into())));
        Ok(fields)
    }

    /// The last of repeated keys wins, as with flags.
    fn take(&mut self, key: &str) -> Option<String> {
        let value = self.given.iter().rfind(|(name, _)| name == key)?.1.clone();
        self.given.retain(|(name, _)| name != key);
        Some(value)
    }
}

fn unknown(key: &str) -> String {
    let valid = KEYS.join(", ");
    match nearest(key, KEYS) {
        Some(word) => {
            format!("no key is called '{key}'; did you mean '{word}'? There are: {valid}")
        }
        None => format!("no key is called '{key}'; there are: {valid}"),
    }
}

fn server(name: &str, fields: &mut Fields, host_cores: usize) -> Result<App, String> {
    let workload = fields
        .take("workload")
        .ok_or("it needs a workload, or to be a 'batch' application")?;
    let workload = Workload::resolve(&workload).map_err(|error| format!("workload: {error}"))?;
    let steps = match (fields.take("load"), fields.take("rate")) {
        (Some(load), None) => {
            let load = parse::load(&load)?;
            vec![step(u64::MAX, workload.rate_for_load(load, host_cores))]
        }
        (None, Some(rates)) => rate_steps(&rates)?,
        _ => return Err("it needs either a load or a rate".into()),
    };
    let app = App::server(name, workload, steps[0].rate_rps).steps(&steps);
    Ok(match fields.take("policy") {
        Some(policy) => {
            app.policy(server_policy(&policy).map_err(|error| format!("policy: {error}"))?)
        }
        None => app,
    })
}

fn step(lasts_ns: u64, rate_rps: f64) -> RateStep {
    RateStep { lasts_ns, rate_rps }
}

/// `5M`, or steps: `100k/1s+5M/1s+100k`.
fn rate_steps(text: &str) -> Result<Vec<RateStep>, String> {
    let parts: Vec<&str> = text.split('+').collect();
    parts
        .iter()
        .enumerate()
        .map(|(index, part): (usize, &&str)| match part.split_once('/') {
            Some((rate_rps, lasts)) => Ok(step(
                duration::parse(lasts).map_err(|error| error.to_string())?,
                rate::parse(rate_rps).map_err(|error| error.to_string())?,
            )),
            None if index + 1 == parts.len() => {
                let rate_rps = rate::parse(part).map_err(|error| error.to_string())?;
                Ok(step(u64::MAX, rate_rps))
            }
            None => Err(format!(
                "step '{part}' does not say how long: write RATE/TIME"
            )),
        })
        .collect()
}

/// `4`: guaranteed, and all others burstable; `4..8`: 8 at most.
fn limits(text: &str, host_cores: usize) -> Result<(usize, Option<usize>), String> {
    let number = |part: &str| {
        let message =
            format!("cores={text}: write GUARANTEED or GUARANTEED..MOST, up to {host_cores}");
        match part.parse::<usize>() {
            Ok(cores) if cores <= host_cores => Ok(cores),
            _ => Err(message),
        }
    };
    match text.split_once("..") {
        Some((guaranteed, most)) => Ok((number(guaranteed)?, Some(number(most)?))),
        None => Ok((number(text)?, None)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use headway_sim::host::AppWork;

    fn steps(app: &App) -> Vec<(u64, f64)> {
        match &app.work {
            AppWork::Server { steps, .. } => {
                steps.iter().map(|s| (s.lasts_ns, s.rate_rps)).collect()
            }
            AppWork::Batch => Vec::new(),
        }
    }

    #[test]
    fn an_application_says_what_it_is() {
        let kv = app(
            "kv:workload=fixed-1us,rate=100k/1s+5M/0.5s+100k,cores=12..14",
            16,
        )
        .unwrap();
        assert_eq!(
            (kv.name.as_str(), kv.guaranteed, kv.most),
            ("kv", 12, Some(14))
        );
        let expected = [(1_000_000_000, 1e5), (500_000_000, 5e6), (u64::MAX, 1e5)];
        assert_eq!(steps(&kv), expected);
        let batch = app("swaptions:batch", 16).unwrap();
        assert!(matches!(batch.work, AppWork::Batch));
        assert_eq!((batch.guaranteed, batch.most), (0, None));
        let stubborn = app("b:batch,refuses,cores=1", 16).unwrap();
        assert!(stubborn.refuses && !batch.refuses);
        let darc = app(
            "a:workload=tpcc,load=0.5,policy=darc,delta=3,profile=known",
            16,
        )
        .unwrap();
        let AppWork::Server { policy, .. } = &darc.work else {
            panic!("it serves");
        };
        assert_eq!(policy.to_string(), "darc,delta=3,profile=known");
    }

    #[test]
    fn what_is_wrong_is_named() {
        let message = |text: &str| app(text, 16).unwrap_err().to_string();
        for (text, expected) in [
            (
                "kv",
                "--app: 'kv': write NAME:batch or NAME:workload=…,load=…",
            ),
            ("kv:worklod=tpcc", "did you mean 'workload'"),
            ("kv:workload=tpcc", "either a load or a rate"),
            (
                "kv:workload=tpcc,rate=5M+1k",
                "step '5M' does not say how long",
            ),
            ("kv:workload=tpcc,load=0.5,cores=20", "up to 16"),
            (
                "kv:workload=tpcc,load=0.5,policy=drac",
                "did you mean 'darc'",
            ),
            ("kv:batch,load=0.5", "a batch application has no 'load'"),
            ("kv:workload=tpc,load=0.5", "tpcc"),
        ] {
            assert!(
                message(text).contains(expected),
                "{text}: {}",
                message(text)
            );
        }
    }
}
