//! Pools in C and C++ programs, compiled here as users would.

#[allow(dead_code, reason = "each test uses a part of it")]
mod checked;
#[allow(dead_code, reason = "each test uses a part of it")]
mod toolchain;

use std::path::{Path, PathBuf};
use std::process::Command;

use checked::{ATTEMPTS, alone, printed};
use toolchain::{Linked, Toolchain};

/// A policy that interrupts nothing, two that do, and whatever the pool takes where nobody names one.
const POLICIES: [&str; 3] = ["darc-stable", "srpt", "tiny-quanta,q=5us"];

/// Whether a header of another's package is there; if not, that is said.
fn has_header(header: &str, package: &str) -> bool {
    let there = Path::new("/usr/include").join(header).exists();
    if !there {
        eprintln!("SKIPPED with {package}: {header} is not there (apt-get install {package})");
    }
    there
}

#[test]
fn each_job_of_c_has_one_end_and_mistakes_have_words() {
    let _alone = alone();
    for linked in [Linked::Shared, Linked::Static] {
        let program = Toolchain::plain().build("tests/c/pool.c", linked);
        // What is freed does not keep its looks.
        printed(Command::new(&program).env("MALLOC_PERTURB_", "165"));
        for policy in POLICIES {
            printed(Command::new(&program).arg(policy));
        }
    }
}

/// A thread in user space is a fiber, but none of the pool's: nobody but its own runtime goes on with it.
#[test]
fn threads_in_user_space_wait_for_jobs_of_c() {
    let _alone = alone();
    let program = Toolchain::plain().build("tests/c/pool_and_threads.c", Linked::Shared);
    for policy in POLICIES {
        printed(Command::new(&program).arg(policy));
    }
}

#[test]
fn pools_of_c_are_seen_from_outside_and_keep_their_limits() {
    let _alone = alone();
    let program = Toolchain::plain().build("tests/c/pool_outside.c", Linked::Shared);
    let socket = std::env::temp_dir().join(format!("headway-c-{}.sock", std::process::id()));
    for policy in ["darc-stable", "srpt"] {
        printed(Command::new(&program).arg(&socket).arg(policy));
    }
}

#[test]
fn jobs_of_c_share_their_thread_where_they_promise_to_keep_nothing_there() {
    let _alone = alone();
    let program = Toolchain::plain().build("tests/c/pool_fibers.c", Linked::Shared);
    printed(&mut Command::new(program));
}

#[test]
fn futures_of_cpp_carry_results_and_exceptions() {
    let _alone = alone();
    let Some(toolchain) = Toolchain::plain_cpp() else {
        return;
    };
    let program = toolchain.build("tests/c/pool.cc", Linked::Shared);
    for policy in POLICIES {
        printed(Command::new(&program).arg(policy));
    }
}

#[test]
fn asio_posts_to_classes_of_a_pool() {
    let _alone = alone();
    let Some(toolchain) = Toolchain::plain_cpp() else {
        return;
    };
    if !has_header("asio.hpp", "libasio-dev") {
        return;
    }
    let program = toolchain.build("tests/c/pool_asio.cc", Linked::Shared);
    printed(&mut Command::new(program));
}

/// The program of this name: the block of docs/pool.md in this language, between the lines that it leaves out.
fn documented(language: &str, name: &str, before: &str, after: &str) -> PathBuf {
    let document = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/pool.md");
    let text = std::fs::read_to_string(document).unwrap();
    let fence = format!("```{language}\n");
    let mut blocks = text.split(&fence).skip(1);
    let block = blocks.next().and_then(|block| block.split("```").next());
    assert!(blocks.next().is_none(), "{language}: one block is compiled");
    let source = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let program = [before, block.expect(language), after].concat();
    std::fs::write(&source, program).unwrap();
    source
}

#[test]
fn the_documents_c_runs() {
    let _alone = alone();
    let before = "#include <headway_pool.h>
        enum { POINT, REPORT };
        static void aggregate(void *data) { ++*(int *)data; }
        static void lookup(void *data) { ++*(int *)data; }
        int main(void) {
            int query = 0, key = 0;
        ";
    let after = "return query != 1 || key != 1; }";
    let source = documented("c", "documented_pool.c", before, after);
    let program = Toolchain::plain().build(source.to_str().unwrap(), Linked::Shared);
    printed(&mut Command::new(program));
}

#[test]
fn the_documents_cpp_runs() {
    let _alone = alone();
    let Some(toolchain) = Toolchain::plain_cpp() else {
        return;
    };
    if !has_header("asio.hpp", "libasio-dev") {
        return;
    }
    let before = "#include <asio.hpp>
        #include <atomic>
        #include <headway_asio.hpp>
        enum { POINT, REPORT };
        int main() {
            std::atomic<int> calls{0};
            auto handler = [&calls](auto...) { ++calls; };
            headway_pool_class point{}, report{};
            point.name = \"point\";
            report.name = \"report\";
            headway::pool pool({point, report});
            asio::io_context loop;
            asio::steady_timer timer(loop, std::chrono::milliseconds(1));
        ";
    let after = "loop.run();
            while (calls < 2) std::this_thread::yield();
        }";
    let source = documented("cpp", "documented_pool.cc", before, after);
    let program = toolchain.build(source.to_str().unwrap(), Linked::Shared);
    printed(&mut Command::new(program));
}

#[test]
fn the_example_computes_its_sums() {
    let _alone = alone();
    let program = Toolchain::plain().build("examples/pool.c", Linked::Shared);
    let sum = |to: u64| (0..to).sum::<u64>();
    let points = [100, 200, 300].map(|to| format!("point {}\n", sum(to)));
    let expected = points.concat() + &format!("report {}\n", sum(3_000_000));
    for policy in POLICIES {
        assert_eq!(printed(Command::new(&program).arg(policy)), expected);
    }
}

/// One worker: Gets that come while a scan runs are answered before its end where it is interrupted, and after it where nothing is.
#[test]
fn gets_pass_a_scan_of_rocksdb_between_its_steps() {
    let _alone = alone();
    let Some(toolchain) = Toolchain::plain_cpp() else {
        return;
    };
    if !has_header("rocksdb/db.h", "librocksdb-dev") {
        return;
    }
    let libraries = ["-lrocksdb".into()];
    let program = toolchain.build_with("examples/rocksdb.cc", Linked::Shared, &libraries);
    let run = |policy: &str| {
        let db = Path::new(env!("CARGO_TARGET_TMPDIR")).join("rocksdb");
        let _ = std::fs::remove_dir_all(&db);
        let said = printed(Command::new(&program).arg(policy).arg(db));
        let scanned = (0..200_000_u64).sum::<u64>();
        let counts = said
            .strip_prefix(&format!("scan {scanned}, gets before its end "))
            .unwrap_or_else(|| panic!("{said}"));
        let numbers: Vec<u64> = counts
            .split([' ', ',', '\n'])
            .filter_map(|word| word.parse().ok())
            .collect();
        (numbers[0], numbers[2])
    };
    let all = (0..ATTEMPTS).any(|_| {
        let (before, interruptions) = run("srpt");
        before == 20 && interruptions > 0
    });
    assert!(all, "in {ATTEMPTS} attempts");
    assert_eq!(run("c-fcfs"), (0, 0));
}
