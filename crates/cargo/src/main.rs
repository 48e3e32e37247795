//! The command `cargo headway`: cargo, with preemption probes in the crates it compiles.
//!
//! It finds the wrapper around rustc that loads the compiler pass, checks that the pass fits the toolchain, and runs cargo with it. Each
//! choice of options has its own target directory: cargo does not see the options, and would reuse code compiled under others.

mod arguments;
mod cache;
mod cargo;
mod failure;
mod rustdoc;
mod wrapper;

use std::env;
use std::process::{Command, ExitCode};

use arguments::{CargoAction, CargoRequest};
use cargo::Package;
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
    if let Some(other) = env::var_os("RUSTC_WRAPPER").filter(|other| *other != wrapper.path) {
        headway_words::remark!("note: RUSTC_WRAPPER={} is set aside", other.display());
    }
    let mut cargo = Command::new(cargo::cargo());
    RustdocFlags::new(&pass.probes, |name| env::var(name).ok()).give(&mut cargo);
    cargo
        .args(&request.cargo)
        .envs(request.environment()?)
        .env("RUSTC_WRAPPER", &wrapper.path)
        .env("CARGO_TARGET_DIR", &directory);
    let status = cargo::status(&mut cargo)?;
    let failed = u8::try_from(status.code().unwrap_or(1)).unwrap_or(1);
    Ok(ExitCode::from(failed))
}
