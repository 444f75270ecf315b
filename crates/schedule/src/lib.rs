//! Decisions of a fleet, without clock, socket or file: which trial is due where, and what to alert.
#![forbid(unsafe_code)]
