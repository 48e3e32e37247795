//! The sequence of arrivals: the same everywhere, phase by phase, and for ever.

use headway_workload::{
    Arrival, Arrivals, Class, Generator, Offered, Phase, ServiceDistribution, Trace, Workload,
};

fn constant(name: &str, share: f64, mean_ns: u64) -> Class {
    Class::new(name, share, ServiceDistribution::Constant { mean_ns })
}

fn first(workload: &Workload, offered: Offered, seed: u64) -> Vec<(u64, u16, u64, u32)> {
    Generator::new(workload, offered, seed)
        .take(8)
        .map(|a: Arrival| (a.at_ns, a.class, a.service_ns, a.flow))
        .collect()
}

#[test]
fn golden_named() {
    let offered = Offered::Load {
        load: 0.8,
        workers: 14,
    };
    let sequence = first(&Workload::named("tpcc").unwrap(), offered, 1);
    assert_eq!(sequence, GOLDEN_TPCC);
}

#[test]
fn golden_exponential() {
    let sequence = first(
        &Workload::named("exponential-10us").unwrap(),
        Offered::Rate(1e6),
        42,
    );
    assert_eq!(sequence, GOLDEN_EXPONENTIAL);
}

/// Gamma arrivals and the distributions that go through `libm`'s transcendental functions.
#[test]
fn golden_transcendental() {
    let classes = vec![
        Class::new(
            "lognormal",
            0.5,
            ServiceDistribution::Lognormal {
                mean_ns: 1_000_000,
                cv: 2.0,
            },
        ),
        Class::new(
            "pareto",
            0.5,
            ServiceDistribution::Pareto {
                min_ns: 1_000,
                max_ns: 1_000_000_000,
                alpha: 1.1,
            },
        ),
    ];
    let workload = Workload {
        arrivals: Arrivals::Gamma { cv: 5.0 },
        ..Workload::new("golden", classes)
    };
    assert_eq!(
        first(&workload, Offered::Rate(1e3), u64::MAX),
        GOLDEN_TRANSCENDENTAL
    );
}

#[test]
fn seeds_differ_and_repeat() {
    let workload = Workload::named("zippydb").unwrap();
    let offered = Offered::Rate(1e6);
    assert_eq!(first(&workload, offered, 7), first(&workload, offered, 7));
    assert_ne!(first(&workload, offered, 7), first(&workload, offered, 8));
}

/// Common random numbers: the arrival process and the service times leave all else as it was.
#[test]
fn streams_are_independent() {
    let base = Workload::named("extreme-bimodal").unwrap();
    let mut slower = base.clone();
    slower.classes[0].service = ServiceDistribution::Lognormal {
        mean_ns: 700,
        cv: 1.0,
    };
    slower.arrivals = Arrivals::Gamma { cv: 2.0 };
    let drawn = |workload: &Workload| -> Vec<_> {
        let arrivals = Generator::new(workload, Offered::Rate(1e6), 3).take(10_000);
        arrivals.map(|a| (a.class, a.flow)).collect()
    };
    assert_eq!(drawn(&base), drawn(&slower));
}

#[test]
fn deterministic_arrivals_do_not_drift() {
    let workload = Workload {
        arrivals: Arrivals::Deterministic,
        ..Workload::named("fixed-1us").unwrap()
    };
    // Three per second: a gap that no number of nanoseconds expresses.
    let last = Generator::new(&workload, Offered::Rate(3.0), 1)
        .nth(3_000_000 - 1)
        .unwrap();
    assert_eq!(last.at_ns, 1_000_000 * 1_000_000_000);
}

#[test]
fn load_offers_the_rate_it_says() {
    let workload = Workload::named("tpcc").unwrap();
    let offered = Offered::Load {
        load: 0.8,
        workers: 14,
    };
    let count = 400_000;
    let last = Generator::new(&workload, offered, 1)
        .nth(count - 1)
        .unwrap();
    let rate_rps = count as f64 * 1e9 / last.at_ns as f64;
    let expected = workload.rate_for_load(0.8, 14);
    // A Poisson count of n has the relative error 1/√n.
    assert!(
        (rate_rps / expected - 1.0).abs() < 5.0 / (count as f64).sqrt(),
        "{rate_rps}"
    );
}

fn swapping() -> Workload {
    let ms = 1_000_000;
    let phase = |duration_ns, classes| Phase {
        duration_ns,
        classes,
    };
    Workload {
        phases: vec![
            phase(10 * ms, vec![constant("a", 1.0, 1_000)]),
            phase(
                10 * ms,
                vec![constant("b", 0.5, 4_000), constant("a", 0.5, 10_000)],
            ),
            phase(1, vec![constant("c", 1.0, 2_000)]),
        ],
        ..Workload::new("swapping", Vec::new())
    }
}

#[test]
fn phases_change_the_mix_at_their_time() {
    let workload = swapping();
    assert_eq!(workload.class_names(), ["a", "b", "c"]);
    let arrivals = Generator::new(&workload, Offered::Rate(1e6), 1).take(60_000);
    let mut seen = [0; 4];
    for arrival in arrivals {
        // An arrival within half a nanosecond of a boundary may round over it.
        let (phase, known): (usize, &[(u16, u64)]) = match arrival.at_ns {
            0..=9_999_999 => (0, &[(0, 1_000)]),
            10_000_001..=19_999_999 => (1, &[(1, 4_000), (0, 10_000)]),
            20_000_001.. => (2, &[(2, 2_000)]),
            _ => continue,
        };
        assert!(
            known.contains(&(arrival.class, arrival.service_ns)),
            "{arrival:?}"
        );
        seen[phase] += 1;
    }
    // 10 000 arrivals are expected in each of the first two phases: within 5 standard deviations.
    assert!(
        seen[..2]
            .iter()
            .all(|count| (9_500..10_500).contains(count)),
        "{seen:?}"
    );
    assert!(seen[2] > 30_000, "the last phase goes on: {seen:?}");
}

#[test]
fn phases_keep_the_load_not_the_rate() {
    let workload = swapping();
    let offered = Offered::Load {
        load: 0.5,
        workers: 4,
    };
    let mut work_ns = [0_u64; 2];
    for arrival in Generator::new(&workload, offered, 2).take_while(|a| a.at_ns < 20_000_000) {
        work_ns[(arrival.at_ns / 10_000_000) as usize] += arrival.service_ns;
    }
    // Offered work is 0.5 · 4 · 10 ms. The second phase has about 2 857 arrivals with a squared
    // coefficient of variation of 0.18: five deviations of its sum are 10 %.
    assert!(
        work_ns
            .iter()
            .all(|ns| (18_000_000..22_000_000).contains(ns)),
        "{work_ns:?}"
    );
}

/// Deterministic gaps make the change of time scale at a boundary visible: 0.6 of a gap has
/// passed by the boundary, the other 0.4 passes at the next phase's rate.
#[test]
fn a_gap_across_a_boundary_changes_scale() {
    let phases = vec![
        Phase {
            duration_ns: 1_600,
            classes: vec![constant("a", 1.0, 1_000)],
        },
        Phase {
            duration_ns: 1,
            classes: vec![constant("a", 1.0, 5_000)],
        },
    ];
    let workload = Workload {
        arrivals: Arrivals::Deterministic,
        phases,
        ..Workload::new("scale", Vec::new())
    };
    let offered = Offered::Load {
        load: 1.0,
        workers: 1,
    };
    let times: Vec<u64> = Generator::new(&workload, offered, 1)
        .take(4)
        .map(|a| a.at_ns)
        .collect();
    assert_eq!(times, [1_000, 3_600, 8_600, 13_600]);
}

#[test]
fn time_ends_gracefully() {
    let workload = Workload::named("fixed-1us").unwrap();
    let arrivals = Generator::new(&workload, Offered::Rate(f64::MIN_POSITIVE), 1).take(3);
    assert!(arrivals.map(|a| a.at_ns).eq([u64::MAX; 3]));
    let endless = Phase {
        duration_ns: u64::MAX,
        classes: workload.classes.clone(),
    };
    let phases = vec![endless.clone(), endless];
    let workload = Workload { phases, ..workload };
    assert_eq!(
        Generator::new(&workload, Offered::Rate(1e-12), 1)
            .take(3)
            .count(),
        3
    );
}

#[test]
#[should_panic(expected = "the offered rate must be a finite number above 0, is 0")]
fn a_rate_of_zero_is_refused() {
    let _ = Generator::new(&Workload::named("tpcc").unwrap(), Offered::Rate(0.0), 1);
}

#[test]
fn traces_replay_exactly() {
    let text = "service,ignored,time,class\n1us,x,0,GET\n635us,y,2.5us,SCAN\n2,z,2.5,GET\n";
    let trace = Trace::from_csv_str(text, "t.csv").unwrap();
    assert_eq!(trace.rate_rps(), Some(2.0 * 1e9 / 2_500.0));
    let workload = trace.into_workload("db");
    workload.check().unwrap();
    assert_eq!(workload.class_names(), ["GET", "SCAN"]);
    assert_eq!(workload.classes[0].share, 2.0 / 3.0);
    assert_eq!(workload.classes[0].mean_ns(), 1_500.0);
    assert_eq!(workload.mean_service_ns(), 638_000.0 / 3.0);
    let generator = Generator::new(&workload, Offered::Rate(1.0), 1);
    let replayed: Vec<_> = generator
        .map(|a| (a.at_ns, a.class, a.service_ns))
        .collect();
    assert_eq!(
        replayed,
        [(0, 0, 1_000), (2_500, 1, 635_000), (2_500, 0, 2_000)]
    );

    let resampled = Workload {
        arrivals: Arrivals::Poisson,
        ..workload
    };
    let known = [(0, 1_000), (0, 2_000), (1, 635_000)];
    let mut arrivals = Generator::new(&resampled, Offered::Rate(1e6), 1).take(1_000);
    assert!(arrivals.all(|a| known.contains(&(a.class, a.service_ns))));
}

include!("golden/sequences.rs");
