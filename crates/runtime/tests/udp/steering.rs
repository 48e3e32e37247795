//! Which worker a request reaches, where the kernel steers requests to them.

use headway_net::udp::{HeaderByte, Steering};
use headway_runtime::{Call, Server, StartError};

use super::builder;
use super::common::{Client, FOREVER, loopback};

fn tell_worker(call: &mut Call<'_>) {
    let worker = call.worker().0 as u8;
    call.reply(&[worker]);
}

fn steered(policy: &str, steering: Steering) -> Result<Server, StartError> {
    let builder = builder().policy(policy).workers(3).service(tell_worker);
    builder.listen_udp(loopback()).steer(steering).start()
}

/// The worker that answers a request of a flow of its own.
fn worker_of(server: &Server, class: u8, index: u32) -> u8 {
    let (_, answer) = Client::of(server).call(class, index, b"");
    answer[0]
}

#[test]
fn a_client_chooses_the_worker_by_a_byte_of_the_header() {
    let server = steered("d-fcfs", Steering::Byte(HeaderByte::CLASS)).unwrap();
    for (class, worker) in [(0, 0), (1, 1), (2, 2), (3, 0), (254, 2)] {
        for index in 0..4 {
            assert_eq!(worker_of(&server, class, index), worker, "class {class}");
        }
    }
    server.shutdown(FOREVER).unwrap();
    // The last byte of the index, which is big-endian.
    let byte = HeaderByte::new(5).unwrap();
    let server = steered("d-fcfs", Steering::Byte(byte)).unwrap();
    for index in [0, 1, 2, 3, 256, 257, 511] {
        assert_eq!(u32::from(worker_of(&server, 0, index)), index % 256 % 3);
    }
    server.shutdown(FOREVER).unwrap();
}

#[test]
fn a_flow_stays_on_its_worker_and_random_requests_do_not() {
    let server = steered("d-fcfs", Steering::Flow).unwrap();
    let mut client = Client::of(&server);
    let mut workers = |count| -> Vec<u8> {
        (0..count)
            .map(|index| client.call(0, index, b"").1[0])
            .collect()
    };
    let workers = workers(50);
    assert!(
        workers.iter().all(|worker| *worker == workers[0]),
        "{workers:?}"
    );
    server.shutdown(FOREVER).unwrap();
    let server = steered("d-fcfs", Steering::Random).unwrap();
    let mut client = Client::of(&server);
    let mut seen = [false; 3];
    // One of three workers stays without a request once in 10¹⁷ runs.
    for index in 0..100 {
        seen[usize::from(client.call(0, index, b"").1[0])] = true;
    }
    assert_eq!(seen, [true; 3]);
    server.shutdown(FOREVER).unwrap();
}

#[test]
fn steering_needs_workers_with_queues_of_their_own() {
    for policy in ["c-fcfs", "darc"] {
        let error = steered(policy, Steering::Flow).map(drop).unwrap_err();
        assert!(matches!(error, StartError::OneQueue { policy: named } if named == policy));
        assert!(error.to_string().contains("choose d-fcfs"), "{error}");
    }
    for policy in ["d-fcfs", "work-stealing"] {
        let server = steered(policy, Steering::Random).unwrap();
        server.shutdown(FOREVER).unwrap();
    }
}
