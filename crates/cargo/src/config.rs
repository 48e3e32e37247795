//! Cargo's configuration, of its files and of `--config`, for settings that this command replaces or that hide its own. A stable cargo cannot be asked for them.

use std::env::consts::ARCH;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};

use toml::{Table, Value};

/// The tables that cargo reads, the one that counts most first.
#[derive(Debug)]
pub(crate) struct CargoConfig {
    arguments: Vec<ConfigTable>,
    files: Vec<ConfigTable>,
}

/// A table of settings.
#[derive(Debug)]
struct ConfigTable {
    /// The file, or `--config`.
    place: String,
    table: Table,
}

impl ConfigTable {
    fn of_file(path: &Path) -> Option<Self> {
        Some(Self {
            place: path.display().to_string(),
            table: fs::read_to_string(path).ok()?.parse().ok()?,
        })
    }

    /// What follows `--config`: a file's path, from `directory`, or a setting.
    fn of_argument(directory: &Path, argument: &OsStr) -> Option<Self> {
        let path = directory.join(argument);
        if !argument.is_empty() && path.exists() {
            return Self::of_file(&path);
        }
        Some(Self {
            place: "--config".into(),
            table: argument.to_str()?.parse().ok()?,
        })
    }

    fn value(&self, table: &str, key: &str) -> Option<&Value> {
        self.table.get(table)?.get(key)
    }
}

/// Whether the value names another wrapper around rustc than `own`.
fn is_other(own: &Path, value: &str) -> bool {
    !value.is_empty() && Path::new(value).file_name() != own.file_name()
}

impl CargoConfig {
    /// Reads what `--config` gives, of which the last counts most, the files of the directory and the directories above it, then that of cargo's home. Cargo itself
    /// refuses what it cannot read.
    pub(crate) fn read(directory: &Path, home: Option<PathBuf>, arguments: &[OsString]) -> Self {
        let above = directory.ancestors().map(|at| at.join(".cargo"));
        let files = above.chain(home).filter_map(|folder| {
            // Of two files of a folder cargo reads the first.
            let names = ["config", "config.toml"];
            let mut paths = names.into_iter().map(|name| folder.join(name));
            ConfigTable::of_file(&paths.find(|path| path.is_file())?)
        });
        let arguments = arguments.iter().rev();
        let arguments =
            arguments.filter_map(|argument| ConfigTable::of_argument(directory, argument));
        Self {
            arguments: arguments.collect(),
            files: files.collect(),
        }
    }

    /// What is said of the first wrapper in the tables, be it empty; `None` where they have none.
    fn wrapper_in(own: &Path, tables: &[ConfigTable]) -> Option<Option<String>> {
        let found = tables.iter().find_map(|of_it| {
            let value = of_it.value("build", "rustc-wrapper")?.as_str()?;
            Some((&of_it.place, value))
        });
        found.map(|(place, value)| {
            is_other(own, value)
                .then(|| format!("build.rustc-wrapper of {place}, {value}, is set aside"))
        })
    }

    /// What is said of another wrapper around rustc than `own`, which takes its place.
    pub(crate) fn set_aside(
        &self,
        own: &Path,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Option<String> {
        let named = |name: &str| {
            let value = variable(name)?;
            Some(is_other(own, &value).then(|| format!("{name}={value} is set aside")))
        };
        // Cargo reads the first of these, be it empty.
        named("RUSTC_WRAPPER")
            .or_else(|| Self::wrapper_in(own, &self.arguments))
            .or_else(|| named("CARGO_BUILD_RUSTC_WRAPPER"))
            .or_else(|| Self::wrapper_in(own, &self.files))
            .flatten()
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
        let tables = self.arguments.iter().chain(&self.files);
        tables.into_iter().find_map(|ConfigTable { place, table }| {
            let targets = table.get("target")?.as_table()?;
            let mut hiding = targets.iter().filter(|(_, of_it)| of_it.get("rustdocflags").is_some());
            let (name, _) = hiding.find(|(name, _)| is_built(name))?;
            Some(format!(
                "target.{name}.rustdocflags of {place} hides what documentation tests with probes link: add -Clink-arg={} there",
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
        let read = CargoConfig::read(&at.join("a/b"), Some(at.join("home")), &[]);
        (scratch, read)
    }

    #[test]
    fn what_the_command_line_sets_comes_before_files_and_the_last_of_it_first() {
        let scratch = tempfile::tempdir().unwrap();
        let at = scratch.path();
        fs::create_dir(at.join(".cargo")).unwrap();
        fs::write(at.join(".cargo/config.toml"), "build.rustc-wrapper = 'f'").unwrap();
        fs::write(at.join("more.toml"), "build.rustc-wrapper = 'm'").unwrap();
        let read = |arguments: &[&str]| {
            let arguments: Vec<OsString> = arguments.iter().map(OsString::from).collect();
            CargoConfig::read(at, None, &arguments)
        };
        let setting = "build.rustc-wrapper='s'";
        let of = |place: &str, value: &str| {
            Some(format!(
                "build.rustc-wrapper of {place}, {value}, is set aside"
            ))
        };
        let file = at.join("more.toml").display().to_string();
        let last_is_setting = read(&["more.toml", setting]);
        assert_eq!(said(&last_is_setting, &[]), of("--config", "s"));
        let last_is_file = read(&[setting, "more.toml", "build.jobs=2", "not toml"]);
        assert_eq!(said(&last_is_file, &[]), of(&file, "m"));
        // It counts more than one variable, and less than the other.
        let variable = ("CARGO_BUILD_RUSTC_WRAPPER", "v");
        assert_eq!(said(&last_is_file, &[variable]), of(&file, "m"));
        let own = ("RUSTC_WRAPPER", OWN);
        assert_eq!(said(&last_is_file, &[own]), None);
        assert_eq!(said(&read(&["build.rustc-wrapper=''"]), &[]), None);
        let flags = read(&["target.'cfg(unix)'.rustdocflags=['-x']"]);
        let hidden = flags.hidden_rustdoc_flags(Path::new("/p.a"), None).unwrap();
        assert!(
            hidden.starts_with("target.cfg(unix).rustdocflags of --config"),
            "{hidden}"
        );
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
