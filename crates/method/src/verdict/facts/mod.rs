//! What the rules weigh: facts drawn once from the results, and the thresholds that several rules share.

mod backlog;
mod bus;
mod calls;
mod copy;
mod course;
mod end;
mod flows;
mod interface;
mod loss_pattern;
mod pace;
mod server_load;
mod tcp;
mod udp;
mod vanished;
mod waits;
mod window;
mod words;

pub(crate) use bus::BusUse;
pub(crate) use calls::{Calls, MANY_ROUND_TRIPS, MOSTLY_IN_SERVER};
pub(crate) use copy::{CopyEnd, CopyFacts, MOSTLY_FULL, ServerEnd};
pub(crate) use course::{GROWN, TcpCourse};
pub(crate) use end::{AMPLE, End, NEARLY_OCCUPIED, OCCUPIED};
pub(crate) use flows::{AT_TESTER_LIMIT, ClosedLoop, FlowFacts, INTERRUPTED, RETURN_LOSS, TesterAlone, Work};
pub(crate) use interface::InterfaceFacts;
pub(crate) use loss_pattern::LossPattern;
pub(crate) use pace::Pace;
pub(crate) use server_load::ServerLoad;
pub(crate) use tcp::{FAR, FILLED, HELD_BACK, LIGHT_LOSS, Tcp, USUAL_LOSS};
pub(crate) use waits::Waits;
pub(crate) use window::WindowFacts;
pub(crate) use words::{bits, percent, time};
#[cfg(test)]
pub(crate) use {backlog::OneWay, course::Course, end::KernelThread, flows::Offer, udp::Udp, vanished::Vanished};

use crate::statistics;

/// Share of datagrams whose loss is more than a stumble.
pub(crate) const NOTABLE_LOSS: f64 = 0.0005;

/// The median; zero without values.
fn median(values: impl Iterator<Item = f64>) -> f64 {
    statistics::median(values.collect()).unwrap_or(0.0)
}
