//! The workloads of the literature, by name.

use crate::service::ServiceDistribution;
use crate::workload::{Class, Workload};

/// A class of constant service time: name, nanoseconds, percent of the requests.
type Row = (&'static str, u64, f64);

impl Workload {
    /// The workload of the literature called `name`, one of [`NAMES`](crate::NAMES), or none.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        let classes = match name {
            "exponential-1us" => vec![single(ServiceDistribution::Exponential { mean_ns: 1_000 })],
            "exponential-10us" => {
                vec![single(ServiceDistribution::Exponential { mean_ns: 10_000 })]
            }
            _ => constant_rows(name)?.iter().map(constant).collect(),
        };
        Some(Self::new(name, classes))
    }
}

/// The mixes that the papers evaluate with, as they print them: measured means taken as constants.
fn constant_rows(name: &str) -> Option<&'static [Row]> {
    Some(match name {
        "high-bimodal" => &[("short", 1_000, 50.0), ("long", 100_000, 50.0)],
        "extreme-bimodal" => &[("short", 500, 99.5), ("long", 500_000, 0.5)],
        "tpcc" => &[
            ("Payment", 5_700, 44.0),
            ("OrderStatus", 6_000, 4.0),
            ("NewOrder", 20_000, 44.0),
            ("Delivery", 88_000, 4.0),
            ("StockLevel", 100_000, 4.0),
        ],
        "rocksdb" => &[("GET", 1_500, 50.0), ("SCAN", 635_000, 50.0)],
        "zippydb" => &[
            ("short1", 500, 78.0),
            ("short2", 2_500, 19.0),
            ("long", 500_000, 3.0),
        ],
        "leveldb" => &[("GET", 600, 50.0), ("SCAN", 500_000, 50.0)],
        "leveldb-synergy" => &[("GET", 920, 50.0), ("SCAN", 94_000, 50.0)],
        "leveldb-zippydb" => &[
            ("GET", 600, 78.0),
            ("PUT", 2_300, 13.0),
            ("DELETE", 2_300, 6.0),
            ("SCAN", 500_000, 3.0),
        ],
        "fixed-1us" => &[("request", 1_000, 100.0)],
        "shenango-bimodal" => &[("short", 5_000, 90.0), ("long", 55_000, 10.0)],
        "pallas-normal" => &[("short", 10_000, 90.0), ("long", 100_000, 10.0)],
        "pallas-port" => &[("short", 10_000, 50.0), ("long", 100_000, 50.0)],
        "pallas-trimodal" => &[
            ("short", 5_000, 100.0 / 3.0),
            ("medium", 50_000, 100.0 / 3.0),
            ("long", 500_000, 100.0 / 3.0),
        ],
        "pallas-tpcc" => &[
            ("Payment", 5_000, 43.0),
            ("OrderStatus", 6_000, 4.0),
            ("NewOrder", 16_000, 45.0),
            ("Delivery", 62_000, 4.0),
            ("StockLevel", 74_000, 4.0),
        ],
        "pallas-rocksdb-normal" => &[("GET", 12_000, 90.0), ("SCAN", 650_000, 10.0)],
        "pallas-rocksdb-port" => &[("GET", 12_000, 50.0), ("SCAN", 650_000, 50.0)],
        _ => return None,
    })
}

fn constant(&(name, mean_ns, percent): &Row) -> Class {
    Class::new(
        name,
        percent / 100.0,
        ServiceDistribution::Constant { mean_ns },
    )
}

fn single(service: ServiceDistribution) -> Class {
    Class::new("request", 1.0, service)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::NAMES;

    #[test]
    fn every_name_is_a_sound_workload() {
        for name in NAMES {
            let workload = Workload::named(name).expect(name);
            assert_eq!(workload.name, name);
            workload.check().expect(name);
        }
        assert_eq!(Workload::named("nonesuch"), None);
    }

    /// Means computed by hand from the papers' tables, in µs.
    #[test]
    fn means_are_those_of_the_papers() {
        let means_us = [
            50.5, 2.9975, 19.068, 318.25, 15.865, 250.3, 47.46, 15.905, 1.0, 1.0, 10.0, 10.0, 19.0,
            55.0, 185.0, 15.03, 75.8, 331.0,
        ];
        for (name, mean_us) in NAMES.into_iter().zip(means_us) {
            let mean_ns = Workload::named(name).expect(name).mean_service_ns();
            assert!(
                (mean_ns / (mean_us * 1e3) - 1.0).abs() < 1e-12,
                "{name}: {mean_ns}"
            );
        }
    }
}
