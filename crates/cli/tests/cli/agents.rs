//! The agents of servers behind `headway rack`: a switch and its servers, each in a separate process.

use super::errors::refused;
use super::own_address;
use super::racking::{request, status, status_text};
use super::serving::{Serving, count, figure};
use headway_machine::thread::uninterrupted;
use headway_rack::agent::{AgentKey, AgentSession, ServerStatus};
use serde_json::Value;
use std::net::UdpSocket;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// A rack whose servers have agents.
struct AgentRack {
    servers: Vec<Serving>,
    rack: Serving,
    agents_at: String,
    key: PathBuf,
    _directory: TempDir,
}

pub(super) const KEY: &str = "0123456789abcdef0123456789abcdef\n";

pub(super) fn key_file(directory: &Path, name: &str, text: &str, mode: u32) -> PathBuf {
    let path = directory.join(name);
    std::fs::write(&path, text).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
    path
}

fn serve(agents_at: &str, key: &Path, more: &[&str]) -> Serving {
    let key = key.to_str().unwrap();
    let rack = ["--rack", agents_at, "--rack-key", key];
    let spin = ["--app", "spin", "--workers", "1", "--pin", "off"];
    Serving::start(&[&rack[..], &spin, more].concat())
}

impl AgentRack {
    /// Starts two servers, and a switch with `args`.
    fn start(args: &[&str]) -> Self {
        Self::start_named("", args)
    }

    /// The same, with this behind the address of each server.
    fn start_named(cores: &str, args: &[&str]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let key = key_file(directory.path(), "key", KEY, 0o600);
        let address = own_address();
        let agents_at = address.to_string();
        let servers: Vec<_> = (0..2).map(|_| serve(&agents_at, &key, &[])).collect();
        let listen = format!("{}:0", address.ip());
        let mut rack = vec!["rack", "--listen", &listen, "--agents", &agents_at];
        rack.extend(["--agent-key", key.to_str().unwrap()]);
        let named = servers
            .iter()
            .map(|server| format!("{}{cores}", server.addr()));
        let named: Vec<_> = named.collect();
        rack.extend(
            named
                .iter()
                .flat_map(|server| ["--server", server.as_str()]),
        );
        rack.extend(args);
        let rack = Serving::start_command(&rack);
        let started = Self {
            rack,
            servers,
            agents_at,
            key,
            _directory: directory,
        };
        started.wait("both agents join and have orders", |status| {
            (0..2).all(|server| status["servers"][server]["agent"]["order"].as_u64() > Some(0))
        });
        started
    }

    fn wait(&self, what: &str, condition: impl Fn(&Value) -> bool) -> Value {
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            let status = status(&self.rack);
            if condition(&status) {
                return status;
            }
            assert!(
                Instant::now() < deadline,
                "waited in vain until {what}: {status}"
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn load(&self, rate: &str, duration: &str) -> Value {
        self.rack.load(rate, duration)
    }

    fn client(&self) -> UdpSocket {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.connect(self.rack.addr()).unwrap();
        let patience = Some(Duration::from_secs(60));
        socket.set_read_timeout(patience).unwrap();
        socket
    }
}

/// Sends `requests` requests of a type at once, each of which spins for `spin_us`. Each must be served and answered exactly once.
fn all_served(client: &UdpSocket, class: u8, spin_us: u32, requests: u32) {
    let ask = |index| {
        let mut bytes = request(class, index);
        bytes[6..].copy_from_slice(&(spin_us * 1000).to_be_bytes());
        client.send(&bytes).unwrap();
    };
    (0..requests).for_each(ask);
    let mut buffer = [0; 64];
    let mut answered: Vec<u32> = (0..requests)
        .map(|_| {
            let length = uninterrupted(|| client.recv(&mut buffer)).expect("an answer in time");
            assert_eq!((length, buffer[1]), (10, 4), "served");
            u32::from_be_bytes(buffer[2..6].try_into().unwrap())
        })
        .collect();
    answered.sort_unstable();
    assert!(answered.into_iter().eq(0..requests));
}

/// The rack publishes its counts every millisecond: a client may have its answer before.
fn are_answered(status: &Value) -> bool {
    status["counts"]["answered"] == status["counts"]["requests"]
}

#[test]
fn a_new_duty_under_load_loses_nothing_and_hands_waiting_requests_back() {
    let racks = [
        "--policy",
        "pallas,delta=0.3,samples=0,clone=off,bounce=all,overflow=off",
        "--workload",
        "high-bimodal",
    ];
    let rack = AgentRack::start(&racks);
    let first = status(&rack.rack);
    let client = rack.client();
    // Each pass changes the mix twice, and requests pile up until the control plane reacts.
    for _ in 0..3 {
        all_served(&client, 0, 50, 200);
        all_served(&client, 1, 4000, 60);
    }
    let last = rack.wait("requests were handed back", |status| {
        status["counts"]["bounced"].as_u64() > Some(0)
    });
    assert!(
        last["layouts"].as_u64() > first["layouts"].as_u64(),
        "{last}"
    );
    let orders = |status: &Value| status["servers"][0]["agent"]["order"].as_u64();
    assert!(orders(&last) > orders(&first), "{last}");
    assert_eq!(last["counts"]["shed"], 0, "{last}");
    assert_eq!(last["counts"]["answered"], 780, "{last}");
    let mut handed_back = 0;
    for server in rack.servers {
        server.signal(libc::SIGTERM);
        let (code, said) = server.end();
        assert_eq!(code, Some(0), "{said}");
        assert!(said.contains("has this server"), "{said}");
        if said.contains("handed back") {
            handed_back += figure(&said, "handed back ");
        }
    }
    assert_eq!(handed_back, last["counts"]["bounced"].as_u64().unwrap());
}

#[test]
fn clones_that_cannot_start_at_once_are_dropped() {
    let rack = AgentRack::start(&["--policy", "netclone"]);
    all_served(&rack.client(), 0, 1000, 40);
    let told = rack.wait("clones are dropped", |status| {
        let dropped = |server: usize| status["servers"][server]["agent"]["clones_dropped"].as_u64();
        dropped(0).unwrap_or(0) + dropped(1).unwrap_or(0) > 0
    });
    let counts = &told["counts"];
    assert!(counts["copies_refused"].as_u64() > Some(0), "{counts}");
    assert_eq!(
        (&counts["answered"], &counts["shed"]),
        (&40.into(), &0.into())
    );
}

/// Sends requests to the spin service without waiting for answers.
fn pile_up(socket: &UdpSocket, requests: u32, spin_us: u32) {
    for index in 0..requests {
        let mut bytes = request(0, index);
        bytes[6..].copy_from_slice(&(spin_us * 1000).to_be_bytes());
        socket.send(&bytes).unwrap();
    }
}

/// Enough requests that the servers report their queues: 0.6 s of work for each of the two.
const LONGS: u32 = 300;

/// Sends long requests to both servers through the switch, and then many more to the first server past the switch. Only that server's
/// own responses report the latter. Returns the client of the former, once all of its requests are answered, and that of the latter.
fn fill_the_first(rack: &AgentRack, past_the_switch: u32) -> (UdpSocket, DirectClient) {
    let forwarded = |status: &Value| status["counts"]["requests"].as_u64().unwrap();
    let before = forwarded(&status(&rack.rack));
    let client = rack.client();
    pile_up(&client, LONGS, 4000);
    // Waits, so that none of these requests queues behind the following ones.
    rack.wait("all are at the servers", |status| {
        forwarded(status) == before + u64::from(LONGS)
    });
    let direct = UdpSocket::bind("127.0.0.1:0").unwrap();
    direct.connect(rack.servers[0].addr()).unwrap();
    pile_up(&direct, past_the_switch, 4000);
    direct.set_nonblocking(true).unwrap();
    let mut direct = DirectClient {
        socket: direct,
        answers: 0,
    };
    let mut indices: Vec<u32> = (0..LONGS)
        .map(|_| {
            let mut buffer = [0; 64];
            assert_eq!(
                uninterrupted(|| client.recv(&mut buffer)).expect("an answer in time"),
                10
            );
            direct.look();
            u32::from_be_bytes(buffer[2..6].try_into().unwrap())
        })
        .collect();
    indices.sort_unstable();
    assert!(indices.into_iter().eq(0..LONGS), "each once");
    (client, direct)
}

/// The client of the first server, past the switch. It looks often: a socket holds fewer answers than come.
struct DirectClient {
    socket: UdpSocket,
    answers: u32,
}

impl DirectClient {
    /// Counts the answers that have come.
    fn look(&mut self) {
        let next = || self.socket.recv(&mut [0; 64]).ok();
        self.answers += std::iter::from_fn(next).count() as u32;
    }
}

/// Stops a server and returns the number of requests that it served.
fn served(server: Serving) -> u64 {
    server.signal(libc::SIGTERM);
    let (code, said) = server.end();
    assert_eq!(code, Some(0), "{said}");
    figure(&said, "served ")
}

/// The requests that each server served, of which the second should have all of the last; `None` where the first had no work left before
/// the last of them came.
fn shares_by_queues(last: u32) -> Option<[u64; 2]> {
    const PAST_THE_SWITCH: u32 = 500;
    let rack = AgentRack::start(&["--policy", "racksched"]);
    let (client, mut direct) = fill_the_first(&rack, PAST_THE_SWITCH);
    // The switch awaits nothing of either server. One request at a time, so that only the last response of each server counts.
    for index in 0..last {
        client.send(&request(1, index)).unwrap();
        let mut buffer = [0; 64];
        assert_eq!(
            uninterrupted(|| client.recv(&mut buffer)).expect("an answer in time"),
            10
        );
        assert_eq!(buffer[2..6], index.to_be_bytes());
        direct.look();
    }
    let by_switch = u64::from(LONGS + last);
    rack.wait("every request is answered", |status| {
        status["counts"]["requests"] == by_switch && are_answered(status)
    });
    let [first, second] = <[Serving; 2]>::try_from(rack.servers).ok().unwrap();
    let (first, second) = (served(first), served(second));
    assert_eq!(first + second, by_switch + u64::from(PAST_THE_SWITCH));
    (direct.answers < PAST_THE_SWITCH).then_some([first, second])
}

#[test]
fn racksched_hears_of_queues_from_the_servers_themselves() {
    const LAST: u32 = 300;
    let shares = (0..10).find_map(|_| shares_by_queues(LAST));
    let [first, second] = shares.expect("in ten racks the first server was done too soon");
    // Each server had about half of the long requests, and the second one all of the last. On a busy machine some differ.
    let least = u64::from(LONGS / 2 + LAST * 2 / 3);
    assert!(second >= least, "{first} and {second}, not {least}");
}

#[test]
fn netclone_clones_nothing_to_a_server_that_says_it_is_busy() {
    // A server that left for want of a processor comes back as an idle one.
    let rack = AgentRack::start(&["--policy", "netclone", "--silence", "20s"]);
    let run = rack.load("1000", "1s");
    assert_eq!(count(&run, "lost"), 0, "{run}");
    let sent = count(&run, "sent");
    let idle = status(&rack.rack)["counts"]["cloned"].as_u64();
    assert!(idle > Some(0), "idle servers get clones");
    let (client, _direct) = fill_the_first(&rack, 300);
    let cloned = |status: &Value| status["counts"]["cloned"].as_u64().unwrap();
    let before = cloned(&status(&rack.rack));
    all_served(&client, 1, 20, 100);
    let by_switch = sent + u64::from(LONGS) + 100;
    let last = rack.wait("every request is answered", |status| {
        status["counts"]["answered"] == by_switch
    });
    assert_eq!(cloned(&last), before, "{last}");
    assert_eq!(last["counts"]["shed"], 0, "{last}");
}

#[test]
fn a_server_has_the_cores_that_its_agent_says() {
    let rack = AgentRack::start_named(",cores=3", &["--policy", "racksched"]);
    let last = rack.wait("agents report", |status| {
        let servers = status["servers"].as_array().unwrap();
        let says = |server: &Value| server["agent"]["workers"] == 1;
        servers.iter().all(says) && servers.iter().all(|one| one["counted_cores"] == 1)
    });
    for server in last["servers"].as_array().unwrap() {
        assert_eq!(server["cores"], 1, "{server}");
    }
    let shown = status_text(&rack.rack);
    assert!(shown.contains("answers"), "{shown}");
    assert!(!shown.contains("comes back"), "{shown}");
}

#[test]
fn a_server_that_stops_under_load_leaves_first_and_loses_nothing() {
    let mut rack = AgentRack::start(&["--policy", "round-robin"]);
    let stopping = rack.servers.pop().unwrap();
    let run = std::thread::scope(|scope| {
        let load = scope.spawn(|| rack.rack.load("2000", "2s"));
        rack.wait("there is load", |status| {
            status["counts"]["requests"].as_u64() > Some(1_000)
        });
        stopping.signal(libc::SIGTERM);
        let (code, said) = stopping.end();
        assert_eq!((code, figure(&said, "refused ")), (Some(0), 0), "{said}");
        load.join().unwrap()
    });
    assert_eq!(count(&run, "lost"), 0, "{run}");
    let last = rack.wait("every request is answered", are_answered);
    assert_eq!(last["servers"][1]["agent"]["draining"], true, "{last}");
    assert_eq!(last["servers"][1]["counted_cores"], 0, "{last}");
}

#[test]
fn wrong_keys_and_replayed_packets_are_refused_and_counted() {
    let rack = AgentRack::start(&["--policy", "racksched"]);
    // A server with another key serves, and reports that the rack does not accept it.
    let directory = tempfile::tempdir().unwrap();
    let wrong = key_file(
        directory.path(),
        "wrong",
        "another key of sixteen bytes",
        0o600,
    );
    let stranger = serve(&rack.agents_at, &wrong, &[]);
    rack.wait("the wrong key is counted", |status| {
        status["agents"]["wrong_key"].as_u64() > Some(100)
    });
    stranger.signal(libc::SIGTERM);
    let (_, said) = stranger.end();
    assert!(said.contains("has another key"), "{said}");
    // The test begins a session as the first server's agent, and replays a packet.
    let key = AgentKey::read(&rack.key).unwrap();
    let mut session = AgentSession::new(key, 4711, [127, 0, 0, 1].into());
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.connect(&rack.agents_at).unwrap();
    let patience = Some(Duration::from_millis(300));
    socket.set_read_timeout(patience).unwrap();
    let port = rack.servers[0].addr().rsplit(':').next().unwrap();
    let says = ServerStatus {
        port: port.parse().unwrap(),
        workers: 1,
        ..ServerStatus::default()
    };
    let mut buffer = [0; 2048];
    let mut recorded = Vec::new();
    // The server's own agent takes its session back at intervals.
    while !session.is_joined() {
        recorded = session.report(&says);
        socket.send(&recorded).unwrap();
        let length = uninterrupted(|| socket.recv(&mut buffer)).unwrap();
        session.answer(&buffer[..length]).unwrap();
    }
    let before = status(&rack.rack);
    for _ in 0..3 {
        socket.send(&recorded).unwrap();
        // Within the session, the replayed packet gets no answer. After the session, the answer has no effect.
        if let Ok(length) = uninterrupted(|| socket.recv(&mut buffer)) {
            assert_eq!(session.answer(&buffer[..length]), Ok(None));
        }
    }
    let known = |status: &Value| {
        let agents = &status["agents"];
        agents["replayed"].as_u64().unwrap() + agents["greeted"].as_u64().unwrap()
    };
    rack.wait("the repeated packets are counted", |status| {
        known(status) >= known(&before) + 3
    });
    all_served(&rack.client(), 0, 20, 100);
}

#[test]
fn what_cannot_be_an_agent_is_refused_with_what_to_do() {
    let directory = tempfile::tempdir().unwrap();
    let open = key_file(directory.path(), "open", KEY, 0o640);
    let short = key_file(directory.path(), "short", "short\n", 0o600);
    let good = key_file(directory.path(), "good", KEY, 0o600);
    let name = |path: &Path| path.to_str().unwrap().to_owned();
    let (open, short, good) = (name(&open), name(&short), name(&good));
    let rack = ["rack", "--server", "127.0.0.1:7001", "--agent-key"];
    let serve = ["serve", "--rack", "127.0.0.1:7101", "--rack-key"];
    for (command, flag) in [(&rack, "--agent-key"), (&serve, "--rack-key")] {
        let with = |key| [&command[..], &[key]].concat();
        refused(&with(&open), &[flag, "others may read", "chmod 600"]);
        refused(&with(&short), &[flag, "5 bytes", "openssl rand"]);
        refused(&with("/nowhere/key"), &[flag, "cannot read the key"]);
    }
    let with = |more: &[&'static str]| {
        let more = more.iter().map(|&arg| arg.to_owned());
        let all = serve.iter().map(|&arg| arg.to_owned());
        all.chain([good.clone()]).chain(more).collect::<Vec<_>>()
    };
    let refuse = |args: Vec<String>, parts: &[&str]| {
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        refused(&args, parts);
    };
    refuse(
        with(&["--policy", "d-fcfs"]),
        &["--policy", "no dispatcher", "c-fcfs"],
    );
    refuse(
        with(&["--app", "kv", "--classifier", "memcached"]),
        &["--classifier", "type byte"],
    );
    refused(&["serve", "--rack", "127.0.0.1:7101"], &["--rack-key"]);
    refused(
        &[
            "rack",
            "--server",
            "127.0.0.1:7001",
            "--agents",
            "127.0.0.1:0",
        ],
        &["--agents", "--agent-key"],
    );
    let elsewhere = ["--listen", "127.0.0.1:0", "--agents", "127.0.77.1:0"];
    refused(
        &[&rack[..], &[&good], &elsewhere].concat(),
        &["--agents", "127.0.0.1", "hand nothing back"],
    );
    let taken = UdpSocket::bind("127.0.0.1:0").unwrap();
    let at = taken.local_addr().unwrap().to_string();
    let listen = ["--listen", "127.0.0.1:0", "--no-ctl", "--agents", &at];
    refused(
        &[&rack[..], &[&good], &listen].concat(),
        &["--agents", "choose another port"],
    );
}

/// An order is stronger than the agent of a server that lives on.
#[test]
fn a_server_with_the_key_joins_where_agents_may_and_stays_away_once_it_was_removed() {
    for may in [true, false] {
        let joins: &[&str] = if may { &["--agents-join"] } else { &[] };
        let rack = AgentRack::start(joins);
        let third = serve(&rack.agents_at, &rack.key, &[]);
        let has_third = |status: &Value| status["servers"].to_string().contains(third.addr());
        if !may {
            let told = rack.wait("it is a stranger", |status| {
                status["agents"]["strangers"].as_u64() > Some(2)
            });
            assert!(!has_third(&told), "{told}");
            continue;
        }
        rack.wait("it serves, with an order", |status| {
            let server = &status["servers"][2];
            has_third(status) && server["agent"]["order"].as_u64() > Some(0)
        });
        all_served(&rack.client(), 0, 50, 100);
        let removed = super::racking_members::ordered(
            rack.rack.addr().rsplit(':').next().unwrap(),
            "remove",
            third.addr(),
        );
        assert_eq!(removed["lost"], 0, "{removed}");
        let before = status(&rack.rack)["agents"]["strangers"].as_u64();
        let after = rack.wait("it reports in vain", |status| {
            status["agents"]["strangers"].as_u64() > before.map(|before| before + 5)
        });
        assert!(!has_third(&after), "{after}");
    }
    let alone = ["rack", "--server", "127.0.0.1:7001", "--agents-join"];
    refused(&alone, &["--agents-join", "--agent-key FILE"]);
}
