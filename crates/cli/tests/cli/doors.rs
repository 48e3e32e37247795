//! A server's doors refuse the same settings with the same sentence: the builder, the settings file, the command, and the C interface.

use std::ffi::{CStr, CString};
use std::mem::{size_of, zeroed};
use std::ptr;
use std::time::Duration;

use headway::config::{FromConfig, HandlerPromises};
use headway_capi::options::{
    HEADWAY_FEEDBACK_HEEDED, HEADWAY_FIBERS_PLAIN, HEADWAY_LAYOUT_DEDICATED, HEADWAY_LAYOUT_INLINE,
    HEADWAY_PREEMPT_SIGNAL, HEADWAY_RESUME_ANYWHERE, HEADWAY_RESUME_OWN_WORKER, HeadwayClass,
    HeadwayOptions,
};
use headway_capi::request::HeadwayRequest;
use headway_capi::server::headway_start;
use headway_capi::service::HeadwayService;
use headway_capi::status::{HEADWAY_OK, headway_last_error};
use headway_net::udp::Steering;
use headway_runtime::{Builder, Layout, NoService, Pin, Server, Udp};

use super::headway;

type UdpBuilder = Builder<NoService, Udp>;

/// One mistake, as each door is told of it; `None` where a door has no such setting. Everything else is as usual, with two workers and two classes, as
/// `serve` has them.
struct Mistake {
    policy: &'static str,
    builder: fn(UdpBuilder) -> UdpBuilder,
    file: Option<&'static str>,
    flags: Option<&'static [&'static str]>,
    c: Option<fn(&mut HeadwayOptions)>,
    /// Words of the sentence.
    says: &'static str,
}

/// Promises everything: the handler of this test is never called.
fn promises() -> HandlerPromises {
    // SAFETY: a handler that is never called keeps nothing of its thread's.
    unsafe {
        HandlerPromises::none()
            .keeping_nothing_in_threads()
            .interrupt_by_signal()
    }
}

fn by_signal(builder: UdpBuilder) -> UdpBuilder {
    // SAFETY: as above.
    unsafe { builder.interrupt_by_signal() }
}

fn anywhere(builder: UdpBuilder) -> UdpBuilder {
    builder.resume(headway::runtime::Resume::Anywhere)
}

/// Settings that a policy or a layout does not heed.
const UNHEEDED: &[Mistake] = &[
    Mistake {
        policy: "c-fcfs",
        builder: |builder| builder.most_lent_threads(9),
        file: None,
        flags: None,
        c: Some(|options| options.most_lent_threads = 9),
        says: "the policy interrupts no request: leave the most of such threads out",
    },
    Mistake {
        policy: "concord",
        // SAFETY: a handler that is never called keeps nothing of its thread's.
        builder: |builder| unsafe { builder.plain_fibers() }.most_lent_threads(9),
        file: Some("most-lent-threads = 9"),
        flags: None,
        c: Some(|options| {
            options.most_lent_threads = 9;
            options.fibers = HEADWAY_FIBERS_PLAIN;
        }),
        says: "the handlers keep nothing in their threads: leave the most of such threads out",
    },
    Mistake {
        policy: "d-fcfs",
        builder: |builder| builder.layout(Layout::Dedicated),
        file: Some("layout = \"dedicated\""),
        flags: Some(&["--layout", "dedicated"]),
        c: Some(|options| options.layout = HEADWAY_LAYOUT_DEDICATED),
        says: "neither a dispatcher nor a monitor",
    },
    Mistake {
        policy: "d-fcfs",
        builder: |builder| builder.queue_limit(9),
        file: Some("queue-limit = 9"),
        flags: Some(&["--queue-limit", "9"]),
        c: Some(|options| options.queue_limit = 9),
        says: "leave the queue limit out",
    },
    Mistake {
        policy: "synergy",
        builder: |builder| anywhere(builder).queue_limit(1),
        file: Some("queue-limit = 1\nresume = \"anywhere\""),
        flags: Some(&["--queue-limit", "1"]),
        c: Some(|options| {
            options.queue_limit = 1;
            options.resume = HEADWAY_RESUME_ANYWHERE;
        }),
        says: "leave the queue limit out",
    },
    Mistake {
        policy: "tiny-quanta",
        builder: by_signal,
        file: Some("preempt = \"signal\""),
        flags: Some(&["--preempt", "signal"]),
        c: Some(|options| options.preempt = HEADWAY_PREEMPT_SIGNAL),
        says: "no dispatcher that interrupts requests",
    },
    Mistake {
        policy: "synergy",
        builder: |builder| by_signal(anywhere(builder)),
        file: Some("preempt = \"signal\"\nresume = \"anywhere\""),
        flags: Some(&["--preempt", "signal"]),
        // Refuses a signal beside `anywhere` under every policy.
        c: None,
        says: "no dispatcher that interrupts requests",
    },
    Mistake {
        policy: "darc",
        builder: Builder::interrupt_by_flag,
        file: Some("preempt = \"flag\""),
        flags: Some(&["--preempt", "flag"]),
        c: None,
        says: "no dispatcher that interrupts requests",
    },
    Mistake {
        policy: "c-fcfs",
        builder: |builder| builder.by_feedback(true),
        file: Some("feedback = true"),
        flags: Some(&["--feedback"]),
        c: Some(|options| options.feedback = HEADWAY_FEEDBACK_HEEDED),
        says: "interrupts no request",
    },
    Mistake {
        policy: "darc",
        builder: |builder| builder.look_every(Duration::from_micros(5)),
        file: Some("look-every = \"5us\""),
        flags: Some(&["--look-every", "5us"]),
        c: None,
        says: "leave the interval out",
    },
    Mistake {
        policy: "darc",
        builder: |builder| builder.steer(Steering::Random),
        file: Some("steer = \"random\""),
        flags: Some(&["--steer", "random"]),
        c: Some(|options| options.steer = c"random".as_ptr()),
        says: "takes all requests from one receive queue",
    },
];

/// Settings that are out of range, or do not go together.
const IMPOSSIBLE: &[Mistake] = &[
    Mistake {
        policy: "synergy",
        builder: |builder| anywhere(builder).look_every(Duration::from_secs(3_600)),
        file: Some("look-every = \"3600s\"\nresume = \"anywhere\""),
        flags: Some(&["--look-every", "3600s"]),
        c: None,
        says: "at most 1s",
    },
    Mistake {
        policy: "synergy",
        builder: |builder| anywhere(builder).look_every(Duration::from_nanos(999)),
        file: Some("look-every = \"999ns\"\nresume = \"anywhere\""),
        flags: Some(&["--look-every", "999ns"]),
        c: None,
        says: "at least 1us",
    },
    Mistake {
        policy: "darc",
        builder: |builder| builder.queue_limit(1_000_000_000),
        file: Some("queue-limit = 1000000000"),
        flags: Some(&["--queue-limit", "1000000000"]),
        c: Some(|options| options.queue_limit = 1_000_000_000),
        says: "need more buffers than a server has",
    },
    Mistake {
        policy: "darc",
        builder: |builder| builder.journal(usize::MAX),
        file: None,
        flags: None,
        c: None,
        says: "journal is 18446744073709551615: choose 0 to 4194304",
    },
    Mistake {
        policy: "concord",
        builder: |builder| builder.stack_bytes(1 << 40),
        file: None,
        flags: None,
        c: Some(|options| options.stack_bytes = 1 << 40),
        says: "choose 0 to 1073741824",
    },
    Mistake {
        policy: "darc",
        builder: |builder| builder.layout(Layout::Dedicated).pin(Pin::Cores(vec![0])),
        file: Some("layout = \"dedicated\"\npin = \"0\""),
        flags: Some(&["--layout", "dedicated", "--pin", "0"]),
        c: None,
        says: "3 threads cannot be pinned to 1 cores",
    },
    Mistake {
        policy: "concord",
        builder: |builder| by_signal(builder).layout(Layout::Inline),
        file: Some("preempt = \"signal\"\nlayout = \"inline\""),
        flags: Some(&["--preempt", "signal", "--layout", "inline"]),
        c: Some(|options| {
            options.preempt = HEADWAY_PREEMPT_SIGNAL;
            options.layout = HEADWAY_LAYOUT_INLINE;
        }),
        says: "signals come from a dispatcher with a thread of its own",
    },
    Mistake {
        policy: "srpt",
        builder: |builder| builder.interrupt_by_clock().layout(Layout::Dedicated),
        file: Some("preempt = \"tsc\"\nlayout = \"dedicated\""),
        flags: Some(&["--preempt", "tsc", "--layout", "dedicated"]),
        c: None,
        says: "more urgent ones come",
    },
    Mistake {
        policy: "synergy",
        builder: |builder| builder.resume(headway::runtime::Resume::OwnWorker),
        file: Some("resume = \"own-worker\""),
        flags: Some(&["--resume", "own-worker"]),
        c: Some(|options| options.resume = HEADWAY_RESUME_OWN_WORKER),
        says: "any worker",
    },
    Mistake {
        policy: "darc,profile=known",
        builder: |builder| builder,
        file: Some(""),
        flags: Some(&[]),
        c: Some(|_| ()),
        says: "the server profiles by itself",
    },
    Mistake {
        policy: "darc,detla=3",
        builder: |builder| builder,
        file: Some(""),
        flags: Some(&[]),
        c: Some(|_| ()),
        says: "did you mean 'delta'?",
    },
];

#[test]
fn every_door_refuses_alike() {
    for mistake in UNHEEDED.iter().chain(IMPOSSIBLE) {
        let said = mistake.at_builder();
        assert!(said.contains(mistake.says), "{}: {said}", mistake.policy);
        // The command names the place in front, the builder that it is about the policy.
        let sentence = said.strip_prefix("policy: ").unwrap_or(&said);
        let doors = [
            ("the file", mistake.at_file()),
            ("the command", mistake.at_command()),
            ("C", mistake.at_c()),
        ];
        for (door, heard) in doors {
            let heard = heard.unwrap_or_else(|| sentence.to_owned());
            assert!(
                heard.contains(sentence),
                "{door} says '{heard}', not '{sentence}'"
            );
        }
    }
}

impl Mistake {
    fn at_builder(&self) -> String {
        let builder = Server::builder()
            .workers(2)
            .policy(self.policy)
            .class("short", Duration::from_micros(1))
            .class("long", Duration::from_micros(100));
        let listening = builder.listen_udp("127.0.0.1:0".parse().unwrap());
        let started = (self.builder)(listening).handler(|_| ()).start();
        started.map(drop).unwrap_err().to_string()
    }

    fn at_file(&self) -> Option<String> {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("server.toml");
        let (policy, lines) = (self.policy, self.file?);
        let text = format!(
            "listen = \"udp://127.0.0.1:0\"\nworkers = 2\nworkload = \"high-bimodal\"\npolicy = \"{policy}\"\n{lines}\n"
        );
        std::fs::write(&path, text).unwrap();
        let builder = match Builder::from_config_promising(&path, promises()) {
            Ok(builder) => builder,
            Err(error) => return Some(error.to_string()),
        };
        let started = builder.handler(|_| ()).start();
        Some(started.map(drop).unwrap_err().to_string())
    }

    fn at_command(&self) -> Option<String> {
        let args = [
            "serve",
            "--check",
            "--workers",
            "2",
            "--policy",
            self.policy,
        ];
        let output = headway(&[&args, self.flags?].concat());
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        Some(String::from_utf8(output.stderr).unwrap())
    }

    fn at_c(&self) -> Option<String> {
        extern "C" fn never(_: *mut std::ffi::c_void, _: *mut HeadwayRequest) {}
        let policy = CString::new(self.policy).unwrap();
        // SAFETY: numbers and pointers; the interface says that 0 is each one's default.
        let (mut options, mut service): (HeadwayOptions, HeadwayService) =
            unsafe { (zeroed(), zeroed()) };
        options.size = size_of::<HeadwayOptions>();
        options.policy = policy.as_ptr();
        options.workers = 2;
        let classes = [1_000, 100_000].map(|mean_ns| HeadwayClass {
            name: ptr::null(),
            mean_ns,
        });
        (options.classes, options.class_count) = (classes.as_ptr(), classes.len());
        (self.c?)(&mut options);
        service.size = size_of::<HeadwayService>();
        service.handle_request = Some(never);
        let mut server = ptr::null_mut();
        // SAFETY: both structs are valid for the call, and the server can be written.
        let code =
            unsafe { headway_start(&raw const options, &raw const service, &raw mut server) };
        assert_ne!(code, HEADWAY_OK, "{}", self.policy);
        // SAFETY: the words are valid until the next call that fails.
        let said = unsafe { CStr::from_ptr(headway_last_error()) };
        Some(said.to_string_lossy().into_owned())
    }
}
