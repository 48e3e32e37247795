//! Scheduling policies as pure state machines: events and time in, decisions out.
