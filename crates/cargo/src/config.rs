//! Cargo's configuration files, for settings that this command replaces or that hide its own. A stable cargo cannot be asked for them.

use std::env::consts::ARCH;
use std::fs;
use std::path::{Path, PathBuf};

use toml::{Table, Value};

/// The files that cargo reads in a directory, the one that counts most first.
#[derive(Debug)]
pub(crate) struct CargoConfig {
    files: Vec<(PathBuf, Table)>,
}

impl CargoConfig {
    /// Reads those of the directory and the directories above it, then that of cargo's home. Cargo itself refuses a file that it cannot read.
    pub(crate) fn read(directory: &Path, home: Option<PathBuf>) -> Self {
        let above = directory.ancestors().map(|at| at.join(".cargo"));
        let files = above.chain(home).filter_map(|folder| {
            // Of two files of a folder cargo reads the first.
            let names = ["config", "config.toml"];
            let mut paths = names.into_iter().map(|name| folder.join(name));
            let path = paths.find(|path| path.is_file())?;
            let table = fs::read_to_string(&path).ok()?.parse().ok()?;
            Some((path, table))
        });
        Self {
            files: files.collect(),
        }
    }

    /// The first value of this key in a table of the files, and its file.
    fn value(&self, table: &str, key: &str) -> Option<(&Path, &Value)> {
        self.files.iter().find_map(|(path, file)| {
            let value = file.get(table)?.get(key)?;
            Some((path.as_path(), value))
        })
    }

    /// What is said of another wrapper around rustc than `own`, which takes its place.
    pub(crate) fn set_aside(
        &self,
        own: &Path,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Option<String> {
        let is_other = |value: &str| {
            let is_own = Path::new(value).file_name() == own.file_name();
            !value.is_empty() && !is_own
        };
        // Cargo reads the first of these, be it empty.
        for name in ["RUSTC_WRAPPER", "CARGO_BUILD_RUSTC_WRAPPER"] {
            if let Some(value) = variable(name) {
                return is_other(&value).then(|| format!("{name}={value} is set aside"));
            }
        }
        let (file, value) = self.value("build", "rustc-wrapper")?;
        let value = value.as_str().filter(|value| is_other(value))?;
        let file = file.display();
        Some(format!(
            "build.rustc-wrapper of {file}, {value}, is set aside"
        ))
    }

    /// What is said where flags for rustdoc of a target hide those of `build`, among them ours for `probes`. `target`: the one that is built for; none: the host's.
    pub(crate) fn hidden_rustdoc_flags(
        &self,
        probes: &Path,
        target: Option<&str>,
    ) -> Option<String> {
        let is_built = |name: &str| match target {
            _ if name.starts_with("cfg(") => true,
            Some(target) => name == target,
            None => name.starts_with(ARCH) && name.contains("linux"),
        };
        self.files.iter().find_map(|(path, file)| {
            let targets = file.get("target")?.as_table()?;
            let mut hiding = targets.iter().filter(|(_, of_it)| of_it.get("rustdocflags").is_some());
            let (name, _) = hiding.find(|(name, _)| is_built(name))?;
            Some(format!(
                "target.{name}.rustdocflags of {} hides what documentation tests with probes link: add -Clink-arg={} there",
                path.display(),
                probes.display()
            ))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A directory below one with this configuration, and what `home` has in its own.
    fn config(above: &str, home: &str) -> (tempfile::TempDir, CargoConfig) {
        let scratch = tempfile::tempdir().unwrap();
        let at = scratch.path();
        for (folder, text) in [(".cargo", above), ("home", home)] {
            fs::create_dir_all(at.join(folder)).unwrap();
            fs::write(at.join(folder).join("config.toml"), text).unwrap();
        }
        let read = CargoConfig::read(&at.join("a/b"), Some(at.join("home")));
        (scratch, read)
    }

    const OWN: &str = "/opt/bin/headway-rustc";

    fn said(config: &CargoConfig, set: &[(&str, &str)]) -> Option<String> {
        config.set_aside(Path::new(OWN), |asked| {
            let found = set.iter().find(|(name, _)| *name == asked);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn another_wrapper_is_named_with_its_place() {
        let (scratch, of_home) = config("", "build.rustc-wrapper = 'sccache'");
        let file = scratch.path().join("home/config.toml");
        let expected = format!(
            "build.rustc-wrapper of {}, sccache, is set aside",
            file.display()
        );
        assert_eq!(said(&of_home, &[]), Some(expected));
        let (scratch, above) = config(
            "[build]\nrustc-wrapper = '/x/w'",
            "build.rustc-wrapper = 'v'",
        );
        let file = scratch.path().join(".cargo/config.toml");
        let expected = format!(
            "build.rustc-wrapper of {}, /x/w, is set aside",
            file.display()
        );
        assert_eq!(said(&above, &[]), Some(expected));
        let build = ("CARGO_BUILD_RUSTC_WRAPPER", "w");
        let named = Some("CARGO_BUILD_RUSTC_WRAPPER=w is set aside".to_owned());
        assert_eq!(said(&above, &[build]), named);
        let direct = ("RUSTC_WRAPPER", "x");
        let named = Some("RUSTC_WRAPPER=x is set aside".to_owned());
        assert_eq!(said(&above, &[build, direct]), named);
    }

    #[test]
    fn nothing_is_said_of_none_or_of_ours() {
        let (_scratch, none) = config("[build]\njobs = 2", "not toml");
        assert_eq!(said(&none, &[]), None);
        assert_eq!(said(&none, &[("RUSTC_WRAPPER", OWN)]), None);
        let (_scratch, ours) = config("build.rustc-wrapper = 'headway-rustc'", "");
        assert_eq!(said(&ours, &[]), None);
        // An empty variable is cargo's way to have no wrapper.
        let (_scratch, other) = config("build.rustc-wrapper = 'w'", "");
        assert_eq!(said(&other, &[("RUSTC_WRAPPER", "")]), None);
    }

    #[test]
    fn rustdoc_flags_of_the_built_target_are_told() {
        let hidden = |above: &str, target: Option<&str>| {
            let (_scratch, config) = config(above, "");
            config.hidden_rustdoc_flags(Path::new("/p.a"), target)
        };
        let of_cfg = "[target.'cfg(unix)']\nrustdocflags = ['-x']";
        let said = hidden(of_cfg, None).unwrap();
        assert!(
            said.starts_with("target.cfg(unix).rustdocflags of "),
            "{said}"
        );
        assert!(said.ends_with("add -Clink-arg=/p.a there"), "{said}");
        let of_arm = "[target.arm-linux-gnueabi]\nrustdocflags = '-x'";
        assert!(hidden(of_arm, Some("arm-linux-gnueabi")).is_some());
        assert_eq!(hidden(of_arm, Some("wasm32-wasip1")), None);
        assert_eq!(
            hidden("[target.arm-linux-gnueabi]\nlinker = 'x'", None),
            None
        );
    }
}
