//! Keep microsecond requests from waiting behind millisecond ones.
