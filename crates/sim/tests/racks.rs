//! Several racks behind a core switch: nothing is lost, and each level gives cores their due.

use headway_sim::{Experiment, SimError};
use headway_workload::Workload;

const RACKS: usize = 4;
const SERVERS: usize = 4;
const WORKERS: usize = 8;

fn racks(policy: &str) -> Experiment {
    let workload = Workload::named("pallas-tpcc").unwrap();
    Experiment::new(workload, policy.parse().unwrap())
        .servers(RACKS * SERVERS)
        .racks(RACKS)
        .workers(WORKERS)
        .requests(50_000)
        .load(0.6)
}

#[test]
fn every_policy_answers_each_request_once() {
    for policy in headway_policy::rack::systems::NAMES {
        let policy = format!("{policy},rtt=4us,inner=work-stealing");
        let run = racks(&policy).run().unwrap().run;
        let measured: u64 = run.classes.iter().map(|class| class.count).sum();
        assert_eq!(measured, 45_000, "{policy}");
        let rack = run.extras.rack.unwrap();
        assert_eq!(rack.duplicates, 0, "{policy}");
        let by_server = rack.servers.iter().map(|server| server.requests);
        assert_eq!(by_server.sum::<u64>(), 45_000, "{policy}");
        assert_eq!((run.extras.racks, run.extras.servers), (Some(4), Some(16)));
    }
}

/// A rack is a large server to the core switch: groups take whole racks while they need that much.
#[test]
fn pallas_gives_groups_whole_racks_first() {
    let run = racks("pallas").load(0.85).run().unwrap().run;
    let groups = run.extras.reservation.unwrap();
    assert!(groups.len() > 1, "TPC-C is worth groups");
    let mut in_all = 0;
    for group in &groups {
        let cores = group.reserved.iter();
        let mut racks: Vec<_> = cores.map(|core| core / (SERVERS * WORKERS)).collect();
        racks.dedup();
        in_all += racks.len();
    }
    assert!(in_all < RACKS + groups.len(), "{in_all} parts of groups");
    let cores: usize = groups.iter().map(|group| group.reserved.len()).sum();
    assert_eq!(cores, RACKS * SERVERS * WORKERS);
}

#[test]
fn servers_stand_in_equal_racks() {
    let error = racks("pallas").racks(3).run().unwrap_err();
    assert!(matches!(error, SimError::OutOfRange { .. }));
    assert_eq!(
        error.to_string(),
        "the number of racks must be a divisor of the number of servers, 16, not 3"
    );
}
