//! The layout of requests: the type in the wire header, and the body.

use super::{body, types};
use crate::commands::apps::BuiltInApp;
use crate::error::usage;
use anyhow::Result;
use headway_kv::{KeyChoice, KvWorkload, Operation};
use headway_load::Body;
use headway_workload::Workload;
use std::sync::Arc;

const SCAN_ENTRIES: u32 = 1_000;

#[derive(clap::Args, Clone, Debug)]
pub(super) struct RequestFlags {
    /// Service that the server runs; it determines the layout of requests
    #[arg(long, value_enum, default_value_t)]
    app: BuiltInApp,
    /// The type in the wire header of each class: lookup=0,search=1 [default: the operation's number with --app kv, else the
    /// classes' order]
    #[arg(long, value_name = "CLASS=TYPE", value_delimiter = ',')]
    map: Vec<String>,
    /// File with the body after the wire header, for one class or for all; repeat for more. With --keys, `{key}` in it stands for
    /// a key's number, `{key:12}` for twelve digits of it
    #[arg(long, value_name = "[CLASS=]FILE", conflicts_with = "app")]
    body_file: Vec<String>,
    /// Number of keys that requests draw from, with --app kv [default: 100000] or in --body-file
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    keys: Option<u64>,
    /// Distribution of the keys: uniform, or zipf:0.99 for a skewed one [default: uniform]
    #[arg(long, value_name = "CHOICE", value_parser = key_choice)]
    key_choice: Option<KeyChoice>,
    /// Entries that a SCAN of --app kv reads [default: 1000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    scan_entries: Option<u32>,
}

/// Types and bodies, class by class.
pub(super) struct RequestBodies {
    pub(super) types: Vec<u8>,
    pub(super) body: Option<Body>,
}

impl RequestFlags {
    /// The layout of the requests of each class of a workload.
    pub(super) fn requests(&self, workload: &Workload, seed: u64) -> Result<RequestBodies> {
        self.refuse_what_is_not_heeded()?;
        let classes = workload.class_names();
        let (own, body) = match self.app {
            BuiltInApp::Kv => {
                let bodies = self.kv(&classes, seed)?;
                (operations(&bodies), Some(body_of(bodies)))
            }
            BuiltInApp::Spin | BuiltInApp::Sleep | BuiltInApp::Echo => {
                let types = (0..=u8::MAX).take(classes.len()).collect();
                (types, self.files(&classes, seed)?)
            }
        };
        let types = if self.map.is_empty() {
            own
        } else {
            types::mapped(&self.map, &classes)?
        };
        Ok(RequestBodies { types, body })
    }

    fn refuse_what_is_not_heeded(&self) -> Result<()> {
        let is_kv = self.app == BuiltInApp::Kv;
        if self.scan_entries.is_some() && !is_kv {
            return Err(usage(
                "--scan-entries",
                "only requests of --app kv are SCANs",
            ));
        }
        let has_keys = is_kv || !self.body_file.is_empty();
        if self.keys.is_some() && !has_keys {
            return Err(usage(
                "--keys",
                "requests ask for keys with --app kv or --body-file",
            ));
        }
        if self.key_choice.is_some() && !(is_kv || self.keys.is_some()) {
            return Err(usage(
                "--key-choice",
                "requests ask for keys with --app kv, or with --body-file and --keys",
            ));
        }
        Ok(())
    }

    fn choice(&self) -> KeyChoice {
        self.key_choice.unwrap_or(KeyChoice::Uniform)
    }

    fn kv(&self, classes: &[&str], seed: u64) -> Result<KvWorkload> {
        let bodies = KvWorkload::new(self.keys.unwrap_or(KvWorkload::DEFAULT_KEYS), seed)
            .with_classes(classes)
            .map_err(|error| usage("--workload", error))?;
        Ok(bodies
            .with_scan_entries(self.scan_entries.unwrap_or(SCAN_ENTRIES))
            .with_choice(self.choice()))
    }

    fn files(&self, classes: &[&str], seed: u64) -> Result<Option<Body>> {
        if self.body_file.is_empty() {
            return Ok(None);
        }
        let numbers = self
            .keys
            .map(|keys| KvWorkload::new(keys, seed).with_choice(self.choice()));
        let keys = numbers.zip(self.keys);
        body::of_files(&self.body_file, classes, keys).map(Some)
    }
}

fn body_of(bodies: KvWorkload) -> Body {
    Arc::new(move |class, index, room: &mut [u8]| bodies.body(class, index, room))
}

/// The store's classes are its operations, whatever their order in the workload.
fn operations(bodies: &KvWorkload) -> Vec<u8> {
    let numbers = bodies.operations().iter();
    numbers
        .map(|&operation: &Operation| operation as u8)
        .collect()
}

/// `uniform`, or `zipf:THETA`.
fn key_choice(text: &str) -> Result<KeyChoice, String> {
    let theta = |text: &str| {
        text.parse()
            .ok()
            .filter(|&theta| 0.0 < theta && theta < 1.0)
    };
    match text.split_once(':') {
        None if text == "uniform" => Ok(KeyChoice::Uniform),
        Some(("zipf", number)) => match theta(number) {
            Some(theta) => Ok(KeyChoice::Zipf { theta }),
            None => Err(format!(
                "'{number}' is not an exponent above 0 and below 1, such as 0.99"
            )),
        },
        _ => Err(format!(
            "'{text}' is neither uniform nor zipf:THETA, such as zipf:0.99"
        )),
    }
}
