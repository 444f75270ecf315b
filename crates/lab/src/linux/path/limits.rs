//! Limits of a path, as the command line and bench files write them.

use crate::linux::limit_field::{LimitField, each_field, field, join_fields};
use linerate_units::{BitRate, ByteCount, Nanos, ParseError, Ratio};
use std::fmt;
use std::str::FromStr;

/// Bits a second on the wire that a path keeps up with, and its rate unless said otherwise.
pub(crate) const RATE_MAXIMUM: BitRate = BitRate::per_second(1_000_000_000);
/// Below this a smallest frame takes more than 10 ms.
const RATE_MINIMUM: BitRate = BitRate::per_second(64_000);
/// Frames a second that a path keeps up with, and its limit unless said otherwise.
pub(crate) const FRAMES_MAXIMUM: u64 = 300_000;
/// Fewer do not carry what hosts say to find each other.
const FRAMES_MINIMUM: u64 = 100;
/// Limited because frames on their way take memory, and a new lab waits until all hosts have heard each other.
const DELAY_MAXIMUM: Nanos = Nanos::from_secs(1);
/// Limited because queued frames take memory.
const QUEUE_MAXIMUM: ByteCount = ByteCount::new(256 << 20);
/// Queue of a small switch's port: the default queue of a slow path.
const QUEUE_DEFAULT: u64 = 256 << 10;
/// A faster path holds what passes it in a hundredth of a second.
const QUEUE_SHARE: u64 = 100;
/// A shorter slot is not exact.
const SLOT_MINIMUM: Nanos = Nanos::new(100_000);
const SLOT_MAXIMUM: Nanos = Nanos::from_millis(200);
const PERIOD_MINIMUM: Nanos = Nanos::from_millis(1);
const PERIOD_MAXIMUM: Nanos = Nanos::from_secs(60);
const CUT_LATEST: Nanos = Nanos::from_secs(3_600);
const LOSS_BURST_MAXIMUM: u32 = 10_000;
/// IPv6 needs at least 1,280 (RFC 8200 section 5).
const MTU_MINIMUM: u32 = 1_280;
const MTU_MAXIMUM: u32 = 9_216;

/// Limits of a path for the frames of one direction. A field that is absent has no effect.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PathLimits {
    /// Delay of each frame, in addition to its time in the queue.
    pub delay: Option<Nanos>,
    /// Largest change of the delay, up and down; frames stay in order.
    pub jitter: Option<Nanos>,
    /// Bits a second on the wire (with FCS, preamble and gap).
    pub rate: Option<BitRate>,
    /// Bytes of frames that wait for the rate; what comes on top is dropped.
    pub queue: Option<ByteCount>,
    /// Bytes on the wire that pass at once after a pause: the depth of a token bucket.
    pub burst: Option<ByteCount>,
    /// Share of the frames that are lost ahead of the queue.
    pub loss: Option<Ratio>,
    /// Mean number of frames lost in a row; without it each frame is lost by itself.
    pub loss_burst: Option<u32>,
    /// Share of the frames in which a byte is changed.
    pub corrupt: Option<Ratio>,
    /// Share of the frames that arrive twice.
    pub duplicate: Option<Ratio>,
    /// Share of the frames that the next three overtake.
    pub reorder: Option<Ratio>,
    /// Queue length in bytes above which ECN-capable packets are marked "congestion experienced" (RFC 3168).
    pub mark: Option<ByteCount>,
    /// Frames a second.
    pub max_frames: Option<u64>,
    /// Service in slots: what waits leaves together at the end of each.
    pub slots: Option<Nanos>,
    /// Two rates in turn, instead of `rate`.
    pub alternate: Option<Alternation>,
    /// Largest IP packet, bytes.
    pub mtu: Option<u32>,
    /// Larger packets vanish without an ICMP message to their sender.
    pub mtu_silent: bool,
    /// A time in which nothing passes.
    pub cut: Option<Cut>,
    /// Whether each flow has a queue of its own, and the queues take turns.
    pub fair: bool,
}

/// A time in which nothing passes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cut {
    /// Beginning, counted from the first IP packet that came.
    pub after: Nanos,
    /// Length.
    pub length: Nanos,
}

impl FromStr for Cut {
    type Err = ParseError;

    /// Reads `6s:4s`.
    fn from_str(text: &str) -> Result<Self, ParseError> {
        let (after, length) = text.split_once(':').ok_or_else(|| CUT.error(text))?;
        Ok(Self { after: after.parse()?, length: length.parse()? })
    }
}

impl fmt::Display for Cut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}ns:{}ns", self.after.get(), self.length.get())
    }
}

/// Two rates in turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Alternation {
    /// The rate at the beginning.
    pub first: BitRate,
    /// The one after it.
    pub second: BitRate,
    /// Time that each rate holds.
    pub period: Nanos,
}

impl FromStr for Alternation {
    type Err = ParseError;

    /// Reads `20Mbit/s:200Mbit/s:500ms`.
    fn from_str(text: &str) -> Result<Self, ParseError> {
        let parts: Vec<_> = text.split(':').collect();
        let [first, second, period] = parts[..] else { return Err(ALTERNATE.error(text)) };
        Ok(Self { first: first.parse()?, second: second.parse()?, period: period.parse()? })
    }
}

impl fmt::Display for Alternation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}bit/s:{}bit/s:{}ns", self.first.get(), self.second.get(), self.period.get())
    }
}

const DELAY: LimitField = field("delay", "delay of a path: at most 1s", "delay=20ms");
const JITTER: LimitField = field("jitter", "jitter of a path: at most its delay", "jitter=2ms");
const RATE: LimitField =
    field("rate", "rate of a path: 64kbit/s to 1Gbit/s on the wire, which it keeps up with", "rate=50Mbit/s");
const QUEUE: LimitField = field("queue", "queue of a path: bytes, at most 256MiB", "queue=128KiB");
const BURST: LimitField = field("burst", "burst of a path: bytes, at most 256MiB", "burst=16KiB");
const LOSS: LimitField = field("loss", "loss of a path: a ratio of at most 1", "loss=1%");
const LOSS_BURST: LimitField =
    field("loss-burst", "loss-burst of a path: mean number of frames lost in a row, 1 to 10000", "loss-burst=8");
const CORRUPT: LimitField = field("corrupt", "corrupt of a path: a ratio of at most 1", "corrupt=0.1%");
const DUPLICATE: LimitField = field("duplicate", "duplicate of a path: a ratio of at most 1", "duplicate=0.1%");
const REORDER: LimitField = field("reorder", "reorder of a path: a ratio of at most 1", "reorder=1%");
const MARK: LimitField = field("mark", "mark of a path: bytes, less than its queue", "mark=30KiB");
const MAX_FRAMES: LimitField = field(
    "max-frames",
    "max-frames of a path: frames a second, 100 to 300000, which it keeps up with",
    "max-frames=20000",
);
const SLOTS: LimitField = field("slots", "slots of a path: 100us to 200ms", "slots=20ms");
const ALTERNATE: LimitField = field(
    "alternate",
    "alternate of a path: two rates of 64kbit/s to 1Gbit/s and the time of each, 1ms to 60s",
    "alternate=20Mbit/s:200Mbit/s:500ms",
);
const MTU: LimitField = field("mtu", "mtu of a path: 1280 to 9216 bytes", "mtu=1400");
const CUT: LimitField = field(
    "cut",
    "cut of a path: time from the first packet to its beginning, at most 1h, and its length, 1ms to 60s",
    "cut=6s:4s",
);
const FAIR: LimitField = field("fair", "fair of a path: true or false", "fair=true");
const MTU_SILENT: LimitField = field("mtu-silent", "mtu-silent of a path: true or false", "mtu-silent=true");

impl PathLimits {
    /// Rates of the line: one, or two in turn. Without either it is the fastest that a path keeps up with.
    pub(crate) fn line(&self) -> Alternation {
        let rate = self.rate.unwrap_or(RATE_MAXIMUM);
        self.alternate.unwrap_or(Alternation { first: rate, second: rate, period: PERIOD_MAXIMUM })
    }

    /// Bytes of frames that wait at the most.
    pub(crate) fn queue_bytes(&self) -> u64 {
        let line = self.line();
        let usual = || QUEUE_DEFAULT.max(line.first.max(line.second).get() / 8 / QUEUE_SHARE);
        self.queue.map_or_else(usual, ByteCount::get)
    }

    /// Returns these limits, with the fields of `base` where they have none.
    pub(crate) fn over(self, base: Self) -> Self {
        // One of the two rates is enough to say that the other no longer holds.
        let own_rate = self.rate.is_some() || self.alternate.is_some();
        Self {
            delay: self.delay.or(base.delay),
            jitter: self.jitter.or(base.jitter),
            rate: self.rate.or(base.rate.filter(|_| !own_rate)),
            queue: self.queue.or(base.queue),
            burst: self.burst.or(base.burst),
            loss: self.loss.or(base.loss),
            loss_burst: self.loss_burst.or(base.loss_burst),
            corrupt: self.corrupt.or(base.corrupt),
            duplicate: self.duplicate.or(base.duplicate),
            reorder: self.reorder.or(base.reorder),
            mark: self.mark.or(base.mark),
            max_frames: self.max_frames.or(base.max_frames),
            slots: self.slots.or(base.slots),
            alternate: self.alternate.or(base.alternate.filter(|_| !own_rate)),
            mtu: self.mtu.or(base.mtu),
            mtu_silent: self.mtu_silent || base.mtu_silent,
            cut: self.cut.or(base.cut),
            fair: self.fair || base.fair,
        }
    }

    /// Its fields go together.
    ///
    /// # Errors
    ///
    /// Names the field that contradicts another, and says why.
    pub(crate) fn check(&self) -> Result<(), String> {
        if self.jitter.is_some_and(|jitter| jitter > self.delay.unwrap_or_default()) {
            return Err(String::from("jitter: it is at most the delay, or frames would leave before they came"));
        }
        if self.rate.is_some() && self.alternate.is_some() {
            return Err(String::from("alternate: it has two rates of its own; leave rate out"));
        }
        if let Some(mean) = self.loss_burst {
            let Some(loss) = self.loss else {
                return Err(String::from("loss-burst: nothing is lost; say loss too, as in loss=1%"));
            };
            // Between two runs at least one frame passes.
            let maximum = Ratio::new(u64::from(mean), u64::from(mean) + 1);
            if loss > maximum {
                return Err(format!("loss: with {mean} frames lost in a row on average it is at most {maximum}"));
            }
        }
        if let Some(mark) = self.mark.filter(|mark| mark.get() >= self.queue_bytes()) {
            let queue = ByteCount::new(self.queue_bytes());
            return Err(format!("mark: so many bytes ({mark}) never wait, for the queue holds {queue}"));
        }
        if self.mtu_silent && self.mtu.is_none() {
            return Err(String::from("mtu-silent: no packet is too large; say mtu too, as in mtu=1400"));
        }
        Ok(())
    }

    /// Sets the field called `name`.
    fn set(&mut self, name: &str, value: &str) -> Result<(), ParseError> {
        let fits = |rate: BitRate| (RATE_MINIMUM..=RATE_MAXIMUM).contains(&rate);
        let ratio = |ratio: &Ratio| ratio.of > 0 && ratio.part <= ratio.of;
        let bytes = |bytes: &ByteCount| *bytes <= QUEUE_MAXIMUM;
        match name {
            "delay" => self.delay = Some(DELAY.read(value, |delay| *delay <= DELAY_MAXIMUM)?),
            "jitter" => self.jitter = Some(JITTER.read(value, |jitter| *jitter <= DELAY_MAXIMUM)?),
            "rate" => self.rate = Some(RATE.read(value, |rate| fits(*rate))?),
            "queue" => self.queue = Some(QUEUE.read(value, bytes)?),
            "burst" => self.burst = Some(BURST.read(value, bytes)?),
            "loss" => self.loss = Some(LOSS.read(value, ratio)?),
            "loss-burst" => {
                self.loss_burst = Some(LOSS_BURST.read(value, |mean| (1..=LOSS_BURST_MAXIMUM).contains(mean))?)
            }
            "corrupt" => self.corrupt = Some(CORRUPT.read(value, ratio)?),
            "duplicate" => self.duplicate = Some(DUPLICATE.read(value, ratio)?),
            "reorder" => self.reorder = Some(REORDER.read(value, ratio)?),
            "mark" => self.mark = Some(MARK.read(value, bytes)?),
            "max-frames" => {
                self.max_frames = Some(MAX_FRAMES.read(value, |rate| (FRAMES_MINIMUM..=FRAMES_MAXIMUM).contains(rate))?)
            }
            "slots" => self.slots = Some(SLOTS.read(value, |slot| (SLOT_MINIMUM..=SLOT_MAXIMUM).contains(slot))?),
            "alternate" => {
                self.alternate = Some(ALTERNATE.read(value, |rates: &Alternation| {
                    fits(rates.first) && fits(rates.second) && (PERIOD_MINIMUM..=PERIOD_MAXIMUM).contains(&rates.period)
                })?);
            }
            "mtu" => self.mtu = Some(MTU.read(value, |mtu| (MTU_MINIMUM..=MTU_MAXIMUM).contains(mtu))?),
            "cut" => {
                self.cut = Some(CUT.read(value, |cut: &Cut| {
                    cut.after <= CUT_LATEST && (PERIOD_MINIMUM..=PERIOD_MAXIMUM).contains(&cut.length)
                })?);
            }
            "fair" => self.fair = FAIR.read(value, |_: &bool| true)?,
            "mtu-silent" => self.mtu_silent = MTU_SILENT.read(value, |_: &bool| true)?,
            _ => {
                return Err(ParseError {
                    text: name.to_owned(),
                    expected: "a field of a path (delay, jitter, rate, queue, burst, loss, loss-burst, corrupt, duplicate, \
                               reorder, mark, max-frames, slots, alternate, mtu, mtu-silent, cut, fair)",
                    example: "path,delay=20ms,rate=50Mbit/s,queue=128KiB",
                });
            }
        }
        Ok(())
    }
}

impl FromStr for PathLimits {
    type Err = ParseError;

    /// Reads `delay=20ms,rate=50Mbit/s`; nothing is a path that only forwards.
    fn from_str(text: &str) -> Result<Self, ParseError> {
        let mut limits = Self::default();
        each_field(text, "a field of a path with its value", "delay=20ms", |name, value| limits.set(name, value))?;
        Ok(limits)
    }
}

impl fmt::Display for PathLimits {
    /// Writes the form that is read, without absent fields.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let time = |time: Nanos| format!("{}ns", time.get());
        let bytes = |bytes: ByteCount| bytes.get().to_string();
        let ratio = |ratio: Ratio| format!("{}/{}", ratio.part, ratio.of);
        let items = [
            (&DELAY, self.delay.map(time)),
            (&JITTER, self.jitter.map(time)),
            (&RATE, self.rate.map(|rate| format!("{}bit/s", rate.get()))),
            (&QUEUE, self.queue.map(bytes)),
            (&BURST, self.burst.map(bytes)),
            (&LOSS, self.loss.map(ratio)),
            (&LOSS_BURST, self.loss_burst.map(|mean| mean.to_string())),
            (&CORRUPT, self.corrupt.map(ratio)),
            (&DUPLICATE, self.duplicate.map(ratio)),
            (&REORDER, self.reorder.map(ratio)),
            (&MARK, self.mark.map(bytes)),
            (&MAX_FRAMES, self.max_frames.map(|rate| rate.to_string())),
            (&SLOTS, self.slots.map(time)),
            (&ALTERNATE, self.alternate.map(|rates| rates.to_string())),
            (&MTU, self.mtu.map(|mtu| mtu.to_string())),
            (&MTU_SILENT, self.mtu_silent.then(|| true.to_string())),
            (&CUT, self.cut.map(|cut| cut.to_string())),
            (&FAIR, self.fair.then(|| true.to_string())),
        ];
        f.write_str(&join_fields(items))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(text: &str) -> PathLimits {
        text.parse().expect(text)
    }

    #[test]
    fn limits_are_read_and_written_alike() {
        let text = "delay=20000000ns,jitter=2000000ns,rate=50000000bit/s,queue=131072,burst=16384,loss=1/100,\
                    loss-burst=8,corrupt=1/1000,duplicate=1/1000,reorder=1/100,mark=30720,max-frames=20000,\
                    slots=20000000ns,mtu=1400,mtu-silent=true,cut=6000000000ns:4000000000ns,fair=true";
        assert_eq!(limits(text).to_string(), text);
        let short = "delay=20ms,jitter=2ms,rate=50Mbit/s,queue=128KiB,burst=16KiB,loss=1%,loss-burst=8,corrupt=0.1%,\
                     duplicate=0.1%,reorder=1%,mark=30KiB,max-frames=20000,slots=20ms,mtu=1400,mtu-silent=true,cut=6s:4s";
        let short_limits = limits(short);
        let again = limits(text);
        assert_eq!((short_limits.delay, short_limits.rate, short_limits.queue), (again.delay, again.rate, again.queue));
        assert_eq!(limits(&short_limits.to_string()), short_limits);
        let turns = limits("alternate=20Mbit/s:200Mbit/s:500ms");
        assert_eq!(turns.to_string(), "alternate=20000000bit/s:200000000bit/s:500000000ns");
        assert_eq!(limits(&turns.to_string()), turns);
        assert_eq!(limits(""), PathLimits::default());
    }

    #[test]
    fn an_error_names_the_field_and_shows_an_example() {
        for (text, part) in [
            ("delay=slow", "delay=20ms"),
            ("delay=2s", "at most 1s"),
            ("jitter=x", "jitter=2ms"),
            ("rate=1kbit/s", "rate=50Mbit/s"),
            ("rate=2Gbit/s", "keeps up with"),
            ("queue=1GiB", "queue=128KiB"),
            ("burst=-1", "burst=16KiB"),
            ("loss=2", "loss=1%"),
            ("loss-burst=0", "loss-burst=8"),
            ("corrupt=x", "corrupt=0.1%"),
            ("duplicate=x", "duplicate=0.1%"),
            ("reorder=101%", "reorder=1%"),
            ("mark=x", "mark=30KiB"),
            ("max-frames=300001", "100 to 300000, which it keeps up with"),
            ("slots=1us", "slots=20ms"),
            ("alternate=20Mbit/s:200Mbit/s", "alternate=20Mbit/s:200Mbit/s:500ms"),
            ("alternate=20Mbit/s:2Gbit/s:1s", "alternate=20Mbit/s:200Mbit/s:500ms"),
            ("mtu=100", "mtu=1400"),
            ("mtu-silent=yes", "mtu-silent=true"),
            ("fair=1", "fair=true"),
            ("cut=4s", "cut=6s:4s"),
            ("cut=0s:61s", "1ms to 60s"),
            ("speed=1", "path,delay=20ms"),
            ("queue", "delay=20ms"),
        ] {
            let error = text.parse::<PathLimits>().expect_err(text).to_string();
            assert!(error.contains(part) && error.contains("of a path"), "{text}: {error}");
        }
    }

    #[test]
    fn contradictions_name_the_field() {
        for (text, part) in [
            ("jitter=1ms", "jitter:"),
            ("delay=1ms,jitter=2ms", "jitter:"),
            ("rate=1Mbit/s,alternate=20Mbit/s:200Mbit/s:500ms", "alternate:"),
            ("loss-burst=8", "loss-burst:"),
            ("loss=95%,loss-burst=8", "loss:"),
            ("queue=10KiB,mark=10KiB", "mark:"),
            ("mark=2MiB", "mark:"),
            ("mtu-silent=true", "mtu-silent:"),
        ] {
            let problem = limits(text).check().expect_err(text);
            assert!(problem.starts_with(part), "{text}: {problem}");
        }
        for text in ["", "delay=1ms,jitter=1ms", "loss=100%", "loss=8/9,loss-burst=8", "queue=0", "mtu=1400"] {
            assert_eq!(limits(text).check(), Ok(()), "{text}");
        }
    }

    #[test]
    fn one_direction_goes_over_both_field_by_field() {
        let both = limits("delay=20ms,rate=50Mbit/s,loss=1%");
        let direction = limits("rate=1Mbit/s,queue=64KiB");
        assert_eq!(direction.over(both), limits("delay=20ms,rate=1Mbit/s,loss=1%,queue=64KiB"));
        let turns = limits("alternate=1Mbit/s:2Mbit/s:1s");
        assert_eq!(turns.over(both).rate, None);
        assert_eq!(direction.over(turns).alternate, None);
    }

    #[test]
    fn the_queue_is_a_small_switchs_unless_said() {
        assert_eq!(limits("rate=50Mbit/s").queue_bytes(), 256 << 10);
        assert_eq!(limits("").queue_bytes(), 1_250_000);
        assert_eq!(limits("queue=0").queue_bytes(), 0);
    }
}
