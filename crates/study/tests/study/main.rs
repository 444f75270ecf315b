//! Studies as their readers see them: what their numbers say, and how that is shown.

mod charts;
mod japanese;
mod overclaims;
mod pages;
mod planted;
mod published;
mod repeats;
mod schema;
mod snapshots;
mod sources;
mod translations;
