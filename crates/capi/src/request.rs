//! Reading and answering a request in a handler.
#![expect(unsafe_code, reason = "functions with names that C links to")]

use std::ffi::{c_int, c_uint, c_void};
use std::ptr;

use headway_runtime::{Call, MAX_REPLY_BYTES};

use crate::status::{CallFailure, HEADWAY_E_TOO_LARGE, report};

/// The most bytes a response may have, wire header not included; also what headway_buffer() has room for.
pub const HEADWAY_MAX_REPLY_BYTES: usize = 1990;
const _: () = assert!(HEADWAY_MAX_REPLY_BYTES == MAX_REPLY_BYTES);

/// A request that is being handled: valid until handle_request returns, or until headway_send() or headway_finish().
#[derive(Debug)]
pub struct HeadwayRequest {
    _private: [u8; 0],
}

/// # Safety
/// As every function here asks.
unsafe fn call<'a>(request: *mut HeadwayRequest) -> &'a mut Call<'a> {
    // SAFETY: a request handed to C is a `Call` of which the handler has the only reference while it runs.
    unsafe { &mut *request.cast() }
}

/// The buffer, HEADWAY_MAX_REPLY_BYTES large: it begins with the request's payload, and takes the response for
/// headway_reply_in_place().
///
/// # Safety
/// `request` is the one that handle_request was called with, or one that headway_recv() gave, and used by one thread at a time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn headway_buffer(request: *mut HeadwayRequest) -> *mut u8 {
    // SAFETY: the caller's promise.
    unsafe { call(request) }.buffer_mut().as_mut_ptr()
}

/// Bytes of the payload, without wire header; after a reply, bytes of that.
///
/// # Safety
/// As headway_buffer().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn headway_length(request: *mut HeadwayRequest) -> usize {
    // SAFETY: the caller's promise.
    unsafe { call(request) }.payload().len()
}

/// The class the request was scheduled as; the number of classes stands for unknown.
///
/// # Safety
/// As headway_buffer().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn headway_class_of(request: *mut HeadwayRequest) -> c_uint {
    // SAFETY: the caller's promise.
    c_uint::from(unsafe { call(request) }.class().0)
}

/// The worker that began the request: an index for data kept per worker. It stays the same when the request resumes elsewhere, so another
/// thread uses such data then.
///
/// # Safety
/// As headway_buffer().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn headway_worker(request: *mut HeadwayRequest) -> c_uint {
    // SAFETY: the caller's promise.
    c_uint::from(unsafe { call(request) }.worker().0)
}

/// The time field of the request's wire header, ns: a load generator puts a synthetic request's amount of work there.
///
/// # Safety
/// As headway_buffer().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn headway_time_ns(request: *mut HeadwayRequest) -> u32 {
    // SAFETY: the caller's promise.
    unsafe { call(request) }.header_time_ns()
}

/// Answers with these bytes, which may lie in headway_buffer(). Of several replies the last one counts. Returns HEADWAY_OK,
/// HEADWAY_E_TOO_LARGE, or HEADWAY_E_ARGUMENT for a length without bytes.
///
/// # Safety
/// As headway_buffer(); `bytes` is null or has as many readable bytes as `length` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn headway_reply(
    request: *mut HeadwayRequest,
    bytes: *const c_void,
    length: usize,
) -> c_int {
    if bytes.is_null() && length > 0 {
        return report(|| {
            Err(CallFailure::argument(format!(
                "a reply of {length} bytes is null"
            )))
        });
    }
    if length > 0 && length <= MAX_REPLY_BYTES {
        // SAFETY: the caller's promise; the buffer has room, and the two may overlap.
        unsafe { ptr::copy(bytes.cast::<u8>(), headway_buffer(request), length) };
    }
    // SAFETY: the caller's promise.
    unsafe { headway_reply_in_place(request, length) }
}

/// Answers with the first `length` bytes of headway_buffer(). Returns HEADWAY_OK or HEADWAY_E_TOO_LARGE.
///
/// # Safety
/// As headway_buffer().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn headway_reply_in_place(
    request: *mut HeadwayRequest,
    length: usize,
) -> c_int {
    report(|| {
        // SAFETY: the caller's promise.
        unsafe { call(request) }.reply_with(|_| length);
        if length > MAX_REPLY_BYTES {
            return Err(CallFailure::new(
                HEADWAY_E_TOO_LARGE,
                format!("a reply of {length} bytes does not fit into {MAX_REPLY_BYTES}"),
            ));
        }
        Ok(())
    })
}

/// Answers that the service failed, without payload.
///
/// # Safety
/// As headway_buffer().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn headway_fail(request: *mut HeadwayRequest) {
    // SAFETY: the caller's promise.
    unsafe { call(request) }.fail();
}

/// Answers that the request is malformed for this service, without payload.
///
/// # Safety
/// As headway_buffer().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn headway_bad_request(request: *mut HeadwayRequest) {
    // SAFETY: the caller's promise.
    unsafe { call(request) }.bad_request();
}

/// The request is long from here to headway_feedback_finished(), or to its end: with HEADWAY_FEEDBACK_HEEDED it may be interrupted only in this
/// part, and yields at once if it was asked to before. Such parts nest. Otherwise it is only counted (struct headway_class_stats).
///
/// # Safety
/// As headway_buffer().
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn headway_feedback_start(request: *mut HeadwayRequest) {
    // SAFETY: the caller's promise.
    unsafe { call(request) }.feedback_start();
}

/// Ends what headway_feedback_start() began. Without it nothing changes, and headway_class_stats.feedback_unbegun counts the call.
///
/// # Safety
/// As headway_buffer().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn headway_feedback_finished(request: *mut HeadwayRequest) {
    // SAFETY: the caller's promise.
    unsafe { call(request) }.feedback_finished();
}

/// Calls `function` with `argument` in the request's own thread: for what the kernel must know as the caller's (a change of credentials, a contended lock with priority inheritance,
/// an attached virtual machine), and for calls that block for long. The worker serves others meanwhile. Outside of a request that may be interrupted, inside a section, and with
/// HEADWAY_FIBERS_PLAIN it is called where the caller is. No C++ exception may leave it.
///
/// # Safety
/// `function` may be called with `argument`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn headway_on_own_thread(
    function: unsafe extern "C" fn(argument: *mut c_void),
    argument: *mut c_void,
) {
    // SAFETY: the caller's promise.
    headway_runtime::on_own_thread(|| unsafe { function(argument) });
}

/// Suspends the calling request until the policy resumes it, for code that waits for another request. Does nothing under a policy that never
/// interrupts; in a no-preempt section the request yields at its end, and with HEADWAY_FEEDBACK_HEEDED at its next headway_feedback_start(), if
/// it is in no long part.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn headway_yield() {
    headway_fiber::yield_now();
}
