//! The programs' tables and the model of the pipeline.

mod model;
mod programs;
