//! The error for each mistake in a file names the file, line and key, with the remedy.

use std::fs;
use std::path::Path;

use headway_workload::{
    Arrivals, Class, Empirical, Error, NAMES, Phase, ServiceDistribution, Trace, Workload,
};

fn message(text: &str) -> String {
    Workload::from_toml_str(text, "w.toml")
        .expect_err(text)
        .to_string()
}

/// One class with the given service table, on line 4.
fn with_service(table: &str) -> String {
    message(&format!(
        "[[class]]\nname = \"a\"\nshare = 1\nservice = {{ {table} }}\n"
    ))
}

fn with_arrivals(table: &str) -> String {
    message(&format!("arrivals = {table}\n"))
}

const A: &str = "service = { dist = \"constant\", mean = \"1us\" }\n";

#[test]
fn shares() {
    let two = |first: &str, second: &str| {
        format!(
            "[[class]]\nname = \"a\"\nshare = {first}\n{A}[[class]]\nname = \"b\"\nshare = {second}\n{A}"
        )
    };
    assert_eq!(
        message(&two("0.5", "0.4")),
        "w.toml:3: class.share: the shares of all classes must sum to 1 ± 0.002, but sum to 0.9"
    );
    assert_eq!(
        message(&two("0.5", "0.5021")),
        "w.toml:3: class.share: the shares of all classes must sum to 1 ± 0.002, but sum to 1.0021"
    );
    for within in ["0.498", "0.502"] {
        Workload::from_toml_str(&two("0.5", within), "w.toml").expect("within the tolerance");
    }
    assert_eq!(
        message(&two("-0.5", "1")),
        "w.toml:3: class.share: must be from 0 to 1, is -0.5"
    );
    assert_eq!(
        message(&two("nan", "1")),
        "w.toml:3: class.share: must be from 0 to 1, is NaN"
    );
    assert_eq!(
        message(&two("\"half\"", "1")),
        "w.toml:3: class.share: expected a number, found `\"half\"`"
    );
}

#[test]
fn unknown_keys() {
    let cases = [
        (
            "arival = {}\n",
            "w.toml:1: arival: unknown key; did you mean `arrivals`?; known here: name, arrivals, class, phase",
        ),
        (
            "name = \"x\"\nzzz = 1\n",
            "w.toml:2: zzz: unknown key; known here: name, arrivals, class, phase",
        ),
        (
            "[[class]]\nname = \"a\"\nshar = 1\n",
            "w.toml:3: class.shar: unknown key; did you mean `share`?; known here: name, share, service, long, slo",
        ),
        (
            "[[phase]]\nduraton = \"1s\"\n",
            "w.toml:2: phase.duraton: unknown key; did you mean `duration`?; known here: duration, class",
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(message(text), expected);
    }
    assert_eq!(
        with_service("dist = \"constant\", mena = \"1us\""),
        "w.toml:4: class.service.mena: unknown key; did you mean `mean`?; known here: dist, mean"
    );
    assert_eq!(
        with_arrivals("{ process = \"poisson\", cv = 1.0 }"),
        "w.toml:1: arrivals.cv: unknown key; known here: process"
    );
}

#[test]
fn unknown_names() {
    assert_eq!(
        with_service("dist = \"exponental\", mean = \"1us\""),
        "w.toml:4: class.service.dist: unknown distribution `exponental`; did you mean `exponential`?; known: constant, exponential, lognormal, uniform, pareto, empirical"
    );
    assert_eq!(
        with_arrivals("{ process = \"posson\" }"),
        "w.toml:1: arrivals.process: unknown arrival process `posson`; did you mean `poisson`?; known: poisson, deterministic, gamma, trace"
    );
}

#[test]
fn missing_keys() {
    assert_eq!(
        message(""),
        "w.toml:1: class: missing; a workload needs at least one [[class]]"
    );
    let cases = [
        (
            "share = 1",
            "w.toml:1: class.name: missing; a class needs a name",
        ),
        (
            "name = \"\"\nshare = 1\nservice = { dist = \"constant\", mean = \"1us\" }",
            "w.toml:2: class.name: missing; a class needs a name",
        ),
        (
            "name = \"a\"",
            "w.toml:1: class.share: missing; write the class's fraction of the requests, such as 0.5",
        ),
        (
            "name = \"a\"\nshare = 1",
            "w.toml:1: class.service: missing; write, for example, { dist = \"constant\", mean = \"5us\" }",
        ),
    ];
    for (class, expected) in cases {
        assert_eq!(message(&format!("[[class]]\n{class}\n")), expected);
    }
    let cases = [
        (
            "",
            "dist: missing; name the distribution, such as \"constant\"",
        ),
        (
            "dist = \"constant\"",
            "mean: missing; write the mean service time, such as mean = \"5us\"",
        ),
        (
            "dist = \"lognormal\", mean = \"1us\"",
            "cv: missing; write the standard deviation ÷ mean, such as cv = 2.0",
        ),
        (
            "dist = \"uniform\", max = \"1us\"",
            "min: missing; write the least, such as min = \"1us\"",
        ),
        (
            "dist = \"uniform\", min = \"1us\"",
            "max: missing; write the most, such as max = \"100us\"",
        ),
        (
            "dist = \"pareto\", min = \"1us\", max = \"2us\"",
            "alpha: missing; write the tail's exponent, such as alpha = 1.2",
        ),
        (
            "dist = \"empirical\"",
            "file: missing; name a file of service times, or list them as `samples`",
        ),
    ];
    for (service, expected) in cases {
        assert_eq!(
            with_service(service),
            format!("w.toml:4: class.service.{expected}")
        );
    }
    assert_eq!(
        with_arrivals("{ process = \"gamma\" }"),
        "w.toml:1: arrivals.cv: missing; write the gaps' standard deviation ÷ mean, such as cv = 5.0"
    );
    assert_eq!(
        with_arrivals("{ process = \"trace\" }"),
        "w.toml:1: arrivals.file: missing; name the trace, such as file = \"trace.csv\""
    );
}

#[test]
fn values_out_of_range() {
    let cases = [
        (
            "dist = \"constant\", mean = \"5\"",
            "mean: `5` has no unit; write ns, us, ms, s or min, such as `5us`",
        ),
        (
            "dist = \"constant\", mean = 5",
            "mean: expected a duration in quotes, such as \"5us\", found `5`",
        ),
        (
            "dist = \"constant\", mean = \"0us\"",
            "mean: must be at least 1ns and below 104 days, is 0ns",
        ),
        (
            "dist = \"lognormal\", mean = \"1us\", cv = 0",
            "cv: must be from 0.001 to 1000, is 0",
        ),
        (
            "dist = \"uniform\", min = \"2us\", max = \"1us\"",
            "max: must be above `min`, is 1us",
        ),
        (
            "dist = \"pareto\", min = \"1us\", max = \"2us\", alpha = inf",
            "alpha: must be from 0.001 to 100, is inf",
        ),
        (
            "dist = \"empirical\", samples = []",
            "samples: must be a list of 1 to 2³² − 1 service times, is 0",
        ),
        (
            "dist = \"empirical\", samples = [1]",
            "samples: expected a list of durations in quotes, such as [\"5us\"], found a list",
        ),
        (
            "dist = \"empirical\", samples = [\"1us\"], weights = [1, 2]",
            "weights: write as many weights as samples",
        ),
        (
            "dist = \"empirical\", samples = [\"1us\"], weights = [0]",
            "weights: must be above 0 and at most 1e15, is 0",
        ),
        (
            "dist = \"empirical\", file = \"x\", samples = []",
            "file: write either `file`, or `samples` and `weights`",
        ),
    ];
    for (service, expected) in cases {
        assert_eq!(
            with_service(service),
            format!("w.toml:4: class.service.{expected}")
        );
    }
    // With the last one the shape 1 ÷ cv² is infinite, and a draw never ends.
    for cv in ["-1", "100.5", "0.0009", "1e-160"] {
        let told = with_arrivals(&format!("{{ process = \"gamma\", cv = {cv} }}"));
        let expected = "w.toml:1: arrivals.cv: must be from 0.001 to 100, is ";
        assert!(told.starts_with(expected), "{told}");
    }
}

#[test]
fn wrong_types() {
    assert_eq!(
        with_arrivals("\"poisson\""),
        "w.toml:1: arrivals: expected a table, such as { process = \"poisson\" }, found `\"poisson\"`"
    );
    assert_eq!(
        message("class = 1\n"),
        "w.toml:1: class: expected [[class]] tables, found `1`"
    );
    assert_eq!(
        message("class = [1]\n"),
        "w.toml:1: class: expected [[class]] tables, found `1`"
    );
    assert_eq!(
        message("name = 1\n"),
        "w.toml:1: name: expected a text in quotes, found `1`"
    );
    assert_eq!(
        message(&format!(
            "[[class]]\nname = \"a\"\nshare = 1\nlong = 1\n{A}"
        )),
        "w.toml:4: class.long: expected true or false, found `1`"
    );
}

#[test]
fn syntax_is_told_by_line() {
    let told = message("name = \"x\"\narrivals = {\n\n[[class]\n");
    assert!(told.starts_with("w.toml:"), "{told}");
    assert_eq!(
        message("name = \"x\"\nname = \"y\"\n"),
        "w.toml:2: duplicate key"
    );
}

#[test]
fn phases_and_duplicates() {
    assert_eq!(
        message("[[phase]]\n"),
        "w.toml:1: phase.duration: missing; write how long the phase lasts, such as duration = \"10ms\""
    );
    assert_eq!(
        message("[[phase]]\nduration = \"0\"\n"),
        "w.toml:2: phase.duration: must be at least 1ns, is 0"
    );
    assert_eq!(
        message("[[phase]]\nduration = \"1s\"\n"),
        "w.toml:1: phase.class: missing; a workload needs at least one [[class]]"
    );
    let phase =
        format!("[[phase]]\nduration = \"1s\"\n[[phase.class]]\nname = \"a\"\nshare = 0.5\n{A}");
    assert_eq!(
        message(&phase),
        "w.toml:5: phase.class.share: the shares of all classes must sum to 1 ± 0.002, but sum to 0.5"
    );
    let class = format!("[[class]]\nname = \"a\"\nshare = 0.5\n{A}");
    assert_eq!(
        message(&format!("{class}{class}")),
        "w.toml:6: class.name: `a` is already the name of another class; give each class its own"
    );
    let reserved = class.replace("\"a\"", "\"overall\"");
    let told = "w.toml:2: class.name: `overall` is what reports call all classes together; give the class another name";
    assert_eq!(message(&reserved), told);
    let phase = phase.replace("\"a\"", "\"overall\"");
    assert!(message(&phase).contains("phase.class.name: `overall` is what"));
}

#[test]
fn unknown_workloads_list_the_names_and_suggest_the_nearest() {
    let told = Workload::resolve("extreme_bimodel")
        .unwrap_err()
        .to_string();
    let expected = format!(
        "no workload and no file is called `extreme_bimodel`; did you mean `extreme-bimodal`?; workloads by name: {}",
        NAMES.join(", ")
    );
    assert_eq!(told, expected);
    let told = Workload::resolve("qqq").unwrap_err().to_string();
    assert!(told.starts_with("no workload and no file is called `qqq`; workloads by name: high-"));
    let told = Workload::resolve("missing.toml").unwrap_err().to_string();
    assert!(
        told.starts_with("cannot read workload `missing.toml`: "),
        "{told}"
    );
}

#[test]
fn traces() {
    let told = |text: &str| {
        Trace::from_csv_str(text, "t.csv")
            .expect_err(text)
            .to_string()
    };
    let header = "time,class,service\n";
    let cases = [
        (
            "time,klass,service\n",
            "t.csv:1: class: missing column; a trace's header row is `time,class,service`; is `klass` meant?",
        ),
        (
            "",
            "t.csv:1: time: missing column; a trace's header row is `time,class,service`",
        ),
        (
            header,
            "t.csv:1: missing; a trace needs at least one record",
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(told(text), expected);
    }
    let cases = [
        (
            "1,a,1\n0.5,a,1\n",
            "3: time: `0.5` is earlier than the record before it; sort the trace by time",
        ),
        (
            "1,a,1\nsoon,a,1\n",
            "3: time: `soon` is not a duration; write a number and a unit, such as `5us`",
        ),
        (
            "1,a,1\n\n# comment\n2,a,0\n",
            "5: service: is zero, and a request takes at least 1ns; --skip-zero leaves such rows out and counts them",
        ),
        (
            "1,a,1 parsec\n",
            "2: service: `1 parsec` has the unknown unit `parsec`; use ns, us, ms, s or min",
        ),
        (
            "1,,1\n",
            "2: class: missing; write the name of the request's class",
        ),
        (
            "1,a,1\n2,overall,1\n",
            "3: class: `overall` is what reports call all classes together; give the class another name",
        ),
        (
            "1,a,1\n2,a\n",
            "3: the header has 3 columns, but this row has 2",
        ),
    ];
    for (rows, expected) in cases {
        assert_eq!(
            told(&format!("{header}{rows}")),
            format!("t.csv:{expected}")
        );
    }
}

#[test]
fn sample_files() {
    let told = |text: &str| {
        Empirical::from_csv_str(text, "s.txt")
            .expect_err(text)
            .to_string()
    };
    assert_eq!(
        told(""),
        "s.txt:1: missing; write one service time per line"
    );
    assert_eq!(
        told("1us\nslow\n"),
        "s.txt:2: value: `slow` is not a duration; write a number and a unit, such as `5us`"
    );
    assert_eq!(
        told("value,weight\n1us,-1\n"),
        "s.txt:2: weight: must be a number above 0, is `-1`"
    );
}

#[test]
fn files_that_are_referred_to() {
    let folder = tempfile::tempdir().unwrap();
    let workload = folder.path().join("w.toml");
    let read = |text: &str| {
        fs::write(&workload, text).unwrap();
        Workload::from_toml_file(&workload).unwrap_err().to_string()
    };
    let shown = |name: &str| folder.path().join(name).display().to_string();
    let told = read("arrivals = { process = \"trace\", file = \"none.csv\" }\n");
    assert!(
        told.starts_with(&format!("cannot read trace `{}`: ", shown("none.csv"))),
        "{told}"
    );
    let told = read("arrivals = { process = \"trace\", file = \".\" }\n");
    assert!(told.ends_with("not a regular file"), "{told}");

    fs::write(folder.path().join("t.csv"), "time,class,service\n0,GET,1\n").unwrap();
    let trace = "arrivals = { process = \"trace\", file = \"t.csv\" }\n";
    assert_eq!(
        read(&format!("{trace}[[class]]\nname = \"GTE\"\nshare = 1\n{A}")),
        format!(
            "{}:3: class.name: unknown class of the trace `GTE`; did you mean `GET`?; known: GET",
            shown("w.toml")
        )
    );
    assert_eq!(
        read(&format!("{trace}[[phase]]\nduration = \"1s\"\n")),
        format!(
            "{}:2: phase: a trace fixes the mix; remove the phases",
            shown("w.toml")
        )
    );
}

#[test]
fn workloads_built_in_code() {
    let constant = |mean_ns| ServiceDistribution::Constant { mean_ns };
    let told = |workload: &Workload| workload.check().unwrap_err().to_string();
    let half = Workload::new("half", vec![Class::new("a", 0.5, constant(1))]);
    assert_eq!(
        told(&half),
        "workload `half`: class.share: the shares of all classes must sum to 1 ± 0.002, but sum to 0.5"
    );
    let zero = Workload::new("zero", vec![Class::new("a", 1.0, constant(0))]);
    assert_eq!(
        told(&zero),
        "workload `zero`: class[0].service.mean: must be at least 1ns and below 104 days, is 0ns"
    );
    let arrivals = Arrivals::Gamma { cv: f64::NAN };
    assert_eq!(
        told(&Workload { arrivals, ..zero }),
        "workload `zero`: arrivals.cv: must be from 0.001 to 100, is NaN"
    );
    let phases = vec![Phase {
        duration_ns: 0,
        classes: half.classes.clone(),
    }];
    assert_eq!(
        told(&Workload {
            phases,
            classes: Vec::new(),
            ..half
        }),
        "workload `half`: phase[0].duration: must be at least 1ns, is 0"
    );
}

#[test]
fn no_name_reaches_a_terminal_with_control_characters() {
    let mix = |name: &str, class: &str| {
        format!("name = \"{name}\"\n[[class]]\nname = \"{class}\"\nshare = 1\n{A}")
    };
    let escape = "\\u001b[31m";
    for text in [mix(escape, "a"), mix("mix", escape)] {
        let why = message(&text);
        assert!(
            why.contains("without control") && !why.contains('\u{1b}'),
            "{why}"
        );
    }
    // Who logs requests may log what a client sent: the rows count, under a name that shows it.
    let log = "time,class,service\n0,\u{1b}[31m,1\n1,a,1\n2,\u{1b}[31m,1\n";
    let trace = Trace::from_csv_str(log, "t.csv").unwrap();
    assert_eq!(trace.classes(), ["\\u{1b}[31m", "a"]);
    assert_eq!(trace.records().len(), 3);
}

#[test]
fn errors_keep_their_parts() {
    let error = Workload::from_toml_str("name = 1\n", Path::new("w.toml")).unwrap_err();
    let Error::Located(located) = error else {
        panic!("{error}")
    };
    assert_eq!(
        (located.file.as_str(), located.line, located.key.as_str()),
        ("w.toml", 1, "name")
    );
}

#[test]
fn columns_are_a_trace_or_are_refused_with_their_row() {
    let names = || vec!["a".to_owned(), "b".to_owned()];
    let read = Trace::from_columns("arrays", names(), &[5, 5, 9], &[1, 0, 1], &[1, 2, 3]).unwrap();
    let csv = "time,class,service\n5ns,b,1ns\n5ns,a,2ns\n9ns,b,3ns\n";
    let from_csv = Trace::from_csv_str(csv, "arrays").unwrap();
    assert_eq!(read.records().len(), 3);
    assert_eq!(
        (read.duration_ns(), read.rate_rps()),
        (4, from_csv.rate_rps())
    );
    let refused = |names, at_ns: &[u64], class: &[u16], service_ns: &[u64]| {
        let refused = Trace::from_columns("arrays", names, at_ns, class, service_ns);
        refused.unwrap_err().to_string()
    };
    for (message, part) in [
        (
            refused(names(), &[5, 4], &[0, 1], &[1, 1]),
            "arrays:2: time: `4ns` is earlier",
        ),
        (
            refused(names(), &[5, 6], &[0, 2], &[1, 1]),
            "arrays:2: class: must be the index",
        ),
        (
            refused(names(), &[5, 6], &[0, 1], &[1, 0]),
            "arrays:2: service: is zero",
        ),
        (
            refused(names(), &[5, 6], &[0, 1], &[1]),
            "arrays:2: the columns differ",
        ),
        (refused(names(), &[], &[], &[]), "at least one record"),
        (
            refused(vec!["a".into(), "a".into()], &[1], &[0], &[1]),
            "already the name",
        ),
    ] {
        assert!(message.contains(part), "{message}");
    }
}
