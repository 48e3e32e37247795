//! A pool seen from outside: its counts, its control socket, its metrics.

use std::array;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use headway_pool::{ClassOptions, ClassRuns, JoinError, Pool, checkpoint};
use prometheus_client::registry::Registry;
use serde_json::{Value, json};

use crate::common::{occupy, skips, until};

fn ask(path: &Path, request: &str) -> Value {
    let mut stream = UnixStream::connect(path).unwrap();
    writeln!(stream, "{request}").unwrap();
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).unwrap();
    serde_json::from_str(&line).unwrap()
}

fn get(pool: &Pool, path: &str) -> String {
    let mut stream = TcpStream::connect(pool.metrics_addr().unwrap()).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

fn runs(pool: &Pool, class: usize) -> ClassRuns {
    pool.stats().classes[class].runs.clone()
}

#[test]
fn each_job_is_in_the_histograms_of_its_class() {
    let pool = Pool::builder()
        .workers(1)
        .class("job", ClassOptions::new())
        .class("other", ClassOptions::new())
        .build()
        .unwrap();
    let gate = occupy(&pool, 1);
    let waits: Vec<_> = (0..10).map(|_| pool.submit("other", || ())).collect();
    gate.open();
    for job in waits {
        job.wait().unwrap();
    }
    pool.wait_idle().unwrap();
    let (job, other) = (runs(&pool, 0), runs(&pool, 1));
    assert_eq!(
        (job.wait.count(), job.service.count(), job.slices),
        (1, 1, 1)
    );
    assert_eq!(
        (other.wait.count(), other.service.count(), other.slices),
        (10, 10, 10)
    );
    assert!(other.wait.quantile_ns(1.0) > Some(0));
    assert_eq!(
        (other.interruptions_asked, other.interruptions, other.stalls),
        (0, 0, 0)
    );
}

#[test]
fn a_shed_job_is_counted_by_its_reason() {
    let pool = Pool::builder()
        .workers(1)
        .capacity(1)
        .class("job", ClassOptions::new().mean(Duration::from_millis(100)))
        .class("point", ClassOptions::new().mean(Duration::from_micros(10)))
        .class(
            "late",
            ClassOptions::new().begin_within(Duration::from_nanos(1)),
        )
        .build()
        .unwrap();
    let gate = occupy(&pool, 1);
    let long = pool.submit("job", || ());
    let short = pool.submit("point", || ());
    assert!(matches!(long.wait(), Err(JoinError::Shed(_))));
    gate.open();
    short.wait().unwrap();
    let gate = occupy(&pool, 1);
    let late = pool.submit("late", || ());
    std::thread::sleep(Duration::from_millis(1));
    gate.open();
    assert!(matches!(late.wait(), Err(JoinError::Shed(_))));
    let shed = |class: usize| {
        let counts = pool.stats().classes[class].counts;
        (counts.shed, counts.shed_too_late)
    };
    assert_eq!((shed(0), shed(1), shed(2)), ((1, 0), (0, 0), (1, 1)));
}

/// Computes for so long by its own thread's time, with or without probes.
fn compute(time: Duration, probes: bool) {
    let clock = headway_machine::thread::CpuClock::of_current();
    let begin_ns = clock.read_ns().unwrap();
    while u128::from(clock.read_ns().unwrap() - begin_ns) < time.as_nanos() {
        if probes {
            checkpoint().unwrap();
        }
        std::hint::spin_loop();
    }
}

#[test]
fn jobs_that_meet_no_probe_are_counted_as_stalls_and_others_are_not() {
    if skips("jobs_that_meet_no_probe_are_counted_as_stalls_and_others_are_not") {
        return;
    }
    let pool = Pool::builder()
        .policy("tiny-quanta,q=50us")
        .workers(1)
        .class("blind", ClassOptions::new())
        .class("seeing", ClassOptions::new())
        .stall_after(Duration::from_micros(200))
        .build()
        .unwrap();
    assert!(pool.warnings().is_empty(), "{:?}", pool.warnings());
    // The first is not measured, and puts the class under suspicion. A run in which the machine stopped the thread is nobody's fault, so how many are counted is not said.
    until("most are counted", || {
        pool.run("blind", || compute(Duration::from_millis(5), false))
            .unwrap();
        pool.run("seeing", || compute(Duration::from_millis(5), true))
            .unwrap();
        runs(&pool, 0).stalls >= 10
    });
    let (blind, seeing) = (runs(&pool, 0), runs(&pool, 1));
    assert!(blind.interruptions_asked >= blind.stalls, "{blind:?}");
    assert!(
        blind.longest_gap_ns > 4_000_000,
        "{} ns",
        blind.longest_gap_ns
    );
    // A host takes a processor from its guest unseen, now and then.
    assert!(seeing.stalls < 5, "{} ns", seeing.longest_gap_ns);
}

#[test]
fn interruptions_are_counted_by_class() {
    if skips("interruptions_are_counted_by_class") {
        return;
    }
    let pool = Pool::builder()
        .policy("tiny-quanta,q=20us")
        .workers(1)
        .class("job", ClassOptions::new())
        .build()
        .unwrap();
    // Jobs that went on at home interrupt nobody any more, so each round has new ones.
    let mut job_count = 0;
    until("jobs interrupt each other", || {
        let jobs: [_; 2] =
            array::from_fn(|_| pool.submit("job", || compute(Duration::from_millis(1), true)));
        jobs.into_iter().for_each(|job| job.wait().unwrap());
        job_count += 2;
        runs(&pool, 0).interruptions > 10
    });
    pool.wait_idle().unwrap();
    let (stats, runs) = (pool.stats(), runs(&pool, 0));
    assert_eq!(stats.interruptions, runs.interruptions);
    assert!(runs.interruptions_asked >= runs.interruptions);
    // Each that made way went on. One that went on at home was also looked at by workers, which is a slice each.
    let gone_on = job_count + runs.interruptions;
    assert!(runs.slices >= gone_on);
    assert!(runs.slices == gone_on || stats.rescued > 0, "{runs:?}");
    let counts = (runs.wait.count(), runs.service.count());
    assert_eq!(counts, (job_count, job_count));
}

#[test]
fn a_control_socket_answers_while_there_is_a_handle() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pool.sock");
    let builder = Pool::builder().workers(1).name("shop").control(&*path);
    let pool = builder
        .clone()
        .class("job", ClassOptions::new())
        .build()
        .unwrap();
    assert_eq!(pool.control_path(), Some(&*path));
    pool.run("job", || ()).unwrap();
    pool.wait_idle().unwrap();
    let said = ask(&path, r#"{"command":"status"}"#);
    let status = &said["ok"];
    assert_eq!(
        (&status["kind"], &status["name"]),
        (&json!("pool"), &json!("shop"))
    );
    assert_eq!(status["pid"], json!(std::process::id()));
    let class = &status["classes"][0];
    assert_eq!(
        (&class["class"], &class["done"]),
        (&json!("job"), &json!(1))
    );
    assert_eq!(class["wait"]["count"], json!(1));
    let refused = ask(&path, r#"{"command":"set","params":{"q":"5us"}}"#);
    assert!(
        refused["error"]
            .as_str()
            .unwrap()
            .contains("PoolBuilder::policy")
    );
    let taken = builder.build().unwrap_err().to_string();
    assert!(taken.contains("a running process listens at"), "{taken}");
    drop(pool);
    assert!(!path.exists());
}

#[test]
fn metrics_are_in_a_registry_and_over_http() {
    let pool = Pool::builder()
        .workers(1)
        .name("shop")
        .class("point", ClassOptions::new())
        .metrics("127.0.0.1:0".parse().unwrap())
        .build()
        .unwrap();
    pool.run("point", || ()).unwrap();
    pool.wait_idle().unwrap();
    let mut registry = Registry::default();
    registry.register_collector(Box::new(pool.collector()));
    let mut own = String::new();
    prometheus_client::encoding::text::encode(&mut own, &registry).unwrap();
    let over_http = get(&pool, "/metrics");
    for text in [&own, &over_http] {
        for line in [
            r#"headway_pool_submitted_jobs_total{pool="shop",class="point"} 1"#,
            r#"headway_pool_ended_jobs_total{pool="shop",class="point",end="done"} 1"#,
            r#"headway_pool_running_jobs{pool="shop",class="point"} 0.0"#,
            r#"headway_pool_wait_seconds_count{pool="shop",class="point"} 1"#,
            r#"headway_pool_service_seconds_bucket{le="+Inf",pool="shop",class="point"} 1"#,
            "# EOF",
        ] {
            assert!(text.lines().any(|other| other == line), "{line}: {text}");
        }
    }
    assert!(get(&pool, "/status").contains(r#""kind":"pool""#));
    assert!(get(&pool, "/").contains("<title>Headway</title>"));
    let collector = pool.collector();
    drop(pool);
    // A registry outlives its pool.
    let mut registry = Registry::default();
    registry.register_collector(Box::new(collector));
    let begun = Instant::now();
    loop {
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
        if text == "# EOF\n" {
            break;
        }
        assert!(begun.elapsed() < crate::common::LIMIT, "{text}");
    }
}
