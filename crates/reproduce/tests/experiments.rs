//! The experiments themselves: they run, do not depend on threads, and give what they gave.

use headway_reproduce::{ExperimentFile, NAMES, RunLength, run, show};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

fn named(names: &[&str]) -> Vec<ExperimentFile> {
    names
        .iter()
        .map(|name: &&str| ExperimentFile::named(name).expect("a built-in experiment"))
        .collect()
}

/// Every claim of every file names something that is measured; verdicts mean nothing here.
#[test]
fn every_claim_is_about_something_measured() {
    let threads = headway_sim::available_threads();
    let results = run(
        &ExperimentFile::all(),
        RunLength::AtMost(2_000),
        threads,
        None,
        |_, _| {},
    );
    let results = results.unwrap_or_else(|error| panic!("{error}"));
    let names: Vec<&str> = results
        .iter()
        .map(|result| result.about.name.as_str())
        .collect();
    assert_eq!(names, NAMES);
    assert!(results.iter().all(|result| result.shortened));
}

/// Shortened runs of a few experiments, figure by figure: a change of a policy or of the engine
/// shows as a difference here.
#[test]
fn shortened_runs_give_what_they_gave() {
    let names = [
        "persephone-fig1",
        "concord-fig2",
        "concord-fig12",
        "synergy-fig4-1",
        "pallas-fig15",
    ];
    let results = run(&named(&names), RunLength::Fast, 2, None, |_, _| {}).unwrap();
    let text: Vec<String> = results.iter().map(show::text).collect();
    insta::assert_snapshot!(text.join("\n"));
}

/// The runs of this experiment would last for many minutes.
#[test]
fn runs_under_way_end_once_they_are_cut_off() {
    let text = include_str!("../../../experiments/concord-fig9.toml");
    let text = text.replace("requests = 40_000", "requests = 2_000_000_000");
    let endless = ExperimentFile::read("endless", &text).unwrap();
    let cutoff = Arc::new(AtomicBool::new(false));
    let (ended, end) = channel();
    let asked = Arc::clone(&cutoff);
    thread::spawn(move || {
        let results = run(&[endless], RunLength::Full, 1, Some(&asked), |_, _| {});
        ended.send(results.map(|results| results.len()))
    });
    thread::sleep(Duration::from_millis(50));
    cutoff.store(true, Ordering::Relaxed);
    let results = end.recv_timeout(Duration::from_secs(60));
    assert_eq!(results.expect("it ends").unwrap(), 0);
}

#[test]
fn figures_do_not_depend_on_threads() {
    let experiments = named(&["synergy-fig4-1", "concord-fig15"]);
    let with = |threads| {
        let results = run(
            &experiments,
            RunLength::AtMost(20_000),
            threads,
            None,
            |_, _| {},
        )
        .unwrap();
        serde_json::to_string(&results).unwrap()
    };
    assert_eq!(with(1), with(3));
}

/// The document says what the result says.
#[test]
fn markdown_and_page_hold_every_verdict() {
    let results = run(
        &named(&["concord-fig2"]),
        RunLength::Full,
        1,
        None,
        |_, _| {},
    )
    .unwrap();
    let (markdown, page) = (show::markdown(&results), show::page(&results).render());
    for claim in &results[0].claims {
        let verdict = claim.verdict.to_string();
        assert!(markdown.contains(&claim.says) && markdown.contains(&verdict));
        assert!(page.contains(&verdict));
    }
    let reasons = show::reasons(&results[0]);
    assert!(!reasons.is_empty(), "a figure with a claim that has one");
    let text = show::text(&results[0]);
    for (reason, of) in reasons {
        assert!(markdown.contains(&format!("- *{}*: {reason}\n", of.join("*; *"))));
        let told = format!("Why ({}): {reason}", of.join("; "));
        assert!(text.contains(&told) && page.contains(&told));
    }
    assert!(page.contains("<svg"));
    assert!(markdown.contains("headway reproduce concord-fig2"));
}

/// Beneath a figure's claims stands why those that are not reproduced are not.
#[test]
fn the_document_tells_why_of_every_claim_not_reproduced() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reproduction.md");
    let text = std::fs::read_to_string(path).unwrap();
    let mut seen = 0;
    for section in text.split("\n### ").skip(1) {
        let rows = section.lines().filter(|line| line.starts_with("| "));
        for row in rows.filter(|line| line.ends_with("| not reproduced |")) {
            let says = row.split(" | ").next().unwrap().trim_start_matches("| ");
            let told = format!("*{says}*");
            let mut whys = section.lines().filter(|line| line.starts_with("- *"));
            assert!(whys.any(|line| line.contains(&told)), "no reason: {says}");
            seen += 1;
        }
    }
    assert!(seen > 0, "the document has lost its table of claims");
}
