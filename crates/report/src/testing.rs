//! A small run that the unit tests share.

use serde_json::json;

use crate::{ClassMeta, Recorder, Run, RunExtras, RunLevel, RunMeta};

/// Two short requests with slowdowns 1 and 2, one long with 4; the policy is darc.
pub(crate) fn run() -> Run {
    let mut recorder = Recorder::new(&[
        ClassMeta::new("short", 500.0),
        ClassMeta::new("long", 500_000.0),
    ]);
    recorder.record(0, 500, 500);
    recorder.record(0, 1_000, 500);
    recorder.record(1, 2_000_000, 500_000);
    Run::new(meta(), &recorder, RunExtras::default())
}

fn meta() -> RunMeta {
    let params = json!({"delta": 2}).as_object().cloned().unwrap_or_default();
    RunMeta {
        policy: "darc".into(),
        params,
        level: RunLevel::Server,
        workload: "extreme-bimodal".into(),
        workers: 16,
        seed: 1,
        requests: 3,
        offered_rps: 5.1e6,
        achieved_rps: 5.09e6,
        load: 0.955,
        utilization: 0.953,
        dropped: 0,
        preemptions: 0,
        overloaded: false,
    }
}
