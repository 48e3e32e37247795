//! A process that may not open enough files for its receive queues. A test of its own: the limit is the whole process's.
#![expect(unsafe_code, reason = "setrlimit has no safe wrapper here")]

use headway_net::datapath::Datapath;
use headway_net::udp::{Steering, UdpDatapath};

/// Files that the process may open from now on.
fn allow_files(files: u64) {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: the kernel reads and writes the struct given, which outlives both calls.
    let results = unsafe {
        let got = libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit);
        limit.rlim_cur = files;
        (got, libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit))
    };
    assert_eq!(results, (0, 0));
}

/// The refusal names the remedy, whichever of a queue's two files is the one too many; enough files then serve.
#[test]
fn too_few_files_for_the_queues_name_the_limit() {
    let open = std::fs::read_dir("/proc/self/fd").unwrap().count() as u64;
    // Sixteen sockets and sixteen wakers; the wakers come last.
    for files in [8, 16 + 8] {
        allow_files(open + files);
        let bound = UdpDatapath::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let bound = Box::new(bound.with_steering(Steering::Random));
        let error = bound.split(16, 0).unwrap_err();
        let said = error.to_string();
        assert!(said.contains("each receive queue takes two"), "{said}");
        assert!(said.contains("`ulimit -n`"), "{said}");
    }
    allow_files(open + 64);
    let bound = UdpDatapath::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let ends = Box::new(bound.with_steering(Steering::Random))
        .split(16, 0)
        .unwrap();
    assert_eq!(ends.rxs.len(), 16);
}
