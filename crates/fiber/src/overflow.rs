//! Stack overflows: a report that names the request's class, before the process ends.
//!
//! A fiber that runs out of stack touches the guard below it, and the kernel sends `SIGSEGV`. The handler runs on another stack, which each
//! attached thread has. It compares the address with the guard of this thread's running fiber.
#![expect(unsafe_code, reason = "a signal handler")]

use std::sync::{Mutex, OnceLock, PoisonError};
use std::{io, mem, ptr};

use crate::control::FiberControl;
use crate::local;

/// Names a job's label. It runs in a signal handler, so it must neither allocate nor lock.
pub type LabelName = fn(label: u64) -> Option<&'static str>;

static LABEL_NAME: OnceLock<LabelName> = OnceLock::new();

const SIGNALS: [libc::c_int; 2] = [libc::SIGSEGV, libc::SIGBUS];

/// The previous handler of each of [`SIGNALS`].
static PREVIOUS: [OnceLock<libc::sigaction>; 2] = [const { OnceLock::new() }; 2];

/// Reports stack overflows of fibers of [attached](crate::Attached) threads from now on: one line on standard error with `name(label)` of the
/// job (the label of [`Fiber::run`](crate::Fiber::run)), then the process aborts. Other faults go to the previous handlers. A second call
/// names nothing anew.
///
/// # Errors
/// The kernel refuses the handlers.
pub fn report_overflows(name: LabelName) -> io::Result<()> {
    LABEL_NAME.get_or_init(|| name);
    report_thread_overflows()
}

/// As [`report_overflows`], for schedulers of [strands](crate::Strand), whose overflows are reported without a label. Leaves the naming of labels to a call
/// of that.
///
/// # Errors
/// The kernel refuses the handlers.
pub fn report_thread_overflows() -> io::Result<()> {
    static INSTALLED: Mutex<bool> = Mutex::new(false);
    let mut installed = INSTALLED.lock().unwrap_or_else(PoisonError::into_inner);
    if *installed {
        return Ok(());
    }
    for (signal, previous) in SIGNALS.iter().zip(&PREVIOUS) {
        install(*signal, previous)?;
    }
    *installed = true;
    Ok(())
}

fn install(signal: libc::c_int, previous: &OnceLock<libc::sigaction>) -> io::Result<()> {
    // SAFETY: a zeroed action is valid; the handler has the type that SA_SIGINFO demands. The previous one is stored before ours can run.
    unsafe {
        let mut action: libc::sigaction = mem::zeroed();
        if libc::sigaction(signal, ptr::null(), &mut action) != 0 {
            return Err(io::Error::last_os_error());
        }
        previous.get_or_init(|| action);
        action.sa_sigaction = faulted as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_NODEFER;
        if libc::sigaction(signal, &action, ptr::null_mut()) != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

extern "C" fn faulted(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    let control = local::fiber();
    if !control.is_null() {
        // SAFETY: the kernel's information about this fault, and this thread's current fiber.
        let (address, control) = unsafe { ((*info).si_addr() as usize, &*control) };
        if control.guards(address) {
            report(control);
            // SAFETY: ends the process.
            unsafe { libc::abort() };
        }
    }
    pass_on(signal, info, context);
}

/// Writes one line, without allocating.
fn report(control: &FiberControl) {
    let mut line = TextLine::default();
    if !control.kind.is_null() {
        line.text("headway: stack overflow in a user-level thread: it has ");
        line.number((control.stack_bytes() >> 10) as u64);
        line.text(" KiB of stack; give threads larger ones (stack_bytes), or recurse less\n");
    } else {
        line.text("headway: stack overflow in a request of class ");
        let label = control.label.get();
        match LABEL_NAME.get().and_then(|name| name(label)) {
            Some(name) => line.text(name),
            None => line.number(label),
        }
        line.text(": its fiber has ");
        line.number((control.stack_bytes() >> 10) as u64);
        line.text(" KiB of stack; give fibers larger ones, or recurse less\n");
    }
    // SAFETY: writes the bytes of the line.
    unsafe { libc::write(libc::STDERR_FILENO, line.bytes.as_ptr().cast(), line.len) };
}

/// A line of text that needs no allocator.
struct TextLine {
    bytes: [u8; 256],
    len: usize,
}

impl Default for TextLine {
    fn default() -> TextLine {
        TextLine {
            bytes: [0; 256],
            len: 0,
        }
    }
}

impl TextLine {
    /// Appends as much of the text as has room.
    fn text(&mut self, text: &str) {
        let rest = &mut self.bytes[self.len..];
        let len = text.len().min(rest.len());
        rest[..len].copy_from_slice(&text.as_bytes()[..len]);
        self.len += len;
    }

    fn number(&mut self, number: u64) {
        if number >= 10 {
            self.number(number / 10);
        }
        let digit = [b'0' + (number % 10) as u8];
        self.text(str::from_utf8(&digit).unwrap_or_default());
    }
}

/// Passes the fault to the previous handler.
fn pass_on(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    let index = SIGNALS.iter().position(|known| *known == signal);
    let previous = index.and_then(|index| PREVIOUS[index].get());
    match previous {
        Some(action) if ![libc::SIG_DFL, libc::SIG_IGN].contains(&action.sa_sigaction) => {
            // SAFETY: a handler of the type that its flags say, called as the kernel would.
            unsafe {
                if action.sa_flags & libc::SA_SIGINFO != 0 {
                    mem::transmute::<usize, InfoHandler>(action.sa_sigaction)(
                        signal, info, context,
                    );
                } else {
                    mem::transmute::<usize, PlainHandler>(action.sa_sigaction)(signal);
                }
            }
        }
        // The instruction faults again, and the process ends as it would have.
        // SAFETY: restores the default.
        _ => unsafe {
            libc::signal(signal, libc::SIG_DFL);
        },
    }
}

type InfoHandler = unsafe extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void);
type PlainHandler = unsafe extern "C" fn(libc::c_int);

/// A signal stack for a thread without one. Threads of the standard library have one that is large enough to print a line.
#[derive(Debug)]
pub(crate) struct AlternateStack {
    /// The mapping made here; empty if the thread had a stack.
    mapping: Option<(*mut libc::c_void, usize)>,
}

/// Bytes beyond the kernel's minimum, which depends on the processor's vector state.
const HANDLER_BYTES: usize = 32 << 10;

impl AlternateStack {
    /// Gives the calling thread a stack for signals, if it has none.
    ///
    /// # Panics
    /// There is no memory for it.
    pub(crate) fn ensure() -> AlternateStack {
        // SAFETY: asks for the present one; maps memory, and makes it the thread's.
        unsafe {
            let mut present: libc::stack_t = mem::zeroed();
            libc::sigaltstack(ptr::null(), &mut present);
            if present.ss_flags & libc::SS_DISABLE == 0 {
                return AlternateStack { mapping: None };
            }
            let bytes = libc::getauxval(libc::AT_MINSIGSTKSZ) as usize + HANDLER_BYTES;
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_STACK;
            let access = libc::PROT_READ | libc::PROT_WRITE;
            let mapping = libc::mmap(ptr::null_mut(), bytes, access, flags, -1, 0);
            assert!(
                mapping != libc::MAP_FAILED,
                "{bytes} bytes for a signal stack: {}",
                io::Error::last_os_error()
            );
            let stack = libc::stack_t {
                ss_sp: mapping,
                ss_flags: 0,
                ss_size: bytes,
            };
            libc::sigaltstack(&stack, ptr::null_mut());
            AlternateStack {
                mapping: Some((mapping, bytes)),
            }
        }
    }
}

impl Drop for AlternateStack {
    fn drop(&mut self) {
        let Some((mapping, bytes)) = self.mapping else {
            return;
        };
        // SAFETY: the thread stops using it before it goes.
        unsafe {
            let none = libc::stack_t {
                ss_sp: ptr::null_mut(),
                ss_flags: libc::SS_DISABLE,
                ss_size: 0,
            };
            libc::sigaltstack(&none, ptr::null_mut());
            libc::munmap(mapping, bytes);
        }
    }
}
