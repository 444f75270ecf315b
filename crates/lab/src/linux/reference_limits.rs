//! The reference device's limits, as the command line and bench files write them.

use crate::linux::limit_field::{LimitField, each_field, field, join_fields};
use linerate_units::{BitRate, ParseError, Ratio};
use std::fmt;
use std::str::FromStr;

/// Frames that may wait unless said otherwise: as many as a virtual link holds, so that a steady load at the rate
/// passes however the tester's frames bunch.
pub(crate) const QUEUE_FRAMES: u32 = 256;
/// Addresses that are learnt unless said otherwise.
pub(crate) const ADDRESSES: u32 = 65_536;
/// Most frames a second that can be a limit: more is never reached.
const RATE_MAXIMUM: u64 = 1_000_000_000;
/// Most frames that may wait.
const QUEUE_MAXIMUM: u32 = 1_000_000;
/// Most addresses: they lie in memory.
const ADDRESSES_MAXIMUM: u32 = 1 << 22;

/// Limits of a reference device; without any limit it is a plain fast switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReferenceLimits {
    /// Frames a second that it forwards, all ports together.
    pub max_frames: Option<u64>,
    /// Bits a second on the wire (with FCS, preamble and gap) that it forwards, all ports together.
    pub max_rate: Option<BitRate>,
    /// Share of the test frames that are lost, evenly spread.
    pub loss: Option<Ratio>,
    /// Frames that wait when it is busy; what comes on top is dropped.
    pub queue: u32,
    /// Addresses that it learns; frames to others go to every port.
    pub addresses: u32,
    /// Echo requests a second that it answers itself; without a value it has no address and answers none.
    pub echo: Option<u32>,
}

impl Default for ReferenceLimits {
    fn default() -> Self {
        Self { max_frames: None, max_rate: None, loss: None, queue: QUEUE_FRAMES, addresses: ADDRESSES, echo: None }
    }
}

const MAX_FRAMES: LimitField =
    field("max-frames", "max-frames of a reference device: frames a second, 1 to 1000000000", "max-frames=200000");
const MAX_RATE: LimitField =
    field("max-rate", "max-rate of a reference device: a bit rate on the wire, 64kbit/s or more", "max-rate=1Gbit/s");
const LOSS: LimitField =
    field("loss", "loss of a reference device: so many of so many frames, at most 1", "loss=1/1000 or loss=0.1%");
const QUEUE: LimitField = field("queue", "queue of a reference device: frames, 0 to 1000000", "queue=256");
const ADDRESS_COUNT: LimitField =
    field("addresses", "addresses of a reference device: a count, 1 to 4194304", "addresses=1000");
const ECHO: LimitField = field("echo", "echo of a reference device: answers a second, 1 or more", "echo=5000");

impl ReferenceLimits {
    /// Whether it has limits that a device without time would not keep. How many frames a fast switch forwards is no
    /// limit.
    pub(crate) fn can_be_missed(&self) -> bool {
        self.max_frames.is_some() || self.max_rate.is_some() || self.loss.is_some() || self.echo.is_some()
    }

    /// Sets the limit called `name`.
    fn set(&mut self, name: &str, value: &str) -> Result<(), ParseError> {
        match name {
            "max-frames" => {
                self.max_frames = Some(MAX_FRAMES.read(value, |rate| (1..=RATE_MAXIMUM).contains(rate))?);
            }
            "max-rate" => self.max_rate = Some(MAX_RATE.read(value, |rate: &BitRate| rate.get() >= 64_000)?),
            "loss" => self.loss = Some(LOSS.read(value, |loss: &Ratio| loss.of > 0 && loss.part <= loss.of)?),
            "queue" => self.queue = QUEUE.read(value, |queue| *queue <= QUEUE_MAXIMUM)?,
            "addresses" => {
                self.addresses = ADDRESS_COUNT.read(value, |count| (1..=ADDRESSES_MAXIMUM).contains(count))?
            }
            "echo" => self.echo = Some(ECHO.read(value, |rate| *rate >= 1)?),
            _ => {
                return Err(ParseError {
                    text: name.to_owned(),
                    expected: "a limit of a reference device (max-frames, max-rate, loss, queue, addresses, echo; a path delays)",
                    example: "reference,max-frames=200000,loss=1/1000",
                });
            }
        }
        Ok(())
    }
}

impl FromStr for ReferenceLimits {
    type Err = ParseError;

    /// Reads `max-frames=200000,loss=1/1000`; nothing is no limit.
    fn from_str(text: &str) -> Result<Self, ParseError> {
        let mut limits = Self::default();
        each_field(text, "a limit of a reference device with its value", "max-frames=200000", |name, value| {
            limits.set(name, value)
        })?;
        Ok(limits)
    }
}

impl fmt::Display for ReferenceLimits {
    /// Writes the form that is read, without default values.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unsaid = Self::default();
        let items = [
            (&MAX_FRAMES, self.max_frames.map(|rate| rate.to_string())),
            (&MAX_RATE, self.max_rate.map(|rate| format!("{}bit/s", rate.get()))),
            (&LOSS, self.loss.map(|loss| format!("{}/{}", loss.part, loss.of))),
            (&QUEUE, Some(self.queue).filter(|queue| *queue != unsaid.queue).map(|queue| queue.to_string())),
            (&ADDRESS_COUNT, Some(self.addresses).filter(|n| *n != unsaid.addresses).map(|n| n.to_string())),
            (&ECHO, self.echo.map(|rate| rate.to_string())),
        ];
        f.write_str(&join_fields(items))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::rngs::SmallRng;
    use rand::{RngExt, SeedableRng};

    #[test]
    fn limits_are_read_and_written_alike() {
        let text = "max-frames=200000,max-rate=1000000000bit/s,loss=1/1000,queue=64,addresses=1000,echo=5000";
        let limits: ReferenceLimits = text.parse().expect("limits");
        assert_eq!((limits.max_frames, limits.queue, limits.addresses), (Some(200_000), 64, 1000));
        assert_eq!((limits.loss, limits.echo), (Some(Ratio::new(1, 1000)), Some(5000)));
        assert_eq!(limits.to_string(), text);
        let short: ReferenceLimits = "max-rate=1Gbit/s,loss=0.1%".parse().expect("limits");
        assert_eq!(short.max_rate, limits.max_rate);
        assert_eq!(short.to_string().parse::<ReferenceLimits>(), Ok(short));
        assert_eq!("".parse(), Ok(ReferenceLimits::default()));
    }

    #[test]
    fn an_error_names_the_limit_and_shows_an_example() {
        for (text, part) in [
            ("max-frames=fast", "max-frames=200000"),
            ("max-frames=0", "max-frames=200000"),
            ("max-rate=9", "max-rate=1Gbit/s"),
            ("loss=2", "loss=1/1000"),
            ("loss=1/0", "loss=1/1000"),
            ("queue=-1", "queue=256"),
            ("addresses=0", "addresses=1000"),
            ("echo=no", "echo=5000"),
            ("delay=1ms", "a path delays"),
            ("speed=1", "reference,max-frames=200000"),
            ("queue", "max-frames=200000"),
        ] {
            let error = text.parse::<ReferenceLimits>().expect_err(text).to_string();
            assert!(error.contains(part) && error.contains("of a reference device"), "{text}: {error}");
        }
    }

    /// Whatever is written, it is refused or read, and what was read is read the same again.
    #[test]
    fn any_text_is_refused_or_read_back() {
        let pieces = [
            "max-frames",
            "max-rate",
            "loss",
            "queue",
            "addresses",
            "echo",
            "=",
            "=",
            "=",
            ",",
            ",",
            "/",
            "0",
            "1",
            "7",
            "1000",
            "4294967296",
            "18446744073709551616",
            "-",
            ".",
            "%",
            "k",
            "G",
            "bit/s",
            "ms",
            "us",
            " ",
            "\u{e9}",
        ];
        let mut random = SmallRng::seed_from_u64(2544);
        let mut valid = 0;
        for _ in 0..200_000 {
            let text: String =
                (0..random.random_range(0..9)).map(|_| pieces[random.random_range(0..pieces.len())]).collect();
            if let Ok(limits) = text.parse::<ReferenceLimits>() {
                valid += usize::from(!text.is_empty());
                assert_eq!(limits.to_string().parse(), Ok(limits), "{text}");
            }
        }
        assert!(valid > 1_000, "{valid}: hardly any text is one of limits");
    }
}
