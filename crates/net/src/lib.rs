//! Datapaths behind one trait, the wire header and the request classifiers.
