//! Replies that cannot be sent.

use std::ffi::c_void;

use headway_capi::request::{HeadwayRequest, headway_reply_in_place};
use headway_capi::service::HeadwayService;
use headway_net::header::Status;

use super::{ask, options, service, start, stop};

unsafe extern "C" fn too_much(_context: *mut c_void, request: *mut HeadwayRequest) {
    // SAFETY: the request is the one at hand.
    unsafe { headway_reply_in_place(request, 1991) };
}

#[test]
fn a_reply_that_does_not_fit_is_told_to_the_client() {
    let service = HeadwayService {
        handle_request: Some(too_much),
        ..service()
    };
    let server = start(&options(), &service).unwrap();
    let (header, payload) = ask(server, &[0], b"x");
    assert_eq!((header.flag.status(), payload.len()), (Status::TooLarge, 0));
    stop(server);
}
