//! Pages in a real headless browser.

use super::children::TestChild;
use super::hosting::{counted, until};
use super::own_address;
use super::racking::{rack, server};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

/// The page's document after its scripts ran for `ran_ms`. Without a browser it prints why, and returns `None`.
fn document(url: &str, ran_ms: u32) -> Option<String> {
    let has = |name: &&&str| {
        let version = Command::new(name).arg("--version").output();
        version.is_ok_and(|output| output.status.success())
    };
    let browsers = ["chromium", "chromium-browser", "google-chrome"];
    let Some(browser) = browsers.iter().find(has) else {
        let required = std::env::var_os("HEADWAY_BROWSER_REQUIRED").is_some();
        assert!(!required, "no browser is installed");
        println!("SKIPPED a page in a browser: it needs one (apt-get install chromium)");
        return None;
    };
    let profile = tempfile::tempdir().expect("a folder");
    let output = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu"])
        .args(["--no-first-run", "--disable-background-networking"])
        .args(["--disable-component-update", "--disable-sync"])
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .arg(format!("--virtual-time-budget={ran_ms}"))
        .args(["--dump-dom", url])
        .output()
        .expect("the browser runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    Some(String::from_utf8(output.stdout).expect("a document"))
}

/// The text of the element with this id, without tags.
fn text_of(document: &str, id: &str) -> String {
    let begin = format!("id=\"{id}\"");
    let at = document
        .find(&begin)
        .unwrap_or_else(|| panic!("no {id} in {document}"));
    let inside = &document[at..];
    let inside = &inside[inside.find('>').expect("the tag ends") + 1..];
    let end = ["</tbody>", "</div>", "</h1>", "</h2>"];
    let end = end.iter().filter_map(|tag| inside.find(tag)).min();
    let mut is_tag = false;
    let keep = |letter: char| {
        let shown = !is_tag && letter != '<';
        is_tag = letter == '<' || is_tag && letter != '>';
        if shown { letter } else { ' ' }
    };
    inside[..end.expect("the element ends")]
        .chars()
        .map(keep)
        .collect()
}

/// The rates of the chart below the heading with this id, ÷ the largest. A browser that lets its clock run ahead may look twice within milliseconds, between two
/// requests.
fn drawn_rates(document: &str, id: &str) -> Vec<f64> {
    let at = document.find(&format!("id=\"{id}\"")).expect("the heading");
    let (_, chart) = document[at..].split_once("points=\"").expect("a line");
    let (points, _) = chart.split_once('"').expect("its end");
    let height = |point: &str| Some((100.0 - point.split_once(',')?.1.parse::<f64>().ok()?) / 95.0);
    points
        .split_whitespace()
        .map(|point| height(point).expect(point))
        .collect()
}

/// Sets the flag, also when the test fails.
struct SetOnDrop<'a>(&'a AtomicBool);

impl Drop for SetOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn the_racks_page_shows_groups_servers_types_and_what_happens() {
    let server = server();
    let at = own_address().to_string();
    let policy = ["--policy", "pallas", "--workload", "high-bimodal"];
    let rack = rack(
        &[&server],
        &[&policy[..], &["--metrics", &at, "--no-ctl"]].concat(),
    );
    let drawn = AtomicBool::new(false);
    std::thread::scope(|scope| {
        // A browser may take long to start beside other work: there is load until it has drawn the page.
        let _end = SetOnDrop(&drawn);
        for begins_after_ms in [0, 1_500] {
            let (rack, drawn) = (&rack, &drawn);
            scope.spawn(move || {
                std::thread::sleep(std::time::Duration::from_millis(begins_after_ms));
                while !drawn.load(Ordering::Relaxed) {
                    rack.load("500", "3s");
                }
            });
        }
        std::thread::sleep(std::time::Duration::from_millis(700));
        if let Some(document) = document(&format!("http://{at}/"), 3_000) {
            let title = text_of(&document, "title");
            assert!(title.contains(rack.addr()), "{title}");
            let state = text_of(&document, "state");
            assert!(
                state.contains("pallas") && state.contains("load"),
                "{state}"
            );
            let servers = text_of(&document, "servers");
            let answers = servers.contains(server.addr()) && servers.contains("answers");
            assert!(answers, "{servers}");
            let groups = text_of(&document, "groups");
            let types = text_of(&document, "types");
            for name in ["short", "long"] {
                assert!(
                    groups.contains(name) && types.contains(name),
                    "{groups} {types}"
                );
            }
            let rates = drawn_rates(&document, "rate-requests");
            assert!(rates.iter().any(|&rate| rate > 0.0), "{rates:?} {document}");
        }
    });
}

#[test]
fn a_hosts_page_shows_who_has_which_core() {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    if cores < 2 {
        println!("SKIPPED a_hosts_page_shows_who_has_which_core: it needs two cores");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("host.sock");
    let place = socket.to_str().unwrap();
    let at = own_address().to_string();
    let start =
        |args: &[&str]| TestChild::start(Command::new(env!("CARGO_BIN_EXE_headway")).args(args));
    let apps = ["--app", "kv:guaranteed=1", "--app", "pricer:batch"];
    let host = ["host", "--share-core", "--socket", place, "--metrics", &at];
    let _daemon = start(&[&host[..], &apps].concat());
    until("a daemon listens", || {
        let status = super::headway(&["host", "status", "--socket", place]);
        status.status.success() && std::net::TcpStream::connect(&at).is_ok()
    });
    let run = ["run", "--batch", "pricer", "--socket", place, "--"];
    let _batch = start(&[&run[..], &["sh", "-c", "while :; do :; done"]].concat());
    until("the batch program has a core", || {
        counted(place, "pricer", "grants") > 0
    });
    let Some(document) = document(&format!("http://{at}/"), 3_000) else {
        return;
    };
    let state = text_of(&document, "state");
    assert!(state.contains("shenango"), "{state}");
    let apps = text_of(&document, "apps");
    assert!(apps.contains("pricer") && apps.contains("batch"), "{apps}");
    assert!(text_of(&document, "times").contains("grant"), "{document}");
    let drawn = &document[document.find("id=\"cores\"").expect("it has cores")..];
    assert!(
        drawn.contains("<rect") || drawn.contains("<svg"),
        "{document}"
    );
}
