//! The cells of a status's tables, of servers and of pools alike.

use headway_ops::status::TimesStatus;
use headway_workload::duration;

/// A row of counts behind a name.
pub(super) fn counted(name: &str, counts: &[u64]) -> Vec<String> {
    let counts = counts.iter().map(u64::to_string);
    [name.to_owned()].into_iter().chain(counts).collect()
}

/// p50, p99 and p99.9; dashes where nothing was measured.
pub(super) fn quantiles(times: &TimesStatus) -> [String; 3] {
    [times.p50_us, times.p99_us, times.p999_us].map(|us| us.map_or("–".into(), time_us))
}

pub(super) fn time_us(us: f64) -> String {
    duration::format((us * 1e3) as u64)
}
