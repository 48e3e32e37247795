//! The files of figures that are measured on this machine: they can be read, and their mistakes are told.

use headway_reproduce::hosted::HostedExperiment;
use headway_reproduce::live::LiveExperiment;
use headway_reproduce::measured::MeasuredExperiment;
use headway_reproduce::racked::RackedExperiment;
use headway_reproduce::replayed::ReplayedExperiment;
use headway_reproduce::{ExperimentFile, MEASURED_NAMES};

/// Checks that a folder's files are the built-in ones of a kind.
fn assert_built_in<E: MeasuredExperiment>(folder: &str) {
    let folder = format!("{}/../../experiments/{folder}", env!("CARGO_MANIFEST_DIR"));
    let mut files: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .map(|file| file.strip_suffix(".toml").unwrap().to_owned())
        .collect();
    files.sort();
    let names: Vec<&str> = E::BUILT_IN.iter().map(|file| file.name).collect();
    assert_eq!(files, names);
    assert_eq!(E::all().len(), names.len());
    assert!(E::BUILT_IN.iter().all(|file| E::is_one(file.text)));
}

#[test]
fn every_file_is_built_in_and_can_be_read() {
    assert_built_in::<LiveExperiment>("live");
    assert_built_in::<ReplayedExperiment>("replayed");
    assert_built_in::<RackedExperiment>("racked");
    assert_built_in::<HostedExperiment>("hosted");
}

/// A change of a file, and a word of the error that tells it.
struct Mistake(&'static str, &'static str, &'static str);

/// Mistakes that files of all kinds can have.
const OF_ALL_KINDS: [Mistake; 2] = [
    Mistake("rounds = ", "rounds = 0 #", "two `rounds`"),
    Mistake("of = \"", "of = \"no ", "which is no system"),
];

/// Checks that the errors tell the mistakes of all kinds of files, and these of one kind.
fn assert_told<E: MeasuredExperiment>(name: &str, of_this_kind: &[Mistake]) {
    let file = E::BUILT_IN.iter().find(|file| file.name == name).unwrap();
    for Mistake(from, to, word) in OF_ALL_KINDS.iter().chain(of_this_kind) {
        assert!(file.text.contains(from), "{from}");
        let text = file.text.replacen(from, to, 1);
        let Err(error) = E::read("one", &text) else {
            panic!("{to} is no mistake");
        };
        assert!(error.to_string().contains(word), "{error}");
    }
}

#[test]
fn mistakes_in_live_files_are_told() {
    assert_told::<LiveExperiment>(
        "concord-fig9-live",
        &[
            Mistake("share = 0.5", "share = 0.7", "sum to 1.2"),
            Mistake("policy = \"c-fcfs\"", "policy = \"c-fcsf\"", "c-fcsf"),
            Mistake("loads = [", "loads = [9.9, ", "ascend"),
        ],
    );
}

#[test]
fn mistakes_in_replayed_files_are_told() {
    assert_told::<ReplayedExperiment>(
        "synergy-fig6-5-live",
        &[
            Mistake("workload = \"zippydb\"", "workload = \"zipydb\"", "zippydb"),
            Mistake("policy = \"synergy", "policy = \"sinergy", "sinergy"),
            Mistake("loads = [", "loads = [9.9, ", "ascend"),
            Mistake("load = 0.", "load = 0.0", "none of `loads`"),
            Mistake("figure = \"slowdown", "figure = \"slowness", "slowness"),
            Mistake(
                "\n[[claim]]",
                "\npreempt = \"signal\"\n[[claim]]",
                "dedicated",
            ),
            Mistake("\n[[claim]]", "\nflows = \"few\"\n[[claim]]", "such as 8"),
        ],
    );
}

#[test]
fn mistakes_in_racked_files_are_told() {
    assert_told::<RackedExperiment>(
        "pallas-fig10-live",
        &[
            Mistake("policy = \"pallas", "policy = \"palas", "palas"),
            Mistake("class = \"short\"", "class = \"tiny\"", "which is none"),
            Mistake("phase = 2", "phase = 9", "phase 9 of"),
            Mistake("change = \"", "change = \"9", "longer than"),
            Mistake("load = 0.", "load = -0.", "above 0"),
        ],
    );
}

#[test]
fn mistakes_in_hosted_files_are_told() {
    assert_told::<HostedExperiment>(
        "shenango-fig4-live",
        &[
            Mistake("policy = \"shenango", "policy = \"shenangoo", "shenangoo"),
            Mistake("policy = \"shenango", "policy = \"darc", "no allocator"),
            Mistake("at = \"", "at = \"no ", "which is no place"),
            Mistake("papers = \"", "papers = \"no", "no experiment"),
            Mistake("rate = ", "rate = -", "above 0"),
            Mistake("guaranteed = ", "guaranteed = 9", "more than all"),
        ],
    );
}

/// The short version judges every claim too.
#[test]
fn replayed_claims_are_about_loads_of_both_extents() {
    for experiment in ReplayedExperiment::all() {
        for claim in &experiment.claim {
            let (says, load) = (&claim.says, claim.load);
            assert!(experiment.fast.loads.contains(&load), "{says}");
        }
    }
}

/// The list of names, and what tells a live file from a simulated one, hold for all that is built in.
#[test]
fn what_is_measured_is_known_by_name_and_by_file() {
    let files = [
        ("live", LiveExperiment::BUILT_IN),
        ("replayed", ReplayedExperiment::BUILT_IN),
        ("racked", RackedExperiment::BUILT_IN),
        ("hosted", HostedExperiment::BUILT_IN),
    ];
    let mut names = Vec::new();
    for (folder, built_in) in files {
        for file in built_in {
            names.push(file.name);
            let path = format!(
                "{}/../../experiments/{folder}/{}.toml",
                env!("CARGO_MANIFEST_DIR"),
                file.name
            );
            for asked in [file.name, &path] {
                let error = ExperimentFile::text(asked).unwrap_err().to_string();
                assert!(
                    error.contains(&format!("`headway reproduce {asked}`")),
                    "{error}"
                );
            }
        }
    }
    assert_eq!(names, MEASURED_NAMES);
    for name in headway_reproduce::NAMES {
        assert_eq!(ExperimentFile::text(name).unwrap().0, *name);
    }
}
