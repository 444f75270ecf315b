//! The space of set-ups: task, links, path and planted fault.
//!
//! Every choice is a hash of the seed, the draw's number and the choice's name. A draw therefore stays the same when a
//! choice is added.

use super::super::split::hash;
use super::model;
use std::fmt::Write as _;
use std::time::Duration;

/// Maximum time of a draw, without the time to build its lab.
const MAX_DURATION: Duration = Duration::from_secs(15);

/// Largest IP packet of every link in the lab, bytes.
pub(super) const MTU: u64 = 1_500;

/// Highest rate of a path in the lab, in bit/s on the wire. It applies to a path without a rate.
pub(super) const PATH_RATE_MAXIMUM: f64 = 1e9;

#[derive(Debug, Clone)]
pub(super) struct Setup {
    pub(super) number: u32,
    pub(super) task: Task,
    pub(super) ipv6: bool,
    pub(super) flows: u32,
    /// Speed of both links, in bit/s on the wire. The interfaces report it.
    pub(super) line: Option<f64>,
    /// Path between the hosts. `None` is a bridge.
    pub(super) path: Option<Path>,
    pub(super) plant: Plant,
}

/// Measured task. All data go from host `a` to host `b`.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Task {
    Stream {
        transport: Transport,
        /// Size in bytes of a datagram or of a TCP write.
        size: u64,
        /// Offered payload in bit/s. `None` is no limit.
        rate: Option<f64>,
        extent: Extent,
    },
    /// Requests of `request` bytes, each flow with one in flight.
    Transact { transport: Transport, request: u64, response: u64, time: f64 },
    /// Writes of `size` bytes, each flow with `outstanding` in flight.
    Rpc { transport: Transport, size: u64, outstanding: u64, time: f64 },
    /// A copy of `files` files of `size` bytes.
    Copy { files: u64, size: u64 },
    /// NFS operations of the default mix, closed loop.
    Nfs { time: f64 },
}

/// Length of a stream.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Extent {
    Seconds(f64),
    Bytes(u64),
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Transport {
    Udp,
    /// TCP with this congestion control.
    Tcp(&'static str),
}

/// Properties of a path, the same in both directions.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Path {
    /// One-way delay in seconds.
    pub(super) delay: f64,
    /// Rate in bit/s on the wire. `None` is [`PATH_RATE_MAXIMUM`].
    pub(super) rate: Option<f64>,
    /// Queue length in bytes.
    pub(super) queue: u64,
    /// Share of the frames lost, 0 to 1.
    pub(super) loss: f64,
    /// Mean number of frames lost in a row.
    pub(super) burst: u64,
    /// Chain of routers in which one link has these properties. `None` is a path between two switches.
    pub(super) chain: Option<Chain>,
}

/// Chain of routers between the hosts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Chain {
    pub(super) routers: u64,
    /// Number of routers between host `a` and the link with the properties of the path.
    pub(super) link: u64,
    /// Whether Linux's limit of one ICMP error per second is lifted.
    pub(super) answers_all: bool,
}

/// Fault planted in a host.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Plant {
    Nothing,
    /// The sender's queueing discipline sends at `rate`, in bit/s on the wire.
    SenderQueue {
        rate: f64,
        bytes: u64,
    },
    /// The agent of the sender or of the receiver gets this share of a core.
    Quota {
        at_sender: bool,
        share: f64,
    },
    /// Another program keeps this number of cores busy.
    BusyLoops(u32),
}

/// Choices of one draw.
struct Choices {
    seed: u64,
    number: u32,
    attempt: u32,
}

impl Choices {
    /// Returns a number from 0 (included) to 1 (excluded).
    fn unit(&self, name: &str) -> f64 {
        let [seed, number, attempt] = [self.seed.to_string(), self.number.to_string(), self.attempt.to_string()];
        let hash = hash(&["random", &seed, &number, &attempt, name]);
        (hash >> 11) as f64 / (1u64 << 53) as f64
    }

    fn happens(&self, name: &str, probability: f64) -> bool {
        self.unit(name) < probability
    }

    fn pick<T: Copy>(&self, name: &str, from: &[T]) -> T {
        from[(self.unit(name) * from.len() as f64) as usize]
    }

    /// Returns a number between `low` and `high` whose logarithm is evenly distributed, rounded to two digits.
    fn log(&self, name: &str, low: f64, high: f64) -> f64 {
        let number = low * (high / low).powf(self.unit(name));
        let scale = 10f64.powf(number.log10().floor() - 1.0);
        (number / scale).round() * scale
    }

    fn count(&self, name: &str, low: u64, high: u64) -> u64 {
        (self.log(name, low as f64, high as f64).round() as u64).clamp(low, high)
    }
}

impl Setup {
    /// Draws set-up `number` of a seed. Set-ups that would take too long are drawn again.
    pub(super) fn draw(seed: u64, number: u32) -> Self {
        (0..)
            .map(|attempt| Self::attempt(&Choices { seed, number, attempt }))
            .find(|setup| model::duration(setup) <= MAX_DURATION.as_secs_f64())
            .expect("the attempts never end")
    }

    fn attempt(choices: &Choices) -> Self {
        let path = choices.happens("path", 0.7).then(|| Path::draw(choices));
        // A link of a chain has a rate by a path only.
        let has_line = choices.happens("line", 0.4) && path.is_none_or(|path| path.chain.is_none());
        let line = has_line.then(|| choices.log("line rate", 64e3, 10e9));
        Self {
            number: choices.number,
            task: Task::draw(choices),
            ipv6: choices.happens("IPv6", 0.3),
            flows: choices.count("flows", 1, 64) as u32,
            line,
            path,
            plant: Plant::draw(choices, line),
        }
    }

    /// Returns the arguments of linerate.
    pub(super) fn command(&self) -> String {
        let mut command = self.task.command();
        if !matches!(self.task, Task::Copy { .. }) {
            write!(command, " -P {}", self.flows).expect("a string takes all");
        }
        if self.ipv6 {
            command += " -6";
        }
        if self.has_hops() {
            command += " --hops";
        }
        command + " -r 1"
    }

    /// Returns the bench, as in a bench file.
    pub(super) fn bench(&self) -> toml::Table {
        let mut text = "name = 'random'\nhosts = ['a', 'b']\n".to_owned();
        if let Some(rate) = self.line {
            writeln!(text, "link = {{ rate = '{rate:.0}bit/s' }}").expect("a string takes all");
        }
        text += &self.path.map_or("[device]\nkind = 'bridge'\n".to_owned(), |path| path.bench());
        match self.plant {
            Plant::SenderQueue { rate, bytes } => {
                writeln!(text, "[[fault]]\nkind = 'host-queue'\nat = 'a'\nrate = '{rate:.0}bit/s'\nqueue = '{bytes}'")
            }
            Plant::Quota { at_sender, share } => {
                let host = if at_sender { 'a' } else { 'b' };
                writeln!(text, "[[fault]]\nkind = 'cpu-quota'\nat = '{host}'\nratio = '{:.0}%'", share * 100.0)
            }
            Plant::Nothing | Plant::BusyLoops(_) => Ok(()),
        }
        .expect("a string takes all");
        text.parse().expect("the text above is TOML")
    }

    /// Returns whether the path is probed. A volume has no window for probes.
    fn has_hops(&self) -> bool {
        let has_window = match self.task {
            Task::Stream { extent, .. } => matches!(extent, Extent::Seconds(_)),
            Task::Transact { .. } => true,
            _ => false,
        };
        has_window && self.chain().is_some()
    }

    /// Returns the chain of routers between the hosts.
    pub(super) fn chain(&self) -> Option<Chain> {
        self.path.and_then(|path| path.chain)
    }

    /// Returns the number of busy loops that run meanwhile.
    pub(super) fn busy_loops(&self) -> u32 {
        if let Plant::BusyLoops(count) = self.plant { count } else { 0 }
    }

    /// Returns the one-way delay of the path in seconds.
    pub(super) fn delay(&self) -> f64 {
        self.path.map_or(0.0, |path| path.delay)
    }

    /// Returns the size of a UDP stream's datagrams in bytes, or `None` if they are not fragmented.
    pub(super) fn fragmented(&self) -> Option<u64> {
        match self.task {
            Task::Stream { transport: Transport::Udp, size, .. } => {
                Some(size).filter(|size| model::has_fragments(*size, self.ipv6))
            }
            _ => None,
        }
    }

    /// Returns whether no link of the lab shapes or delays. The receiver's interface then counts the Ethernet header.
    pub(super) fn is_plain(&self) -> bool {
        self.line.is_none() && self.path.is_none()
    }

    /// Returns the share of frames lost at random, from 0 to 1.
    pub(super) fn loss(&self) -> f64 {
        self.path.map_or(0.0, |path| path.loss)
    }
}

impl Transport {
    fn draw(choices: &Choices) -> Self {
        if choices.happens("UDP", 0.5) {
            Self::Udp
        } else {
            Self::Tcp(choices.pick("congestion", &["cubic", "reno", "bbr"]))
        }
    }

    fn option(&self) -> String {
        match self {
            Self::Udp => " --udp".to_owned(),
            Self::Tcp(congestion) => format!(" --tcp --congestion {congestion}"),
        }
    }

    /// Returns the smallest message of a stream. A datagram carries its number and time.
    fn smallest(&self) -> u64 {
        if *self == Self::Udp { 16 } else { 1 }
    }

    /// Returns the largest message: a UDP datagram over IPv6, or a common size of TCP writes.
    fn largest(&self) -> u64 {
        if *self == Self::Udp { 65_487 } else { 65_536 }
    }
}

impl Task {
    fn draw(choices: &Choices) -> Self {
        let transport = Transport::draw(choices);
        let time = choices.log("time", 0.3, 10.0);
        match choices.unit("task") {
            ..0.6 => Self::Stream {
                size: choices.count("size", transport.smallest(), transport.largest()),
                rate: choices.happens("rate limited", 0.4).then(|| choices.log("rate", 64e3, 10e9)),
                extent: if choices.happens("volume", 0.25) {
                    Extent::Bytes(choices.count("volume bytes", 10_000, 200_000_000))
                } else {
                    Extent::Seconds(time)
                },
                transport,
            },
            ..0.75 => Self::Transact {
                request: choices.count("request", 1, transport.largest()),
                response: choices.count("response", 1, 1_000),
                transport,
                time,
            },
            ..0.85 => Self::Rpc {
                size: choices.count("unit", 1, 60 << 10),
                outstanding: choices.count("outstanding", 1, 32),
                transport,
                time,
            },
            ..0.95 => Self::Copy {
                files: choices.count("files", 1, 300),
                size: choices.count("file size", 1_000, 20_000_000),
            },
            _ => Self::Nfs { time: time.max(1.0) },
        }
    }

    fn command(&self) -> String {
        match self {
            Self::Stream { transport, size, rate, extent } => {
                let rate = rate.map_or(String::new(), |rate| format!(" --rate {rate:.0}bit/s"));
                let extent = match extent {
                    Extent::Seconds(time) => format!("--time {:.0}ms", time * 1e3),
                    Extent::Bytes(bytes) => format!("--bytes {bytes}"),
                };
                format!("stream a b{} --size {size}{rate} {extent}", transport.option())
            }
            Self::Transact { transport, request, response, time } => {
                let messages = format!("--request {request} --response {response}");
                format!("transact a b{} {messages} --time {:.0}ms", transport.option(), time * 1e3)
            }
            Self::Rpc { transport, size, outstanding, time } => {
                let calls = format!("--call write --sizes {size} --outstanding {outstanding}");
                format!("rpc a b{} {calls} --time {:.0}ms", transport.option(), time * 1e3)
            }
            Self::Copy { files, size } => format!("copy --tree files={files},folders=3,bytes={} a b", files * size),
            Self::Nfs { time } => format!("nfs a b --time {:.0}ms", time * 1e3),
        }
    }
}

impl Path {
    fn draw(choices: &Choices) -> Self {
        let rate = choices.happens("path rate", 0.7).then(|| choices.log("path bit/s", 64e3, PATH_RATE_MAXIMUM));
        // A queue of at least a few packets, and of at most two seconds.
        let max_queue = (rate.unwrap_or(PATH_RATE_MAXIMUM) / 4.0).clamp(8_000.0, 4e6);
        Self {
            delay: if choices.happens("short", 0.3) { 50e-6 } else { choices.log("delay", 0.5e-3, 0.3) },
            rate,
            queue: choices.log("queue", 6_000.0, max_queue) as u64,
            loss: if choices.happens("loss", 0.3) { choices.log("loss share", 0.001, 0.3) } else { 0.0 },
            burst: if choices.happens("bursts", 0.3) { choices.count("burst", 2, 20) } else { 1 },
            chain: choices.happens("chain", 0.25).then(|| Chain::draw(choices)),
        }
    }

    fn bench(&self) -> String {
        let mut text = match self.chain {
            Some(chain) => chain.bench(),
            None => "[device]\nkind = 'path'\n".to_owned(),
        };
        let rate = self.rate.unwrap_or(PATH_RATE_MAXIMUM);
        write!(text, "delay = '{:.0}us'\nrate = '{rate:.0}bit/s'\nqueue = '{}'\n", self.delay * 1e6, self.queue)
            .expect("a string takes all");
        if self.loss > 0.0 {
            writeln!(text, "loss = '{:.3}%'", self.loss * 100.0).expect("a string takes all");
            if self.burst > 1 {
                writeln!(text, "loss-burst = {}", self.burst).expect("a string takes all");
            }
        }
        text
    }
}

impl Chain {
    fn draw(choices: &Choices) -> Self {
        let routers = choices.pick("routers", &[1, 2, 3, 4, 5, 6]);
        let link = (choices.unit("link") * (routers + 1) as f64) as u64;
        Self { routers, link, answers_all: choices.happens("answers all", 0.5) }
    }

    /// Returns the hops before and after the link, counted from host `a`.
    pub(super) fn hops(&self) -> [u64; 2] {
        [self.link, self.link + 1]
    }

    /// Returns the bench up to the limits of the path.
    fn bench(&self) -> String {
        let mut text = format!("device = {{ kind = 'chain', routers = {} }}\n", self.routers);
        if self.answers_all {
            for router in 1..=self.routers {
                writeln!(text, "[[fault]]\nkind = 'router'\nat = {router}\nicmp-rate = 'none'")
                    .expect("a string takes all");
            }
        }
        let [after, before] = self.hops();
        writeln!(text, "[[fault]]\nkind = 'path'\nat = '{after}-{before}'").expect("a string takes all");
        text
    }
}

impl Plant {
    fn draw(choices: &Choices, line: Option<f64>) -> Self {
        match choices.unit("plant") {
            ..0.6 => Self::Nothing,
            // The bench needs a link that is faster than the queue.
            ..0.75 => {
                let max_rate = line.map_or(500e6, |rate| (rate / 2.0).min(500e6));
                if max_rate <= 64e3 {
                    return Self::Nothing;
                }
                let rate = choices.log("queue rate", 64e3, max_rate);
                Self::SenderQueue {
                    rate,
                    bytes: choices.log("queue bytes", 6_000.0, (rate / 4.0).clamp(8_000.0, 1e6)) as u64,
                }
            }
            ..0.9 => {
                let share = choices.log("share", 0.05, 0.5);
                Self::Quota { at_sender: choices.happens("at sender", 0.5), share }
            }
            _ => Self::BusyLoops(choices.pick("busy loops", &[1, 2])),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draw_depends_on_seed_and_number_only() {
        let command = |seed, number| Setup::draw(seed, number).command();
        assert_eq!(command(1, 7), command(1, 7));
        assert!((0..20).any(|number| command(1, number) != command(2, number)));
    }

    #[test]
    fn lab_can_build_every_draw() {
        for number in 0..2_000 {
            let setup = Setup::draw(3, number);
            let text = toml::to_string(&setup.bench()).unwrap();
            linerate_lab::Bench::parse(&text, "draw").unwrap_or_else(|error| panic!("{error}\n{text}"));
        }
    }

    #[test]
    fn draws_reach_every_task_and_both_ends_of_the_scales() {
        let setups: Vec<Setup> = (0..2_000).map(|number| Setup::draw(4, number)).collect();
        let any = |holds: &dyn Fn(&Setup) -> bool| setups.iter().any(holds);
        assert!(any(&|setup| matches!(setup.task, Task::Stream { transport: Transport::Udp, size: ..=20, .. })));
        assert!(any(&|setup| matches!(setup.task, Task::Stream { extent: Extent::Bytes(..=20_000), .. })));
        assert!(any(&|setup| matches!(setup.task, Task::Transact { .. })));
        assert!(any(&|setup| matches!(setup.task, Task::Rpc { .. })));
        assert!(any(&|setup| matches!(setup.task, Task::Copy { .. })));
        assert!(any(&|setup| matches!(setup.task, Task::Nfs { .. })));
        assert!(any(&|setup| setup.path.is_some_and(|path| path.delay > 0.2)));
        assert!(any(&|setup| setup.path.is_some_and(|path| path.rate.is_some_and(|rate| rate < 200e3))));
        assert!(any(&|setup| setup.line.is_some_and(|rate| rate < 200e3)));
        assert!(any(&|setup| setup.loss() > 0.2));
        for [first, last] in [[true, false], [false, true]] {
            assert!(any(&|setup| setup.chain().is_some_and(|chain| {
                first && chain.hops()[0] == 0 || last && chain.hops()[1] == chain.routers + 1
            })));
        }
        assert!(any(&|setup| setup.flows == 64) && any(&|setup| setup.flows == 1));
    }
}
