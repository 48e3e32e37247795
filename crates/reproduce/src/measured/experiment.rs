//! The files of figures that are measured on this machine.

use serde::de::DeserializeOwned;

use super::extent::MeasuredExtent;
use crate::{PaperFigure, ReproduceError};

/// A file that is built into the program.
#[derive(Clone, Copy, Debug)]
pub struct BuiltInFile {
    /// The file's name without `.toml`.
    pub name: &'static str,
    /// The file's text.
    pub text: &'static str,
}

/// Builds files of a folder of `experiments/` into the program.
macro_rules! built_in_files {
    ($folder:literal: $($name:literal),* $(,)?) => {
        &[$($crate::measured::BuiltInFile {
            name: $name,
            text: include_str!(concat!(
                env!("CARGO_MANIFEST_DIR"), "/../../experiments/", $folder, "/", $name, ".toml"
            )),
        }),*]
    };
}

/// Defines the struct of an experiment's file: fields of one kind alone, and those of all kinds.
///
/// It is a macro since serde cannot flatten a struct into one that denies unknown fields.
macro_rules! experiment_file {
    ($(#[$about:meta])* pub struct $name:ident($extent:ty, $system:ty, $claim:ty) {
        $($(#[$about_field:meta])* pub $field:ident: $type:ty,)*
    }) => {
        $(#[$about])*
        #[derive(Clone, Debug, serde::Deserialize)]
        #[serde(deny_unknown_fields)] pub struct $name {
            /// The experiment's name: the file's name without `.toml`.
            #[serde(skip)]
            pub name: String,
            /// Title of the figure.
            pub title: String,
            /// The paper.
            pub paper: String,
            /// Number of the figure or table in the paper.
            pub figure: String,
            /// The differences between the paper's testbed and this machine, and the comparison that remains valid.
            pub testbed: String,
            $($(#[$about_field])* pub $field: $type,)*
            /// The extent of the full measurement.
            pub full: $extent,
            /// The extent of the short version.
            pub fast: $extent,
            /// The compared systems.
            pub system: Vec<$system>,
            /// The paper's claims.
            pub claim: Vec<$claim>,
        }

        impl $crate::measured::ExperimentFields for $name {
            type Extent = $extent;
            type Claim = $claim;

            fn set_name(&mut self, name: &str) {
                self.name = name.into();
            }

            fn paper_figure(&self) -> $crate::PaperFigure {
                $crate::PaperFigure {
                    name: self.name.clone(),
                    title: self.title.clone(),
                    paper: self.paper.clone(),
                    figure: self.figure.clone(),
                    testbed: $crate::text::on_one_line(&self.testbed),
                }
            }

            fn extents(&self) -> [&$extent; 2] {
                [&self.full, &self.fast]
            }

            fn claims(&self) -> &[$claim] {
                &self.claim
            }

            fn has_system(&self, name: &str) -> bool {
                self.system.iter().any(|system| system.name == name)
            }
        }
    };
}

pub(crate) use {built_in_files, experiment_file};

/// The fields that the files of all kinds have.
pub trait ExperimentFields {
    /// Loads, rounds and run lengths.
    type Extent: MeasuredExtent;
    /// A claim of the paper.
    type Claim;

    /// Sets the experiment's name, which is not in the file.
    fn set_name(&mut self, name: &str);

    /// The paper's figure.
    fn paper_figure(&self) -> PaperFigure;

    /// The extents of the full measurement and of the short version.
    fn extents(&self) -> [&Self::Extent; 2];

    /// The paper's claims.
    fn claims(&self) -> &[Self::Claim];

    /// Whether a compared system has this name.
    fn has_system(&self, name: &str) -> bool;
}

/// An experiment that is measured on this machine, read from a file.
pub trait MeasuredExperiment: ExperimentFields + DeserializeOwned {
    /// The built-in files of this kind.
    const BUILT_IN: &'static [BuiltInFile];
    /// The table that distinguishes the files of this kind.
    const TABLE: &'static str;

    /// Checks everything but the extents.
    ///
    /// # Errors
    /// The problem.
    fn check(&self) -> Result<(), String>;

    /// The extent of the short version, or of the full measurement.
    #[must_use]
    fn extent(&self, fast: bool) -> &Self::Extent {
        let [full, short] = self.extents();
        if fast { short } else { full }
    }

    /// The built-in experiment called `name`.
    #[must_use]
    fn named(name: &str) -> Option<Self> {
        let file = Self::BUILT_IN.iter().find(|file| file.name == name)?;
        match Self::read(name, file.text) {
            Ok(experiment) => Some(experiment),
            Err(error) => panic!("a built-in experiment must be readable: {error}"),
        }
    }

    /// Every built-in experiment of this kind.
    #[must_use]
    fn all() -> Vec<Self> {
        let files = Self::BUILT_IN.iter();
        files.filter_map(|file| Self::named(file.name)).collect()
    }

    /// Reads the text of a file and makes all checks that need no run.
    ///
    /// # Errors
    /// The problem and its position.
    fn read(name: &str, text: &str) -> Result<Self, ReproduceError> {
        let parsed: Result<Self, _> = toml::from_str(text);
        let mut experiment =
            parsed.map_err(|error| ReproduceError::file(name, error.to_string().trim()))?;
        experiment.set_name(name);
        let [full, short] = experiment.extents();
        full.check()
            .and_then(|()| short.check())
            .and_then(|()| experiment.check())
            .map_err(|problem| ReproduceError::file(name, problem))?;
        Ok(experiment)
    }

    /// Whether the text of a file is an experiment of this kind.
    #[must_use]
    fn is_one(text: &str) -> bool {
        let table: Option<toml::Table> = toml::from_str(text).ok();
        table.is_some_and(|table| table.contains_key(Self::TABLE))
    }
}
