//! Virtual time: the engine that drives the policies against a cost model.
