//! What is played, and what is known of it before the first live round.

use crate::commands::demo::entrant::{Entrant, Offer};
use crate::commands::demo::lane::Lane;
use crate::commands::demo::rate::MARGIN;
use crate::commands::demo::stage::{KEYS, Stage, VALUE_BYTES};
use crate::commands::demo::theory::{self, Theory};
use headway_report::{Run, Table, format};

/// What is played, and what is known of it before the first live round.
pub(crate) struct Setup {
    pub(crate) stage: Stage,
    pub(crate) entrants: Vec<Entrant>,
    pub(crate) offer: Offer,
    pub(crate) load: f64,
    /// Whether the user chose the load.
    pub(crate) load_given: bool,
    /// Completions after which DARC reserves for the first time.
    pub(crate) window: u64,
    pub(crate) theory: Theory,
}

impl Setup {
    /// A lane for every policy, before the first round.
    pub(crate) fn lanes(&self) -> Vec<Lane> {
        let runs = self.entrants.iter().zip(&self.theory.live);
        runs.map(|(entrant, run): (&Entrant, &Run)| Lane::new(&entrant.name, &run.extras.starved))
            .collect()
    }

    /// The service and the offered load.
    pub(crate) fn lines(&self) -> Vec<String> {
        let stage = &self.stage;
        let classes: Vec<String> = stage
            .workload
            .union()
            .map(|class| {
                let time = format::duration_us(class.mean_ns() / 1e3);
                format!("{} {} ({time})", percent(class.share), class.name)
            })
            .collect();
        vec![
            format!(
                "A key-value service on UDP loopback: {KEYS} keys of {VALUE_BYTES} bytes in an embedded ordered \
                 store, {} workers.",
                stage.workers
            ),
            format!(
                "Offered, open loop: {}; a SCAN reads {} entries. Times are those of the handlers in the server.",
                classes.join(" and "),
                stage.scan_entries
            ),
            self.why_this_load(),
        ]
    }

    fn why_this_load(&self) -> String {
        let rate_rps = self
            .stage
            .workload
            .rate_for_load(self.load, self.stage.workers);
        let rate = format!("{} requests/s", format::metric(rate_rps));
        let load = percent(self.load);
        if self.load_given {
            return format!("Load {load} of the workers, {rate}, as asked for.");
        }
        format!(
            "Load {load} of the workers, {rate}: the highest at which, by simulation with {} to spare, none of \
             these policies starves a class.",
            percent(MARGIN - 1.0)
        )
    }

    /// The simulated p99 latencies by policy, with the live number of workers and with more.
    pub(crate) fn simulated(&self) -> Table {
        let busy = self.theory.busy();
        let workers = self.stage.workers;
        let mut columns = vec!["policy".to_owned()];
        let mut sides = vec![(
            workers,
            self.load,
            self.theory.live.iter().collect::<Vec<_>>(),
        )];
        if let Some(runs) = busy {
            sides.push((theory::WORKERS, runs[0].meta.load, runs));
        }
        for (workers, load, _) in &sides {
            let names = self.stage.workload.class_names();
            columns.extend(
                names
                    .iter()
                    .map(|name: &&str| format!("{name}: {workers} workers, {}", percent(*load))),
            );
        }
        let mut table = Table::new(columns);
        for (index, entrant) in self.entrants.iter().enumerate() {
            let mut row = vec![entrant.name.clone()];
            for (_, _, runs) in &sides {
                row.extend(p99s(runs[index]));
            }
            table.push(row);
        }
        table
    }
}

/// The p99 of each class; `starved` for a class that starves.
fn p99s(run: &Run) -> impl Iterator<Item = String> {
    run.classes.iter().map(|class| {
        if run.extras.starved.contains(&class.name) {
            "starved".to_owned()
        } else {
            format::duration_us(class.latency_us.p99)
        }
    })
}

/// Formats a fraction as whole percent.
pub(crate) fn percent(fraction: f64) -> String {
    format!("{:.0} %", 100.0 * fraction)
}
