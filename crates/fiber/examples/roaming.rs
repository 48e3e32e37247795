//! Runs the `main` of a program that links this on a fiber with a thread's state, which is suspended at every probe and goes on in another thread every so many times.
//!
//! For programs of others, built with the compiler pass: their own tests then check that they compute the same (`make test-suites`). `HEADWAY_ROAMING=101` has the
//! fiber change threads at each 101st suspension; without it the program runs as it is. `HEADWAY_ROAMING_COUNTS=FILE` adds what happened to a file of three words.
#![expect(
    unsafe_code,
    reason = "stands before functions of the C library's, and runs a program's main"
)]

use std::ffi::{CStr, c_char, c_int, c_void};
use std::fs::OpenOptions;
use std::mem;
use std::os::fd::AsRawFd;
use std::process;
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;

use headway_fiber::{Attached, SendFiber, Stacks, Turn};

/// Of the stack that `main` runs on: what programs expect, and more for the frames of probes.
const STACK_BYTES: usize = 64 << 20;

type MainFunction = unsafe extern "C" fn(c_int, *mut *mut c_char, *mut *mut c_char) -> c_int;
type StartMainFunction = unsafe extern "C" fn(
    MainFunction,
    c_int,
    *mut *mut c_char,
    *mut c_void,
    *mut c_void,
    *mut c_void,
    *mut c_void,
) -> c_int;

/// The program's own.
static MAIN: OnceLock<MainFunction> = OnceLock::new();

/// Stands before the C library's function of this name, which calls `main`.
///
/// # Safety
/// Called by the program's first code, with what the C library is to be given.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __libc_start_main(
    main: MainFunction,
    count: c_int,
    arguments: *mut *mut c_char,
    init: *mut c_void,
    fini: *mut c_void,
    loader_fini: *mut c_void,
    stack_end: *mut c_void,
) -> c_int {
    // SAFETY: the C library's function, with what was to be its arguments but for `main`.
    unsafe {
        let real = libc::dlsym(libc::RTLD_NEXT, c"__libc_start_main".as_ptr());
        let real: StartMainFunction = mem::transmute::<*mut c_void, StartMainFunction>(real);
        let first = if libc::getenv(c"HEADWAY_ROAMING".as_ptr()).is_null() {
            main
        } else {
            let _ = MAIN.set(main);
            roam
        };
        real(first, count, arguments, init, fini, loader_fini, stack_end)
    }
}

/// A child of `vfork` runs in its parent's memory, where a probe would suspend it: so it gets its own.
///
/// # Safety
/// As for `fork(2)`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vfork() -> libc::pid_t {
    // SAFETY: the caller's promise.
    unsafe { libc::fork() }
}

/// What `main` is called with.
struct MainCall {
    main: MainFunction,
    count: c_int,
    arguments: *mut *mut c_char,
    environment: *mut *mut c_char,
}

// SAFETY: they stay as long as the process.
unsafe impl Send for MainCall {}

/// What happened, in a file that the processes of a run share.
struct RoamingCounts {
    processes: AtomicU64,
    suspensions: AtomicU64,
    moves: AtomicU64,
}

/// Stands for `main`: runs it on a fiber, and never returns.
unsafe extern "C" fn roam(
    count: c_int,
    arguments: *mut *mut c_char,
    environment: *mut *mut c_char,
) -> c_int {
    let call = MainCall {
        main: *MAIN.get().expect("the program began with it"),
        count,
        arguments,
        environment,
    };
    let counts = counts();
    counts.processes.fetch_add(1, Ordering::Relaxed);
    let stay = variable(c"HEADWAY_ROAMING")
        .parse()
        .ok()
        .filter(|stay| *stay > 0)
        .unwrap_or_else(|| fail("HEADWAY_ROAMING: expected a number of suspensions from 1 on"));
    let stacks = Stacks::of_donors(STACK_BYTES, 1)
        .unwrap_or_else(|why| fail(&format!("no thread for main: {why}")));
    let stack = stacks.take().expect("one was made ahead");
    let mut fiber = SendFiber::owning_thread_state(stack, |call: &mut MainCall| {
        // SAFETY: as the C library would call it; `exit` runs what the program has registered, here too.
        unsafe { libc::exit((call.main)(call.count, call.arguments, call.environment)) }
    })
    .unwrap_or_else(|_| unreachable!("the stack is a donor's"));
    let (to_second, second) = mpsc::channel();
    let (to_first, first) = mpsc::channel();
    thread::spawn(move || RoamingThread::new(second, to_first, stay, counts).run());
    let worker = RoamingThread::new(first, to_second, stay, counts);
    worker.attached.begin_on(&fiber, FIRST_EPOCH);
    worker.flag.raise(FIRST_EPOCH);
    if let Turn::Yielded = fiber.run(call, 0) {
        worker.go_on(fiber, FIRST_EPOCH);
    }
    worker.run()
}

const FIRST_EPOCH: u64 = 1;

/// The fiber, on its way to another thread, and its last epoch.
type RoamingFiber = (SendFiber<MainCall>, u64);

/// A thread that resumes the fiber until it passes it on.
struct RoamingThread {
    attached: Attached,
    flag: headway_fiber::YieldFlag,
    arrivals: Receiver<RoamingFiber>,
    other: Sender<RoamingFiber>,
    /// So often it resumes the fiber before.
    stay: u64,
    counts: &'static RoamingCounts,
}

impl RoamingThread {
    fn new(
        arrivals: Receiver<RoamingFiber>,
        other: Sender<RoamingFiber>,
        stay: u64,
        counts: &'static RoamingCounts,
    ) -> RoamingThread {
        let attached = Attached::new();
        let flag = attached.flag();
        RoamingThread {
            attached,
            flag,
            arrivals,
            other,
            stay,
            counts,
        }
    }

    fn run(&self) -> ! {
        while let Ok((fiber, epoch)) = self.arrivals.recv() {
            self.go_on(fiber, epoch);
        }
        fail("the other thread is gone")
    }

    /// Resumes the fiber, which yields at its next probe each time, and passes it on.
    fn go_on(&self, mut fiber: SendFiber<MainCall>, before: u64) {
        let last = before + self.stay;
        for epoch in before + 1..=last {
            self.attached.begin_on(&fiber, epoch);
            self.flag.raise(epoch);
            if let Turn::Finished(_) = fiber.resume() {
                fail("main ends by exit");
            }
        }
        self.counts
            .suspensions
            .fetch_add(self.stay, Ordering::Relaxed);
        self.counts.moves.fetch_add(1, Ordering::Relaxed);
        if self.other.send((fiber, last)).is_err() {
            fail("the other thread is gone");
        }
    }
}

fn variable(name: &CStr) -> String {
    // SAFETY: the program has not begun to change its environment.
    unsafe {
        let value = libc::getenv(name.as_ptr());
        if value.is_null() {
            return String::new();
        }
        CStr::from_ptr(value).to_string_lossy().into_owned()
    }
}

/// The file's words, or some that nobody reads.
fn counts() -> &'static RoamingCounts {
    let name = variable(c"HEADWAY_ROAMING_COUNTS");
    if name.is_empty() {
        return Box::leak(Box::new(RoamingCounts {
            processes: AtomicU64::new(0),
            suspensions: AtomicU64::new(0),
            moves: AtomicU64::new(0),
        }));
    }
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .open(&name)
        .unwrap_or_else(|why| fail(&format!("HEADWAY_ROAMING_COUNTS={name}: {why}")));
    // SAFETY: a mapping of a file that whoever made it keeps at three words.
    unsafe {
        let words = libc::mmap(
            ptr::null_mut(),
            size_of::<RoamingCounts>(),
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED,
            file.as_raw_fd(),
            0,
        );
        if words == libc::MAP_FAILED {
            fail(&format!("HEADWAY_ROAMING_COUNTS={name}: cannot be mapped"));
        }
        &*words.cast::<RoamingCounts>()
    }
}

fn fail(why: &str) -> ! {
    eprintln!("roaming: {why}");
    process::abort()
}
