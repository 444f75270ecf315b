//! Pressure stall information, from `/proc/pressure` (Documentation/accounting/psi.rst).

use crate::proc::ProcFile;
use linerate_model::{Pressure, Stall};
use linerate_units::Nanos;

/// The files of the three resources.
pub(crate) struct PressureFiles {
    cpu: ProcFile,
    io: ProcFile,
    memory: ProcFile,
}

impl PressureFiles {
    pub(crate) fn open() -> Self {
        Self {
            cpu: ProcFile::open("/proc/pressure/cpu"),
            io: ProcFile::open("/proc/pressure/io"),
            memory: ProcFile::open("/proc/pressure/memory"),
        }
    }

    /// Stalled time since boot; none where the kernel keeps none.
    pub(crate) fn read(&self) -> Option<Pressure> {
        Some(Pressure {
            cpu: stall(&self.cpu.read()?)?,
            io: stall(&self.io.read()?)?,
            memory: stall(&self.memory.read()?)?,
        })
    }
}

/// Returns the difference from `before`.
pub(crate) fn since(after: &Pressure, before: &Pressure) -> Pressure {
    let stall =
        |after: &Stall, before: &Stall| Stall { some: after.some - before.some, full: after.full - before.full };
    Pressure {
        cpu: stall(&after.cpu, &before.cpu),
        io: stall(&after.io, &before.io),
        memory: stall(&after.memory, &before.memory),
    }
}

/// Reads one resource's totals, which are in microseconds. Kernels before 5.13 give no `full` line for the CPU.
fn stall(text: &str) -> Option<Stall> {
    let total = |kind: &str| {
        let line = text.lines().find(|line| line.starts_with(kind))?;
        let micros: u64 = line.split_once("total=")?.1.trim().parse().ok()?;
        Some(Nanos::new(micros.saturating_mul(1000)))
    };
    Some(Stall { some: total("some")?, full: total("full").unwrap_or_default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_totals_as_time() {
        let text = "some avg10=0.59 avg60=0.12 avg300=0.04 total=5252988\n\
            full avg10=0.44 avg60=0.09 avg300=0.03 total=4641646\n";
        let expected = Stall { some: Nanos::new(5_252_988_000), full: Nanos::new(4_641_646_000) };
        assert_eq!(stall(text), Some(expected));
        assert_eq!(stall("some avg10=0.00 total=7\n"), Some(Stall { some: Nanos::new(7_000), full: Nanos::new(0) }));
        assert_eq!(stall(""), None);
    }
}
