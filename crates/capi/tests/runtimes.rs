//! Programs with more runtimes than one, or with one that minds threads: they work, or do not start.

mod checked;
#[allow(dead_code, reason = "each test uses a part of it")]
mod toolchain;

use std::os::unix::process::ExitStatusExt;
use std::process::Command;

use checked::{ATTEMPTS, alone, preemptions};
use toolchain::{Linked, Toolchain};

/// Of a program that used memory that it has not (`signal(7)`).
const SIGSEGV: i32 = 11;

/// Each request has a second stack of its own, as it has all that a thread has. Where requests would share one, the server does not start, and says why.
#[test]
fn requests_have_their_own_unsafe_stacks_or_are_refused() {
    let _alone = alone();
    let Some(clang) = Toolchain::safe_stack() else {
        return;
    };
    let program = clang.build("tests/c/unsafe_stacks.c", Linked::Shared);
    for policy in ["concord,q=5us", "tardis,q=5us"] {
        let often = (0..ATTEMPTS).any(|_| preemptions(Command::new(&program).arg(policy)) > 100);
        assert!(often, "{policy}: in {ATTEMPTS} attempts");
    }
    for plain in ["fibers", "threads"] {
        let output = Command::new(&program)
            .args(["concord", plain])
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(3), "{said}");
        assert!(
            said.contains("-fsanitize=safe-stack") && said.contains("leave one"),
            "{said}"
        );
    }
}

/// A library that was linked with a C++ runtime of its own keeps its exceptions in that runtime's thread-local variables, which are the request's like all others.
#[test]
fn exceptions_of_a_second_runtime_stay_with_their_request() {
    let _alone = alone();
    let Some(toolchain) = Toolchain::headway() else {
        return;
    };
    let library = toolchain.library_with_runtime("tests/c/runtime_of_its_own.cc");
    let program = toolchain.build("tests/c/exceptions.cc", Linked::Shared);
    for (policy, workers) in [("concord,q=5us", "1"), ("tiny-quanta,q=5us", "2")] {
        let run = || preemptions(Command::new(&program).args([policy, workers]).arg(&library));
        let often = (0..ATTEMPTS).any(|_| run() > 3_000);
        assert!(often, "{policy}, {workers}: in {ATTEMPTS} attempts");
    }
}

/// The C library chooses functions before a static program has thread-local variables: a resolver without probes works there, one that calls code with probes does not.
#[test]
fn a_static_program_chooses_functions_by_resolvers_without_probes() {
    let _alone = alone();
    let Some(toolchain) = Toolchain::headway() else {
        return;
    };
    let plain = Toolchain::plain().object("tests/c/chosen.c", &[]);
    let probed = toolchain.object("tests/c/chosen.c", &[]);
    for linked in [Linked::Shared, Linked::AllStatic] {
        for chosen in [&plain, &probed] {
            let program =
                toolchain.build_with("tests/c/resolved.c", linked, std::slice::from_ref(chosen));
            let mut command = Command::new(program);
            command.arg("concord,q=5us");
            if linked == Linked::AllStatic && chosen == &probed {
                let status = command.output().unwrap().status;
                assert_eq!(status.signal(), Some(SIGSEGV), "{status}");
            } else {
                let often = (0..ATTEMPTS).any(|_| preemptions(&mut command) > 100);
                assert!(often, "{linked:?}: in {ATTEMPTS} attempts");
            }
        }
    }
}
