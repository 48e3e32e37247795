//! The settings file: its keys, and the positions of their values.

use std::fmt::Display;
use std::path::{Path, PathBuf};

use headway_policy::Resume;
use headway_runtime::{Idle, Layout, Mechanism};
use headway_words::nearest;
use headway_workload::file::{SETTINGS_BYTES_MAX, read_text};
use serde::{Deserialize, Deserializer};
use toml::Spanned;

/// The content of a settings file. The keys are the names of `headway serve`'s flags; `A` and `K` are what its `app` and `[kv]` are read as.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
#[serde(bound(deserialize = "A: Deserialize<'de>, K: Deserialize<'de>"))]
#[expect(missing_docs, reason = "the module's page shows each key")]
pub struct Config<A, K> {
    pub listen: Option<Spanned<String>>,
    pub app: Option<A>,
    pub policy: Option<Spanned<String>>,
    pub workers: Option<Spanned<usize>>,
    pub workload: Option<Spanned<String>>,
    pub classifier: Option<Spanned<String>>,
    pub queue_limit: Option<Spanned<u64>>,
    #[serde(default, deserialize_with = "layout")]
    pub layout: Option<Spanned<Layout>>,
    pub costs: Option<Spanned<String>>,
    #[serde(default, deserialize_with = "resume")]
    pub resume: Option<Spanned<Resume>>,
    #[serde(default, deserialize_with = "preempt")]
    pub preempt: Option<Spanned<Mechanism>>,
    pub feedback: Option<Spanned<bool>>,
    pub most_lent_threads: Option<Spanned<usize>>,
    pub look_every: Option<Spanned<String>>,
    #[serde(default, deserialize_with = "idle")]
    pub idle: Option<Idle>,
    pub steer: Option<Spanned<String>>,
    pub pin: Option<Spanned<String>>,
    pub drain: Option<Spanned<String>>,
    pub max_spin: Option<Spanned<String>>,
    pub ctl: Option<Spanned<String>>,
    pub no_ctl: Option<Spanned<bool>>,
    pub metrics: Option<Spanned<String>>,
    pub seed: Option<u64>,
    pub host: Option<Spanned<String>>,
    pub socket: Option<Spanned<String>>,
    pub kv: Option<K>,
}

impl<A, K> Default for Config<A, K> {
    fn default() -> Self {
        Self {
            listen: None,
            app: None,
            policy: None,
            workers: None,
            workload: None,
            classifier: None,
            queue_limit: None,
            layout: None,
            costs: None,
            resume: None,
            preempt: None,
            feedback: None,
            most_lent_threads: None,
            look_every: None,
            idle: None,
            steer: None,
            pin: None,
            drain: None,
            max_spin: None,
            ctl: None,
            no_ctl: None,
            metrics: None,
            seed: None,
            host: None,
            socket: None,
            kv: None,
        }
    }
}

const KEYS: &[&str] = &[
    "listen",
    "app",
    "policy",
    "workers",
    "workload",
    "classifier",
    "queue-limit",
    "layout",
    "costs",
    "resume",
    "preempt",
    "feedback",
    "most-lent-threads",
    "look-every",
    "idle",
    "steer",
    "pin",
    "drain",
    "max-spin",
    "ctl",
    "no-ctl",
    "metrics",
    "seed",
    "host",
    "socket",
    "kv",
    "keys",
    "data",
];

/// Why a settings file cannot be used.
#[derive(thiserror::Error)]
#[error("{place}: {message}")]
pub struct ConfigError {
    /// The file, with line and key where they are known.
    pub place: String,
    /// The problem, and the remedy.
    pub message: String,
}

headway_words::debug_is_display!(ConfigError);

/// A settings file with its text, which gives the positions of values; the default is an empty file.
pub struct File<A, K> {
    /// Its content.
    pub config: Config<A, K>,
    path: PathBuf,
    text: String,
}

impl<A, K> Default for File<A, K> {
    fn default() -> Self {
        Self {
            config: Config::default(),
            path: PathBuf::new(),
            text: String::new(),
        }
    }
}

impl<A, K> File<A, K>
where
    A: for<'de> Deserialize<'de>,
    K: for<'de> Deserialize<'de>,
{
    /// Reads a file.
    ///
    /// # Errors
    /// [`ConfigError`] when the file cannot be read, is not TOML, or has an unknown key or an invalid value.
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        let text = read_text(path, SETTINGS_BYTES_MAX).map_err(|error| ConfigError {
            place: path.display().to_string(),
            message: error.to_string(),
        })?;
        let mut file = Self {
            path: path.into(),
            text,
            ..Self::default()
        };
        file.config = toml::from_str(&file.text).map_err(|error| file.refused(&error))?;
        Ok(file)
    }

    fn refused(&self, error: &toml::de::Error) -> ConfigError {
        let hint = unknown_key(error.message())
            .and_then(|key| nearest(key, KEYS))
            .map_or(String::new(), |key| format!("; did you mean `{key}`?"));
        ConfigError {
            place: self.line_of(error.span().map_or(0, |span| span.start)),
            message: format!("{}{hint}", error.message()),
        }
    }
}

impl<A, K> File<A, K> {
    /// The position of a key's value as `FILE:LINE: key`.
    pub fn place<T>(&self, key: &str, set: &Spanned<T>) -> String {
        format!("{}: {key}", self.line_of(set.span().start))
    }

    /// The parsed value of a key, if it is set; an error names its position.
    pub(super) fn parsed<T, U, E: Display>(
        &self,
        key: &str,
        set: &Option<Spanned<T>>,
        parse: impl FnOnce(&T) -> Result<U, E>,
    ) -> Result<Option<U>, ConfigError> {
        let Some(set) = set else {
            return Ok(None);
        };
        let parsed = parse(set.get_ref()).map_err(|error| ConfigError {
            place: self.place(key, set),
            message: error.to_string(),
        })?;
        Ok(Some(parsed))
    }

    /// The position of a byte as `FILE:LINE`.
    fn line_of(&self, byte: usize) -> String {
        let before = &self.text[..byte.min(self.text.len())];
        let line = before.matches('\n').count() + 1;
        format!("{}:{line}", self.path.display())
    }
}

/// The key in "unknown field `polcy`, expected …".
fn unknown_key(message: &str) -> Option<&str> {
    message.strip_prefix("unknown field `")?.split('`').next()
}

/// A word of the list `W`, parsed, with its position.
fn spanned<'de, D, W, T>(
    from: D,
    meaning: impl FnOnce(W) -> T,
) -> Result<Option<Spanned<T>>, D::Error>
where
    D: Deserializer<'de>,
    W: Deserialize<'de>,
{
    let word = Spanned::<W>::deserialize(from)?;
    let span = word.span();
    Ok(Some(Spanned::new(span, meaning(word.into_inner()))))
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
enum LayoutWord {
    Auto,
    Dedicated,
    Inline,
}

fn layout<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Spanned<Layout>>, D::Error> {
    spanned(from, |word| match word {
        LayoutWord::Auto => Layout::Auto,
        LayoutWord::Dedicated => Layout::Dedicated,
        LayoutWord::Inline => Layout::Inline,
    })
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
enum ResumeWord {
    OwnWorker,
    Anywhere,
}

fn resume<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Spanned<Resume>>, D::Error> {
    spanned(from, |word| match word {
        ResumeWord::OwnWorker => Resume::OwnWorker,
        ResumeWord::Anywhere => Resume::Anywhere,
    })
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
enum PreemptWord {
    Flag,
    Tsc,
    Signal,
}

fn preempt<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Spanned<Mechanism>>, D::Error> {
    spanned(from, |word| match word {
        PreemptWord::Flag => Mechanism::Flag,
        PreemptWord::Tsc => Mechanism::Tsc,
        PreemptWord::Signal => Mechanism::Signal,
    })
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
enum IdleWord {
    Spin,
    SpinThenPark,
    Park,
}

fn idle<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Idle>, D::Error> {
    Ok(Some(match IdleWord::deserialize(from)? {
        IdleWord::Spin => Idle::Spin,
        IdleWord::SpinThenPark => Idle::default(),
        IdleWord::Park => Idle::Park,
    }))
}
