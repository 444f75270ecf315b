//! NATS as the transport of a fleet: credentials, subjects, and requests to agents.
#![forbid(unsafe_code)]
