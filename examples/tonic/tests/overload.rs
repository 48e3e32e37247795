//! The example before a client of tonic's own.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use headway_tonic_example::Query;
use headway_tonic_example::store_client::StoreClient;
use tonic::Code;
use tonic::transport::Channel;

/// The example, which ends with the test.
struct Example {
    child: Child,
    url: String,
}

impl Example {
    fn start() -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_headway-tonic-example"))
            .arg("127.0.0.1:0")
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let printed = child.stdout.take().unwrap();
        BufReader::new(printed).read_line(&mut line).unwrap();
        let url = line
            .trim()
            .strip_prefix("listening on ")
            .unwrap()
            .to_owned();
        Self { child, url }
    }
}

impl Drop for Example {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs on a machine that others keep busy.
const ATTEMPTS: usize = 5;

/// Eight reports may wait, and one may run; those that come meanwhile are refused, points are not. A report whose message comes after its head has begun by then, and
/// waits for the message and not in the queue: on a busy machine all may.
#[tokio::test]
async fn reports_too_many_are_resource_exhausted_and_points_answered() {
    for _ in 0..ATTEMPTS {
        let (answered, refused) = thirty_reports().await;
        assert!(answered >= 8, "{answered} answered, {refused} refused");
        if refused > 0 {
            return;
        }
    }
    panic!("none was refused in {ATTEMPTS} attempts");
}

/// How many of thirty reports at once are answered, and how many refused.
async fn thirty_reports() -> (usize, usize) {
    let example = Example::start();
    let client: StoreClient<Channel> = StoreClient::connect(example.url.clone()).await.unwrap();
    let long = Query { micros: 300_000 };
    let reports: Vec<_> = (0..30)
        .map(|_| {
            let mut client = client.clone();
            tokio::spawn(async move { client.report(long).await })
        })
        .collect();
    let mut points = client.clone();
    for _ in 0..20 {
        let row = points.point(Query { micros: 20 }).await.unwrap();
        assert!(row.into_inner().steps > 0);
    }
    let (mut answered, mut refused) = (0, 0);
    for report in reports {
        match report.await.unwrap() {
            Ok(row) => {
                assert!(row.into_inner().steps > 0);
                answered += 1;
            }
            Err(status) => {
                assert_eq!(status.code(), Code::ResourceExhausted, "{status}");
                assert!(
                    status.message().contains("class 'report' is overloaded"),
                    "{status}"
                );
                assert!(status.metadata().contains_key("retry-after"), "{status:?}");
                refused += 1;
            }
        }
    }
    (answered, refused)
}
