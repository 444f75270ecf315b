//! Simulated devices. `forwarded` is the same function in oracle.py: whole numbers only, nothing drawn at run time.

use serde::Serialize;

/// A device under test.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Device {
    /// What it forwards at the most, in frames per second.
    pub(crate) capacity: u64,
    /// What it forwards when offered more.
    pub(crate) overload: Overload,
    /// The load from which on it loses a little.
    pub(crate) lossy_from: u64,
    /// How little, in millionths.
    pub(crate) lossy_ppm: u64,
    /// By how much that differs from load to load, in millionths.
    pub(crate) jitter_ppm: u64,
    /// Makes the differences of one device its own.
    pub(crate) seed: u64,
    /// Loads between which it loses more than above: loss inversion. The second is outside.
    pub(crate) dip_from: u64,
    /// See `dip_from`.
    pub(crate) dip_to: u64,
    /// How much it loses there, in millionths.
    pub(crate) dip_ppm: u64,
}

/// What a device forwards when offered more than its capacity.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Overload {
    /// Its capacity.
    Steady,
    /// The less, the more it is offered.
    Falling,
    /// Next to nothing.
    Collapse,
}

impl Device {
    /// A device that loses nothing up to its capacity.
    pub(crate) fn with_capacity(capacity: u64, overload: Overload) -> Self {
        Self {
            capacity,
            overload,
            lossy_from: u64::MAX / 2,
            lossy_ppm: 0,
            jitter_ppm: 0,
            seed: 0,
            dip_from: 0,
            dip_to: 0,
            dip_ppm: 0,
        }
    }

    /// Frames intended by a trial, and those of them that the device forwards.
    pub(crate) fn forwarded(&self, load: u64, nanos: u64) -> (u64, u64) {
        const MILLION: u128 = 1_000_000;
        let frames = |rate: u64| (u128::from(rate) * u128::from(nanos) / 1_000_000_000) as u64;
        let intended = frames(load);
        let mut loss_ppm = 0;
        if (self.dip_from..self.dip_to).contains(&load) {
            loss_ppm += self.dip_ppm;
        }
        if load >= self.lossy_from {
            let spread = (load * 2_654_435_761 + self.seed) / 128 % (2 * self.jitter_ppm + 1);
            loss_ppm += self.lossy_ppm - self.jitter_ppm + spread;
        }
        let mut through = intended - (u128::from(intended) * u128::from(loss_ppm)).div_ceil(MILLION) as u64;
        if load > self.capacity {
            let rate = match self.overload {
                Overload::Steady => self.capacity,
                Overload::Falling => self.capacity * self.capacity / load,
                Overload::Collapse => self.capacity / 50,
            };
            through = through.min(frames(rate));
        }
        (intended, through)
    }
}
