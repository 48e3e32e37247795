//! A pool's status as text.

use super::rows::{counted, quantiles, time_us};
use headway_ops::status::{PoolClassStatus, PoolStatus};
use headway_report::table::Table;

/// A paragraph about the pool, and tables of its classes: what became of their jobs, and how they ran.
pub(super) fn text(pool: &PoolStatus) -> String {
    let mut text = format!(
        "pool {}, process {}, up for {:.1}s\npolicy {}, {}; {} of {} threads beside the workers",
        pool.name, pool.pid, pool.uptime_s, pool.spec, pool.layout, pool.blocked, pool.threads,
    );
    text += &format!(
        "; {} workers; {} interruptions, {} rescued",
        pool.workers, pool.interruptions, pool.rescued
    );
    text + &format!("\n\n{}\n\n{}", ends(&pool.classes), runs(&pool.classes))
}

fn ends(classes: &[PoolClassStatus]) -> Table {
    let mut table = Table::new([
        "class",
        "submitted",
        "done",
        "panicked",
        "cancelled",
        "shed: room",
        "shed: late",
        "refused",
        "queued",
        "running",
        "asleep",
    ]);
    for class in classes {
        let counts = [
            class.submitted,
            class.done,
            class.panicked,
            class.cancelled,
            class.shed_for_room,
            class.shed_too_late,
            class.refused,
            class.queued as u64,
            class.running as u64,
            class.asleep as u64,
        ];
        table.push(counted(&class.class, &counts));
    }
    table
}

fn runs(classes: &[PoolClassStatus]) -> Table {
    let mut table = Table::new([
        "class",
        "wait p50",
        "p99",
        "p99.9",
        "service p50",
        "p99",
        "p99.9",
        "slices",
        "asked",
        "preempted",
        "stalls",
        "longest gap",
    ]);
    for class in classes {
        let mut cells = vec![class.class.clone()];
        cells.extend(
            [&class.wait, &class.service]
                .into_iter()
                .flat_map(quantiles),
        );
        let counts = [class.slices, class.asked, class.preempted, class.stalls];
        cells.extend(counts.iter().map(u64::to_string));
        cells.push(match class.stalls {
            0 => "–".into(),
            _ => time_us(class.longest_gap_us),
        });
        table.push(cells);
    }
    table
}
