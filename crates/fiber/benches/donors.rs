//! What donors cost a process: memory, making one, switches, and what everything else costs beside a thousand of them that are parked.
//!
//! Each round starts a process without parked donors and one with a thousand, each of which lends its state to a fiber that is suspended. A round's figure of what takes
//! less than a millisecond is the least of several short tries: the machine has other work, and does not interrupt each of them. gdb takes part where it is installed.
#![expect(unsafe_code, reason = "forks, resumes, and sets the base")]

mod common;

use std::arch::asm;
use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering, fence};
use std::time::Instant;

use common::{donors, each, preemption_of, stacks, switch_of};
use headway_fiber::{Fiber, Stacks, Turn, yield_now};
use headway_machine::Clock;
use headway_machine::doctor::has_fsgsbase;
use headway_sync::park::Parker;

const ROUNDS: usize = 7;

/// Parked donors in the processes of a round.
const SIZES: [usize; 2] = [0, 1000];

/// Tries, of which the least counts.
const TRIES: usize = 30;

/// Switches of a try: less than a tick of the kernel's.
const TURNS: u64 = 10_000;

/// The argument of a process that a round starts, before its size.
const BESIDE: &str = "--beside";

fn main() {
    let args: Vec<String> = std::env::args().collect();
    match args.iter().position(|arg| arg == BESIDE) {
        Some(at) => measure_beside(args[at + 1].parse().expect("a number")),
        None => compare(),
    }
}

/// What the processes of all rounds said, for each size: in the order of the first.
#[derive(Default)]
struct Table {
    rows: Vec<(String, [Vec<f64>; SIZES.len()])>,
}

impl Table {
    fn add(&mut self, name: &str, size: usize, value: f64) {
        let at = self.rows.iter().position(|(known, _)| known == name);
        let at = at.unwrap_or_else(|| {
            self.rows.push((name.to_owned(), Default::default()));
            self.rows.len() - 1
        });
        self.rows[at].1[size].push(value);
    }
}

fn compare() {
    let mut table = Table::default();
    for _ in 0..ROUNDS {
        for (size, parked) in SIZES.iter().enumerate() {
            round(&mut table, size, *parked);
        }
    }
    println!("donors, medians of {ROUNDS} interleaved rounds (least to most)");
    println!(
        "  {:<44} {:>28} {:>28}",
        "parked donors", SIZES[0], SIZES[1]
    );
    for (name, values) in &mut table.rows {
        print!("  {name:<44}");
        for values in values {
            print!(" {:>28}", spread(values));
        }
        println!();
    }
}

/// The median, and between what the values lie.
fn spread(values: &mut [f64]) -> String {
    values.sort_by(f64::total_cmp);
    match values {
        [] => "-".to_owned(),
        [least, .., most] => {
            let (least, most) = (*least, *most);
            format!("{:.1} ({least:.1} to {most:.1})", values[values.len() / 2])
        }
        [value] => format!("{value:.1}"),
    }
}

/// Starts a process with so many parked donors, and adds what it says of itself and what it takes to look at and to end it.
fn round(table: &mut Table, size: usize, parked: usize) {
    let mut process = Command::new(std::env::current_exe().expect("a program"))
        .args([BESIDE, &parked.to_string()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the process starts");
    let said = BufReader::new(process.stdout.take().expect("it is piped"));
    for line in said.lines() {
        let line = line.expect("text");
        let Some((name, value)) = line.split_once('\t') else {
            break; // It waits.
        };
        table.add(name, size, value.parse().expect("a number"));
    }
    if let Some(ms) = debugged_ms(&process, &[]) {
        table.add("gdb attaches and leaves, ms", size, ms);
    }
    if let Some(ms) = debugged_ms(&process, &["-ex", "thread apply all bt"]) {
        table.add("the same with every thread's stack, ms", size, ms);
    }
    let start = Instant::now();
    drop(process.stdin.take());
    assert!(process.wait().expect("a child").success(), "it ends well");
    table.add("exit, to the end of wait, ms", size, ms_since(start));
}

/// How long gdb takes for the process, if it is installed.
fn debugged_ms(process: &Child, commands: &[&str]) -> Option<f64> {
    let start = Instant::now();
    let status = Command::new("gdb")
        .args(["-nx", "-batch", "-p", &process.id().to_string()])
        .args(commands)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    status.ok().filter(|status| status.success())?;
    Some(ms_since(start))
}

fn ms_since(start: Instant) -> f64 {
    start.elapsed().as_secs_f64() * 1e3
}

fn least(measure: impl FnMut() -> f64) -> f64 {
    let tries = std::iter::repeat_with(measure).take(TRIES);
    tries.fold(f64::INFINITY, f64::min)
}

fn say(name: &str, value: f64) {
    println!("{name}\t{value}");
}

/// The process with so many parked donors: measures, waits for the end of its input, and ends.
fn measure_beside(parked: usize) {
    let clock = Clock::global();
    // What the first of a kind takes is not counted.
    drop(donors());
    let before = Memory::now();
    let lent = Stacks::of_donors(64 << 10, parked).expect("threads can be made");
    let idle = Memory::now();
    let fibers: Vec<_> = (0..parked).map(|_| suspended(&lent)).collect();
    let busy = Memory::now();
    if parked > 0 {
        let each = 1.0 / parked as f64;
        idle.say(&before, "a donor", each);
        busy.say(&before, "a donor with a suspended job", each);
    }
    let more = Stacks::of_donors(64 << 10, 0).expect("nothing is made yet");
    let mut ended_ns = f64::INFINITY;
    let made_ns = least(|| {
        let mut taken = None;
        let made_ns = each(&clock, 1, |_| {
            taken = Some(more.take().expect("a thread can be made"));
        });
        ended_ns = ended_ns.min(each(&clock, 1, |_| drop(taken.take())));
        made_ns
    });
    say("one more made, µs", made_ns / 1e3);
    say("one ended, µs", ended_ns / 1e3);
    let (plain, owning) = (stacks(), donors());
    let switch = |stacks| least(|| switch_of(&clock, stacks, TURNS));
    let interruption = |stacks| least(|| preemption_of(&clock, stacks, TURNS));
    if has_fsgsbase() {
        say(
            "two changes of the base alone, ns",
            least(|| base_changed_twice(&clock)),
        );
    }
    say("resume and yield, plain stack, ns", switch(&plain));
    say(
        "resume and yield, with a thread's state, ns",
        switch(&owning),
    );
    say("interruption, plain stack, ns", interruption(&plain));
    say(
        "interruption, with a thread's state, ns",
        interruption(&owning),
    );
    say("a parked worker woken, µs", least(|| woken_us(&clock)));
    say("fork, in the parent, µs", least(|| forked_us(&clock)));
    say("a program started and ended, µs", least(spawned_us));
    println!("ready");
    let _ = io::stdout().flush();
    let _ = io::stdin().read_line(&mut String::new());
    // As a program ends that is killed in the middle of its work: nothing is resumed any more.
    std::mem::forget((fibers, lent));
}

/// A fiber in the middle of a job.
fn suspended(stacks: &Stacks) -> Fiber<()> {
    let stack = stacks.take().expect("a stack");
    let mut fiber = Fiber::new(stack, |(): &mut ()| yield_now());
    assert_eq!(fiber.run((), 0), Turn::Yielded);
    fiber
}

/// What no switch to another thread's variables and back can do without.
fn base_changed_twice(clock: &Clock) -> f64 {
    each(clock, TURNS, |_| {
        // SAFETY: the base is this thread's own, which stands at the base (System V ABI for x86-64), and the machine has the instruction.
        unsafe {
            asm!("mov {0}, qword ptr fs:[0]", "wrfsbase {0}", "wrfsbase {0}", out(reg) _, options(nostack, preserves_flags));
        }
    })
}

/// Half of the way from one thread to the other and back, as workers sleep and are woken.
fn woken_us(clock: &Clock) -> f64 {
    const TRIPS: u64 = 100;
    let (ball, parkers) = (AtomicU64::new(0), [Parker::new(), Parker::new()]);
    let await_turn = |me: usize, turn: u64| {
        while ball.load(Ordering::Acquire) != turn {
            parkers[me].park_unless(|| ball.load(Ordering::Acquire) == turn);
        }
    };
    let pass_on = |to: usize, turn: u64| {
        ball.store(turn, Ordering::Release);
        fence(Ordering::SeqCst);
        parkers[to].wake();
    };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for trip in 0..TRIPS {
                await_turn(1, 2 * trip + 1);
                pass_on(0, 2 * trip + 2);
            }
        });
        let trip_ns = each(clock, TRIPS, |trip| {
            pass_on(1, 2 * trip + 1);
            await_turn(0, 2 * trip + 2);
        });
        trip_ns / 2e3
    })
}

fn forked_us(clock: &Clock) -> f64 {
    let start_ns = clock.now_ns();
    // SAFETY: the child ends at once, and uses nothing of its parent's other threads.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // SAFETY: always valid.
        unsafe { libc::_exit(0) };
    }
    let forking_ns = clock.now_ns() - start_ns;
    assert!(child > 0, "fork: {}", io::Error::last_os_error());
    // SAFETY: the status is not asked for.
    unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) };
    forking_ns as f64 / 1e3
}

/// By `posix_spawn`, whose child runs in the parent's memory until it has a program of its own.
fn spawned_us() -> f64 {
    let start = Instant::now();
    let status = Command::new("/bin/true").status();
    assert!(status.expect("there is such a program").success());
    ms_since(start) * 1e3
}

/// Memory of this process, and the kernel's beside it, KiB.
struct Memory {
    resident: f64,
    page_tables: f64,
    /// Of all processes.
    kernel_stacks: f64,
    kernel_slabs: f64,
}

impl Memory {
    fn now() -> Memory {
        let status = fs::read_to_string("/proc/self/status").expect("procfs");
        let machine = fs::read_to_string("/proc/meminfo").expect("procfs");
        Memory {
            resident: kib(&status, "VmRSS:"),
            page_tables: kib(&status, "VmPTE:"),
            kernel_stacks: kib(&machine, "KernelStack:"),
            kernel_slabs: kib(&machine, "Slab:"),
        }
    }

    fn say(&self, before: &Memory, what: &str, part: f64) {
        let say = |of: &str, kib: f64| say(&format!("{what}: {of}, KiB"), kib * part);
        say("resident", self.resident - before.resident);
        say("page tables", self.page_tables - before.page_tables);
        say(
            "kernel stacks, machine's",
            self.kernel_stacks - before.kernel_stacks,
        );
        say(
            "kernel slabs, machine's",
            self.kernel_slabs - before.kernel_slabs,
        );
    }
}

fn kib(file: &str, name: &str) -> f64 {
    let line = file.lines().find_map(|line| line.strip_prefix(name));
    let number = line.and_then(|line| line.split_whitespace().next());
    number
        .expect("a line of that name")
        .parse()
        .expect("a number")
}
