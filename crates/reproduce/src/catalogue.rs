//! The experiments built into the program: every file of `experiments/`, in the order of the
//! papers.

macro_rules! catalogue {
    ($($name:literal),* $(,)?) => {
        /// The names of the built-in experiments, in the order of the papers.
        pub const NAMES: &[&str] = &[$($name),*];

        /// The text of a built-in experiment's file.
        pub(crate) fn text(name: &str) -> Option<&'static str> {
            match name {
                $($name => Some(include_str!(concat!("../../../experiments/", $name, ".toml"))),)*
                _ => None,
            }
        }
    };
}

catalogue![
    "persephone-fig1",
    "persephone-fig3",
    "persephone-fig4",
    "persephone-fig5",
    "persephone-fig6",
    "persephone-fig7",
    "persephone-fig8",
    "persephone-fig9",
    "persephone-fig10",
    "persephone-table5",
    "concord-fig2",
    "concord-fig3",
    "concord-fig5",
    "concord-fig6",
    "concord-fig7",
    "concord-fig8",
    "concord-fig9",
    "concord-fig10",
    "concord-fig11",
    "concord-fig12",
    "concord-fig13",
    "concord-fig14",
    "concord-fig15",
    "synergy-fig4-1",
    "synergy-fig6-1",
    "synergy-fig6-2",
    "synergy-fig6-3",
    "synergy-fig6-4",
    "synergy-fig6-5",
    "synergy-fig6-6",
    "synergy-fig6-7",
    "synergy-fig6-8",
    "synergy-fig6-9",
    "shenango-fig1",
    "shenango-fig4",
    "shenango-fig5",
    "shenango-fig7",
    "shenango-fig8",
    "pallas-fig2a",
    "pallas-fig2b",
    "pallas-fig8a",
    "pallas-fig8b",
    "pallas-fig8c",
    "pallas-fig8d",
    "pallas-fig9",
    "pallas-fig10",
    "pallas-fig11",
    "pallas-fig12",
    "pallas-fig13a",
    "pallas-fig13b",
    "pallas-fig14",
    "pallas-fig15",
    "pallas-fig16",
    "pallas-fig17",
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ExperimentFile, ExperimentKind, RunLength};

    #[test]
    fn every_file_is_built_in() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../experiments");
        let mut files: Vec<String> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter_map(|file| file.strip_suffix(".toml").map(str::to_owned))
            .collect();
        files.sort();
        let mut names = NAMES.to_vec();
        names.sort_unstable();
        assert_eq!(files, names);
    }

    /// Making the tasks without running them shows that every policy, workload and SLO exists.
    #[test]
    fn every_experiment_can_be_run() {
        for experiment in ExperimentFile::all() {
            assert!(
                !experiment.claim.is_empty(),
                "{} claims nothing",
                experiment.name
            );
            for measure in &experiment.measure {
                let setting = experiment.setting(measure, RunLength::Fast);
                let tasks = measure.tasks(&setting);
                let tasks = tasks.unwrap_or_else(|error| panic!("{}: {error}", experiment.name));
                assert!(!tasks.is_empty(), "{} measures nothing", experiment.name);
            }
        }
    }
}
