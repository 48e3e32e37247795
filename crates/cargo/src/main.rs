//! The command `cargo headway`: cargo, with preemption probes in the crates it compiles.
//!
//! It finds the wrapper around rustc that loads the compiler pass, checks that the pass fits the toolchain, and runs cargo with it. Each
//! choice of options has its own target directory: cargo does not see the options, and would reuse code compiled under others.

mod arguments;
mod cache;
mod cargo;
mod config;
mod failure;
mod rustdoc;
mod wrapper;

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use arguments::{CargoAction, CargoRequest};
use cargo::Package;
use config::CargoConfig;
use failure::Failure;
use rustdoc::RustdocFlags;
use wrapper::Wrapper;

fn main() -> ExitCode {
    match run() {
        Ok(code) => code,
        Err(failure) => {
            let (text, code) = match failure {
                Failure::Usage(text) => (text, 2),
                Failure::Impossible(text) => (text, 1),
            };
            headway_words::remark!("error: {text}");
            ExitCode::from(code)
        }
    }
}

fn run() -> Result<ExitCode, Failure> {
    let request = match CargoRequest::parse(env::args_os().skip(1), |name| env::var(name).ok())? {
        CargoAction::Help => {
            print!("{}", arguments::HELP);
            return Ok(ExitCode::SUCCESS);
        }
        CargoAction::Version => {
            println!("cargo-headway {}", env!("CARGO_PKG_VERSION"));
            return Ok(ExitCode::SUCCESS);
        }
        CargoAction::Run(request) => request,
    };
    let package = Package::read(&request)?;
    package.has_all(&request.crates)?;
    let wrapper = Wrapper::find()?;
    let pass = wrapper.check(&cargo::rustc())?;
    let directory = cache::directory(&package, &request)?;
    cache::prepare(&directory, &request, &pass.files)?;
    let rustdoc = RustdocFlags::new(&pass.probes, |name| env::var(name).ok());
    remark_on_config(&request, &wrapper, &pass.probes, &rustdoc);
    let mut cargo = Command::new(cargo::cargo());
    rustdoc.give(&mut cargo);
    cargo
        .args(&request.cargo)
        .envs(request.environment()?)
        .env("RUSTC_WRAPPER", &wrapper.path)
        .env("CARGO_TARGET_DIR", &directory);
    let status = cargo::status(&mut cargo)?;
    let failed = u8::try_from(status.code().unwrap_or(1)).unwrap_or(1);
    Ok(ExitCode::from(failed))
}

/// Says which settings of the user's do not count here, and which of ours theirs hide.
fn remark_on_config(
    request: &CargoRequest,
    wrapper: &Wrapper,
    probes: &Path,
    rustdoc: &RustdocFlags,
) {
    let variable = |name: &str| env::var_os(name).map(|value| value.to_string_lossy().into_owned());
    let home = env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(env::home_dir()?.join(".cargo")));
    let config = CargoConfig::read(
        &env::current_dir().unwrap_or_default(),
        home,
        &request.values_of("--config"),
    );
    let has_tests = request
        .cargo
        .first()
        .is_some_and(|command| command == "test" || command == "t");
    let target = request.value_of("--target");
    let target = target.as_ref().map(|target| target.to_string_lossy());
    let hidden = (has_tests && matches!(rustdoc, RustdocFlags::Config(_)))
        .then(|| config.hidden_rustdoc_flags(probes, target.as_deref()));
    let said = [config.set_aside(&wrapper.path, variable), hidden.flatten()];
    for what in said.into_iter().flatten() {
        headway_words::remark!("note: {what}");
    }
}
