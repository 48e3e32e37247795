//! The interface as C uses it: sizes, codes, words, callbacks.
#![expect(unsafe_code, reason = "calls the C interface")]

mod replies;
mod tuning;

use std::ffi::{CStr, c_int, c_uint, c_void};
use std::mem::size_of;
use std::net::UdpSocket;
use std::ptr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use headway_capi::options::{
    HEADWAY_CLASS_AUTO, HEADWAY_LAYOUT_DEDICATED, HEADWAY_PIN_OFF, HEADWAY_PREEMPT_SIGNAL,
    HEADWAY_RESUME_ANYWHERE, HeadwayClass, HeadwayClassHint, HeadwayOptions,
};
use headway_capi::request::{
    HeadwayRequest, headway_class_of, headway_length, headway_reply, headway_reply_in_place,
};
use headway_capi::server::{
    HeadwayServer, headway_port, headway_read_class_stats, headway_read_stats,
    headway_request_stop, headway_start, headway_stop, headway_wait,
};
use headway_capi::service::HeadwayService;
use headway_capi::stats::{HeadwayClassStats, HeadwayStats};
use headway_capi::status::{
    HEADWAY_E_ADDRESS, HEADWAY_E_ARGUMENT, HEADWAY_E_POLICY, HEADWAY_E_SETUP, HEADWAY_OK,
    headway_last_error,
};
use headway_net::header::{Flag, Header, Status};

/// A struct all of whose fields are 0 but its size.
macro_rules! zeroed {
    ($type:ty) => {{
        // SAFETY: numbers and pointers; the interface says that 0 is each one's default.
        let mut zeroed: $type = unsafe { std::mem::zeroed() };
        zeroed.size = size_of::<$type>();
        zeroed
    }};
}

fn options() -> HeadwayOptions {
    HeadwayOptions {
        policy: c"c-fcfs".as_ptr(),
        pin: HEADWAY_PIN_OFF,
        ..zeroed!(HeadwayOptions)
    }
}

fn service() -> HeadwayService {
    HeadwayService {
        handle_request: Some(echo),
        ..zeroed!(HeadwayService)
    }
}

unsafe extern "C" fn echo(_context: *mut c_void, request: *mut HeadwayRequest) {
    // SAFETY: the request is the one at hand.
    unsafe { headway_reply_in_place(request, headway_length(request)) };
}

/// The code, and the words for it.
fn start(
    options: &HeadwayOptions,
    service: &HeadwayService,
) -> Result<*mut HeadwayServer, (c_int, String)> {
    let mut server = ptr::null_mut();
    // SAFETY: all of it is valid here.
    let code = unsafe { headway_start(options, service, &raw mut server) };
    match code {
        HEADWAY_OK => Ok(server),
        code => Err((code, last_error())),
    }
}

fn last_error() -> String {
    // SAFETY: a string until the next failure.
    let words = unsafe { CStr::from_ptr(headway_last_error()) };
    words.to_str().unwrap().to_owned()
}

fn stop(server: *mut HeadwayServer) -> HeadwayStats {
    let mut stats = zeroed!(HeadwayStats);
    // SAFETY: it was started, and is not used any more.
    let code = unsafe { headway_stop(server, 10_000_000_000, &raw mut stats) };
    assert_eq!(code, HEADWAY_OK, "{}", last_error());
    stats
}

fn connected(server: *mut HeadwayServer) -> UdpSocket {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    // SAFETY: it runs.
    let port = unsafe { headway_port(server) };
    socket.connect(("127.0.0.1", port)).unwrap();
    socket
        .set_read_timeout(Some(Duration::from_secs(60)))
        .unwrap();
    socket
}

fn send(socket: &UdpSocket, class: u8, index: u32, payload: &[u8]) {
    let header = Header {
        class,
        flag: Flag::REQUEST,
        index,
        time_ns: 0,
    };
    socket.send(&[&header.encode(), payload].concat()).unwrap();
}

fn receive(socket: &UdpSocket) -> (Header, Vec<u8>) {
    let mut buffer = [0; 4096];
    let length = socket.recv(&mut buffer).unwrap();
    let (header, payload) = Header::parse(&buffer[..length]).unwrap();
    (header, payload.to_vec())
}

/// Sends requests of these classes, one after the other; returns the last answer.
fn ask(server: *mut HeadwayServer, classes: &[u8], payload: &[u8]) -> (Header, Vec<u8>) {
    let socket = connected(server);
    let mut last = None;
    for (index, class) in (0..).zip(classes) {
        send(&socket, *class, index, payload);
        let answer = receive(&socket);
        assert_eq!(answer.0.index, index);
        last = Some(answer);
    }
    last.unwrap()
}

#[test]
fn what_is_wrong_with_the_arguments_is_told_by_code_and_words() {
    let refused = |options: &HeadwayOptions, service: &_| start(options, service).unwrap_err();
    let sized = |size| HeadwayOptions { size, ..options() };
    let unnamed = [HeadwayClass {
        name: ptr::null(),
        mean_ns: 0,
    }];
    let odd = [HeadwayClassHint {
        slo_ns: 0,
        length: 9,
        reserved: 0,
    }];
    let cases = [
        (sized(0), HEADWAY_E_ARGUMENT, "sizeof"),
        (sized(4096), HEADWAY_E_ARGUMENT, "later headway.h"),
        (sized(9), HEADWAY_E_ARGUMENT, "size is 9, which no version"),
        (
            sized(12),
            HEADWAY_E_ARGUMENT,
            "size is 12, which no version",
        ),
        (
            HeadwayOptions {
                classes: unnamed.as_ptr(),
                class_count: usize::MAX,
                ..options()
            },
            HEADWAY_E_ARGUMENT,
            "at most 255 classes",
        ),
        (
            HeadwayOptions {
                policy: c"dacr".as_ptr(),
                ..options()
            },
            HEADWAY_E_POLICY,
            "no policy is called 'dacr'",
        ),
        (
            HeadwayOptions {
                policy: c"\xff".as_ptr(),
                ..options()
            },
            HEADWAY_E_ARGUMENT,
            "UTF-8",
        ),
        (
            HeadwayOptions {
                listen: c"nowhere".as_ptr(),
                ..options()
            },
            HEADWAY_E_ADDRESS,
            "'nowhere'",
        ),
        (
            HeadwayOptions {
                class_count: 2,
                ..options()
            },
            HEADWAY_E_ARGUMENT,
            "classes is null",
        ),
        (
            HeadwayOptions {
                resume: 9,
                ..options()
            },
            HEADWAY_E_ARGUMENT,
            "resume has no value 9",
        ),
        (
            HeadwayOptions {
                preempt: 9,
                ..options()
            },
            HEADWAY_E_ARGUMENT,
            "preempt has no value 9",
        ),
        (
            HeadwayOptions {
                feedback: 9,
                ..options()
            },
            HEADWAY_E_ARGUMENT,
            "feedback has no value 9",
        ),
        (
            HeadwayOptions {
                classes: unnamed.as_ptr(),
                class_count: 1,
                class_hints: odd.as_ptr(),
                ..options()
            },
            HEADWAY_E_ARGUMENT,
            "class_hints.length has no value 9",
        ),
        (
            HeadwayOptions {
                fibers: 2,
                ..options()
            },
            HEADWAY_E_ARGUMENT,
            "fibers has no value 2",
        ),
        (
            HeadwayOptions {
                preempt: HEADWAY_PREEMPT_SIGNAL,
                resume: HEADWAY_RESUME_ANYWHERE,
                ..options()
            },
            HEADWAY_E_ARGUMENT,
            "needs resume to be HEADWAY_RESUME_OWN_WORKER",
        ),
    ];
    for (options, code, words) in cases {
        let (got, said) = refused(&options, &service());
        assert!(got == code && said.contains(words), "{got}: {said}");
    }
    let nothing = zeroed!(HeadwayService);
    let (code, said) = refused(&options(), &nothing);
    assert!(code == HEADWAY_E_ARGUMENT && said.contains("handle_request"));
    let mut server = ptr::null_mut();
    // SAFETY: null is allowed for, and refused.
    let code = unsafe { headway_start(ptr::null(), &raw const nothing, &raw mut server) };
    assert!(code == HEADWAY_E_ARGUMENT && last_error().contains("headway_options is null"));
}

#[test]
fn a_null_server_is_refused() {
    let (mut stats, mut of_class) = (zeroed!(HeadwayStats), zeroed!(HeadwayClassStats));
    let none = ptr::null_mut();
    // SAFETY: null is allowed for, and refused; the structs have as many bytes as they say.
    let (codes, port) = unsafe {
        let codes = [
            headway_read_stats(none, &raw mut stats),
            headway_read_class_stats(none, 0, &raw mut of_class),
            headway_request_stop(none),
            headway_wait(none),
            headway_stop(none, 0, &raw mut stats),
        ];
        (codes, headway_port(none))
    };
    assert_eq!((codes, port), ([HEADWAY_E_ARGUMENT; 5], 0));
    assert!(last_error().contains("the server is null"));
}

/// Answers with nothing of some length, then as it should.
unsafe extern "C" fn reply_null(_context: *mut c_void, request: *mut HeadwayRequest) {
    // SAFETY: the request is the one at hand; null bytes are allowed for.
    let codes = unsafe {
        (
            headway_reply(request, ptr::null(), 3),
            headway_reply(request, ptr::null(), 0),
        )
    };
    assert_eq!(codes, (HEADWAY_E_ARGUMENT, HEADWAY_OK));
    // SAFETY: as above, with three bytes.
    unsafe { headway_reply(request, c"yes".as_ptr().cast(), 3) };
}

#[test]
fn a_reply_of_null_bytes_is_refused() {
    let service = HeadwayService {
        handle_request: Some(reply_null),
        ..zeroed!(HeadwayService)
    };
    let server = start(&options(), &service).unwrap();
    assert_eq!(ask(server, &[0], b"").1, b"yes");
    stop(server);
}

#[test]
fn a_program_of_an_earlier_version_knows_fewer_fields() {
    let first_fields = HeadwayOptions {
        size: std::mem::offset_of!(HeadwayOptions, classes),
        // Behind what the program knows: not to be read.
        workers: u32::MAX,
        pin: u32::MAX,
        ..options()
    };
    let server = start(&first_fields, &service()).unwrap();
    assert_eq!(ask(server, &[0], b"hello").1, b"hello");
    let mut stats = HeadwayStats {
        size: std::mem::offset_of!(HeadwayStats, answered),
        answered: 77,
        ..HeadwayStats::default()
    };
    // SAFETY: it runs, and the struct has as many bytes as it says.
    let code = unsafe { headway_read_stats(server, &raw mut stats) };
    assert_eq!((code, stats.received, stats.answered), (HEADWAY_OK, 1, 77));
    assert_eq!(stop(server).answered, 1);
}

/// The arguments of a test's callbacks.
#[derive(Default)]
struct Seen {
    setups: u32,
    workers: Vec<(c_uint, c_int)>,
    fail_at: Option<c_uint>,
}

fn seen<'a>(context: *mut c_void) -> std::sync::MutexGuard<'a, Seen> {
    // SAFETY: the test's own, which outlives its server.
    unsafe { &*context.cast::<Mutex<Seen>>() }.lock().unwrap()
}

unsafe extern "C" fn setup(context: *mut c_void) -> c_int {
    seen(context).setups += 1;
    0
}

unsafe extern "C" fn setup_worker(context: *mut c_void, worker: c_uint, core: c_int) -> c_int {
    let mut seen = seen(context);
    assert_eq!(seen.setups, 1, "first the program, then its threads");
    seen.workers.push((worker, core));
    c_int::from(seen.fail_at == Some(worker)) * 7
}

fn watched(seen: &Mutex<Seen>) -> HeadwayService {
    HeadwayService {
        context: ptr::from_ref(seen).cast_mut().cast(),
        setup: Some(setup),
        setup_worker: Some(setup_worker),
        ..service()
    }
}

#[test]
fn each_thread_that_handles_requests_is_set_up_before_the_server_has_started() {
    // Concord's dispatcher works too, and so it is set up as one more.
    for (policy, layout, expected) in [
        (c"c-fcfs", 1, vec![0, 1]),
        (c"c-fcfs", 2, vec![0, 1]),
        (c"work-stealing", 0, vec![0, 1]),
        (c"concord", 1, vec![0, 1, 2]),
        (c"concord", 2, vec![0, 1]),
    ] {
        let seen = Mutex::new(Seen::default());
        let options = HeadwayOptions {
            policy: policy.as_ptr(),
            workers: 2,
            layout,
            ..options()
        };
        let server = start(&options, &watched(&seen)).unwrap();
        let mut workers = std::mem::take(&mut seen.lock().unwrap().workers);
        workers.sort_unstable();
        let expected: Vec<_> = expected.into_iter().map(|worker| (worker, -1)).collect();
        assert_eq!(workers, expected, "{policy:?}");
        stop(server);
    }
}

#[test]
fn a_thread_that_cannot_be_set_up_keeps_the_server_from_starting() {
    for policy in [c"c-fcfs", c"concord", c"d-fcfs"] {
        let seen = Mutex::new(Seen {
            fail_at: Some(1),
            ..Seen::default()
        });
        let options = HeadwayOptions {
            policy: policy.as_ptr(),
            workers: 2,
            ..options()
        };
        let (code, words) = start(&options, &watched(&seen)).unwrap_err();
        assert_eq!(code, HEADWAY_E_SETUP, "{policy:?}");
        assert!(words.contains("setup_worker returned 7"), "{words}");
        assert!(words.contains("hw-worker-1"), "{words}");
    }
}

unsafe extern "C" fn refuse(_context: *mut c_void) -> c_int {
    3
}

#[test]
fn a_program_that_cannot_be_set_up_does_not_start() {
    let service = HeadwayService {
        setup: Some(refuse),
        ..service()
    };
    let (code, words) = start(&options(), &service).unwrap_err();
    assert_eq!((code, &*words), (HEADWAY_E_SETUP, "setup returned 3"));
}

/// By the first byte after the wire header; not known if there is none.
unsafe extern "C" fn by_payload(
    _context: *mut c_void,
    datagram: *const u8,
    length: usize,
) -> c_int {
    match length {
        // SAFETY: the datagram has this length.
        11.. => c_int::from(unsafe { *datagram.add(10) }),
        _ => -1,
    }
}

unsafe extern "C" fn tell_class(_context: *mut c_void, request: *mut HeadwayRequest) {
    // SAFETY: the request is the one at hand, its buffer has room for a byte.
    unsafe {
        *headway_capi::request::headway_buffer(request) = headway_class_of(request) as u8;
        headway_reply_in_place(request, 1);
    }
}

#[test]
fn the_program_can_tell_classes_apart_itself() {
    let classes = [c"get", c"scan"].map(|name| HeadwayClass {
        name: name.as_ptr(),
        mean_ns: 1_000,
    });
    let options = HeadwayOptions {
        classes: classes.as_ptr(),
        class_count: 2,
        ..options()
    };
    let service = HeadwayService {
        classify: Some(by_payload),
        handle_request: Some(tell_class),
        ..service()
    };
    let server = start(&options, &service).unwrap();
    // The header says 0 each time.
    for (payload, class) in [
        (&[0_u8][..], 0),
        (&[1], 1),
        (&[2], 2),
        (&[200], 2),
        (&[], 2),
    ] {
        assert_eq!(ask(server, &[0], payload).1, [class]);
    }
    let mut scans = zeroed!(HeadwayClassStats);
    // SAFETY: it runs, and the struct has as many bytes as it says.
    let counted = |index, stats| unsafe { headway_read_class_stats(server, index, stats) };
    // An answer may arrive before it is counted.
    for (index, answered) in [(1, 1), (2, 3)] {
        let end = Instant::now() + Duration::from_secs(60);
        while scans.answered != answered {
            assert!(Instant::now() < end, "{index}: {} answered", scans.answered);
            assert_eq!(counted(index, &raw mut scans), HEADWAY_OK);
        }
        assert_eq!(scans.shed, 0);
    }
    assert_eq!(counted(3, &raw mut scans), HEADWAY_E_ARGUMENT);
    assert!(last_error().contains("the last one, unknown, is 2"));
    stop(server);
}

/// Class 2 keeps the worker until the test releases it.
unsafe extern "C" fn until_told(context: *mut c_void, request: *mut HeadwayRequest) {
    // SAFETY: the test's own, which outlives the server; the request is the one at hand.
    let (told, class) = unsafe { (&*context.cast::<AtomicU32>(), headway_class_of(request)) };
    let end = Instant::now() + Duration::from_secs(60);
    while class == 2 && told.load(Ordering::Relaxed) == 0 && Instant::now() < end {
        std::thread::sleep(Duration::from_micros(100));
    }
}

/// By their SLOs, the request that came last is the more urgent one.
#[test]
fn edf_is_told_of_the_classes_slos() {
    let told = AtomicU32::new(0);
    let classes = [c"patient", c"urgent", c"first"].map(|name| HeadwayClass {
        name: name.as_ptr(),
        mean_ns: 1_000,
    });
    let hints = [60_000_000_000, 1_000, 0].map(|slo_ns| HeadwayClassHint {
        slo_ns,
        length: HEADWAY_CLASS_AUTO,
        reserved: 0,
    });
    let options = HeadwayOptions {
        policy: c"edf".as_ptr(),
        classes: classes.as_ptr(),
        class_count: classes.len(),
        class_hints: hints.as_ptr(),
        layout: HEADWAY_LAYOUT_DEDICATED,
        ..options()
    };
    let service = HeadwayService {
        context: ptr::from_ref(&told).cast_mut().cast(),
        handle_request: Some(until_told),
        ..zeroed!(HeadwayService)
    };
    let server = start(&options, &service).unwrap();
    let socket = connected(server);
    for class in [2, 0, 1] {
        send(&socket, class, u32::from(class), b"");
        let mut stats = zeroed!(HeadwayStats);
        let end = Instant::now() + Duration::from_secs(60);
        let wanted = [2, 3, 1][usize::from(class)];
        while stats.received < wanted {
            assert!(Instant::now() < end);
            // SAFETY: it runs, and the struct has as many bytes as it says.
            let code = unsafe { headway_read_stats(server, &raw mut stats) };
            assert_eq!(code, HEADWAY_OK);
        }
    }
    told.store(1, Ordering::Relaxed);
    let order = [(); 3].map(|()| receive(&socket).0.class);
    assert_eq!(order, [2, 1, 0]);
    let stats = stop(server);
    assert_eq!((stats.answered, stats.preemptions_asked), (3, 0));
}

/// Class 1 runs until a request of class 0 has been answered, and has no probe.
unsafe extern "C" fn until_overtaken(context: *mut c_void, request: *mut HeadwayRequest) {
    // SAFETY: the test's own, which outlives the server; the request is the one at hand.
    let (shorts, class) = unsafe { (&*context.cast::<AtomicU32>(), headway_class_of(request)) };
    if class == 0 {
        shorts.fetch_add(1, Ordering::Relaxed);
        return;
    }
    let end = Instant::now() + Duration::from_secs(60);
    while shorts.load(Ordering::Relaxed) == 0 && Instant::now() < end {
        std::hint::spin_loop();
    }
}

/// One worker: without the interruption the second request would wait for the first, and that one for a minute.
#[test]
fn by_signal_a_handler_without_probes_is_interrupted() {
    let shorts = AtomicU32::new(0);
    let classes = [c"short", c"long"].map(|name| HeadwayClass {
        name: name.as_ptr(),
        mean_ns: 0,
    });
    let options = HeadwayOptions {
        policy: c"shinjuku-sq,q=200us".as_ptr(),
        classes: classes.as_ptr(),
        class_count: classes.len(),
        preempt: HEADWAY_PREEMPT_SIGNAL,
        ..options()
    };
    let service = HeadwayService {
        context: ptr::from_ref(&shorts).cast_mut().cast(),
        handle_request: Some(until_overtaken),
        ..zeroed!(HeadwayService)
    };
    let server = start(&options, &service).unwrap();
    let socket = connected(server);
    let begun = Instant::now();
    for class in [1, 0] {
        send(&socket, class, u32::from(class), b"");
    }
    let answered = [(); 2].map(|()| receive(&socket).0.flag.status());
    assert_eq!(answered, [Status::Ok; 2]);
    assert!(begun.elapsed() < Duration::from_secs(60));
    assert!(stop(server).preemptions > 0);
}
