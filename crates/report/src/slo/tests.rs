use super::*;
use crate::run::Run;
use crate::testing::run;

fn slo(text: &str) -> Slo {
    text.parse()
        .unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn error(text: &str) -> String {
    text.parse::<Slo>().unwrap_err().to_string()
}

#[test]
fn what_is_written_is_read_back() {
    for text in [
        "class.*.slowdown.p999<=10",
        "overall.slowdown.p999<=50,class.GET.latency.p99<=250us",
        "class.v1.2-get.latency.mean<=0.5us",
        "overall.latency.max<=1.5ms",
        "overall.latency.p99<=20ms",
        "overall.latency.p99<=999us",
        "overall.latency.p99<=2s",
    ] {
        assert_eq!(slo(text).to_string(), text);
    }
}

#[test]
fn latencies_are_written_in_the_unit_that_suits_them() {
    for (text, written) in [
        ("20000us", "20ms"),
        ("1000000ns", "1ms"),
        ("90000ms", "90s"),
        ("800ns", "0.8us"),
    ] {
        let slo = slo(&format!("overall.latency.p50<={text}"));
        assert_eq!(slo.to_string(), format!("overall.latency.p50<={written}"));
    }
    let verdict = slo("class.long.latency.max<=1ms").evaluate(&run()).unwrap();
    let Verdict::Missed(violations) = verdict else {
        panic!("{verdict:?}")
    };
    assert_eq!(
        violations[0].to_string(),
        "class.long.latency.max<=1ms is broken: 2.00 ms"
    );
}

#[test]
fn durations_are_kept_in_microseconds() {
    for (text, us) in [
        ("250us", 250.0),
        ("1.5ms", 1500.0),
        ("2s", 2e6),
        ("500ns", 0.5),
        ("3 µs", 3.0),
        ("20min", 1.2e9),
    ] {
        let parsed = slo(&format!("overall.latency.p50 <= {text}"));
        assert_eq!(parsed.bounds()[0].at_most, us, "{text}");
    }
}

#[test]
fn each_class_is_held_to_a_star() {
    let verdict = slo("class.*.slowdown.p999<=3").evaluate(&run()).unwrap();
    let Verdict::Missed(violations) = verdict else {
        panic!("{verdict:?}")
    };
    assert_eq!(violations.len(), 1);
    assert_eq!(
        violations[0].to_string(),
        "class.long.slowdown.p999<=3 is broken: 4.0"
    );
}

#[test]
fn bounds_include_their_limit() {
    assert!(
        slo("class.*.slowdown.max<=4,class.short.latency.max<=1us")
            .evaluate(&run())
            .unwrap()
            .is_met()
    );
    assert!(
        !slo("class.short.latency.max<=999ns")
            .evaluate(&run())
            .unwrap()
            .is_met()
    );
}

#[test]
fn an_overloaded_run_meets_nothing() {
    let mut overloaded = run();
    overloaded.meta.overloaded = true;
    let verdict = slo("overall.slowdown.p999<=1000000")
        .evaluate(&overloaded)
        .unwrap();
    assert_eq!(verdict, Verdict::Overloaded);
    assert!(!verdict.is_met());
}

#[test]
fn a_class_without_requests_shows_nothing_to_be_kept() {
    let recorder = crate::Recorder::new(&[crate::ClassMeta::new("short", 500.0)]);
    let empty = Run::new(run().meta, &recorder, crate::RunExtras::default());
    let Verdict::Missed(violations) = slo("class.*.slowdown.p999<=10").evaluate(&empty).unwrap()
    else {
        panic!("no request was measured");
    };
    assert!(
        violations[0]
            .to_string()
            .ends_with("no request was measured")
    );
}

#[test]
fn a_class_that_the_run_lacks_is_an_error_with_the_nearest_name() {
    let error = slo("class.shrot.slowdown.p999<=10")
        .evaluate(&run())
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "SLO: the workload has no class `shrot`; did you mean `short`?"
    );
}

#[test]
fn errors_point_at_the_column_and_name_the_nearest_word() {
    assert_eq!(
        error("overall.slowdown.p999<=50, clas.*.latency.p99<=250us"),
        "SLO, column 28: unknown scope `clas`; did you mean `class`?"
    );
    assert_eq!(
        error("overall.slowdown.p9999<=50"),
        "SLO, column 18: unknown statistic `p9999`; did you mean `p999`?"
    );
    assert_eq!(
        error("overall.throughput.p50<=50"),
        "SLO, column 9: unknown measure `throughput`; known: latency, slowdown"
    );
    assert_eq!(
        error("class.GET.latency.p99<=250u"),
        "SLO, column 27: unknown unit of time `u`; did you mean `us`?"
    );
}

#[test]
fn errors_say_what_is_missing() {
    for (text, expected) in [
        ("", "column 1: a bound is missing"),
        ("overall.slowdown.p99<=1,", "column 25: a bound is missing"),
        ("overall.slowdown.p99<10", "column 1: `<=` is missing"),
        (
            "class.slowdown.p99<=10",
            "column 7: `class` needs a name, or `*`",
        ),
        (
            "overall.GET.slowdown.p99<=10",
            "column 9: `overall` takes no name",
        ),
        (
            "class..slowdown.p99<=10",
            "column 7: the class's name is empty",
        ),
        (
            "slowdown<=10",
            "column 1: scope, measure and statistic are needed",
        ),
        (
            "overall.slowdown.p99<=-1",
            "column 23: `-1` is no bound for a slowdown",
        ),
        (
            "overall.slowdown.p99<=10us",
            "column 23: `10us` is no bound for a slowdown",
        ),
        (
            "overall.latency.p99<=250",
            "column 22: `250` is no bound for a latency",
        ),
        (
            "overall.latency.p99<=inf",
            "column 22: `inf` is no bound for a latency",
        ),
    ] {
        let found = error(text);
        assert!(found.contains(expected), "{text}: {found}");
    }
}

#[test]
fn a_percentile_is_written_with_or_without_its_point() {
    let text = "class.v1.2-get.slowdown.p99.9<=10,overall.latency.p99.9<=3us";
    let written = "class.v1.2-get.slowdown.p999<=10,overall.latency.p999<=3us";
    assert_eq!(slo(text).to_string(), written);
}

/// A run of the classes `short` and `long` with these numbers of answered and dropped requests, all at slowdown 1.
fn lossy(answered: [u64; 2], dropped: [u64; 2]) -> Run {
    let classes = ["short", "long"].map(|name| crate::ClassMeta::new(name, 500.0));
    let mut recorder = crate::Recorder::new(&classes);
    for class in 0..2 {
        (0..answered[class]).for_each(|_| {
            recorder.record(class, 500, 500);
        });
        (0..dropped[class]).for_each(|_| recorder.dropped(class));
    }
    Run::new(run().meta, &recorder, crate::RunExtras::default())
}

#[test]
fn a_run_that_loses_more_than_one_in_a_thousand_meets_nothing() {
    let every = slo("class.*.slowdown.p999<=10");
    let kept = lossy([9_990, 10_000], [10, 10]);
    assert!(every.evaluate(&kept).unwrap().is_met());
    assert!(every.tightest(&kept).is_some());

    let run = lossy([5_000, 5_000], [5_000, 0]);
    let Verdict::Lossy(loss) = every.evaluate(&run).unwrap() else {
        panic!("a third is lost");
    };
    assert_eq!(
        loss.to_string(),
        "33.3 % of overall was lost, more than 0.1 %"
    );
    assert_eq!(every.tightest(&run), None);
}

#[test]
fn a_rare_class_is_not_lost_among_the_others() {
    let run = lossy([100_000, 50], [0, 50]);
    assert!(run.sustained(), "of all requests few are lost");
    let Verdict::Lossy(loss) = slo("class.long.slowdown.p50<=10").evaluate(&run).unwrap() else {
        panic!("half of the class is lost");
    };
    assert_eq!(loss.scope, Scope::Class("long".into()));
    assert!(
        slo("class.short.slowdown.p99<=10")
            .evaluate(&run)
            .unwrap()
            .is_met()
    );
}

/// A run of this many requests, all of a slowdown of 1.
fn run_of(count: u64) -> Run {
    let mut recorder = crate::Recorder::new(&[crate::ClassMeta::new("GET", 500.0)]);
    for _ in 0..count {
        recorder.record(0, 500, 500);
    }
    Run::new(run().meta, &recorder, crate::RunExtras::default())
}

#[test]
fn a_percentile_that_rests_on_no_request_is_not_shown() {
    let slo = slo("class.*.slowdown.p999<=10");
    let verdict = |count| slo.evaluate(&run_of(count)).unwrap();
    let Verdict::Unshown(few) = verdict(2) else {
        panic!("{:?}", verdict(2))
    };
    assert_eq!(
        few.to_string(),
        "p999 of class.GET rests on 0.0020 requests"
    );
    assert!(!verdict(999).is_met() && verdict(1_000).is_met());
    let few = |count| slo.few_samples(&run_of(count)).is_some();
    assert!(few(1_000) && few(9_999) && !few(10_000));
}
