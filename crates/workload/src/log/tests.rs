use super::*;
use proptest::prelude::*;

const TWITTER: &str = "\
0,q:q:1:8WTfjZU14ee,17,213,4,get,0
0,yDqF:3q:1AJrrJ1nnCJKKrnGx1A,27,27,5,set,86400
1,a,b,c,17,1024,4,get,0
";
const REDIS: &str = "\
OK
1339518083.107412 [0 127.0.0.1:60866] \"keys\" \"*\"
1339518087.877697 [0 127.0.0.1:60866] \"get\" \"x\"
1339518090.420270 [0 lua] \"SET\" \"x \\\"6\\\"\" \"[0]\"
";

fn model(text: &str) -> ServiceModel {
    text.parse().unwrap_or_else(|error| panic!("{error}"))
}

fn read(text: &str, format: Format, prices: &str) -> Result<Trace, Error> {
    let options = TraceOptions {
        format: Some(format),
        services: model(prices),
        ..TraceOptions::default()
    };
    Trace::from_str_with(text, Path::new("cache.log"), &options)
}

#[test]
fn a_cache_trace_is_read_with_the_sizes_of_its_values() {
    assert_eq!(Format::guess(TWITTER), Format::TwitterCache);
    let trace = read(TWITTER, Format::TwitterCache, "get=1us+2us/KiB,*=5us").unwrap();
    assert_eq!(trace.classes(), ["get", "set"]);
    let records: Vec<_> = trace
        .records()
        .iter()
        .map(|r| (r.at_ns, r.class, r.service_ns))
        .collect();
    assert_eq!(
        records,
        [(0, 0, 1_416), (0, 1, 5_000), (1_000_000_000, 0, 3_000)]
    );
}

#[test]
fn what_redis_monitors_is_read_from_its_first_command() {
    assert_eq!(Format::guess(REDIS), Format::RedisMonitor);
    let trace = read(REDIS, Format::RedisMonitor, "GET=1us,keys=1ms,SET=2us").unwrap();
    assert_eq!(trace.classes(), ["keys", "get", "set"]);
    let records: Vec<_> = trace
        .records()
        .iter()
        .map(|r| (r.at_ns, r.service_ns))
        .collect();
    assert_eq!(
        records,
        [
            (0, 1_000_000),
            (4_770_285_000, 1_000),
            (7_312_858_000, 2_000)
        ]
    );
}

#[test]
fn the_first_arrival_is_time_0_whatever_the_file_counts_from() {
    let times = |first: u64| {
        let rows = [0, 10, 20].map(|us| format!("{},a,1\n", first + us));
        let text = format!("time,class,service\n{}", rows.concat());
        let trace = Trace::from_csv_str(&text, "t.csv").unwrap();
        trace.records().iter().map(|r| r.at_ns).collect::<Vec<_>>()
    };
    // Microseconds since 1970.
    assert_eq!(times(1_700_000_000_000_000), times(0));
    assert_eq!(times(0), [0, 10_000, 20_000]);
}

#[test]
fn every_form_of_a_redis_monitor_is_read_and_a_command_is_one_class() {
    let log = "+OK\n+1.0 [0 10.0.0.5:1] \"GET\" \"k\"\n1.1 (db 0) \"get\" \"k\"\n1.2 [0 lua] \"Get\" \"k\"\n";
    assert_eq!(Format::guess(log), Format::RedisMonitor);
    let trace = read(log, Format::RedisMonitor, "GET=1us").unwrap();
    assert_eq!(
        (trace.classes(), trace.records().len()),
        (&["get".to_owned()][..], 3)
    );
}

/// Reads a CSV with these options.
fn csv(text: &str, services: &str, skip_zero: bool) -> Result<Trace, String> {
    let services = match services {
        "" => ServiceModel::default(),
        services => model(services),
    };
    let options = TraceOptions {
        format: None,
        services,
        skip_zero,
    };
    let read = Trace::from_str_with(text, Path::new("t.csv"), &options);
    read.map_err(|error| error.to_string())
}

#[test]
fn files_of_other_programs_are_read() {
    let rows = |text: &str| -> Vec<(u64, u64)> {
        let trace = csv(text, "", false).unwrap_or_else(|error| panic!("{text}: {error}"));
        let records = trace.records().iter();
        records
            .map(|record| (record.at_ns, record.service_ns))
            .collect()
    };
    const HEADER: &str = "time,class,service\n";
    for (text, expected) in [
        ("0,a,1\n1.5e+06,a,1e-05\n", [(0, 1_000), (1_500_000_000, 1)]),
        (
            "0,a,1\n\"1,000\",a,\"2,500.5\"\n",
            [(0, 1_000), (1_000_000, 2_500_500)],
        ),
        (
            "0.0 sec,a,1\n1 sec,a,1\n",
            [(0, 1_000), (1_000_000_000, 1_000)],
        ),
        (
            "2023-11-16 18:17:03.97,a,1\n2023-11-16T18:17:04Z,a,1\n",
            [(0, 1_000), (30_000_000, 1_000)],
        ),
    ] {
        assert_eq!(rows(&format!("{HEADER}{text}")), expected);
    }
    let commented = "# of a tool\n#time,class,service\n0,a,1\n# no row\n10,a,1\n";
    assert_eq!(rows(commented), [(0, 1_000), (10_000, 1_000)]);
    let wrong = csv(
        "#time,class,service\n0,a,1\n2023-02-29 00:00:00,a,1\n",
        "",
        false,
    );
    assert!(
        wrong
            .clone()
            .unwrap_err()
            .starts_with("t.csv:3: time: `2023-02-29"),
        "{wrong:?}"
    );
}

#[test]
fn rows_of_zero_service_are_left_out_on_request() {
    let text = "time,class,service\n0,a,1\n10,a,0.000\n20,a,1\n";
    let refused = csv(text, "", false).unwrap_err();
    assert!(
        refused.starts_with("t.csv:3: service: is zero") && refused.contains("--skip-zero"),
        "{refused}"
    );
    let trace = csv(text, "", true).unwrap();
    assert_eq!((trace.records().len(), trace.left_out()), (2, 1));
}

#[test]
fn a_log_without_service_times_asks_for_them() {
    let text = "time,class\n0,GET\n10,SCAN\n";
    let refused = csv(text, "", false).unwrap_err();
    assert!(
        refused.starts_with("t.csv:1: service: missing column") && refused.contains("--service"),
        "{refused}"
    );
    let trace = csv(text, "get=1us,*=1ms", false).unwrap();
    assert_eq!(trace.records()[1].service_ns, 1_000_000);
    let unpriced = csv(text, "get=1us", false).unwrap_err();
    assert!(
        unpriced.starts_with("t.csv:3: class: nothing says how long `SCAN` takes"),
        "{unpriced}"
    );
    let both = csv("time,class,service\n0,a,1\n", "*=1us", false).unwrap_err();
    assert!(both.contains("leave out --service"), "{both}");
}

#[test]
fn a_trace_of_our_own_is_no_cache_log() {
    assert_eq!(
        Format::guess("time,class,service\n0,GET,1.5\n"),
        Format::Csv
    );
    assert_eq!(Format::guess(""), Format::Csv);
}

#[test]
fn what_is_wrong_is_named_with_its_line() {
    let cases = [
        (
            "0,k,1,2,3,get,0\nrubbish\n",
            Format::TwitterCache,
            "*=1us",
            "cache.log:2: not a line of Twitter's cache traces; such as: 0,q:1:8WTf,17,213,4,get,0",
        ),
        (
            "0,k,1,2,3,get,0\n\n0,k,1,-2,3,get,0\n",
            Format::TwitterCache,
            "*=1us",
            "cache.log:3: not a line of",
        ),
        (
            "0,k,1,2,3,get,0\n0,k,1,2,3,incr,0\n",
            Format::TwitterCache,
            "get=1us",
            "cache.log:2: class: nothing says how long `incr` takes; add `incr=2us`, or `*=2us`",
        ),
        (
            "5,k,1,2,3,get,0\n4,k,1,2,3,get,0\n",
            Format::TwitterCache,
            "*=1us",
            "cache.log:2: time: `4` is earlier than the record before it",
        ),
        (
            "5.5.5 [0 lua] \"get\"\n",
            Format::RedisMonitor,
            "*=1us",
            "cache.log:1: time: `5.5.5s` is not a duration",
        ),
        ("OK\n", Format::RedisMonitor, "*=1us", "at least one record"),
    ];
    for (text, format, prices, complaint) in cases {
        let said = read(text, format, prices).unwrap_err().to_string();
        assert!(said.contains(complaint), "{said}");
    }
}

#[test]
fn a_model_that_makes_no_sense_says_why() {
    let cases = [
        ("get", "does not say how long what takes"),
        ("=1us", "does not say how long what takes"),
        ("get=1us+2us", "does not say how long what takes"),
        ("get=5", "`get=5`: `5` has no unit"),
        ("get=0ns", "takes no time"),
        ("get=1us,GET=2us", "`GET` is there twice"),
    ];
    for (text, complaint) in cases {
        let said = text.parse::<ServiceModel>().unwrap_err().to_string();
        assert!(said.contains(complaint), "{text}: {said}");
    }
    let complaint = Format::from_name("redis").unwrap_err();
    assert!(
        complaint.contains("did you mean `redis-monitor`?"),
        "{complaint}"
    );
}

proptest! {
    #[test]
    fn no_text_makes_a_reader_panic(text in "\\PC*", prices in "\\PC*") {
        let _ = prices.parse::<ServiceModel>();
        let services = model("get=1us,*=2us+18446744073709551615ns/KiB");
        for format in [None, Some(Format::Csv), Some(Format::TwitterCache), Some(Format::RedisMonitor)] {
            let options = TraceOptions { format, services: services.clone(), skip_zero: true };
            let _ = Trace::from_str_with(&text, Path::new("log"), &options);
        }
    }

    /// Good lines with one damaged line: the reader accepts them, or names that line or a later one in its refusal.
    #[test]
    fn a_damaged_line_is_named(
        lines in 2_usize..40,
        at in any::<prop::sample::Index>(),
        byte in any::<prop::sample::Index>(),
        with in "[ -~]",
    ) {
        let mut all: Vec<String> = (0..lines).map(|n: usize| format!("{n}.5 [0 127.0.0.1:1] \"get\" \"key{n}\"")).collect();
        let damaged = at.index(lines);
        let place = byte.index(all[damaged].len());
        all[damaged].replace_range(place..=place, &with);
        match read(&all.join("\n"), Format::RedisMonitor, "*=1us") {
            Ok(trace) => prop_assert!(trace.records().len() >= lines - 1),
            Err(Error::Located(located)) => prop_assert!(located.line > damaged, "{located}"),
            Err(other) => return Err(TestCaseError::fail(other.to_string())),
        }
    }
}
