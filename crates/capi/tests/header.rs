//! `include/headway.h` is what cbindgen makes of the source.

use std::env;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use headway_fiber::Mechanism;
use headway_policy::Shape;
use headway_runtime::{Layout, LayoutCosts, LayoutFacts, admit};

use headway_capi::server::{HEADWAY_ABI_VERSION, headway_abi_version};

/// The files of the source that say what threads in user space are, in a header of their own.
const THREADS: [&str; 4] = ["sharing.rs", "sockets.rs", "threads.rs", "waiting.rs"];

/// The files that say what a pool in process is, in a header of their own.
const POOL: [&str; 4] = [
    "pool.rs",
    "pool_jobs.rs",
    "pool_options.rs",
    "pool_stats.rs",
];

/// With `HEADWAY_WRITE_HEADER` set, writes it instead: `make header`.
fn assert_current(header: &str, config: &str, of_header: impl Fn(&str) -> bool) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let sources = fs::read_dir(root.join("src")).unwrap();
    // The root names all files, and has nothing of its own.
    let mut sources: Vec<_> = sources
        .map(|entry| entry.unwrap().path())
        .filter(|source| !source.ends_with("lib.rs"))
        .collect();
    sources.sort();
    let mut builder = cbindgen::Builder::new()
        .with_config(cbindgen::Config::from_file(root.join(config)).unwrap());
    for source in sources {
        if of_header(source.file_name().unwrap().to_str().unwrap()) {
            builder = builder.with_src(source);
        }
    }
    let mut made = Vec::new();
    builder.generate().unwrap().write(&mut made);
    let made = String::from_utf8(made).unwrap();
    let path = root.join("include").join(header);
    if env::var_os("HEADWAY_WRITE_HEADER").is_some() {
        fs::write(&path, &made).unwrap();
    }
    let kept = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        kept == made,
        "include/{header} is not what the source says: run `make header`"
    );
}

#[test]
fn the_headers_are_current() {
    assert_current("headway.h", "cbindgen.toml", |file| {
        !THREADS.contains(&file) && !POOL.contains(&file)
    });
    assert_current("headway_pool.h", "cbindgen-pool.toml", |file| {
        POOL.contains(&file)
    });
    assert_current("headway_threads.h", "cbindgen-threads.toml", |file| {
        THREADS.contains(&file)
    });
}

/// A declaration of somebody else's function is not the same in each C library: glibc's `dlsym` does not throw in C++.
#[test]
fn the_headers_declare_our_own_functions_alone() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("include");
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let text = fs::read_to_string(&path).unwrap();
        let foreign = text.lines().find(|line| {
            let declares = line.starts_with("extern ") && !line.starts_with("extern \"C\"");
            let function = line.split('(').next().unwrap_or_default();
            declares && !function.contains("headway_")
        });
        assert_eq!(foreign, None, "{}", path.display());
    }
}

/// As the first header and as the last beside the system's.
#[test]
fn the_headers_compile_beside_the_systems_in_any_order() {
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("include");
    let system =
        "#include <dlfcn.h>\n#include <pthread.h>\n#include <signal.h>\n#include <unistd.h>\n";
    for (compiler, language) in [("cc", "c"), ("c++", "c++")] {
        for own in [
            "headway.h",
            "headway_pool.h",
            "headway_preempt.h",
            "headway_threads.h",
        ] {
            let own = format!("#include \"{own}\"\n");
            for text in [own.clone() + system, system.to_owned() + &own] {
                let mut command = Command::new(compiler);
                command.args([
                    "-fsyntax-only",
                    "-Wall",
                    "-Werror",
                    "-D_GNU_SOURCE",
                    "-x",
                    language,
                    "-I",
                ]);
                command.arg(&include).arg("-").stdin(Stdio::piped());
                let Ok(mut child) = command.spawn() else {
                    println!("SKIPPED the headers in {language}: there is no {compiler}");
                    continue;
                };
                let mut input = child.stdin.take().unwrap();
                input.write_all(text.as_bytes()).unwrap();
                drop(input);
                assert!(child.wait().unwrap().success(), "{language}:\n{text}");
            }
        }
    }
}

/// What the header says of a layout is what the library does with it.
#[test]
fn a_policy_that_interrupts_takes_each_layout_as_the_header_says() {
    let admission = admit(&"concord".parse().unwrap(), &Shape::new(2)).unwrap();
    let resolved = |layout: Layout, mechanism, cores| {
        let facts = LayoutFacts {
            admission: &admission,
            workers: 2,
            mechanism,
            hosted: false,
            cores,
            costs: LayoutCosts::default(),
            service_ns: None,
        };
        layout.resolve(&facts).map(|it| it.is_dedicated())
    };
    assert!(!resolved(Layout::Inline, Mechanism::Flag, 8).unwrap());
    assert!(!resolved(Layout::Auto, Mechanism::Flag, 2).unwrap());
    assert!(resolved(Layout::Auto, Mechanism::Flag, 3).unwrap());
    assert!(resolved(Layout::Auto, Mechanism::Signal, 2).unwrap());
    assert!(resolved(Layout::Inline, Mechanism::Signal, 8).is_err());
}

#[test]
fn the_library_is_named_by_its_version() {
    assert_eq!(headway_abi_version(), HEADWAY_ABI_VERSION);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("build.rs");
    let soname = format!("-soname,libheadway.so.{HEADWAY_ABI_VERSION}\"");
    assert!(fs::read_to_string(script).unwrap().contains(&soname));
}
