//! Tests of the crate from outside.

mod answering;
mod forms;
mod hosts;
mod pace;
mod pause;
mod ports;
mod switch;
mod trials;
