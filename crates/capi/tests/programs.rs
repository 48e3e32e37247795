//! C programs, compiled here as users would, and talked to over UDP.

mod checked;
#[allow(dead_code, reason = "other tests use the rest")]
mod toolchain;

use std::io::{BufRead, BufReader, Read};
use std::net::UdpSocket;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread;
use std::time::Duration;

use checked::{ATTEMPTS, alone, preemptions, printed};
use headway_net::header::{Flag, Header, Status};
use toolchain::{Linked, Toolchain, shim};

const SHORT: u8 = 0;
const LONG: u8 = 1;
/// A tenth of a second and more; far more than the shorts need to overtake it.
const LONG_STEPS: u64 = 150_000_000;
const SHORTS: u32 = 10;

/// The example server, running.
struct HeadwayServer {
    process: Child,
    output: BufReader<ChildStdout>,
    socket: UdpSocket,
}

impl HeadwayServer {
    fn start(program: &std::path::Path, policy: &str) -> Self {
        let mut process = Command::new(program)
            .args([policy, "1"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut output = BufReader::new(process.stdout.take().unwrap());
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        let address = line
            .trim()
            .strip_prefix("listening udp://")
            .unwrap_or_else(|| panic!("it said '{line}'"));
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.connect(address).unwrap();
        socket
            .set_read_timeout(Some(Duration::from_secs(60)))
            .unwrap();
        Self {
            process,
            output,
            socket,
        }
    }

    fn send(&self, class: u8, index: u32, steps: u64) {
        let header = Header {
            class,
            flag: Flag::REQUEST,
            index,
            time_ns: 0,
        };
        let payload = steps.to_string();
        self.socket
            .send(&[&header.encode(), payload.as_bytes()].concat())
            .unwrap();
    }

    fn receive(&self) -> (u32, u64) {
        let mut buffer = [0; 4096];
        let length = self.socket.recv(&mut buffer).expect("an answer in time");
        let (header, payload) = Header::parse(&buffer[..length]).unwrap();
        assert_eq!(header.flag.status(), Status::Ok);
        (
            header.index,
            u64::from_ne_bytes(payload.try_into().unwrap()),
        )
    }

    /// Ends it; returns how many requests it answered and how often it interrupted one.
    fn stop(mut self) -> (u64, u64) {
        drop(self.process.stdin.take());
        let mut said = String::new();
        self.output.read_to_string(&mut said).unwrap();
        assert!(self.process.wait().unwrap().success(), "{said}");
        let mut numbers = said
            .split([' ', ',', '\n'])
            .filter_map(|word| word.parse().ok());
        (numbers.next().unwrap(), numbers.next().unwrap())
    }
}

/// The result of the example.
fn sum(steps: u64) -> u64 {
    (0..steps).fold(1, |sum: u64, step| {
        sum.wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(step)
    })
}

/// The number of short requests answered before a long one that runs at the only worker, and the long request's number of interruptions.
fn overtaken(toolchain: &Toolchain, policy: &str) -> (usize, u64) {
    let source = "examples/server.c";
    let server = HeadwayServer::start(&toolchain.build(source, Linked::Shared), policy);
    server.send(LONG, 0, LONG_STEPS);
    thread::sleep(Duration::from_millis(5));
    (1..=SHORTS).for_each(|index| server.send(SHORT, index, u64::from(index)));
    let mut order = Vec::new();
    for _ in 0..=SHORTS {
        let (index, answer) = server.receive();
        let steps = if index == 0 {
            LONG_STEPS
        } else {
            u64::from(index)
        };
        assert_eq!(answer, sum(steps), "{policy}, request {index}");
        order.push(index);
    }
    let (answered, preemptions) = server.stop();
    assert_eq!(answered, u64::from(SHORTS) + 1);
    let before = order.iter().position(|index| *index == 0).unwrap();
    (before, preemptions)
}

#[test]
fn shorts_overtake_a_loop_that_has_no_checkpoint() {
    let _alone = alone();
    let Some(toolchain) = Toolchain::headway() else {
        return;
    };
    let policy = "concord,q=20us,dispatcher=dedicated";
    let all = (0..ATTEMPTS).any(|_| {
        let (before, preemptions) = overtaken(&toolchain, policy);
        before == SHORTS as usize && preemptions > 0
    });
    assert!(all, "in {ATTEMPTS} attempts");
    // First come, first served, whatever the code could do.
    assert_eq!(overtaken(&toolchain, "c-fcfs"), (0, 0));
}

/// The control: the same program under the same policy by a compiler without the pass.
#[test]
fn without_probes_nothing_overtakes() {
    let _alone = alone();
    let policy = "concord,q=20us,dispatcher=dedicated";
    assert_eq!(overtaken(&Toolchain::plain(), policy), (0, 0));
    assert_eq!(overtaken(&Toolchain::plain(), "c-fcfs"), (0, 0));
}

/// The static library needs nothing of Headway's at run time.
#[test]
fn the_static_library_serves_too() {
    let _alone = alone();
    for toolchain in [Some(Toolchain::plain()), Toolchain::headway()]
        .into_iter()
        .flatten()
    {
        let program = toolchain.build("examples/server.c", Linked::Static);
        for policy in ["concord", "c-fcfs"] {
            let server = HeadwayServer::start(&program, policy);
            server.send(SHORT, 7, 1_000);
            assert_eq!(server.receive(), (7, sum(1_000)));
            assert_eq!(server.stop().0, 1);
        }
    }
}

/// The exit status of a program that got no order to yield in time.
const NOT_ASKED: i32 = 2;

#[test]
fn sections_and_checkpoints_do_what_they_say() {
    says_so("tests/c/sections.c");
}

#[test]
fn feedback_says_who_may_be_interrupted() {
    says_so("tests/c/feedback.c");
}

/// One worker, and shorts of the same class behind a long: they are answered before it ends, though its class says nothing of it. No order depends on time,
/// so the first attempt counts.
#[test]
fn a_request_that_says_it_is_long_gives_way_whatever_its_class() {
    let _alone = alone();
    for toolchain in [Some(Toolchain::plain()), Toolchain::headway()]
        .into_iter()
        .flatten()
    {
        let program = toolchain.build("tests/c/says_long.c", Linked::Shared);
        for policy in [
            "synergy",
            "synergy,longs=hints",
            "concord,q=20us",
            "concord,q=20us,dispatcher=dedicated",
            "shinjuku-sq,q=20us",
            "tiny-quanta,q=20us",
        ] {
            for layout in ["dedicated", "inline"] {
                for feedback in ["heeded", "off"] {
                    let args = [policy, layout, feedback];
                    printed(Command::new(&program).args(args));
                }
            }
        }
    }
}

#[test]
fn loops_take_requests_and_answer_each_once() {
    says_so("tests/c/pull.c");
}

/// The example: a loop per worker.
#[test]
fn the_example_of_a_loop_serves() {
    let _alone = alone();
    let program = Toolchain::plain().build("examples/pull.c", Linked::Shared);
    for policy in ["darc", "concord"] {
        let server = HeadwayServer::start(&program, policy);
        for index in 1..=3 {
            server.send(SHORT, index, 12);
            let mut buffer = [0; 64];
            let length = server.socket.recv(&mut buffer).expect("an answer in time");
            let (header, payload) = Header::parse(&buffer[..length]).unwrap();
            let words: Vec<u64> = payload
                .chunks_exact(8)
                .map(|word| u64::from_ne_bytes(word.try_into().unwrap()))
                .collect();
            let sum = u64::from(b'1') + u64::from(b'2');
            assert_eq!(
                (header.index, &*words),
                (index, &[u64::from(index), sum][..])
            );
        }
        assert_eq!(server.stop().0, 3);
    }
}

/// The program finds everything as it should be, compiled by either compiler.
fn says_so(source: &str) {
    let _alone = alone();
    for toolchain in [Some(Toolchain::plain()), Toolchain::headway()]
        .into_iter()
        .flatten()
    {
        let program = toolchain.build(source, Linked::Shared);
        until_asked(&mut Command::new(&program));
    }
}

/// Runs a program that checks itself until something was interrupted that should have been.
fn until_asked(program: &mut Command) {
    let done = (0..ATTEMPTS).any(|_| {
        let output = program.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        match output.status.code() {
            Some(0) => true,
            Some(NOT_ASKED) => false,
            _ => panic!("{program:?}: {said}"),
        }
    });
    assert!(done, "{program:?}: in {ATTEMPTS} attempts");
}

/// The counters under the locks add up and no request waits for ever, over thousands of interruptions. Without the shim the
/// program hangs at the first lock whose holder was interrupted.
#[test]
fn a_program_with_locks_is_safe_behind_the_shim() {
    let _alone = alone();
    let Some(toolchain) = Toolchain::headway() else {
        return;
    };
    let program = toolchain.build("tests/c/locks.c", Linked::Shared);
    let shim = shim();
    let run = |policy: &str, workers: &str| {
        let mut command = Command::new(&program);
        preemptions(command.args([policy, workers]).env("LD_PRELOAD", &shim))
    };
    for (policy, workers) in [
        ("concord,q=5us", "1"),
        ("concord,q=5us", "2"),
        ("tiny-quanta,q=5us", "2"),
    ] {
        let often = (0..ATTEMPTS).any(|_| run(policy, workers) > 3_000);
        assert!(often, "{policy}, {workers}: in {ATTEMPTS} attempts");
    }
    // Where nobody is interrupted, consumers that wait keep their workers: one more than there are consumers in flight.
    assert_eq!(run("c-fcfs", "7"), 0);
}

/// Policies whose requests stay, go on anywhere, and are given back, for programs that check themselves.
const INTERRUPTING: [&str; 3] = ["concord,q=5us", "tiny-quanta,q=5us", "tardis,q=5us"];

/// Runs a program that checks itself under each of them, until it was interrupted often.
fn often_interrupted(source: &str) {
    let _alone = alone();
    for toolchain in [Some(Toolchain::plain()), Toolchain::headway()]
        .into_iter()
        .flatten()
    {
        let program = toolchain.build(source, Linked::Shared);
        for policy in INTERRUPTING {
            let often =
                (0..ATTEMPTS).any(|_| preemptions(Command::new(&program).arg(policy)) > 100);
            assert!(often, "{policy}: in {ATTEMPTS} attempts");
        }
    }
}

#[test]
fn a_profiler_walks_each_stack_to_its_end() {
    often_interrupted("tests/c/profiled.c");
}

#[test]
fn handlers_of_signals_are_not_suspended_and_masks_are_the_requests_own() {
    often_interrupted("tests/c/signalled.c");
}

/// A child of `vfork` runs in its parent's memory: a probe there must not suspend it.
#[test]
fn a_request_may_vfork_and_spawn() {
    let _alone = alone();
    let Some(toolchain) = Toolchain::headway() else {
        return;
    };
    let program = toolchain.build("tests/c/vforks.c", Linked::Shared);
    for (policy, workers) in [
        ("tiny-quanta,q=5us", "1"),
        ("concord,q=5us,dispatcher=dedicated", "2"),
        ("c-fcfs", "1"),
    ] {
        let interrupted = preemptions(Command::new(&program).args([policy, workers]));
        assert!(policy == "c-fcfs" || interrupted > 0, "{policy}");
    }
}

/// A request that is asked to yield while it holds a lock is counted by the kind of the lock.
#[test]
fn what_keeps_a_request_from_yielding_is_counted() {
    let _alone = alone();
    let program = Toolchain::plain().build("tests/c/held.c", Linked::Shared);
    until_asked(Command::new(&program).env("LD_PRELOAD", shim()));
}

/// A library without probes keeps what belongs to its thread, so a request is not suspended in its calls for locks. Outside it
/// goes on in other threads only where the program asked for that.
#[test]
fn a_library_without_probes_is_left_by_the_thread_that_entered_it() {
    let _alone = alone();
    let Some(toolchain) = Toolchain::headway() else {
        return;
    };
    let library = Toolchain::plain().library("tests/c/keeper.c");
    let program = toolchain.build_with("tests/c/keeps.c", Linked::Shimmed, &[library]);
    for resume in ["stay", "roam"] {
        until_asked(Command::new(&program).arg(resume));
    }
}

/// An allocator that is part of a program with probes: the code that takes its locks stands beside code that may be suspended.
#[test]
fn an_allocator_linked_into_the_program_is_not_suspended_at_its_locks() {
    let _alone = alone();
    let Some(toolchain) = Toolchain::headway() else {
        return;
    };
    let plain = Toolchain::plain();
    let parts = [
        plain.object("tests/c/keeper.c", &["-DLOCKS_ONLY"]),
        plain.object("tests/c/allocator.c", &[]),
    ];
    let program = toolchain.build_with("tests/c/keeps.c", Linked::Shimmed, &parts);
    until_asked(Command::new(&program).arg("roam"));
}

/// Runs of a program with an allocator that stands before the shim: once in a while is not enough.
const ALLOCATOR_RUNS: usize = 12;

#[test]
fn an_allocator_before_the_shim_is_safe() {
    let _alone = alone();
    let Some(toolchain) = Toolchain::headway() else {
        return;
    };
    let Some(jemalloc) = jemalloc() else {
        eprintln!(
            "SKIPPED with jemalloc: libjemalloc.so.2 is not there (apt-get install libjemalloc2)"
        );
        return;
    };
    let program = toolchain.build("tests/c/allocates.c", Linked::Shimmed);
    for preload in [
        jemalloc.clone(),
        [shim().display().to_string(), jemalloc].join(":"),
    ] {
        let interrupted = (0..ALLOCATOR_RUNS)
            .filter(|_| {
                preemptions(
                    Command::new(&program)
                        .arg("probes")
                        .env("LD_PRELOAD", &preload),
                ) > 100
            })
            .count();
        assert!(interrupted > 0, "{preload}: in {ALLOCATOR_RUNS} attempts");
    }
}

/// The library as the dynamic linker finds it.
fn jemalloc() -> Option<String> {
    let probe = Command::new("true")
        .env("LD_PRELOAD", "libjemalloc.so.2")
        .output()
        .unwrap();
    probe
        .stderr
        .is_empty()
        .then(|| "libjemalloc.so.2".to_owned())
}

/// Where a request could be interrupted inside it, the server does not start, and says what to do.
#[test]
fn an_allocator_that_the_shim_cannot_keep_safe_is_refused() {
    let _alone = alone();
    let Some(toolchain) = Toolchain::headway() else {
        return;
    };
    let program = toolchain.build("tests/c/allocates.c", Linked::Shimmed);
    let plain = Toolchain::plain().library("tests/c/allocator.c");
    let probed = toolchain.library("tests/c/allocator.c");
    for (allocator, mechanism, why) in [
        (None, "probes", None),
        (None, "signal", None),
        (Some(&plain), "probes", None),
        (Some(&plain), "signal", Some("can be interrupted by signal")),
        (Some(&probed), "probes", Some("has probes in it")),
        (Some(&probed), "signal", Some("has probes in it")),
    ] {
        let mut command = Command::new(&program);
        command.arg(mechanism);
        if let Some(allocator) = allocator {
            command.env("LD_PRELOAD", allocator);
        }
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        match why {
            None => assert!(output.status.success(), "{command:?}: {said}"),
            Some(why) => {
                assert_eq!(output.status.code(), Some(1), "{command:?}: {said}");
                assert!(said.contains(why) && said.contains("LD_PRELOAD="), "{said}");
            }
        }
    }
}

#[test]
fn a_deadline_that_is_over_is_looked_at_before_others_run() {
    let _alone = alone();
    let Some(toolchain) = Toolchain::headway() else {
        return;
    };
    let program = toolchain.build("tests/c/late.c", Linked::Shimmed);
    until_asked(&mut Command::new(&program));
}

/// Each request finds the C++ exceptions in flight that are its own, with thousands of interruptions.
#[test]
fn exceptions_stay_with_the_request_that_threw_them() {
    let _alone = alone();
    let Some(toolchain) = Toolchain::headway() else {
        return;
    };
    let program = toolchain.build("tests/c/exceptions.cc", Linked::Shared);
    let run =
        |policy: &str, workers: &str| preemptions(Command::new(&program).args([policy, workers]));
    for (policy, workers) in [("concord,q=5us", "1"), ("tiny-quanta,q=5us", "2")] {
        let often = (0..ATTEMPTS).any(|_| run(policy, workers) > 3_000);
        assert!(often, "{policy}, {workers}: in {ATTEMPTS} attempts");
    }
    assert_eq!(run("c-fcfs", "2"), 0);
}

#[test]
fn threads_in_user_space_do_what_they_say() {
    let _alone = alone();
    let Some(toolchain) = Toolchain::plain_cpp() else {
        return;
    };
    for linked in [Linked::Shared, Linked::Static] {
        let program = toolchain.build("tests/c/threads.cc", linked);
        assert_eq!(printed(&mut Command::new(program)), "");
    }
}

#[test]
fn the_examples_of_threads_compute_their_sums() {
    let _alone = alone();
    let turns = 10 * (1..=1000_u64).sum::<u64>();
    let counts = Toolchain::plain().build("examples/threads.c", Linked::Shared);
    let squares = Toolchain::plain_cpp()
        .map(|toolchain| toolchain.build("examples/squares.cc", Linked::Shared));
    let sum = (1..=1000_u64).map(|number| number * number).sum::<u64>();
    for (program, expected) in [(Some(counts), turns), (squares, sum)] {
        let Some(program) = program else { continue };
        for kthreads in ["1", "2"] {
            let said = printed(Command::new(&program).arg(kthreads));
            assert_eq!(said.trim(), expected.to_string());
        }
    }
}
