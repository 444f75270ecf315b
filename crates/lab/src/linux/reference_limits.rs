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
/// Most frames in the FIFO of an input, and the fewest frames by which a pause can be timed.
const FIFO_MAXIMUM: u32 = 1_024;
const PAUSE_QUEUE_MINIMUM: u32 = 8;
/// Most addresses: they lie in memory.
const ADDRESSES_MAXIMUM: u32 = 1 << 22;
/// Lowest rate of a port or an uplink.
const LINE_RATE_MINIMUM: u64 = 64_000;

/// Place where frames wait for a busy port.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Queues {
    /// At each output, so that a busy output affects no other.
    #[default]
    Output,
    /// In one FIFO at each input as well: its first frame waits for room at its output, and those after it wait too
    /// (head-of-line blocking).
    Input,
}

impl FromStr for Queues {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        match text {
            "output" => Ok(Self::Output),
            "input" => Ok(Self::Input),
            _ => Err(()),
        }
    }
}

/// Treatment of frames that are shorter or longer than Ethernet allows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Treatment {
    /// They are forwarded.
    #[default]
    Pass,
    /// They are dropped.
    Drop,
}

impl FromStr for Treatment {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        match text {
            "pass" => Ok(Self::Pass),
            "drop" => Ok(Self::Drop),
            _ => Err(()),
        }
    }
}

/// Limits of a reference device; without any limit it is a plain fast switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReferenceLimits {
    /// Frames a second that it forwards, all ports together.
    pub max_frames: Option<u64>,
    /// Bits a second on the wire (with FCS, preamble and gap) that it forwards, all ports together.
    pub max_rate: Option<BitRate>,
    /// Share of the test frames that are lost, evenly spread.
    pub loss: Option<Ratio>,
    /// Frames that wait when it is busy, or at each port of a set rate; what comes on top is dropped.
    pub queue: u32,
    /// Addresses that it learns; frames to others go to every port.
    pub addresses: u32,
    /// Echo requests a second that it answers itself; without a value it has no address and answers none.
    pub echo: Option<u32>,
    /// Rate of each port on the wire. `None` makes the ports as fast as the machine.
    pub port_rate: Option<BitRate>,
    /// Place where frames wait for a busy port.
    pub queues: Queues,
    /// Whether PAUSE frames stop senders before a queue is full (IEEE 802.3 annex 31B).
    pub pause: bool,
    /// Whether outputs send with a gap of 88 bit times instead of 96.
    pub forward_pressure: bool,
    /// Broadcasts per second that it replicates.
    pub broadcast: Option<u32>,
    /// Treatment of frames below 64 bytes with FCS.
    pub undersize: Treatment,
    /// Treatment of frames above 1,518 bytes with FCS, or 1,522 with a VLAN tag.
    pub oversize: Treatment,
    /// Rate of an uplink between the two halves of the ports. `None` makes them ports of one device.
    pub uplink: Option<BitRate>,
}

impl Default for ReferenceLimits {
    fn default() -> Self {
        Self {
            max_frames: None,
            max_rate: None,
            loss: None,
            queue: QUEUE_FRAMES,
            addresses: ADDRESSES,
            echo: None,
            port_rate: None,
            queues: Queues::Output,
            pause: false,
            forward_pressure: false,
            broadcast: None,
            undersize: Treatment::Pass,
            oversize: Treatment::Pass,
            uplink: None,
        }
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
const PORT_RATE: LimitField = field(
    "port-rate",
    "port-rate of a reference device: a bit rate on the wire, 64kbit/s or more",
    "port-rate=10Mbit/s",
);
const QUEUES: LimitField = field(
    "queues",
    "queues of a reference device: output, or input (a FIFO at each input, which blocks behind its first frame)",
    "queues=input",
);
const PAUSE: LimitField = field("pause", "pause of a reference device: true or false", "pause=true");
const FORWARD_PRESSURE: LimitField =
    field("forward-pressure", "forward-pressure of a reference device: true or false", "forward-pressure=true");
const BROADCAST: LimitField =
    field("broadcast", "broadcast of a reference device: broadcasts a second, 1 or more", "broadcast=1000");
const UNDERSIZE: LimitField = field("undersize", "undersize of a reference device: pass or drop", "undersize=drop");
const OVERSIZE: LimitField = field("oversize", "oversize of a reference device: pass or drop", "oversize=drop");
const UPLINK: LimitField =
    field("uplink", "uplink of a reference device: a bit rate on the wire, 64kbit/s or more", "uplink=20Mbit/s");

impl ReferenceLimits {
    /// Whether it has limits that a device without time would not keep. How many frames a fast switch forwards is no
    /// limit.
    pub(crate) fn can_be_missed(&self) -> bool {
        let rates = [self.max_rate, self.port_rate, self.uplink];
        let counts = [self.echo, self.broadcast];
        self.max_frames.is_some()
            || self.loss.is_some()
            || rates.iter().any(Option::is_some)
            || counts.iter().any(Option::is_some)
    }

    /// Checks that the fields go together.
    ///
    /// # Errors
    ///
    /// Names the field that contradicts another, and says what to do.
    pub(crate) fn check(&self) -> Result<(), String> {
        for (field, is_given) in
            [(&QUEUES, self.queues == Queues::Input), (&PAUSE, self.pause), (&FORWARD_PRESSURE, self.forward_pressure)]
        {
            if is_given && self.port_rate.is_none() {
                return Err(format!(
                    "{}: ports as fast as the machine have no queue; add port-rate=10Mbit/s",
                    field.name
                ));
            }
        }
        if self.queues == Queues::Input && !(1..=FIFO_MAXIMUM).contains(&self.queue) {
            return Err(format!(
                "queue: the FIFO of an input holds 1 to {FIFO_MAXIMUM} frames, not {}; leave queue out, or queues=input",
                self.queue
            ));
        }
        if self.pause && self.queue < PAUSE_QUEUE_MINIMUM {
            return Err(format!(
                "queue: frames arrive until a PAUSE has its effect, so that {} are too few; give {PAUSE_QUEUE_MINIMUM} or more, \
                 or leave pause out",
                self.queue
            ));
        }
        Ok(())
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
            "port-rate" => self.port_rate = Some(read_line_rate(&PORT_RATE, value)?),
            "queues" => self.queues = QUEUES.read(value, |_| true)?,
            "pause" => self.pause = PAUSE.read(value, |_| true)?,
            "forward-pressure" => self.forward_pressure = FORWARD_PRESSURE.read(value, |_| true)?,
            "broadcast" => self.broadcast = Some(BROADCAST.read(value, |rate| *rate >= 1)?),
            "undersize" => self.undersize = UNDERSIZE.read(value, |_| true)?,
            "oversize" => self.oversize = OVERSIZE.read(value, |_| true)?,
            "uplink" => self.uplink = Some(read_line_rate(&UPLINK, value)?),
            _ => {
                return Err(ParseError {
                    text: name.to_owned(),
                    expected: "a limit of a reference device (max-frames, max-rate, loss, queue, addresses, echo, port-rate, \
                               queues, pause, forward-pressure, broadcast, undersize, oversize, uplink; a path delays)",
                    example: "reference,max-frames=200000,loss=1/1000",
                });
            }
        }
        Ok(())
    }
}

/// Reads the rate of a port or an uplink.
fn read_line_rate(field: &LimitField, value: &str) -> Result<BitRate, ParseError> {
    field.read(value, |rate: &BitRate| rate.get() >= LINE_RATE_MINIMUM)
}

/// Writes a rate as it is read.
fn written_rate(rate: BitRate) -> String {
    format!("{}bit/s", rate.get())
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
            (&MAX_RATE, self.max_rate.map(written_rate)),
            (&LOSS, self.loss.map(|loss| format!("{}/{}", loss.part, loss.of))),
            (&QUEUE, Some(self.queue).filter(|queue| *queue != unsaid.queue).map(|queue| queue.to_string())),
            (&ADDRESS_COUNT, Some(self.addresses).filter(|n| *n != unsaid.addresses).map(|n| n.to_string())),
            (&ECHO, self.echo.map(|rate| rate.to_string())),
            (&PORT_RATE, self.port_rate.map(written_rate)),
            (&QUEUES, (self.queues == Queues::Input).then(|| String::from("input"))),
            (&PAUSE, self.pause.then(|| String::from("true"))),
            (&FORWARD_PRESSURE, self.forward_pressure.then(|| String::from("true"))),
            (&BROADCAST, self.broadcast.map(|rate| rate.to_string())),
            (&UNDERSIZE, (self.undersize == Treatment::Drop).then(|| String::from("drop"))),
            (&OVERSIZE, (self.oversize == Treatment::Drop).then(|| String::from("drop"))),
            (&UPLINK, self.uplink.map(written_rate)),
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
    fn limits_of_ports_are_read_and_written_alike() {
        let text = "port-rate=10000000bit/s,queues=input,pause=true,forward-pressure=true,broadcast=1000,undersize=drop,\
                    oversize=drop,uplink=20000000bit/s";
        let limits: ReferenceLimits = text.parse().expect("limits");
        assert_eq!((limits.port_rate, limits.queues), (Some(BitRate::per_second(10_000_000)), Queues::Input));
        assert!(limits.pause && limits.forward_pressure);
        assert_eq!((limits.undersize, limits.oversize), (Treatment::Drop, Treatment::Drop));
        assert_eq!(limits.to_string(), text);
        let usual = "queues=output,pause=false,forward-pressure=false,undersize=pass,oversize=pass";
        assert_eq!(usual.parse(), Ok(ReferenceLimits::default()));
    }

    #[test]
    fn only_limits_in_time_can_be_missed() {
        for (text, expected) in [
            ("", false),
            ("queue=5,addresses=10,undersize=drop,oversize=drop", false),
            ("max-frames=1", true),
            ("max-rate=1G", true),
            ("loss=1%", true),
            ("echo=1", true),
            ("port-rate=10M", true),
            ("broadcast=1", true),
            ("uplink=10M", true),
        ] {
            let limits: ReferenceLimits = text.parse().expect(text);
            assert_eq!(limits.can_be_missed(), expected, "{text}");
        }
    }

    #[test]
    fn fields_that_contradict_each_other_are_refused() {
        for (text, parts) in [
            ("queues=input", ["queues:", "add port-rate=10Mbit/s"]),
            ("pause=true", ["pause:", "add port-rate=10Mbit/s"]),
            ("forward-pressure=true", ["forward-pressure:", "add port-rate=10Mbit/s"]),
            ("port-rate=10M,queues=input,queue=0", ["queue:", "1 to 1024 frames, not 0"]),
            ("port-rate=10M,queues=input,queue=1025", ["queue:", "1 to 1024 frames, not 1025"]),
            ("port-rate=10M,pause=true,queue=7", ["queue:", "give 8 or more, or leave pause out"]),
        ] {
            let limits: ReferenceLimits = text.parse().expect(text);
            let error = limits.check().expect_err(text);
            assert!(parts.iter().all(|part| error.contains(part)), "{text}: {error}");
        }
        for text in ["", "queue=0", "port-rate=10M,queues=input,pause=true,forward-pressure=true", "uplink=1M,queue=0"]
        {
            let limits: ReferenceLimits = text.parse().expect(text);
            assert_eq!(limits.check(), Ok(()), "{text}");
        }
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
            ("port-rate=63kbit/s", "port-rate=10Mbit/s"),
            ("queues=shared", "queues=input"),
            ("pause=yes", "pause=true"),
            ("forward-pressure=8", "forward-pressure=true"),
            ("broadcast=0", "broadcast=1000"),
            ("undersize=keep", "undersize=drop"),
            ("oversize=1", "oversize=drop"),
            ("uplink=fast", "uplink=20Mbit/s"),
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
            "port-rate",
            "queues",
            "pause",
            "forward-pressure",
            "broadcast",
            "undersize",
            "uplink",
            "input",
            "true",
            "drop",
            "=",
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
