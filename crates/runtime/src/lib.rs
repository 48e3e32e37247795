//! The live server: rings, dispatcher, workers.
