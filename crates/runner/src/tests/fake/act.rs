//! What can happen to a session, and when.

use super::Garbage;
use linerate_model::HostName;
use std::net::SocketAddr;
use std::time::Duration;

/// What a session does, tells or is asked for, in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in super::super) enum Step {
    /// It is opened.
    Open,
    Preparing,
    Listening,
    /// It is ordered to connect.
    Connect,
    Ready,
    /// It is ordered to start.
    Start,
    Running,
    /// It is ordered to open its window.
    Window,
    Sent,
    /// It is ordered to drain.
    Drain,
    Done,
    /// Its counts are fetched.
    Counts,
    /// Its agent is checked after another session failed.
    Check,
    /// It is closed before its end.
    Close,
    /// Its host is asked for its clock, outside of any session.
    Clock,
}

impl Step {
    /// All of them, but for the last three.
    pub(in super::super) const ALL: [Self; 12] = [
        Self::Open,
        Self::Preparing,
        Self::Listening,
        Self::Connect,
        Self::Ready,
        Self::Start,
        Self::Running,
        Self::Window,
        Self::Sent,
        Self::Drain,
        Self::Done,
        Self::Counts,
    ];

    /// Whether it is a stage that the session tells.
    pub(in super::super) fn is_stage(self) -> bool {
        matches!(self, Self::Preparing | Self::Listening | Self::Ready | Self::Running | Self::Sent | Self::Done)
    }
}

/// When something may happen.
#[derive(Debug, Clone, Copy)]
pub(in super::super) struct Moment<'a> {
    /// The so many-th attempt of the run, from 0.
    pub(in super::super) attempt: usize,
    pub(in super::super) host: &'a HostName,
    pub(in super::super) step: Step,
}

/// What happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Act {
    /// All goes well.
    Pass,
    /// The agent refuses, or the session fails and says so.
    Fail,
    /// The connection to the agent breaks.
    Lose,
    /// All goes well, and so much later the connection to the agent breaks.
    LoseAfter(Duration),
    /// All goes well, so much later.
    Delay(Duration),
    /// The agent does not answer any more, until it is given up.
    Silence,
    /// The session tells a stage that is not due.
    WrongStage,
    /// The agent tells that it listens at this address instead, on its own links, or if it has none, on the first link.
    ListenAt(SocketAddr),
    /// The counts are spoilt: a hypervisor took half of the host's time.
    Spoil,
    /// The counts make no sense.
    Count(Garbage),
    /// The user presses Ctrl-C, and the session goes no further.
    Interrupt,
}

/// What was told by a session, or ordered of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Told {
    /// It came to a stage, was opened, took an order, or handed over its counts.
    Reached(Step),
    /// It was given an order, and has not taken it yet.
    Ordered(Step),
    /// It was given an order that it does not wait for, or that lacks something.
    Misordered(Step),
    /// It was closed.
    Closed,
    /// The runner let go of it.
    Dropped,
}
