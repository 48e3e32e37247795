//! Documentation tests: rustdoc compiles and links them without the wrapper around rustc, so its flags name the library that probes call.

use std::path::Path;
use std::process::Command;

/// The separator of `CARGO_ENCODED_RUSTDOCFLAGS`.
const SEPARATOR: &str = "\x1f";

/// Rustdoc's flags, behind the user's own, where cargo reads those.
#[derive(Debug, PartialEq)]
pub(crate) enum RustdocFlags {
    /// The value for `CARGO_ENCODED_RUSTDOCFLAGS`.
    Environment(String),
    /// A setting for `--config`, which cargo joins with that of its files.
    Config(String),
}

impl RustdocFlags {
    /// Cargo reads one source only: the flags go where the user's are.
    pub(crate) fn new(probes: &Path, variable: impl Fn(&str) -> Option<String>) -> Self {
        let ours = format!("-Clink-arg={}", probes.display());
        let theirs = variable("CARGO_ENCODED_RUSTDOCFLAGS").or_else(|| {
            let words = variable("RUSTDOCFLAGS")?;
            Some(words.split_whitespace().collect::<Vec<_>>().join(SEPARATOR))
        });
        match theirs.as_deref() {
            Some("") => Self::Environment(ours),
            Some(theirs) => Self::Environment(format!("{theirs}{SEPARATOR}{ours}")),
            None => {
                let list = serde_json::Value::from(vec![ours]); // JSON's strings are TOML's.
                Self::Config(format!("build.rustdocflags={list}"))
            }
        }
    }

    /// Gives the flags to a cargo that has no arguments yet.
    pub(crate) fn give(&self, cargo: &mut Command) {
        match self {
            Self::Environment(flags) => cargo.env("CARGO_ENCODED_RUSTDOCFLAGS", flags),
            Self::Config(setting) => cargo.args(["--config", setting]),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flags(set: &[(&str, &str)]) -> RustdocFlags {
        RustdocFlags::new(Path::new("/with space/p.a"), |asked| {
            let found = set.iter().find(|(name, _)| *name == asked);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn the_users_flags_are_kept_wherever_they_are() {
        let environment = |text: &str| RustdocFlags::Environment(text.to_owned());
        let plain = [("RUSTDOCFLAGS", " --cfg a ")];
        let encoded = [
            ("RUSTDOCFLAGS", "-x"),
            ("CARGO_ENCODED_RUSTDOCFLAGS", "--cfg\x1fb"),
        ];
        assert_eq!(
            flags(&plain),
            environment("--cfg\x1fa\x1f-Clink-arg=/with space/p.a")
        );
        assert_eq!(
            flags(&encoded),
            environment("--cfg\x1fb\x1f-Clink-arg=/with space/p.a")
        );
        assert_eq!(
            flags(&[("RUSTDOCFLAGS", "")]),
            environment("-Clink-arg=/with space/p.a")
        );
        assert_eq!(
            flags(&[]),
            RustdocFlags::Config(r#"build.rustdocflags=["-Clink-arg=/with space/p.a"]"#.to_owned())
        );
    }
}
