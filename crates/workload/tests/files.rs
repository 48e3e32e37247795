//! Workload files: what is written reads back equal, and nothing that is read can panic.

use std::fs;
use std::sync::Arc;

use headway_workload::{
    Arrivals, Class, Empirical, Generator, NAMES, Offered, Phase, ServiceDistribution, Workload,
};
use proptest::prelude::*;

const EXAMPLE: &str = r#"
name = "extreme-bimodal"
arrivals = { process = "poisson" }   # deterministic | gamma {cv} | trace {file}
[[class]]
name = "short"
share = 0.995
service = { dist = "constant", mean = "0.5us" }
[[class]]
name = "long"
share = 0.005
service = { dist = "constant", mean = "500us" }
"#;

#[test]
fn the_example_is_the_named_workload() {
    let read = Workload::from_toml_str(EXAMPLE, "w.toml").unwrap();
    assert_eq!(Some(read), Workload::named("extreme-bimodal"));
}

#[test]
fn named_workloads_round_trip() {
    for name in NAMES {
        let workload = Workload::named(name).unwrap();
        let written = workload.to_toml();
        assert_eq!(
            Workload::from_toml_str(&written, "w.toml").unwrap(),
            workload,
            "{written}"
        );
    }
}

#[test]
fn defaults_and_inheritance() {
    let text = r#"
        [[class]]
        name = "a"
        share = 0.75
        service = { dist = "exponential", mean = "1us" }
        long = true
        slo = "latency.p99<=5us"
        [[class]]
        name = "b"
        share = 0.25
        service = { dist = "uniform", min = "1us", max = "3us" }

        [[phase]]
        duration = "20ms"
        [[phase.class]]
        name = "a"
        share = 1
        [[phase]]
        duration = "10ms"
    "#;
    let workload = Workload::from_toml_str(text, "folder/mine.toml").unwrap();
    assert_eq!(
        (workload.name.as_str(), &workload.arrivals),
        ("mine", &Arrivals::Poisson)
    );
    let alone = Class {
        share: 1.0,
        ..workload.classes[0].clone()
    };
    assert_eq!(
        workload.phases[0],
        Phase {
            duration_ns: 20_000_000,
            classes: vec![alone]
        }
    );
    assert_eq!(workload.phases[1].classes, workload.classes);
    assert_eq!(workload.mean_service_ns(), 1_000.0);
    assert_eq!(workload.phases[1].mean_service_ns(), 1_250.0);
    workload.check().unwrap();
}

#[test]
fn files_are_found_beside_the_workload() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    write("t.csv", "time,class,service\n1,SCAN,9\n2,GET,1\n3,GET,1\n");
    write("s.txt", "service,weight\n1us,3\n# rare\n2us,1\n");
    write(
        "t.toml",
        "arrivals = { process = \"trace\", file = \"t.csv\" }\n[[class]]\nname = \"GET\"\nlong = false\n",
    );
    write(
        "s.toml",
        "[[class]]\nname = \"a\"\nshare = 1\nservice = { dist = \"empirical\", file = \"s.txt\" }\n",
    );
    let resolve =
        |name: &str| Workload::resolve(folder.path().join(name).to_str().unwrap()).unwrap();

    let traced = resolve("t.toml");
    assert_eq!(traced.class_names(), ["GET", "SCAN"]);
    assert_eq!(traced.classes[0].long, Some(false));
    assert!(traced.to_toml().contains("file = \"t.csv\""));
    let replayed: Vec<_> = Generator::new(&traced, Offered::Rate(1.0), 1)
        .map(|a| a.class)
        .collect();
    assert_eq!(replayed, [1, 0, 0]);
    assert_eq!(resolve("t.csv").class_names(), ["SCAN", "GET"]);

    let sampled = resolve("s.toml");
    assert_eq!(sampled.mean_service_ns(), 1_250.0);
    for workload in [traced, sampled] {
        let path = folder.path().join("again.toml");
        fs::write(&path, workload.to_toml()).unwrap();
        assert_eq!(Workload::from_toml_file(&path).unwrap(), workload);
    }
}

fn service() -> impl Strategy<Value = ServiceDistribution> {
    let ns = 1_u64..1_000_000_000;
    prop_oneof![
        ns.clone()
            .prop_map(|mean_ns| ServiceDistribution::Constant { mean_ns }),
        ns.clone()
            .prop_map(|mean_ns| ServiceDistribution::Exponential { mean_ns }),
        (ns.clone(), 0.001..1000.0)
            .prop_map(|(mean_ns, cv)| ServiceDistribution::Lognormal { mean_ns, cv }),
        (ns.clone(), ns.clone()).prop_map(|(min_ns, width)| ServiceDistribution::Uniform {
            min_ns,
            max_ns: min_ns + width
        }),
        (ns.clone(), ns.clone(), 0.001..100.0).prop_map(|(min_ns, width, alpha)| {
            ServiceDistribution::Pareto {
                min_ns,
                max_ns: min_ns + width,
                alpha,
            }
        }),
        prop::collection::vec((ns, 1e-9..1e9), 1..5)
            .prop_map(|points| ServiceDistribution::Empirical(Arc::new(Empirical::new(points)))),
    ]
}

fn mix() -> impl Strategy<Value = Vec<Class>> {
    let class = (
        any::<String>(),
        1_u32..1000,
        service(),
        any::<Option<bool>>(),
        any::<Option<String>>(),
    );
    prop::collection::vec(class, 1..6).prop_map(|drawn| {
        let sum: u32 = drawn.iter().map(|(_, weight, ..)| weight).sum();
        let class =
            |(index, (name, weight, service, long, slo)): (usize, (String, u32, _, _, _))| {
                let share = f64::from(weight) / f64::from(sum);
                Class {
                    name: format!("{name}{index}"),
                    share,
                    service,
                    long,
                    slo,
                }
            };
        drawn.into_iter().enumerate().map(class).collect()
    })
}

fn workload() -> impl Strategy<Value = Workload> {
    let arrivals = prop_oneof![
        Just(Arrivals::Poisson),
        Just(Arrivals::Deterministic),
        (0.001..100.0).prop_map(|cv| Arrivals::Gamma { cv }),
    ];
    let phase = (1..u64::MAX, mix()).prop_map(|(duration_ns, classes)| Phase {
        duration_ns,
        classes,
    });
    (
        any::<String>(),
        arrivals,
        mix(),
        prop::collection::vec(phase, 0..3),
    )
        .prop_map(|(name, arrivals, classes, phases)| Workload {
            name,
            arrivals,
            classes,
            phases,
        })
}

/// Draws from whatever was read: reading must not let through what generating cannot bear.
fn exercise(text: &str) {
    if let Ok(workload) = Workload::from_toml_str(text, "w.toml") {
        workload.check().expect("what was read is sound");
        let offered = Offered::Rate(1e6);
        assert!(
            Generator::new(&workload, offered, 1)
                .take(20)
                .all(|a| a.service_ns > 0)
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        rng_seed: prop::test_runner::RngSeed::Fixed(2),
        ..ProptestConfig::default()
    })]

    /// Without top-level classes beside phases: a phase would inherit `long` and `slo` from a class
    /// that happens to have the same name.
    #[test]
    fn any_workload_round_trips(mut workload in workload()) {
        if !workload.phases.is_empty() {
            workload.classes.clear();
        }
        workload.check().expect("sound by construction");
        let written = workload.to_toml();
        prop_assert_eq!(Workload::from_toml_str(&written, "w.toml").unwrap(), workload);
    }

    #[test]
    fn any_text_is_read_or_refused(text in any::<String>()) {
        exercise(&text);
    }

    /// Valid files with a stretch replaced reach deeper than noise.
    #[test]
    fn any_mutation_is_read_or_refused(
        workload in workload(),
        at in any::<prop::sample::Index>(),
        removed in 0_usize..12,
        inserted in "[\\[\\]{}\"=,.a-z0-9\\n -]{0,6}",
    ) {
        let mut characters: Vec<char> = workload.to_toml().chars().collect();
        let start = at.index(characters.len());
        let end = (start + removed).min(characters.len());
        characters.splice(start..end, inserted.chars());
        exercise(&characters.into_iter().collect::<String>());
    }
}
