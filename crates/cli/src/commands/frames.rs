//! `linerate frames`: frames sent from port to port and counted where they arrive, without a search.

use super::device::{PortOptions, Ports, Way, fits_line, line_of};
use crate::choice::{Choices, choice};
use crate::device_load::LoadSource;
use crate::exit::Failure;
use crate::hosts::{HostBook, ReachedAgents};
use crate::measure::{Beside, RunRequest, conclude, reach};
use crate::options::Results;
use clap::Args;
use linerate_frames::first_frame;
use linerate_method::Metric;
use linerate_method::frames::PlainFrames;
use linerate_model::{
    DeviceTest, FrameBytes, FrameForm, FrameMix, FramePayload, FrameReceiver, Plan, RawFrame, Repeats, Trial, Vary,
};
use linerate_units::{BitRate, FrameRate, FrameSize, Nanos};
use std::path::PathBuf;
use std::str::FromStr;
use tokio::sync::watch;

/// The longest that a count may take where no rate says how long it takes.
const COUNT_TIME: Nanos = Nanos::from_secs(60);
/// How long is sent where neither a time nor a count says so.
const USUAL_TIME: Nanos = Nanos::from_secs(10);
/// Frame size where neither a size nor a mix is given, bytes with FCS.
const USUAL_SIZE: u32 = 64;
/// Ports of test traffic: the echo port (RFC 2544 appendix C.2.6.4).
const PORT: u16 = 7;

const RECEIVERS: Choices =
    &[("port", "At the port, before the host's protocols"), ("socket", "At a UDP socket of the host")];

/// Send raw frames from one port to another, and count them on arrival
#[derive(Debug, Args)]
#[command(
    after_help = "\
Examples:
  linerate frames --ports eth1,eth2     10,000 frames/s of 64 bytes for 10 s
  linerate frames --ports eth1,eth2 --rate max --time 5s --both
  linerate frames --ports eth1,eth2 --rate 1Gbit/s --sizes imix
  linerate frames --ports eth1,eth2 --count 1 --template pcap:odd.pcap
  linerate lab --device bridge -- frames --ports tester:p0,tester:p1 --vlan 7

Use it only on devices and ports set apart for testing (RFC 6815): the frames
fill the ports and the networks behind them.",
    after_long_help = "\
More examples:
  linerate frames --ports eth1,eth2 --count 1000 --template tcp --vary src-ip:1000 --vary src-port:500:random

Ports are interfaces of this machine, or HOST:INTERFACE of one or several agents started with --allow-frames. Between \
several hosts latency is unknown, because their clocks differ."
)]
pub(crate) struct Arguments {
    #[command(flatten)]
    between: PortOptions,

    /// 100k frames/s, 1Gbit/s, or max
    ///
    /// Rate of each direction: frames per second (100k), bits per second on the line with preamble and gap (1Gbit/s), or as fast
    /// as possible (max).
    #[arg(long, value_name = "RATE", default_value = "10k")]
    rate: Rate,

    /// Frame size in bytes, with FCS [default: 64]
    #[arg(long, value_name = "BYTES", conflicts_with = "sizes")]
    size: Option<u32>,

    /// Mix of sizes: imix, or 64:7,594:4,1518:1
    ///
    /// Frame sizes with weights. imix is the mix 64:7,594:4,1518:1.
    #[arg(long, value_name = "MIX")]
    sizes: Option<FrameMix>,

    /// Frames per burst, 1 to 930
    ///
    /// The frames of a burst leave at the minimum gap; the gap between bursts keeps the rate (RFC 2889 appendix A).
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=930), hide_short_help = true)]
    burst: u32,

    /// Most frames in each direction
    #[arg(long, short = 'n', value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,

    /// Streams of each direction, 1 to 1024
    ///
    /// The streams share the rate and the count. Source ports count up, so that a NIC spreads the streams over its queues. The
    /// sending cores, all but one, divide the streams; with --receiver socket each stream has a socket and a thread.
    #[arg(long, short = 'P', value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1024), hide_short_help = true)]
    flows: u16,

    /// Length of sending [default: 10s]
    ///
    /// With --count it takes as long as needed, with --rate max at most 60s.
    #[arg(long, short = 't', value_name = "TIME")]
    time: Option<Nanos>,

    /// udp, tcp, echo, hex:... or pcap:FILE
    ///
    /// Frame template: udp, tcp (segments with data and ACK, no connection), echo (ICMP requests), hex:BYTES (from the
    /// destination address on, without FCS), or pcap:FILE (the first frame of a capture).
    #[arg(long, value_name = "FORM", default_value = "udp")]
    template: Template,

    /// Overwrite the payload of hex: or pcap: frames with a signature, so that each frame is counted and timed. Without
    /// it only the ports' counters count them
    #[arg(long, hide_short_help = true)]
    sign: bool,

    /// Vary a field, as in src-ip:1000
    ///
    /// FIELD:COUNT or FIELD:COUNT:random varies it over COUNT values from its own value up; may be repeated. Fields: src-mac,
    /// dst-mac, vlan (the outer one), src-ip, dst-ip, src-port, dst-port.
    #[arg(long, value_name = "FIELD:N")]
    vary: Vec<Vary>,

    /// End the trial when no frame has arrived for this long
    #[arg(long, value_name = "TIME", default_value = "200ms", hide_short_help = true)]
    settle: Nanos,

    /// Place where frames count as received: port, or socket
    ///
    /// port: at the receiving port, before the host's protocols. socket: where a program reads them from a UDP socket of the
    /// receiving host. The loss between port and socket is then the host's.
    #[arg(long, default_value = "port", value_parser = choice::<FrameReceiver>(RECEIVERS), hide_short_help = true)]
    receiver: FrameReceiver,

    #[command(flatten)]
    load: LoadSource,

    #[command(flatten)]
    pub(crate) results: Results,
}

/// The rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rate {
    Frames(FrameRate),
    Wire(BitRate),
    Most,
}

impl FromStr for Rate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let rate = match text {
            "max" => Some(Self::Most),
            _ => text.parse().map(Self::Frames).or_else(|_| text.parse().map(Self::Wire)).ok(),
        };
        rate.filter(|rate| !matches!(rate, Self::Frames(rate) if rate.get() == 0)).ok_or_else(|| {
            format!("`{text}` is not a rate: write frames a second (100k), bits a second on the line (1Gbit/s), or max")
        })
    }
}

/// The frame template.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Template {
    Headers(FramePayload),
    Raw(FrameBytes),
    Capture(PathBuf),
}

impl FromStr for Template {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (source_port, destination_port) = (PORT, PORT);
        match (text, text.split_once(':')) {
            ("udp", _) => Ok(Self::Headers(FramePayload::Udp { source_port, destination_port })),
            ("tcp", _) => Ok(Self::Headers(FramePayload::Tcp { source_port, destination_port })),
            ("echo", _) => Ok(Self::Headers(FramePayload::Echo)),
            (_, Some(("hex", bytes))) => bytes.parse().map(Self::Raw).map_err(|error| format!("{error}")),
            (_, Some(("pcap", file))) => Ok(Self::Capture(file.into())),
            _ => Err(format!("`{text}` is no template: write udp, tcp, echo, hex:BYTES or pcap:FILE")),
        }
    }
}

pub(crate) async fn run(arguments: Arguments, book: HostBook, cancel: watch::Receiver<bool>) -> Result<(), Failure> {
    let sending = arguments.sending()?;
    let ports = Ports::read(&arguments.between.ports, &DeviceTest::Throughput, arguments.between.layout())?;
    let asked = RunRequest::of(&arguments.results, true, Metric::applies_to_frames)?;
    let mut agents = reach(&book, &ports.arguments, cancel.clone()).await?;
    let ended = async {
        let device = arguments.load.watch(&book, &mut agents, &ports.arguments).await?;
        let plan = Plan::sweep(vec![sending.trial(&ports, &agents).await?], Repeats::Times(1));
        asked.run(plan, &agents, Beside { device, ..Beside::default() }, cancel).await
    }
    .await;
    agents.close().await;
    conclude(&ended?, &arguments.results)
}

/// Frames to be sent between two ports.
pub(super) struct Sending<'a> {
    pub(super) between: &'a PortOptions,
    /// Frames per second of each direction; none sends as fast as possible.
    pub(super) rate: Option<FrameRate>,
    pub(super) count: Option<u64>,
    pub(super) form: FrameForm,
    pub(super) payload: FramePayload,
    pub(super) size: FrameSize,
    pub(super) time: Nanos,
    pub(super) settle: Nanos,
    pub(super) receiver: FrameReceiver,
    pub(super) flows: u16,
}

impl Sending<'_> {
    /// Looks at the ports, and returns the trial between them.
    pub(super) async fn trial(&self, ports: &Ports, agents: &ReachedAgents) -> Result<Trial, Failure> {
        let found = ports.find(agents, self.between.force).await?;
        // A raw frame has addresses of its own.
        let way = if self.form.raw.is_some() { Way::Straight } else { Way::Any };
        let mut directions = self.between.directions(&found, self.payload, way).await?;
        let smallest = directions[0].headers.smallest_frame();
        let mtu = found.iter().map(|port| port.info.mtu).min().unwrap_or_default();
        let parts = self.form.mix.iter().flat_map(|mix| mix.parts()).map(|part| part.size);
        for size in std::iter::once(self.size).chain(parts) {
            self.between.fitting(size, smallest, mtu)?;
        }
        if let Some(raw) = &self.form.raw {
            // Switches are to learn the address that the frame comes from.
            directions[0].headers.source_mac = raw.source_mac();
        }
        if let (Some(rate), None) = (self.rate, &self.form.mix) {
            fits_line(rate, self.size, line_of(&found))?;
        }
        let frames = PlainFrames {
            host: ports.home().clone(),
            ports: ports.names.clone(),
            directions,
            rate: self.rate,
            count: self.count,
            form: self.form.clone(),
            time: self.time,
            settle: self.settle,
            engine: self.between.engine,
            receiver: self.receiver,
            flows: self.flows,
        };
        Ok(frames.trial(self.size))
    }
}

impl Arguments {
    /// The ports as given.
    pub(super) fn ports(&self) -> &[String] {
        &self.between.ports
    }

    fn sending(&self) -> Result<Sending<'_>, Failure> {
        let raw = self.raw_frame()?;
        let size = match (&raw, &self.sizes) {
            (Some(raw), _) => raw.bytes.size(),
            (None, Some(mix)) => mix.largest().unwrap_or(FrameSize::carrying(0, 0)),
            (None, None) => {
                let size = self.size.unwrap_or(USUAL_SIZE);
                FrameSize::with_fcs(size).map_err(|error| Failure::usage(format!("--size: {error}")))?
            }
        };
        let rate = self.frames_per_s(size)?;
        let time = match (self.time, self.count, rate) {
            (Some(time), ..) => time,
            (None, None, _) => USUAL_TIME,
            (None, Some(_), None) => COUNT_TIME,
            // The count ends it; the time has room for a tester that is held up.
            (None, Some(count), Some(rate)) => {
                let nanos = 2 * u128::from(count) * 1_000_000_000 / u128::from(rate.get());
                Nanos::new(u64::try_from(nanos).unwrap_or(u64::MAX / 4)) + Nanos::from_secs(1)
            }
        };
        if time.is_zero() {
            return Err(Failure::usage("--time must be longer than 0"));
        }
        let payload = match self.template {
            Template::Headers(payload) => payload,
            Template::Raw(_) | Template::Capture(_) => FramePayload::Udp { source_port: PORT, destination_port: PORT },
        };
        let form = FrameForm {
            raw,
            vary: self.vary.clone(),
            mix: self.sizes.clone(),
            burst: self.burst_frames()?,
            bad_fcs: false,
        };
        Ok(Sending {
            between: &self.between,
            rate,
            count: self.count,
            form,
            payload,
            size,
            time,
            settle: self.settle,
            receiver: self.receiver,
            flows: self.flows(rate)?,
        })
    }

    /// Returns the number of streams of each direction.
    fn flows(&self, rate: Option<FrameRate>) -> Result<u16, Failure> {
        if self.flows == 1 {
            return Ok(1);
        }
        if !matches!(self.template, Template::Headers(FramePayload::Udp { .. } | FramePayload::Tcp { .. })) {
            return Err(Failure::usage("--flows counts the source port up, and needs --template udp or tcp"));
        }
        let max_flows = rate.map_or(u64::MAX, FrameRate::get).min(self.count.unwrap_or(u64::MAX));
        if u64::from(self.flows) > max_flows {
            let flows = self.flows;
            return Err(Failure::usage(format!(
                "--flows {flows}: a stream needs a frame a second, and one of --count"
            )));
        }
        Ok(self.flows)
    }

    /// Returns the frames of a burst; 0 for evenly spaced frames.
    fn burst_frames(&self) -> Result<u32, Failure> {
        match (self.burst, self.rate) {
            (1, _) => Ok(0),
            (_, Rate::Most) => {
                Err(Failure::usage("--burst needs a rate, which the gaps between bursts keep; give --rate 10k"))
            }
            (frames, _) => Ok(frames),
        }
    }

    /// The frame given byte by byte, if there is one.
    fn raw_frame(&self) -> Result<Option<RawFrame>, Failure> {
        let bytes = match &self.template {
            Template::Headers(_) if self.sign => {
                return Err(Failure::usage(
                    "--sign is for hex: and pcap: templates; udp, tcp and echo are signed anyway",
                ));
            }
            Template::Headers(_) => return Ok(None),
            Template::Raw(bytes) => bytes.clone(),
            Template::Capture(file) => {
                let failed = |why: String| Failure::usage(format!("--template pcap:{}: {why}", file.display()));
                let content = std::fs::read(file).map_err(|error| failed(error.to_string()))?;
                let frame = first_frame(&content).map_err(|error| failed(error.to_string()))?;
                FrameBytes::new(frame.to_vec()).map_err(|error| failed(error.to_string()))?
            }
        };
        let given = [
            ("--size", self.size.is_some()),
            ("--sizes", self.sizes.is_some()),
            ("--vlan", !self.between.vlan.is_empty()),
            ("--ipv6", self.between.family.is_v6()),
            ("--gateway", !self.between.gateway.is_empty()),
            ("--dscp", self.between.dscp > 0),
            ("--both", self.between.both),
            ("--pattern", self.between.pattern.is_some()),
        ];
        match given.into_iter().find(|(_, given)| *given) {
            Some((option, _)) => Err(Failure::usage(format!(
                "{option} does not go with a hex: or pcap: template: size, tags and addresses are the frame's own, and it goes \
                 one way"
            ))),
            None => Ok(Some(RawFrame { bytes, signed: self.sign })),
        }
    }

    /// Frames per second; none does not limit the rate.
    fn frames_per_s(&self, size: FrameSize) -> Result<Option<FrameRate>, Failure> {
        let bits = match self.rate {
            Rate::Most => return Ok(None),
            Rate::Frames(rate) => return Ok(Some(rate)),
            Rate::Wire(bits) => bits,
        };
        let (bytes, frames) = match &self.sizes {
            None => (u64::from(size.on_the_wire()), 1),
            Some(mix) => mix.round_on_the_wire(),
        };
        match bits.scaled(frames, bytes * 8).get() {
            0 => {
                Err(Failure::usage(format!("--rate {bits}: less than a frame a second; give frames a second, as in 1")))
            }
            rate => Ok(Some(FrameRate::per_second(rate))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(arguments: &[&str]) -> Arguments {
        #[derive(clap::Parser)]
        struct Only {
            #[command(flatten)]
            arguments: Arguments,
        }
        let words = ["x", "--ports", "a,b"].iter().chain(arguments);
        <Only as clap::Parser>::try_parse_from(words).expect("good arguments").arguments
    }

    #[test]
    fn every_choice_is_a_variant() {
        crate::choice::tests::check::<FrameReceiver>(RECEIVERS);
    }

    fn rate(arguments: &[&str]) -> Option<u64> {
        given(arguments).sending().expect("a rate").rate.map(|rate| rate.get())
    }

    #[test]
    fn rates_are_of_frames_or_of_the_line() {
        assert_eq!(rate(&[]), Some(10_000));
        assert_eq!(rate(&["--rate", "max"]), None);
        assert_eq!(rate(&["--rate", "1Gbit/s"]), Some(1_488_095));
        // 12 frames take 7 x 84, 4 x 614 and 1538 bytes, 4582 in all: 12 x 125,000,000 / 4582.
        assert_eq!(rate(&["--rate", "1Gbit/s", "--sizes", "imix"]), Some(327_367));
        for bad in ["0", "fast", "-1"] {
            assert!(bad.parse::<Rate>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_count_has_time_at_its_rate() {
        let time = |arguments: &[&str]| given(arguments).sending().ok().map(|sending| sending.time);
        assert_eq!(time(&[]), Some(USUAL_TIME));
        assert_eq!(time(&["--count", "500"]), Some(Nanos::from_millis(1_100)));
        assert_eq!(time(&["--count", "500", "--rate", "max"]), Some(COUNT_TIME));
        assert_eq!(time(&["--count", "500", "--time", "2s"]), Some(Nanos::from_secs(2)));
    }

    #[test]
    fn bursts_keep_a_rate() {
        for (arguments, burst) in
            [(&[][..], Some(0)), (&["--burst", "16"], Some(16)), (&["--burst", "16", "--rate", "max"], None)]
        {
            let arguments = given(arguments);
            let sending = arguments.sending().ok();
            assert_eq!(sending.map(|sending| sending.form.burst), burst);
        }
    }

    #[test]
    fn a_raw_frame_is_all_its_own() {
        const FRAME: &str = "hex:020000000002 020000000001 88b5 00";
        let size = given(&["--template", FRAME]).sending().expect("a raw frame").size;
        assert_eq!(size.get(), 64);
        for more in [&["--both"][..], &["--vlan", "5"], &["-6"], &["--size", "128"], &["--sizes", "imix"]] {
            assert!(given(&[&["--template", FRAME], more].concat()).sending().is_err(), "{more:?}");
        }
        for wrong in [&["--sign"][..], &["--template", "pcap:/nowhere"]] {
            assert!(given(wrong).sending().is_err(), "{wrong:?}");
        }
        assert!("hex:zz".parse::<Template>().is_err() && "arp".parse::<Template>().is_err());
    }
}
