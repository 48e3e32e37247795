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
    Trace::from_log_str(text, Path::new("cache.log"), format, &model(prices))
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
    assert_eq!(trace.classes(), ["keys", "get", "SET"]);
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
        let model = model("get=1us,*=2us+18446744073709551615ns/KiB");
        for format in [Format::guess(&text), Format::TwitterCache, Format::RedisMonitor] {
            let _ = Trace::from_log_str(&text, Path::new("log"), format, &model);
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
