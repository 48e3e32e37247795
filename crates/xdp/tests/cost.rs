//! The runs that `cargo bench -p headway-xdp --bench cost` times: in every mode, each request of a run is counted and sent on, and none is shed.

mod common;

use common::{cost, objects, stay_on_cpu};

#[test]
fn every_mode_sends_every_request_of_a_run() {
    let Some(objects) = objects("requests of a run") else {
        return;
    };
    stay_on_cpu(0);
    assert_eq!(cost::costs(&objects, 1).len(), 8);
}
