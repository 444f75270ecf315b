//! Systems without raw frames.

use crate::FrameError;
use linerate_engine::{Conductor, Counted, Demand, Engine, EngineError, EngineFailure};
use linerate_model::{Assignment, Mac, PortInfo, Task};
use std::net::IpAddr;
use std::time::Duration;

/// The engine of raw frames between ports. It refuses each assignment.
#[derive(Debug, Clone, Copy, Default)]
pub struct Frames;

impl Engine for Frames {
    fn name(&self) -> &'static str {
        "frames"
    }

    fn takes(&self, task: &Task) -> bool {
        matches!(task, Task::Frames(_))
    }

    fn demand(&self, _assignment: &Assignment) -> Result<Demand, EngineError> {
        Err(needs_linux())
    }

    fn run(&self, _assignment: &Assignment, _host: &dyn Conductor) -> Result<Counted, EngineFailure> {
        Err(needs_linux().into())
    }
}

fn needs_linux() -> EngineError {
    EngineError::new(FrameError::NeedsLinux.to_string())
}

/// Fails on this system.
///
/// # Errors
/// Always, with [`FrameError::NeedsLinux`].
pub fn port(_interface: &str) -> Result<PortInfo, FrameError> {
    Err(FrameError::NeedsLinux)
}

/// Fails on this system.
///
/// # Errors
/// Always, with [`FrameError::NeedsLinux`].
pub fn resolve(_interface: &str, _own: (Mac, IpAddr), _target: IpAddr, _timeout: Duration) -> Result<Mac, FrameError> {
    Err(FrameError::NeedsLinux)
}

/// Fails on this system.
///
/// # Errors
/// Always, with [`FrameError::NeedsLinux`].
pub fn xdp_possible() -> Result<(), FrameError> {
    Err(FrameError::NeedsLinux)
}
