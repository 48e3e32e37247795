//! A whole program on a fiber that changes threads at its probes: `examples/roaming.rs`, which the tests of programs of others link.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Sums in a loop with probes, in its own process and in a child; what a thread has is looked at on the way. It says how many threads ran its `main`.
const PROGRAM: &str = r#"
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern _Thread_local struct { unsigned long asked, others[7]; } __headway_preempt;
void __headway_checkpoint(void);
static void probe(void) { if (__headway_preempt.asked) __headway_checkpoint(); }

static _Thread_local unsigned long own;
static int count_threads(void) {
    long first = syscall(SYS_gettid);
    int others = 0;
    for (int i = 0; i < 1000; i++) { probe(); others += syscall(SYS_gettid) != first; }
    return others;
}
static void at_the_end(void) { for (int i = 0; i < 10; i++) probe(); puts("end"); }

int main(int argc, char **argv) {
    pthread_t me = pthread_self();
    jmp_buf out;
    atexit(at_the_end);
    for (unsigned long i = 0; i < 1000; i++) { own = i; errno = (int)i; probe(); if (own != i || errno != (int)i || me != pthread_self()) return 3; }
    if (setjmp(out) == 0) { probe(); longjmp(out, 1); }
    const int others = count_threads();
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) { if (count_threads() != 0) _exit(4); _exit(argc + 40); }
    int status;
    if (waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status) != 42) return 5;
    printf("%s %s\n", argv[1], others > 0 ? "moved" : "stayed");
    return 7;
}
"#;

/// The library: cargo builds examples beside tests.
fn library() -> PathBuf {
    let program = std::env::current_exe().expect("a test knows its program");
    let built = program.ancestors().nth(2).expect("it is in target/…/deps");
    built.join("examples")
}

fn run(program: &Path, counts: &Path, stay: Option<&str>) -> (i32, String) {
    let mut command = Command::new(program);
    command
        .arg("hello")
        .env("HEADWAY_ROAMING_COUNTS", counts)
        .env_remove("HEADWAY_ROAMING");
    if let Some(stay) = stay {
        command.env("HEADWAY_ROAMING", stay);
    }
    let done = command.output().expect("the program starts");
    let said = String::from_utf8_lossy(&done.stdout).into_owned();
    (done.status.code().unwrap_or(-1), said)
}

#[test]
#[cfg_attr(
    any(headway_asan, headway_tsan),
    ignore = "the program that links the library has no sanitizer"
)]
fn a_programs_main_goes_from_thread_to_thread() {
    let library = library();
    assert!(
        library.join("libroaming.so").exists(),
        "`cargo test` builds examples, `--test` alone does not: cargo build -p headway-fiber --example roaming"
    );
    let room = tempfile::tempdir().expect("a directory");
    let (source, program) = (room.path().join("main.c"), room.path().join("main"));
    fs::write(&source, PROGRAM).expect("the source is written");
    let Ok(compiled) = Command::new("cc")
        .args(["-O2", "-pthread", "-o"])
        .arg(&program)
        .arg(&source)
        .arg("-L")
        .arg(&library)
        .arg("-lroaming")
        .arg(format!("-Wl,-rpath,{}", library.display()))
        .output()
    else {
        eprintln!("SKIPPED: a program on a fiber that changes threads needs a C compiler");
        return;
    };
    let why = String::from_utf8_lossy(&compiled.stderr);
    assert!(compiled.status.success(), "{why}");

    let counts = room.path().join("counts");
    fs::write(&counts, [0; 4096]).expect("the counts are written");
    assert_eq!(
        run(&program, &counts, None),
        (7, "hello stayed\nend\n".into())
    );
    assert_eq!(
        run(&program, &counts, Some("3")),
        (7, "hello moved\nend\n".into())
    );
    let counted = fs::read(&counts).expect("the counts stay");
    let [processes, suspensions, moves] = [0, 8, 16]
        .map(|at| u64::from_ne_bytes(counted[at..at + 8].try_into().expect("eight bytes")));
    assert_eq!(processes, 1);
    assert_eq!(suspensions, 3 * moves);
    assert!(suspensions >= 1_900, "{suspensions} suspensions");
}
