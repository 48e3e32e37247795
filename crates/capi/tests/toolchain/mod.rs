//! Compilers for the C programs of the tests, and the library laid out as it is installed.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// How a program gets the library.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Linked {
    Shared,
    Static,
    /// With everything else in the program too: `-static`.
    AllStatic,
    /// Shared, behind the shim.
    Shimmed,
}

/// A compiler of C and C++.
pub(crate) struct Toolchain {
    c: OsString,
    cpp: OsString,
    name: &'static str,
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

impl Toolchain {
    /// The system's.
    pub(crate) fn plain() -> Self {
        Self {
            c: env::var_os("CC").unwrap_or_else(|| "cc".into()),
            cpp: env::var_os("CXX").unwrap_or_else(|| "c++".into()),
            name: "plain",
        }
    }

    /// The system's, if it has a compiler for C++; `None`, with the reason printed, where there is none.
    pub(crate) fn plain_cpp() -> Option<Self> {
        let plain = Self::plain();
        let trial = Command::new(&plain.cpp).arg("--version").output();
        if trial.is_ok_and(|trial| trial.status.success()) {
            return Some(plain);
        }
        eprintln!(
            "SKIPPED in C++: there is no {} (apt-get install g++)",
            plain.cpp.display()
        );
        None
    }

    /// The one with the pass; `None`, with the reason printed, where it is not built.
    pub(crate) fn headway() -> Option<Self> {
        let compiler = root().join("../../pass/bin/headway-cc");
        let trial = Command::new(&compiler)
            .args(["-c", "-x", "c", "/dev/null", "-o", "/dev/null"])
            .output()
            .unwrap();
        if trial.status.success() {
            return Some(Self {
                c: compiler.into(),
                cpp: root().join("../../pass/bin/headway-c++").into(),
                name: "headway",
            });
        }
        let why = String::from_utf8_lossy(&trial.stderr);
        eprintln!("SKIPPED with headway-cc: {}", why.trim());
        None
    }

    /// clang with its SafeStack; `None`, with the reason printed, where there is none.
    pub(crate) fn safe_stack() -> Option<Self> {
        let wrapper = sdk().join("safe-stack-cc");
        let script = "#!/bin/sh\nexec \"$(command -v clang-19 || echo clang)\" -fsanitize=safe-stack \"$@\"\n";
        fs::write(&wrapper, script).unwrap();
        let mut mode = fs::metadata(&wrapper).unwrap().permissions();
        mode.set_mode(0o755);
        fs::set_permissions(&wrapper, mode).unwrap();
        let trial = Command::new("sh")
            .arg("-c")
            .arg("echo 'int main(void) { return 0; }' | \"$0\" -x c - -o /dev/null")
            .arg(&wrapper)
            .output()
            .unwrap();
        if trial.status.success() {
            return Some(Self {
                c: wrapper.clone().into(),
                cpp: wrapper.into(),
                name: "safe-stack",
            });
        }
        eprintln!(
            "SKIPPED with SafeStack: there is no clang with its runtime (apt-get install clang-19 libclang-rt-19-dev)"
        );
        None
    }

    /// Compiles one file of this crate to a shared library, which links nothing of Headway's.
    pub(crate) fn library(&self, source: &str) -> PathBuf {
        self.part(source, "so", &["-fPIC", "-shared"])
    }

    /// Compiles one file in C++ to a shared library with a C++ runtime of its own.
    pub(crate) fn library_with_runtime(&self, source: &str) -> PathBuf {
        let own = [
            "-static-libstdc++",
            "-static-libgcc",
            "-Wl,--exclude-libs,ALL",
        ];
        self.part(source, "so", &[&["-fPIC", "-shared"][..], &own].concat())
    }

    /// Compiles one file of this crate to an object, with options of its own.
    pub(crate) fn object(&self, source: &str, options: &[&str]) -> PathBuf {
        self.part(source, "o", &[&["-c"], options].concat())
    }

    fn part(&self, source: &str, extension: &str, options: &[&str]) -> PathBuf {
        let stem = Path::new(source).file_stem().unwrap().to_str().unwrap();
        let thread = std::thread::current().id();
        let part = sdk().join(format!("{stem}-{}-{thread:?}.{extension}", self.name));
        let mut command = self.compiler(source);
        command
            .arg(root().join(source))
            .args(options)
            .arg("-o")
            .arg(&part);
        run(&mut command);
        part
    }

    /// Compiles one file of this crate to a program.
    pub(crate) fn build(&self, source: &str, linked: Linked) -> PathBuf {
        self.build_with(source, linked, &[])
    }

    /// Likewise, with libraries and objects of its own.
    pub(crate) fn build_with(&self, source: &str, linked: Linked, parts: &[PathBuf]) -> PathBuf {
        let sdk = sdk();
        let stem = Path::new(source).file_stem().unwrap().to_str().unwrap();
        let name = format!("{stem}-{}-{linked:?}", self.name);
        let thread = std::thread::current().id();
        let program = sdk.join(format!("{name}-{thread:?}"));
        let mut command = self.compiler(source);
        command
            .arg("-I")
            .arg(root().join("include"))
            .arg(root().join(source))
            .args(parts)
            .arg("-o")
            .arg(&program);
        if linked == Linked::Shimmed {
            command.arg(shim());
        }
        match linked {
            Linked::Shared | Linked::Shimmed => command.args(pc_libs()).arg("-lpthread"),
            Linked::Static => command.arg(sdk.join("libheadway.a")).args([
                "-lpthread",
                "-ldl",
                "-lm",
                "-lgcc_s",
                "-Wl,-z,now",
            ]),
            Linked::AllStatic => command.arg("-static").arg(sdk.join("libheadway.a")).args([
                "-lpthread",
                "-ldl",
                "-lm",
                "-lgcc_eh",
            ]),
        };
        run(&mut command);
        program
    }
}

impl Toolchain {
    /// The compiler of the file's language, with the options for all.
    fn compiler(&self, source: &str) -> Command {
        let is_cpp = Path::new(source)
            .extension()
            .is_some_and(|extension| extension == "cc");
        let (compiler, standard) = if is_cpp {
            (&self.cpp, "-std=c++17")
        } else {
            (&self.c, "-std=gnu11")
        };
        let mut command = Command::new(compiler);
        command.args([standard, "-O2", "-Wall", "-Wextra", "-Werror"]);
        command
    }
}

/// Runs a compiler, which is to succeed.
fn run(command: &mut Command) {
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {said}");
}

/// The shim that stands before locks and allocator, as `make install-capi` builds it.
pub(crate) fn shim() -> PathBuf {
    let shim = sdk().join("libheadway_shim.so");
    let sources = fs::read_dir(root().join("shim")).unwrap();
    let sources = sources
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "c"));
    let mut command = Command::new("cc");
    command
        .args(["-std=gnu11", "-O2", "-fPIC", "-fexceptions", "-shared"])
        .args(["-Wall", "-Wextra", "-Werror", "-Wl,-z,now"])
        .args(sources)
        .arg("-o")
        .arg(&shim)
        .arg("-L")
        .arg(sdk())
        .arg(format!("-Wl,-rpath,{}", sdk().display()))
        .arg("-lheadway");
    run(&mut command);
    shim
}

/// The output of `pkg-config --libs headway` for the tests' installation.
fn pc_libs() -> Vec<String> {
    let pc = fs::read_to_string(root().join("headway.pc.in")).unwrap();
    let libs = pc.lines().find_map(|line| line.strip_prefix("Libs:"));
    let libdir = sdk().to_str().unwrap();
    let libs = libs.unwrap().replace("${libdir}", libdir);
    libs.split_whitespace().map(str::to_owned).collect()
}

/// A directory with the libraries by the names under which they are installed.
fn sdk() -> &'static Path {
    static SDK: OnceLock<PathBuf> = OnceLock::new();
    SDK.get_or_init(|| {
        let built = env::current_exe().unwrap();
        let built = built.parent().unwrap();
        let sdk = Path::new(env!("CARGO_TARGET_TMPDIR")).join("sdk");
        fs::create_dir_all(&sdk).unwrap();
        for (from, to) in [
            ("libheadway_capi.so", "libheadway.so"),
            ("libheadway_capi.so", "libheadway.so.1"),
            ("libheadway_capi.a", "libheadway.a"),
        ] {
            let (from, to) = (built.join(from), sdk.join(to));
            assert!(from.exists(), "{} was built with the tests", from.display());
            let _ = fs::remove_file(&to);
            std::os::unix::fs::symlink(&from, &to).unwrap();
        }
        sdk
    })
}
