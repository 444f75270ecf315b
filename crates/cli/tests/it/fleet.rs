//! Fleets as their owners run them: NATS, members, and `linerate fleet serve`.

mod enrolment;
mod mesh;
mod place;
mod powers;
mod steering;
