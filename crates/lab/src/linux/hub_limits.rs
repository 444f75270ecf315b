//! Limits of a hub, as the command line and bench files write them.

use crate::linux::limit_field::{LimitField, each_field, field, join_fields};
use linerate_units::{BitRate, ByteCount, ParseError};
use std::fmt;
use std::str::FromStr;

/// 10BASE-T.
const RATE_DEFAULT: BitRate = BitRate::per_second(10_000_000);
/// Below this a smallest frame takes more than 10 ms.
const RATE_MINIMUM: BitRate = BitRate::per_second(64_000);
/// A repeater of 1 Gbit/s extends short frames to 512 bytes (IEEE 802.3 clause 4.2.3.4), which this hub does not.
const RATE_MAXIMUM: BitRate = BitRate::per_second(100_000_000);
/// Queue of a station, bytes.
const QUEUE_DEFAULT: ByteCount = ByteCount::new(256 << 10);
/// Limited because queued frames take memory.
const QUEUE_MAXIMUM: ByteCount = ByteCount::new(16 << 20);

/// Limits of a hub.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HubLimits {
    /// Bits per second of the medium that all ports share. `None` takes the rate of the links, or 10 Mbit/s.
    pub rate: Option<BitRate>,
    /// Bytes of frames that may wait at each port.
    pub queue: ByteCount,
    /// Whether ports that begin at the same time collide and back off, instead of taking turns.
    pub collisions: bool,
    /// Seed of the back-off. `None` takes another one each time.
    pub seed: Option<u64>,
}

impl Default for HubLimits {
    fn default() -> Self {
        Self { rate: None, queue: QUEUE_DEFAULT, collisions: false, seed: None }
    }
}

const RATE: LimitField = field("rate", "rate of a hub: 64kbit/s to 100Mbit/s on the wire", "rate=10Mbit/s");
const QUEUE: LimitField = field("queue", "queue of a hub's port: bytes, at most 16MiB", "queue=64KiB");
const COLLISIONS: LimitField = field("collisions", "collisions of a hub: true or false", "collisions=true");
const SEED: LimitField = field("seed", "seed of a hub's back-off: a whole number", "seed=1");

impl HubLimits {
    /// Returns the rate of the medium between links that have the rate `link`.
    pub(crate) fn rate_with(&self, link: Option<BitRate>) -> BitRate {
        self.rate.or(link).unwrap_or(RATE_DEFAULT)
    }

    /// Returns whether a hub can have this rate.
    pub(crate) fn can_be(rate: BitRate) -> bool {
        (RATE_MINIMUM..=RATE_MAXIMUM).contains(&rate)
    }

    /// Checks that the fields go together.
    ///
    /// # Errors
    ///
    /// Names the field that contradicts another, and says why.
    pub(crate) fn check(&self) -> Result<(), String> {
        if self.seed.is_some() && !self.collisions {
            return Err(String::from("seed: without collisions nothing is left to chance; add collisions=true"));
        }
        Ok(())
    }
}

impl FromStr for HubLimits {
    type Err = ParseError;

    /// Reads `rate=10Mbit/s,collisions=true`.
    fn from_str(text: &str) -> Result<Self, ParseError> {
        const EXPECTED: &str = "a field of a hub: rate, queue, collisions or seed";
        const EXAMPLE: &str = "hub,rate=10Mbit/s,collisions=true";
        let mut limits = Self::default();
        each_field(text, EXPECTED, EXAMPLE, |name, value| {
            match name {
                "rate" => limits.rate = Some(RATE.read(value, |rate| Self::can_be(*rate))?),
                "queue" => limits.queue = QUEUE.read(value, |queue| *queue <= QUEUE_MAXIMUM)?,
                "collisions" => limits.collisions = COLLISIONS.read(value, |_| true)?,
                "seed" => limits.seed = Some(SEED.read(value, |_| true)?),
                _ => return Err(ParseError { text: name.to_owned(), expected: EXPECTED, example: EXAMPLE }),
            }
            Ok(())
        })?;
        Ok(limits)
    }
}

impl fmt::Display for HubLimits {
    /// Writes the form that [`FromStr`] reads.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let usual = Self::default();
        f.write_str(&join_fields([
            (&RATE, self.rate.map(|rate| format!("{}bit/s", rate.get()))),
            (&QUEUE, (self.queue != usual.queue).then(|| self.queue.get().to_string())),
            (&COLLISIONS, self.collisions.then(|| String::from("true"))),
            (&SEED, self.seed.map(|seed| seed.to_string())),
        ]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_read_as_written() {
        for text in ["", "rate=64000bit/s", "rate=100000000bit/s,queue=65536,collisions=true,seed=7"] {
            let limits: HubLimits = text.parse().expect(text);
            assert_eq!(limits.to_string(), text);
            assert_eq!(limits.check(), Ok(()));
        }
        let usual: HubLimits = "queue=256KiB,collisions=false".parse().expect("limits");
        assert_eq!(usual, HubLimits::default());
        let fast = Some(BitRate::per_second(100_000_000));
        assert_eq!([usual.rate_with(None).get(), usual.rate_with(fast).get()], [10_000_000, 100_000_000]);
        let slow: HubLimits = "rate=1Mbit/s".parse().expect("limits");
        assert_eq!(slow.rate_with(fast).get(), 1_000_000);
    }

    #[test]
    fn an_error_names_the_field_and_shows_an_example() {
        for (text, part) in [
            ("rate=1Gbit/s", "64kbit/s to 100Mbit/s"),
            ("rate=1kbit/s", "rate=10Mbit/s"),
            ("queue=1GiB", "queue=64KiB"),
            ("collisions=some", "collisions=true"),
            ("seed=-1", "seed=1"),
            ("delay=1ms", "rate, queue, collisions or seed"),
            ("collisions", "hub,rate=10Mbit/s,collisions=true"),
        ] {
            let error = text.parse::<HubLimits>().expect_err(text).to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
        let problem = "seed=1".parse::<HubLimits>().expect("limits").check().expect_err("no collisions");
        assert!(problem.starts_with("seed:") && problem.contains("collisions=true"), "{problem}");
    }
}
