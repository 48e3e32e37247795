//! Taking and answering requests in a loop.
#![expect(unsafe_code, reason = "functions with names that C links to")]

use std::ffi::{c_int, c_void};

use headway_runtime as runtime;

use crate::request::{HeadwayRequest, headway_reply};
use crate::status::{CallFailure, HEADWAY_E_NONE, HEADWAY_OK, report};

/// The source of a loop's requests (headway_service.serve): valid until the loop returns, for that loop alone.
#[derive(Debug)]
pub struct HeadwayRequests {
    _private: [u8; 0],
}

/// # Safety
/// `requests` is null or what the loop was called with.
unsafe fn own<'a>(requests: *mut HeadwayRequests) -> Result<&'a runtime::Requests, CallFailure> {
    // SAFETY: the caller's promise.
    let own = unsafe { requests.cast::<runtime::Requests>().as_ref() };
    own.ok_or_else(|| {
        CallFailure::argument("the requests are null: pass what serve() was called with")
    })
}

/// Writes the next request to `*request`; answer it by headway_send() or headway_finish(). While the loop holds no request it waits for one, and HEADWAY_E_NONE
/// says that the server has ended: return then. While it holds some, HEADWAY_E_NONE says that no other request may begin now, or that the loop is at its limit:
/// answer one of them. A loop may hold up to 16 if the policy interrupts requests by probes, they stay at their worker, and headway_options.feedback is off.
/// HEADWAY_E_NONE leaves headway_last_error() as it is.
///
/// # Safety
/// `requests` is null or what the loop was called with; `request` is null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn headway_recv(
    requests: *mut HeadwayRequests,
    request: *mut *mut HeadwayRequest,
) -> c_int {
    let mut next = None;
    let code = report(|| {
        if request.is_null() {
            return Err(CallFailure::argument("the place for the request is null"));
        }
        // SAFETY: the caller's promise.
        next = unsafe { own(requests) }?.recv();
        Ok(())
    });
    match next {
        Some(next) => {
            // SAFETY: not null, and the caller's promise.
            unsafe { request.write(next.into_raw().cast()) };
            HEADWAY_OK
        }
        None if code == HEADWAY_OK => HEADWAY_E_NONE,
        None => code,
    }
}

/// Answers the request with these bytes, as headway_reply(), and finishes it, whatever the return value. The answer leaves when the loop waits in
/// headway_recv(), or when the policy resumes this request. HEADWAY_E_ARGUMENT if the loop does not have the request.
///
/// # Safety
/// As headway_recv(); `request` came from it; `bytes` is null or has as many readable bytes as `length` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn headway_send(
    requests: *mut HeadwayRequests,
    request: *mut HeadwayRequest,
    bytes: *const c_void,
    length: usize,
) -> c_int {
    let mut replied = HEADWAY_OK;
    let code = report(|| {
        // SAFETY: the caller's promise.
        let held = unsafe { taken(requests, request) }?;
        // SAFETY: the loop has the request; the caller's promise.
        replied = unsafe { headway_reply(request, bytes, length) };
        drop(held);
        Ok(())
    });
    if code == HEADWAY_OK { replied } else { code }
}

/// Finishes the request with the answer of headway_reply(), headway_reply_in_place(), headway_fail() or headway_bad_request(); an error without any of these.
/// HEADWAY_E_ARGUMENT if the loop does not have the request.
///
/// # Safety
/// As headway_recv(); `request` came from it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn headway_finish(
    requests: *mut HeadwayRequests,
    request: *mut HeadwayRequest,
) -> c_int {
    report(|| {
        // SAFETY: the caller's promise.
        drop(unsafe { taken(requests, request) }?);
        Ok(())
    })
}

/// The request, if the loop has it.
///
/// # Safety
/// As [`own`].
unsafe fn taken<'a>(
    requests: *mut HeadwayRequests,
    request: *mut HeadwayRequest,
) -> Result<runtime::Request<'a>, CallFailure> {
    // SAFETY: the caller's promise.
    let held = unsafe { own(requests) }?.request_at(request.cast());
    held.ok_or_else(|| {
        CallFailure::argument("the loop does not have the request: headway_recv() gave another, or it is answered already")
    })
}
