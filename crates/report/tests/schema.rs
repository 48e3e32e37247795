//! The output matches the published schemas, and the schemas refuse other output.

use headway_report::{
    BenchReport, Capacity, CapacityReport, ClassMeta, CompareMethod, CoresNeeded, Delivery,
    Impossible, LoadRange, Noise, PlanComparison, PlanEntry, PlanReport, PlanRound, PlanVerdict,
    RackFigures, Recorder, Reservation, Run, RunExtras, RunLevel, RunMeta, Sensitivity,
    ServerFigures, ShownBy, SloSeeds, TrialResult, Validation, stats::ConfidenceInterval,
};
use serde_json::{Value, json};

/// The part of JSON Schema 2020-12 that the schemas use; any other keyword is an error, so that
/// none can be written and silently not checked.
struct Checker {
    run: Value,
}

impl Checker {
    fn new() -> Self {
        Self { run: schema("run") }
    }

    /// Every breach of `schema` by `value`, each with its place. `root` resolves local references.
    fn breaches(&self, schema: &Value, root: &Value, value: &Value, at: &str) -> Vec<String> {
        let keywords = schema.as_object().expect("a schema is an object").iter();
        keywords
            .flat_map(|(word, rule)| self.breach(word, rule, schema, root, value, at))
            .collect()
    }

    fn breach(
        &self,
        word: &str,
        rule: &Value,
        schema: &Value,
        root: &Value,
        value: &Value,
        at: &str,
    ) -> Vec<String> {
        let unless = |kept: bool| {
            let breach = || format!("{at}: {value} breaks {word} {rule}");
            if kept { vec![] } else { vec![breach()] }
        };
        match word {
            "$schema" | "$id" | "$defs" | "title" | "description" => vec![],
            "type" => unless(types(rule).any(|name| is_a(value, name))),
            "enum" => unless(rule.as_array().unwrap().contains(value)),
            "minimum" => unless(value.as_f64().is_none_or(|v| v >= rule.as_f64().unwrap())),
            "maximum" => unless(value.as_f64().is_none_or(|v| v <= rule.as_f64().unwrap())),
            "required" => unless(has_all(value, rule)),
            "dependentRequired" => {
                let rules = rule.as_object().unwrap().iter();
                unless(
                    rules
                        .filter(|(key, _)| value.get(key).is_some())
                        .all(|(_, r)| has_all(value, r)),
                )
            }
            "additionalProperties" => {
                assert_eq!(rule, &json!(false));
                let known = &schema["properties"];
                unless(
                    value
                        .as_object()
                        .is_none_or(|o| o.keys().all(|key| known.get(key).is_some())),
                )
            }
            "properties" => self.properties(rule, root, value, at),
            "items" => self.items(rule, root, value, at),
            "$ref" => self.reference(rule.as_str().unwrap(), root, value, at),
            other => panic!("the checker does not know `{other}`"),
        }
    }

    fn properties(&self, rules: &Value, root: &Value, value: &Value, at: &str) -> Vec<String> {
        let rules = rules.as_object().unwrap().iter();
        let present = rules.filter_map(|(key, rule)| Some((key, rule, value.get(key)?)));
        present
            .flat_map(|(key, rule, value)| self.breaches(rule, root, value, &format!("{at}.{key}")))
            .collect()
    }

    fn items(&self, rule: &Value, root: &Value, value: &Value, at: &str) -> Vec<String> {
        let items = value.as_array().into_iter().flatten().enumerate();
        items
            .flat_map(|(i, item)| self.breaches(rule, root, item, &format!("{at}[{i}]")))
            .collect()
    }

    fn reference(&self, target: &str, root: &Value, value: &Value, at: &str) -> Vec<String> {
        let (file, pointer) = target.split_once('#').unwrap_or((target, ""));
        let root = match file {
            "" => root,
            "run.schema.json" => &self.run,
            other => panic!("no schema {other}"),
        };
        let schema = root
            .pointer(pointer)
            .unwrap_or_else(|| panic!("{target} leads nowhere"));
        self.breaches(schema, root, value, at)
    }
}

fn types(rule: &Value) -> impl Iterator<Item = &str> {
    let many = rule
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str);
    rule.as_str().into_iter().chain(many)
}

fn is_a(value: &Value, name: &str) -> bool {
    match name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        "number" => value.is_number(),
        "integer" => value.is_u64() || value.is_i64(),
        other => panic!("no type {other}"),
    }
}

fn has_all(value: &Value, keys: &Value) -> bool {
    let keys = keys.as_array().unwrap().iter().filter_map(Value::as_str);
    value
        .as_object()
        .is_none_or(|object| keys.into_iter().all(|key| object.contains_key(key)))
}

fn schema(name: &str) -> Value {
    let path = format!("{}/schema/{name}.schema.json", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn breaches(name: &str, value: &Value) -> Vec<String> {
    let schema = schema(name);
    Checker::new().breaches(&schema, &schema, value, name)
}

fn meta() -> RunMeta {
    RunMeta {
        policy: "darc".into(),
        params: json!({"delta": 2}).as_object().unwrap().clone(),
        level: RunLevel::Server,
        workload: "extreme-bimodal".into(),
        workers: 16,
        seed: u64::MAX,
        requests: 2,
        offered_rps: 5.1e6,
        achieved_rps: 5.09e6,
        load: 0.955,
        utilization: 0.953,
        dropped: 1,
        preemptions: 0,
        overloaded: false,
    }
}

/// One request of 1 µs that took 2.5 µs; the class "long" has none.
fn run(extras: RunExtras) -> Run {
    let mut recorder = Recorder::new(&[
        ClassMeta::new("short", 1000.0),
        ClassMeta::new("long", 500_000.0),
    ]);
    recorder.record(0, 2500, 1000);
    recorder.dropped(0);
    Run::new(meta(), &recorder, extras)
}

fn full() -> RunExtras {
    let object = |value: Value| value.as_object().cloned();
    RunExtras {
        cut_off: true,
        cores: Some(15),
        serving_cores: Some(14),
        label: Some("darc,delta=2".into()),
        servers: Some(8),
        racks: Some(2),
        rack: Some(RackFigures {
            cloned: 4,
            clones_dropped: 1,
            filtered: 3,
            servers: vec![ServerFigures {
                requests: 0,
                utilization: 0.5,
                slowdown_p99: f64::NAN,
            }],
            ..RackFigures::default()
        }),
        reservation: Some(vec![Reservation {
            classes: vec!["short".into()],
            reserved: vec![0],
            stealable: vec![1, 2],
        }]),
        wasted_cores: Some(0.67),
        expected_waste_cores: Some(0.86),
        starved: vec!["long".into()],
        slo_seeds: Some(SloSeeds { runs: 4, met: 3 }),
        costs: object(json!({"dispatch_ns": 0})),
        machine: object(json!({"cores": 2})),
        noise: Some(Noise {
            lost_fraction: 0.01,
            gaps_over_10us: 3,
        }),
        delivery: Some(Delivery {
            sent: 2,
            answered: 1,
            lost: 1,
            late: 0,
            duplicates: 0,
            invalid: 0,
        }),
    }
}

#[test]
fn a_simulated_run_has_the_contracts_fields_and_no_others() {
    let written = serde_json::to_value(run(RunExtras::default())).unwrap();
    let figures = |value: f64| json!({"mean": value, "p50": value, "p90": value, "p99": value, "p999": value, "max": value});
    let none =
        json!({"mean": null, "p50": null, "p90": null, "p99": null, "p999": null, "max": null});
    let expected = json!({
        "policy": "darc", "params": {"delta": 2}, "level": "server", "workload": "extreme-bimodal",
        "workers": 16, "seed": u64::MAX, "requests": 2,
        "offered_rps": 5.1e6, "achieved_rps": 5.09e6, "load": 0.955, "utilization": 0.953,
        "dropped": 1, "preemptions": 0, "overloaded": false,
        "overall": {"latency_us": figures(2.5), "slowdown": figures(2.5)},
        "classes": [
            {"name": "short", "count": 1, "dropped": 1, "service_us": 1.0,
             "latency_us": figures(2.5), "slowdown": figures(2.5)},
            {"name": "long", "count": 0, "dropped": 0, "service_us": 500.0,
             "latency_us": none.clone(), "slowdown": none},
        ],
    });
    assert_eq!(written, expected);
}

#[test]
fn every_form_of_a_run_keeps_to_the_schema() {
    for extras in [RunExtras::default(), full()] {
        let written = serde_json::to_value(run(extras)).unwrap();
        assert_eq!(breaches("run", &written), Vec::<String>::new());
    }
}

#[test]
fn reports_keep_to_their_schemas() {
    let noise = Noise {
        lost_fraction: 0.0,
        gaps_over_10us: 0,
    };
    let bench = BenchReport {
        runs: vec![run(full())],
        noise,
        cut_off: true,
    };
    let capacity = |run: Option<Box<Run>>| Capacity {
        policy: "darc".into(),
        spec: "darc,delta=2".into(),
        params: meta().params,
        cores: 15,
        serving_cores: 14,
        load: 0.9,
        rps: 5e6,
        other_seeds: run.as_ref().map(|_| LoadRange::of(&[0.8, 0.7])),
        run,
    };
    let results = vec![capacity(None), capacity(Some(Box::new(run(full()))))];
    let capacity = CapacityReport {
        slo: "class.*.slowdown.p999<=10".into(),
        results,
        cut_off: true,
    };
    assert_eq!(
        breaches("bench", &serde_json::to_value(bench).unwrap()),
        Vec::<String>::new()
    );
    assert_eq!(
        breaches("capacity", &serde_json::to_value(capacity).unwrap()),
        Vec::<String>::new()
    );
}

#[test]
fn a_plan_keeps_to_its_schema() {
    let of_best = ConfidenceInterval {
        estimate: 1.3,
        lo: 1.2,
        hi: 1.4,
        confidence: 0.95,
    };
    let trial = |slo_use| TrialResult {
        policy: "darc".into(),
        load: 0.96,
        met: 0,
        replications: 5,
        overloaded: false,
        lost_fraction: 0.0,
        slo_use,
    };
    let measured = || {
        let mut run = run(RunExtras::default());
        // A class without requests holds NaNs, which equal nothing.
        run.classes.truncate(1);
        Validation {
            policy: "darc".into(),
            met: true,
            simulated: run.clone(),
            live: run,
        }
    };
    let entry = |full: bool| PlanEntry {
        policy: "darc,delta=2".into(),
        params: meta().params,
        layout: "dedicated".into(),
        resume: "anywhere".into(),
        workers: 14,
        cores: 15,
        live: true,
        lost_fraction: 0.002,
        met: 5,
        replications: 5,
        overloaded: !full,
        slo_use: full.then_some(of_best),
        tightest: full.then(|| "overall.slowdown.p99<=10".into()),
        of_best: full.then_some(of_best),
        replay: full.then(|| trial(Some(0.5))),
        alike: if full {
            vec!["darc,delta=3".into()]
        } else {
            vec![]
        },
        tied: false,
    };
    let cores = |workers| CoresNeeded {
        policy: "darc".into(),
        layout: "dedicated".into(),
        workers,
        cores: workers.map(|workers| workers + 1),
        searched_to: 256,
        load: workers.map(|_| 0.9),
    };
    let plan = |full: bool| PlanReport {
        slo: "overall.slowdown.p99<=10".into(),
        workload: "tpcc".into(),
        ideal: !full,
        machine_cores: full.then_some(15),
        workers: 14,
        load: 0.8,
        offered_rps: 1e5,
        seed: 1,
        verdict: if full {
            PlanVerdict::Met
        } else {
            PlanVerdict::Impossible
        },
        impossible: vec![Impossible {
            bound: "every bound".into(),
            shown_by: ShownBy::Utilization,
            why: "utilization".into(),
        }],
        rounds: vec![PlanRound {
            candidates: 9,
            requests: 400_000,
            replications: 5,
        }],
        ranking: vec![entry(full)],
        comparison: PlanComparison {
            method: CompareMethod::Bonferroni,
            confidence: 0.95,
            pairs: 1,
        },
        live: full.then(|| "darc".into()),
        cores: vec![cores(Some(13)), cores(None)],
        sensitivity: vec![Sensitivity {
            change: "load +20 %".into(),
            trial: trial(Some(1.5)),
        }],
        replay: full.then(|| trial(None)),
        validation: full.then(measured),
        doubt: full.then(|| "the clock is too coarse".into()),
        caveats: vec!["ideal".into()],
        cut_off: true,
    };
    for full in [true, false] {
        let written = serde_json::to_value(plan(full)).unwrap();
        assert_eq!(breaches("plan", &written), Vec::<String>::new());
        let read: PlanReport = serde_json::from_value(written).unwrap();
        assert_eq!(read, plan(full));
    }
    let mut bad = serde_json::to_value(plan(true)).unwrap();
    bad["verdict"] = json!("perhaps");
    assert!(!breaches("plan", &bad).is_empty());
}

#[test]
fn the_schema_refuses_what_the_contract_does_not_allow() {
    let good = serde_json::to_value(run(full())).unwrap();
    let mutate = |pointer: &str, value: Value| {
        let mut bad = good.clone();
        *bad.pointer_mut(pointer).unwrap() = value;
        bad
    };
    let without = |key: &str| {
        let mut bad = good.clone();
        bad.as_object_mut().unwrap().remove(key).unwrap();
        bad
    };
    let with = |key: &str| {
        let mut bad = good.clone();
        bad[key] = json!(1);
        bad
    };
    for bad in [
        mutate("/level", json!("cloud")),
        mutate("/workers", json!(0)),
        mutate("/load", json!("0.9")),
        mutate("/classes/0/latency_us/p999", json!(-1)),
        mutate("/noise/lost_fraction", json!(1.5)),
        mutate("/seed", json!(1.5)),
        without("overloaded"),
        without("lost"),
        with("latency"),
    ] {
        assert!(!breaches("run", &bad).is_empty(), "{bad}");
    }
}

#[test]
fn a_saved_run_reads_back_as_written() {
    for extras in [RunExtras::default(), full()] {
        let text = serde_json::to_string(&run(extras)).unwrap();
        let read: Run = serde_json::from_str(&text).unwrap();
        // Compared as text: a class without requests holds NaNs, which equal nothing.
        assert_eq!(serde_json::to_string(&read).unwrap(), text);
        assert!(read.class("long").unwrap().latency_us.p999.is_nan());
    }
}

#[test]
fn a_run_that_loses_more_than_one_in_a_thousand_is_not_sustained() {
    let mut run = run(RunExtras::default());
    (run.classes[0].count, run.meta.dropped) = (999, 1);
    assert!(run.sustained());
    run.meta.dropped = 2;
    assert!(!run.sustained());
    run.meta.dropped = 0;
    run.extras.delivery = Some(Delivery {
        sent: 1000,
        answered: 998,
        lost: 2,
        ..Delivery::default()
    });
    assert!(!run.sustained());
    run.extras.delivery = None;
    run.meta.overloaded = true;
    assert!(!run.sustained());
}
