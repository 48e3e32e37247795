//! Donors: threads that park for good and lend a fiber what a thread has.
//!
//! A fiber on a donor runs on the donor's stack and with the base of the donor's thread-local variables, in whichever thread resumes it. So thread-locals,
//! `errno`, the stack's bounds, exceptions, an allocator's caches and the ownership of locks are the fiber's; destructors of thread-local variables run
//! when the donor ends. The kernel knows nothing of it: what it keeps for a thread (its number, masks, priority) stays with the thread that resumes.
//!
//! A donor can also go on with its suspended fiber itself, *at home*.
#![expect(
    unsafe_code,
    reason = "makes threads whose stacks and variables others use"
)]

use std::arch::global_asm;
use std::cell::Cell;
use std::io;
use std::mem::{self, offset_of};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU32, Ordering};

use headway_machine::thread::fork;

use crate::donor_threads::DonorThread;
use crate::fs;
use crate::kernel_mask::{self, SIGSETXID};
use crate::mapping::{GUARD_BYTES, Mapping};
use crate::sanitizer;
use crate::saved::Saved;

/// What a parked donor waits for.
mod order {
    /// Nothing: it stays parked.
    pub(super) const PARK: u32 = 0;
    /// Go on with the fiber, until it leaves or ends.
    pub(super) const RUN: u32 = 1;
    /// End.
    pub(super) const END: u32 = 2;
}

/// Bytes of a donor's stack above the fiber's part for what runs there at home, and for a handler of the program's that runs there, beside the largest frame of a signal.
const RESERVE_BYTES: usize = 64 << 10;

/// Of that part, for handlers that run on a stack of their own, such as the one that tells that a fiber at home has none left. Beside the largest frame of a signal.
const ALTERNATE_BYTES: usize = 32 << 10;

/// Of a thread's own record, static thread-local variables and first frames, where the C library does not say how much that is.
const RECORD_BYTES: usize = 64 << 10;

/// A donor, in a frame of its own stack.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Donor {
    /// The word that says where a debugger finds the frames above the donor's: in a suspended fiber, or in the donor itself.
    shown: Cell<*const Cell<usize>>,
    /// The frame in which the donor parks.
    home: Cell<usize>,
    /// A word of [`order`], a futex. Not a private one: Linux 6.16 and later keep those in a table sized by the processors, in which parked donors would make each
    /// wake of the process slow.
    order: AtomicU32,
    /// The function that goes on with the fiber, and the fiber, once there is one.
    run: Cell<Option<RunAtHome>>,
    fiber: Cell<*mut ()>,
    /// The signals that whoever made the donor blocked, which are blocked at home too.
    mask: u64,
    /// The base of the donor's thread-local variables.
    base: usize,
    thread: libc::pthread_t,
    /// Of the process that the donor is in.
    forks: u64,
}

/// Goes on with a donor's fiber in the donor's own thread, until it leaves or ends. It uses no thread-local variable after that: another thread may go on with it.
pub(crate) type RunAtHome = unsafe extern "C" fn(donor: *const Donor);

/// What a donor's first frame tells who made it.
struct Birth {
    colour_bytes: usize,
    /// Of who makes it.
    mask: u64,
    born: Cell<Option<NonNull<Mapping>>>,
    /// 1 once `born` is set; a futex.
    is_born: AtomicU32,
    why_not: Cell<libc::c_int>,
}

/// Makes a donor with `bytes` of stack for its fiber. Returns the record of the fiber's part.
///
/// # Errors
/// There is no memory for it, or the process has as many threads as it may have.
pub(crate) fn make(bytes: usize, colour_bytes: usize) -> io::Result<NonNull<Mapping>> {
    fs::prepare();
    // A signal of the process must not find the new thread.
    let mask = kernel_mask::replace(!kernel_mask::RESERVED);
    let birth = Birth {
        colour_bytes,
        mask,
        born: Cell::new(None),
        is_born: AtomicU32::new(0),
        why_not: Cell::new(0),
    };
    // SAFETY: a zeroed attribute is initialised by the first call; the thread uses `birth` until it says that it is parked, which this waits for.
    let made = unsafe {
        let mut attributes: libc::pthread_attr_t = mem::zeroed();
        libc::pthread_attr_init(&raw mut attributes);
        let stack_bytes = bytes + reserve_bytes() + record_bytes(&attributes);
        libc::pthread_attr_setstacksize(&raw mut attributes, stack_bytes.next_multiple_of(4096));
        libc::pthread_attr_setguardsize(&raw mut attributes, GUARD_BYTES);
        let mut thread = 0;
        let made = libc::pthread_create(
            &raw mut thread,
            &raw const attributes,
            donor,
            (&raw const birth).cast_mut().cast(),
        );
        libc::pthread_attr_destroy(&raw mut attributes);
        made
    };
    kernel_mask::replace(mask);
    if made != 0 {
        return Err(io::Error::from_raw_os_error(made));
    }
    while birth.is_born.load(Ordering::Acquire) == 0 {
        wait_while(&birth.is_born, 0);
    }
    sanitizer::acquire(&raw const birth);
    let Some(mapping) = birth.born.get() else {
        return Err(io::Error::from_raw_os_error(birth.why_not.get()));
    };
    Ok(mapping)
}

/// Ends a donor whose fiber has no job, and waits for it: destructors of its thread-local variables run meanwhile.
///
/// # Safety
/// The fiber is not suspended and runs nowhere, and nobody uses the donor's stack or words afterwards.
pub(crate) unsafe fn end(donor: NonNull<Donor>) {
    // SAFETY: the donor lives until it is joined; in a child its stack is there, as all of the parent's memory.
    unsafe {
        if donor.as_ref().forks != fork::forks() {
            return; // Threads of the parent are not here.
        }
        let thread = donor.as_ref().thread;
        donor.as_ref().give_order(order::END);
        libc::pthread_join(thread, ptr::null_mut());
    }
}

impl Donor {
    /// The base of its thread-local variables.
    #[inline(always)]
    pub(crate) fn base(&self) -> usize {
        self.base
    }

    /// The frame in which it parks.
    #[inline(always)]
    pub(crate) fn home(&self) -> usize {
        self.home.get()
    }

    /// The signals that are blocked at home: those that whoever made the donor blocked.
    pub(crate) fn mask(&self) -> u64 {
        self.mask
    }

    /// The fiber on its stack.
    #[inline(always)]
    pub(crate) fn fiber(&self) -> *mut () {
        self.fiber.get()
    }

    /// A fiber was made on its stack, which goes on at home by `run`, and says in that word of its own where its frames are.
    pub(crate) fn has_fiber(&self, fiber: *mut (), run: RunAtHome, shown: &Cell<usize>) {
        shown.set(self.home.get());
        self.fiber.set(fiber);
        self.run.set(Some(run));
        self.shown.set(shown);
    }

    /// The fiber is no more.
    pub(crate) fn has_none(&self) {
        self.fiber.set(ptr::null_mut());
        self.shown.set(&raw const self.home);
    }

    /// Lets the donor go on with its suspended fiber, in its own thread, until it leaves or ends.
    pub(crate) fn run_at_home(&self) {
        self.give_order(order::RUN);
    }

    /// Whether it goes on with its fiber still.
    #[inline]
    pub(crate) fn is_at_home(&self) -> bool {
        let is_at_home = self.order.load(Ordering::Acquire) == order::RUN;
        sanitizer::acquire(self);
        is_at_home
    }

    fn give_order(&self, order: u32) {
        sanitizer::release(self);
        self.order.store(order, Ordering::Release);
        wake(&self.order);
    }
}

/// A donor's thread.
extern "C" fn donor(birth: *mut libc::c_void) -> *mut libc::c_void {
    // SAFETY: who made it waits until it says that it is born.
    let birth = unsafe { &*birth.cast::<Birth>() };
    let donor = Donor {
        shown: Cell::new(ptr::null()),
        home: Cell::new(0),
        order: AtomicU32::new(order::PARK),
        run: Cell::new(None),
        fiber: Cell::new(ptr::null_mut()),
        mask: birth.mask,
        base: fs::base(),
        // SAFETY: always valid to ask.
        thread: unsafe { libc::pthread_self() },
        forks: fork::forks(),
    };
    donor.shown.set(&raw const donor.home);
    let born = settle(&donor, birth.colour_bytes);
    match born {
        Ok(mapping) => birth.born.set(Some(mapping)),
        Err(why) => birth.why_not.set(why),
    }
    // Said after the last use of `birth`'s cells; its futex word is waited for, and the wake names no memory that is read.
    if born.is_ok() {
        sanitizer::release(birth);
        let noted = DonorThread::note(donor.base);
        // SAFETY: the donor lives in this frame, and the word until it says 1.
        unsafe { __headway_donor_park(&raw const donor, birth.is_born.as_ptr()) };
        sanitizer::acquire(&raw const donor);
        // Assembly has read the order, and destructors write to this frame: a sanitizer sees by this that they come after it.
        donor.order.load(Ordering::Acquire);
        noted.forget();
        // Destructors of the fiber's thread-local variables come next.
        kernel_mask::replace(donor.mask);
    } else {
        birth.is_born.store(1, Ordering::Release);
        wake(&birth.is_born);
    }
    ptr::null_mut()
}

/// Makes the calling thread one that others may use, and writes the record of the part of its stack that is the fiber's.
fn settle(donor: &Donor, colour_bytes: usize) -> Result<NonNull<Mapping>, libc::c_int> {
    // A fiber that forks is a worker's handler.
    fork::is_worker();
    // No handler may run on the fiber's stack while another thread uses it but the C library's for `setuid`, which waits for all threads.
    kernel_mask::replace(!(1 << (SIGSETXID - 1)));
    // SAFETY: calls for the calling thread, which will run nobody's code but its fiber's.
    unsafe {
        let mut before = 0;
        pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &raw mut before);
        libc::pthread_setname_np(libc::pthread_self(), c"headway-donor".as_ptr());
    }
    leave_rseq(donor.base);
    let (low, bytes) = own_stack()?;
    let top = ((&raw const *donor) as usize - reserve_bytes() - colour_bytes) & !63;
    let mapping = top as *mut Mapping;
    // SAFETY: far below this frame, and the calls that this thread makes while it is parked take less than the reserve. Of that the lower part is for handlers alone.
    unsafe {
        take_alternate_stack(mapping.add(1).cast());
        mapping.write(Mapping {
            start: (low - GUARD_BYTES) as *mut u8,
            bytes: bytes + GUARD_BYTES,
            donor: ptr::from_ref(donor).cast(),
        });
        Ok(NonNull::new_unchecked(mapping))
    }
}

/// Has handlers of signals that want it run at this place, unless the thread has one for them already, as a sanitizer's threads do.
///
/// # Safety
/// The place has room for [`alternate_bytes`], and nothing else uses it while the thread lives.
unsafe fn take_alternate_stack(place: *mut libc::c_void) {
    // SAFETY: asks for the present one; the caller's promise.
    unsafe {
        let mut present: libc::stack_t = mem::zeroed();
        libc::sigaltstack(ptr::null(), &raw mut present);
        if present.ss_flags & libc::SS_DISABLE == 0 {
            return;
        }
        let alternate = libc::stack_t {
            ss_sp: place,
            ss_flags: 0,
            ss_size: alternate_bytes(),
        };
        libc::sigaltstack(&raw const alternate, ptr::null_mut());
    }
}

/// The lowest address and the bytes of the calling thread's stack.
fn own_stack() -> Result<(usize, usize), libc::c_int> {
    let (mut low, mut bytes) = (ptr::null_mut(), 0);
    // SAFETY: asks, for the calling thread.
    unsafe {
        let mut attributes: libc::pthread_attr_t = mem::zeroed();
        let failed = libc::pthread_getattr_np(libc::pthread_self(), &raw mut attributes);
        if failed != 0 {
            return Err(failed);
        }
        libc::pthread_attr_getstack(&raw const attributes, &raw mut low, &raw mut bytes);
        libc::pthread_attr_destroy(&raw mut attributes);
    }
    Ok((low as usize, bytes))
}

/// Gives the thread's area of restartable sequences back. The kernel writes there only while the donor itself runs: a fiber would read the processor on which
/// the donor sleeps. Without it, `sched_getcpu` asks the kernel, and others see that there is none.
fn leave_rseq(base: usize) {
    // The C library's words for it, since 2.35 (`rseq(2)`).
    // SAFETY: null, or the address of a variable of that type.
    unsafe {
        let size = libc::dlsym(libc::RTLD_DEFAULT, c"__rseq_size".as_ptr()).cast::<libc::c_uint>();
        let offset = libc::dlsym(libc::RTLD_DEFAULT, c"__rseq_offset".as_ptr()).cast::<isize>();
        if size.is_null() || offset.is_null() || size.read() == 0 {
            return;
        }
        libc::syscall(
            libc::SYS_rseq,
            base.wrapping_add_signed(offset.read()),
            RSEQ_BYTES,
            RSEQ_FLAG_UNREGISTER,
            RSEQ_SIGNATURE,
        );
    }
}

/// As the C library registers it for x86 (`sysdeps/unix/sysv/linux/rseq-internal.h`).
const RSEQ_BYTES: u32 = 32;
const RSEQ_FLAG_UNREGISTER: libc::c_int = 1;
const RSEQ_SIGNATURE: u32 = 0x5305_3053;

const PTHREAD_CANCEL_DISABLE: libc::c_int = 1;

unsafe extern "C" {
    fn pthread_setcancelstate(state: libc::c_int, before: *mut libc::c_int) -> libc::c_int;

    /// Parks the calling thread until it is ordered to end. Once the donor's frame is its home, the word says 1.
    fn __headway_donor_park(donor: *const Donor, is_born: *mut u32);
}

fn reserve_bytes() -> usize {
    signal_bytes() + RESERVE_BYTES + alternate_bytes()
}

fn alternate_bytes() -> usize {
    signal_bytes() + ALTERNATE_BYTES
}

/// The largest frame of a signal.
fn signal_bytes() -> usize {
    // SAFETY: always valid to ask.
    unsafe { libc::getauxval(libc::AT_MINSIGSTKSZ) as usize }
}

/// What the C library takes from a thread's stack.
fn record_bytes(attributes: &libc::pthread_attr_t) -> usize {
    type LeastBytes = unsafe extern "C" fn(*const libc::pthread_attr_t) -> usize;
    // SAFETY: null, or the C library's function of that type (for this purpose: its users are other runtimes).
    unsafe {
        let least = libc::dlsym(libc::RTLD_DEFAULT, c"__pthread_get_minstack".as_ptr());
        if least.is_null() {
            return RECORD_BYTES;
        }
        mem::transmute::<*mut libc::c_void, LeastBytes>(least)(attributes)
    }
}

// A debugger that unwinds a parked donor finds the suspended fiber's frames: the tables say that the caller of this frame is what is saved where `shown` points,
// which is the fiber's last frame, or the donor's own first one. It is marked as a signal's frame: debuggers assume for other frames that the stack does not change.
global_asm!(
    ".pushsection .text.__headway_donor_park, \"ax\", @progbits",
    ".globl __headway_donor_park",
    ".hidden __headway_donor_park",
    ".type __headway_donor_park, @function",
    "__headway_donor_park:",
    ".cfi_startproc",
    "sub rsp, 40",
    ".cfi_adjust_cfa_offset 40",
    "mov [rsp + {rbp}], rbp",
    "mov [rsp + {rbx}], rbx",
    "mov rax, [rsp + 40]",
    "mov [rsp + {rip}], rax",
    "lea rax, [rsp + 48]",
    "mov [rsp + {rsp_of}], rax",
    "mov rbx, rdi",
    ".cfi_offset rbx, -48 + {rbx}",
    ".cfi_remember_state",
    "mov [rbx + {home}], rsp",
    // The stack pointer of the caller, and where its registers are: DW_OP_breg3 (rbx) `shown`, DW_OP_deref twice, DW_OP_plus_uconst, and DW_OP_deref for the first.
    ".cfi_signal_frame",
    ".cfi_escape 0x0f, 7, 0x73, {shown}, 0x06, 0x06, 0x23, {rsp_of}, 0x06",
    ".cfi_escape 0x10, 16, 6, 0x73, {shown}, 0x06, 0x06, 0x23, {rip}",
    ".cfi_escape 0x10, 6, 6, 0x73, {shown}, 0x06, 0x06, 0x23, {rbp}",
    ".cfi_escape 0x10, 3, 6, 0x73, {shown}, 0x06, 0x06, 0x23, {rbx}",
    "mov dword ptr [rsi], 1",
    "mov rdi, rsi",
    "mov eax, {futex}",
    "mov esi, 1", // FUTEX_WAKE
    "mov edx, 0x7fffffff",
    "xor r10d, r10d",
    "syscall",
    "2:",
    "mov edx, [rbx + {order}]",
    "test edx, edx",
    "jnz 3f",
    "mov eax, {futex}",
    "lea rdi, [rbx + {order}]",
    "xor esi, esi", // FUTEX_WAIT, while it is PARK
    "xor edx, edx",
    "xor r10d, r10d",
    "syscall",
    "jmp 2b",
    "3:",
    "cmp edx, {run}",
    "jne 4f",
    "mov rdi, rbx",
    "call [rbx + {run_at_home}]",
    // From this store on another thread may resume the fiber.
    "mov dword ptr [rbx + {order}], {park}",
    "mov eax, {futex}",
    "lea rdi, [rbx + {order}]",
    "mov esi, 1", // FUTEX_WAKE
    "mov edx, 0x7fffffff",
    "xor r10d, r10d",
    "syscall",
    "jmp 2b",
    "4:",
    ".cfi_restore_state",
    "mov rbp, [rsp + {rbp}]",
    "mov rbx, [rsp + {rbx}]",
    "add rsp, 40",
    ".cfi_adjust_cfa_offset -40",
    ".cfi_restore rbx",
    "ret",
    ".cfi_endproc",
    ".size __headway_donor_park, . - __headway_donor_park",
    ".popsection",
    rbp = const offset_of!(Saved, rbp),
    rip = const offset_of!(Saved, rip),
    rbx = const offset_of!(Saved, rbx),
    rsp_of = const offset_of!(Saved, rsp),
    shown = const offset_of!(Donor, shown),
    home = const offset_of!(Donor, home),
    order = const offset_of!(Donor, order),
    futex = const libc::SYS_futex,
    run = const order::RUN,
    park = const order::PARK,
    run_at_home = const offset_of!(Donor, run),
);

/// Sleeps while the word has this value, or for no reason.
fn wait_while(word: &AtomicU32, value: u32) {
    futex(word, libc::FUTEX_WAIT, value);
}

fn wake(word: &AtomicU32) {
    futex(word, libc::FUTEX_WAKE, i32::MAX as u32);
}

fn futex(word: &AtomicU32, operation: libc::c_int, value: u32) {
    // SAFETY: a word that lives during the call, or one that the kernel only looks up.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            operation,
            value,
            ptr::null::<libc::timespec>(),
        )
    };
}
