//! Which worker the kernel gives a request to, as a C program chooses.
#![expect(unsafe_code, reason = "calls the C interface")]

use std::ffi::{CStr, c_int, c_void};
use std::mem::{size_of, zeroed};
use std::net::UdpSocket;
use std::ptr;
use std::time::Duration;

use headway_capi::options::{HEADWAY_PIN_OFF, HeadwayOptions};
use headway_capi::request::{HeadwayRequest, headway_reply, headway_worker};
use headway_capi::server::{HeadwayServer, headway_port, headway_start, headway_stop};
use headway_capi::service::HeadwayService;
use headway_capi::status::{HEADWAY_E_ARGUMENT, HEADWAY_E_START, HEADWAY_OK, headway_last_error};
use headway_net::header::{Flag, HEADER_BYTES, Header};

unsafe extern "C" fn tell_worker(_context: *mut c_void, request: *mut HeadwayRequest) {
    // SAFETY: the request is the one at hand, and the byte outlives the call.
    unsafe {
        let worker = headway_worker(request) as u8;
        headway_reply(request, (&raw const worker).cast(), 1);
    }
}

/// Starts a server of three workers, or says why not.
fn start(policy: &CStr, steer: &CStr) -> Result<*mut HeadwayServer, (c_int, String)> {
    // SAFETY: numbers and pointers; the interface says that 0 is each one's default.
    let (mut options, mut service): (HeadwayOptions, HeadwayService) =
        unsafe { (zeroed(), zeroed()) };
    options.size = size_of::<HeadwayOptions>();
    options.policy = policy.as_ptr();
    options.workers = 3;
    options.pin = HEADWAY_PIN_OFF;
    options.steer = steer.as_ptr();
    service.size = size_of::<HeadwayService>();
    service.handle_request = Some(tell_worker);
    let mut server = ptr::null_mut();
    // SAFETY: both structs are valid for the call, and the server can be written.
    let code = unsafe { headway_start(&raw const options, &raw const service, &raw mut server) };
    if code == HEADWAY_OK {
        return Ok(server);
    }
    // SAFETY: the words are valid until the next call that fails.
    let said = unsafe { CStr::from_ptr(headway_last_error()) };
    Err((code, said.to_string_lossy().into_owned()))
}

#[test]
fn a_byte_of_the_header_chooses_the_worker() {
    let server = start(c"d-fcfs", c"class").unwrap();
    // SAFETY: it runs.
    let port = unsafe { headway_port(server) };
    for (class, worker) in [(0, 0), (1, 1), (2, 2), (7, 1)] {
        let client = UdpSocket::bind("127.0.0.1:0").unwrap();
        client
            .set_read_timeout(Some(Duration::from_secs(60)))
            .unwrap();
        let header = Header {
            class,
            flag: Flag::REQUEST,
            index: 1,
            time_ns: 0,
        };
        client
            .send_to(&header.encode(), ("127.0.0.1", port))
            .unwrap();
        let mut reply = [0; 64];
        let length = client.recv(&mut reply).unwrap();
        assert_eq!(&reply[HEADER_BYTES..length], [worker], "class {class}");
    }
    // SAFETY: it runs, and the handle is not used afterwards.
    let code = unsafe { headway_stop(server, 60_000_000_000, ptr::null_mut()) };
    assert_eq!(code, HEADWAY_OK);
}

#[test]
fn what_cannot_be_steered_by_is_refused() {
    for (policy, steer, code, words) in [
        (
            c"d-fcfs",
            c"byte=10",
            HEADWAY_E_ARGUMENT,
            "headway_options.steer: byte 10 lies beyond",
        ),
        (
            c"d-fcfs",
            c"hash",
            HEADWAY_E_ARGUMENT,
            "write flow, random, class",
        ),
        (
            c"c-fcfs",
            c"class",
            HEADWAY_E_START,
            "policy c-fcfs takes all requests from one receive queue",
        ),
    ] {
        let (got, said) = start(policy, steer).unwrap_err();
        assert!(got == code && said.contains(words), "{got}: {said}");
    }
}
