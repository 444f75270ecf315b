//! `linerate device`: a switch or router between ports of one or several hosts, tested with raw frames.

mod echo;
pub(super) mod full_frames;
mod hosts;
mod layout;
mod plan;
mod ports;

pub(in crate::commands) use layout::Layout;
pub(super) use plan::{Way, fits_line, line_of};
pub(super) use ports::{Ports, split};

use crate::choice::{Choices, choice};
use crate::device_load::LoadSource;
use crate::exit::Failure;
use crate::hosts::HostBook;
use crate::measure::{Beside, RunRequest, conclude, reach};
use crate::options::{Family, Results};
use clap::{Args, Subcommand, ValueEnum};
use linerate_method::{Metric, calibrated};
use linerate_model::{
    Calibrated, DevicePlan, DeviceTest, FrameEngine, FramePayload, Goal, Plan, PortPattern, SearchGoal,
};
use linerate_runner::Ended;
use linerate_store::{Query, State, Store};
use linerate_units::{BitRate, FrameRate, Nanos, Ratio};
use std::net::IpAddr;
use tokio::sync::watch;

/// The echo port, which RFC 2544 appendix C.2.6.4 asks for.
const UDP: FramePayload = FramePayload::Udp { source_port: 7, destination_port: 7 };
/// Records looked through for a calibration.
const RECENT: usize = 200;

/// Test a switch or router with raw frames between its ports
#[derive(Debug, Args)]
#[command(
    after_help = "\
Examples:
  linerate device calibrate --ports eth1,eth2     with a cable in its place
  linerate device throughput --ports eth1,eth2    seven frame sizes
  linerate device latency --ports eth1,eth2 --sizes 64,1518 --rate 100k
  linerate device echo --ports eth1 --target 198.18.0.254
  linerate device all --ports eth1,eth2 --time 60s
  linerate device full-mesh --ports eth1,eth2,eth3,eth4
  linerate lab --device bridge -- device burst --ports tester:p0,tester:p1

Use it only on devices and ports set apart for testing (RFC 6815): the frames
fill the ports and the networks behind them.",
    after_long_help = "\
More examples:
  linerate device throughput --ports eth1,eth2 --method mlr --goals ndr,pdr
  linerate device latency --ports eth1,eth2 --expect 'latency.p99<=50us'
  linerate device throughput --ports eth1,eth2 --time 10s --device-snmp snmp://192.0.2.1
  linerate device burst --ports eth1,eth2 --sizes 64
  linerate device addresses --ports eth1,eth2,eth3
  linerate device hosts --ports eth1,eth2
  linerate device congestion --ports eth1,eth2,eth3,eth4 --line 1Gbit/s
  linerate device throughput --ports eth1,eth2,eth3,eth4 --pattern full-mesh
  linerate device throughput --ports linerate://...:eth1,linerate://...:eth1
  linerate lab --device bridge -- device throughput --ports a:eth0,b:eth0 --sizes 64

Ports are interfaces of this machine, or HOST:INTERFACE of one or several agents started with --allow-frames. Between \
several hosts latency is unknown, because their clocks differ."
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    test: Test,
}

#[derive(Debug, Subcommand)]
enum Test {
    /// The highest rate without loss (RFC 2544 section 26.1)
    Throughput {
        #[command(flatten)]
        common: Common,
        /// Search method: bisect or mlr
        #[arg(long, value_enum, default_value_t = Method::Bisect, help_heading = OPTIONS)]
        method: Method,
        /// Goals of mlr: rfc2544, tst009, ndr, pdr
        ///
        /// Search goals of --method mlr: rfc2544 (no loss in 60s), tst009 (two trials, one may have loss), ndr and pdr (21 trials
        /// of 1s, half may have loss; pdr tolerates 0.5%). A shorter --time shortens their trials. The default is rfc2544.
        #[arg(long, value_name = "GOAL", value_delimiter = ',', value_parser = goal, help_heading = OPTIONS)]
        goals: Vec<SearchGoal>,
    },
    /// The tester limit, with a cable in the device's place
    Calibrate(Common),
    /// Latency of every frame (RFC 2544 section 26.2)
    ///
    /// At a set rate or at the throughput.
    Latency {
        #[command(flatten)]
        common: Common,
        /// Frames per second [default: throughput]
        ///
        /// Each direction has as many. The throughput is measured first unless this is given.
        #[arg(long, value_name = "RATE", help_heading = OPTIONS)]
        rate: Option<FrameRate>,
    },
    /// Loss against load (RFC 2544 section 26.3)
    ///
    /// In steps from the highest rate down.
    Loss {
        #[command(flatten)]
        common: Common,
        /// Load step, % of the highest
        #[arg(long, value_name = "PERCENT", help_heading = OPTIONS, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=50))]
        step: u32,
    },
    /// A switch's address table (RFC 2889 sections 5.7 and 5.8)
    ///
    /// Its capacity and learning rate; three ports.
    #[command(after_help = ADDRESSES_HELP, after_long_help = ADDRESSES_LONG_HELP)]
    Addresses {
        #[command(flatten)]
        common: Common,
        /// Most addresses to try
        #[arg(long, value_name = "N", help_heading = OPTIONS, default_value_t = 65_536, value_parser = clap::value_parser!(u32).range(1..=1 << 24))]
        most: u32,
        /// New addresses per second
        ///
        /// Rate of new addresses that the device is known to learn.
        #[arg(long, value_name = "RATE", default_value = "10k", help_heading = OPTIONS)]
        learn_rate: FrameRate,
        /// The device's ageing time [default: 0]
        ///
        /// Needed to measure the learning rate; each probe waits for it. By default there is no wait.
        #[arg(long, value_name = "TIME", default_value = "0s", hide_default_value = true, help_heading = OPTIONS)]
        ageing: Nanos,
    },
    /// A router's neighbour table (ARP, with -6 ND)
    ///
    /// Its capacity, and the behaviour beyond it; two or three ports.
    #[command(after_help = hosts::HELP, after_long_help = hosts::LONG_HELP)]
    Hosts {
        #[command(flatten)]
        common: Common,
        /// Most hosts to try
        #[arg(long, value_name = "N", help_heading = OPTIONS, default_value_t = 65_536, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
        most: u32,
        /// New hosts per second
        ///
        /// Rate of new hosts that the router is known to resolve.
        #[arg(long, value_name = "RATE", default_value = "1k", help_heading = OPTIONS)]
        learn_rate: FrameRate,
        /// Frames per second
        ///
        /// Rate of frames that the router is known to forward.
        #[arg(long, value_name = "RATE", default_value = "10k", help_heading = OPTIONS)]
        rate: FrameRate,
    },
    /// The longest burst without loss (RFC 2544 26.4, RFC 9004)
    ///
    /// Also the buffer that such a burst fills. The throughput is measured first. The length of bursts gives a buffer size only if the throughput is below the
    /// bursts' rate.
    Burst {
        #[command(flatten)]
        common: Common,
        /// Number of searches (RFC: 50)
        ///
        /// RFC 2544 asks for 50.
        #[arg(long, value_name = "N", help_heading = OPTIONS, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1000))]
        repeats: u32,
    },
    /// Recovery from overload (RFC 2544 section 26.5)
    ///
    /// Offers 110 % of the throughput, which is measured first, for --time, then 50 % of it for the same time.
    Recovery {
        #[command(flatten)]
        common: Common,
        /// Number of runs
        #[arg(long, value_name = "N", help_heading = OPTIONS, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000))]
        repeats: u32,
    },
    /// The highest rate of pings that are all answered
    ///
    /// Sends ICMP echo requests from one port, which also receives the answers.
    Echo {
        #[command(flatten)]
        common: Common,
        /// Address that answers the pings
        ///
        /// It is reached through --gateway if one is given.
        #[arg(long, value_name = "ADDRESS", help_heading = OPTIONS)]
        target: IpAddr,
    },
    /// Forwarding rates of a full mesh (RFC 2889 section 5.1)
    ///
    /// Throughput, forwarding rate at the maximum load (FRMOL) and maximum forwarding rate (MFR); every port sends to every
    /// other.
    FullMesh(Forwarding),
    /// Forwarding rates, one port to many or back (RFC 2889 5.2)
    Partial {
        #[command(flatten)]
        forwarding: Forwarding,
        /// Direction: out, in or both
        ///
        /// From the first port to the others (out), from the others to the first port (in), or both.
        #[arg(long, value_enum, default_value_t = Direction::Both, help_heading = OPTIONS)]
        direction: Direction,
    },
    /// Forwarding rates across an uplink (RFC 2889 section 5.3)
    ///
    /// The first half of the ports is at one device, the second half at another.
    Backbone {
        #[command(flatten)]
        forwarding: Forwarding,
        /// Also send between ports of one device
        #[arg(long, help_heading = OPTIONS)]
        local: bool,
    },
    /// Forwarding rates, half the ports to the rest (RFC 2889 5.4)
    Unidirectional(Forwarding),
    /// Head-of-line blocking, back pressure (RFC 2889 section 5.5)
    ///
    /// Groups of four ports: two senders, an uncongested and a congested receiver. The first sender's frames go to both
    /// receivers in turn, the second sender's to the congested one, each at the line rate.
    Congestion(Common),
    /// Forwarding above the line rate (RFC 2889 section 5.6)
    ///
    /// The last port receives. One sending port shortens its gaps to 88 bits if it can; two sending ports overload the
    /// receiving one.
    ForwardPressure(Common),
    /// Frames with errors (RFC 2889 section 5.9)
    ///
    /// Oversize and undersize frames and frames with a wrong FCS. Other errors need hardware of its own.
    Errors {
        #[command(flatten)]
        common: Common,
        /// A cable is in the device's place: measure the ports
        #[arg(long, help_heading = OPTIONS)]
        cable: bool,
    },
    /// Rate and latency of broadcasts (RFC 2889 section 5.10)
    ///
    /// The first port sends, the others receive.
    Broadcast(Common),
    /// Throughput, latency, loss, burst and recovery in one record
    All {
        #[command(flatten)]
        common: Common,
        /// Load step of the loss test, %
        ///
        /// Percent of the highest load.
        #[arg(long, value_name = "PERCENT", help_heading = OPTIONS, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=50))]
        step: u32,
        /// Runs of burst and recovery
        #[arg(long, value_name = "N", help_heading = OPTIONS, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000))]
        repeats: u32,
    },
}

/// Options of the tests of forwarding rates.
#[derive(Debug, Args)]
struct Forwarding {
    #[command(flatten)]
    common: Common,
    /// Load step, % of the maximum
    ///
    /// Loads go from the maximum down to the throughput.
    #[arg(long, value_name = "PERCENT", help_heading = OPTIONS, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=50))]
    step: u32,
}

/// Directions of a partial mesh.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Direction {
    /// One to many
    Out,
    /// Many to one
    In,
    /// Both at once
    Both,
}

/// Search methods.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Method {
    /// Bisection (RFC 2544)
    Bisect,
    /// One or several goals at once (RFC 9971)
    Mlr,
}

fn goal(text: &str) -> Result<SearchGoal, String> {
    SearchGoal::ALL.into_iter().find(|goal| goal.name() == text).ok_or_else(|| {
        let known: Vec<&str> = SearchGoal::ALL.iter().map(|goal| goal.name()).collect();
        format!("there is no such goal; name one of {}", known.join(", "))
    })
}

/// The heading of a test's own options, which follow those of all tests.
const OPTIONS: Option<&'static str> = None;

const ADDRESSES_HELP: &str = "\
Example:
  linerate device addresses --ports eth1,eth2,eth3

Ports: the first sends test frames, addresses are learned at the second, and
the third detects flooded frames.

The device also knows the tester's three ports: the capacity includes them and
the addresses learned. The device's own addresses are not counted.";

const ADDRESSES_LONG_HELP: &str = "\
More examples:
  linerate lab --device reference,addresses=1000 -- device addresses --ports tester:p0,tester:p1,tester:p2";

/// The ports of a test, and what the frames between them are like.
#[derive(Debug, Args)]
pub(super) struct PortOptions {
    /// Interfaces of this machine, or HOST:INTERFACE
    ///
    /// Two or more for most tests, one for echo.
    #[arg(long, value_name = "PORT,PORT", value_delimiter = ',', required = true)]
    pub(super) ports: Vec<String>,

    /// Send in both directions at the same time
    #[arg(long)]
    pub(super) both: bool,

    /// Streams between the ports [default: pairs]
    ///
    /// The names are those of RFC 2889. The receivers of a port get its frames in turn.
    #[arg(long, value_parser = choice::<PortPattern>(PATTERNS), hide_short_help = true)]
    pub(super) pattern: Option<PortPattern>,

    #[command(flatten)]
    pub(super) family: Family,

    /// VLAN ID of the frames; two are QinQ, outer first (EtherType 0x88a8)
    #[arg(long, value_name = "ID", value_delimiter = ',', value_parser = clap::value_parser!(u16).range(1..=4094), hide_short_help = true)]
    pub(super) vlan: Vec<u16>,

    /// Priority in the VLAN tags, 0 to 7 (PCP)
    #[arg(long, value_name = "PCP", default_value_t = 0, value_parser = clap::value_parser!(u8).range(..=7), hide_short_help = true)]
    pub(super) priority: u8,

    /// DSCP of the frames, 0 to 63
    #[arg(long, value_name = "DSCP", default_value_t = 0, value_parser = clap::value_parser!(u8).range(..=63), hide_short_help = true)]
    pub(super) dscp: u8,

    /// The device is a router with this address
    ///
    /// It has the address at the sending port, and a second one for the other direction. The default is the first address of
    /// the port's network, if the ports are in different networks.
    #[arg(long, value_name = "ADDRESS", value_delimiter = ',')]
    pub(super) gateway: Vec<IpAddr>,

    /// Method of sending and receiving frames
    #[arg(long, default_value = "auto", value_parser = choice::<FrameEngine>(ENGINES), hide_short_help = true)]
    pub(super) engine: FrameEngine,

    /// Use the ports even if your SSH session needs them
    #[arg(long)]
    pub(super) force: bool,
}

const PATTERNS: Choices = &[
    ("pairs", "First to second port, third to fourth"),
    ("full-mesh", "Every port to every other"),
    ("one-to-many", "First port to the others"),
    ("many-to-one", "The others to the first port"),
    ("unidirectional", "First half of the ports to the second"),
    ("backbone", "Between the halves, both ways"),
];

const ENGINES: Choices = &[
    ("auto", "XDP if the host supports it, packet sockets otherwise"),
    ("xdp", "XDP programs in the driver"),
    ("packet-socket", "Packet sockets: slower, no privilege needed in a lab"),
];

#[derive(Debug, Args)]
pub(super) struct Common {
    #[command(flatten)]
    pub(super) between: PortOptions,

    /// Frame sizes in bytes, with FCS
    ///
    /// The default is 64,128,256,512,1024,1280,1518; of echo 78, with IPv6 98.
    #[arg(long, value_name = "BYTES", value_delimiter = ',')]
    sizes: Vec<u32>,

    /// Deciding trial (RFC: 60s)
    ///
    /// Length of the deciding trial; RFC 2544 asks for 60s.
    #[arg(long, short = 't', value_name = "TIME", default_value = "2s")]
    time: Nanos,

    /// Length of the trials during a search
    ///
    /// `throughput --method mlr` has those of its goals instead.
    #[arg(long, value_name = "TIME", default_value = "500ms", hide_short_help = true)]
    search_time: Nanos,

    /// Search resolution
    ///
    /// As a share of the rate; a coarser search is faster. `throughput --method mlr` has those of its goals instead.
    #[arg(long, value_name = "RATIO", default_value = "0.2%", hide_short_help = true)]
    resolution: Ratio,

    /// End a trial when no frame has arrived for this long
    ///
    /// Frames still on their way are awaited: 2s if none has arrived yet, as RFC 2544 asks, and 10s at most.
    #[arg(long, value_name = "TIME", default_value = "100ms", hide_short_help = true)]
    settle: Nanos,

    /// Line rate, if ports do not report it
    #[arg(long, value_name = "RATE")]
    line: Option<BitRate>,

    /// Loss ratio tolerated, for example 0.5%
    ///
    /// `throughput --method mlr` has those of its goals instead.
    #[arg(long, value_name = "RATIO", default_value = "0", hide_short_help = true)]
    loss: Ratio,

    #[command(flatten)]
    load: LoadSource,

    #[command(flatten)]
    results: Results,
}

impl Arguments {
    fn parts(&self) -> Result<(&Common, DeviceTest), Failure> {
        Ok(match &self.test {
            Test::Throughput { common, method: Method::Mlr, .. } if common.loss.as_f64() > 0.0 => {
                return Err(Failure::usage(
                    "--loss is for --method bisect; each goal of mlr has a loss of its own, as in --goals pdr",
                ));
            }
            Test::Throughput { common, method: Method::Mlr, goals } => {
                let goals = if goals.is_empty() { vec![SearchGoal::Rfc2544] } else { goals.clone() };
                (common, DeviceTest::Goals { goals })
            }
            Test::Throughput { goals, .. } if !goals.is_empty() => {
                return Err(Failure::usage("--goals are for --method mlr; a search by halving takes --loss"));
            }
            Test::Throughput { common, .. } => (common, DeviceTest::Throughput),
            Test::Calibrate(common) => (common, DeviceTest::Calibrate),
            Test::Latency { common, rate } => (common, DeviceTest::Latency { rate: *rate }),
            Test::Loss { common, step } => (common, DeviceTest::Loss { step_percent: *step }),
            Test::Burst { common, repeats } => (common, DeviceTest::Burst { repeats: *repeats }),
            Test::Recovery { common, repeats } => (common, DeviceTest::Recovery { repeats: *repeats }),
            Test::Echo { common, target } => (common, DeviceTest::Echo { target: *target }),
            Test::All { common, step, repeats } => (common, DeviceTest::All { step_percent: *step, repeats: *repeats }),
            Test::FullMesh(Forwarding { common, step })
            | Test::Partial { forwarding: Forwarding { common, step }, .. }
            | Test::Backbone { forwarding: Forwarding { common, step }, .. }
            | Test::Unidirectional(Forwarding { common, step }) => {
                (common, DeviceTest::Forwarding { step_percent: *step })
            }
            Test::Congestion(common) => (common, DeviceTest::Congestion),
            Test::ForwardPressure(common) => (common, DeviceTest::ForwardPressure),
            Test::Errors { common, cable } => (common, DeviceTest::Errors { cable: *cable }),
            Test::Broadcast(common) => (common, DeviceTest::Broadcast),
            Test::Addresses { common, most, learn_rate, ageing } => {
                (common, DeviceTest::Addresses { most: *most, learn_rate: *learn_rate, ageing: *ageing })
            }
            Test::Hosts { common, most, learn_rate, rate } => {
                (common, DeviceTest::Hosts { most: *most, learn_rate: *learn_rate, rate: *rate })
            }
        })
    }

    /// Returns the streams of the test.
    ///
    /// # Errors
    /// The test has a pattern of its own, and the options ask for another.
    fn layout(&self) -> Result<Layout, Failure> {
        let between = &self.parts()?.0.between;
        let fixed = |pattern, both, local| Layout { pattern, both, local };
        let layout = match &self.test {
            Test::FullMesh(_) => fixed(PortPattern::FullMesh, false, false),
            Test::Partial { direction: Direction::Out, .. } => fixed(PortPattern::OneToMany, false, false),
            Test::Partial { direction: Direction::In, .. } => fixed(PortPattern::ManyToOne, false, false),
            Test::Partial { direction: Direction::Both, .. } => fixed(PortPattern::OneToMany, true, false),
            Test::Backbone { local, .. } => fixed(PortPattern::Backbone, false, *local),
            Test::Unidirectional(_) => fixed(PortPattern::Unidirectional, false, false),
            Test::Congestion(_) | Test::ForwardPressure(_) | Test::Errors { .. } | Test::Broadcast(_) => {
                Layout::default()
            }
            Test::Echo { .. } | Test::Addresses { .. } | Test::Hosts { .. } if between.pattern.is_some() => {
                return Err(Failure::usage("--pattern: this test has streams of its own; leave it out"));
            }
            _ => return Ok(between.layout()),
        };
        if between.both || between.pattern.is_some() {
            return Err(Failure::usage("--both, --pattern: this test has streams of its own; leave them out"));
        }
        Ok(layout)
    }

    /// Output options.
    pub(crate) fn results_mut(&mut self) -> &mut Results {
        match &mut self.test {
            Test::Calibrate(common)
            | Test::Throughput { common, .. }
            | Test::Latency { common, .. }
            | Test::Loss { common, .. }
            | Test::Burst { common, .. }
            | Test::Recovery { common, .. }
            | Test::Echo { common, .. }
            | Test::All { common, .. }
            | Test::Addresses { common, .. }
            | Test::Congestion(common)
            | Test::ForwardPressure(common)
            | Test::Errors { common, .. }
            | Test::Broadcast(common)
            | Test::FullMesh(Forwarding { common, .. })
            | Test::Partial { forwarding: Forwarding { common, .. }, .. }
            | Test::Backbone { forwarding: Forwarding { common, .. }, .. }
            | Test::Unidirectional(Forwarding { common, .. })
            | Test::Hosts { common, .. } => &mut common.results,
        }
    }

    /// Refuses what can be refused before anything is built or reached.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        let (common, test) = self.parts()?;
        common.between.ports(&test, self.layout()?).map(|_| ())
    }

    /// The ports as given.
    pub(crate) fn ports(&self) -> &[String] {
        self.parts().map_or(&[], |(common, _)| &common.between.ports)
    }

    /// Whether its result is compared with the tester limit; a calibration is that limit, and addresses are no rate.
    pub(crate) fn wants_tester_limit(&self) -> bool {
        // A cable joins two ports.
        self.parts().is_ok_and(|(common, test)| has_tester_limit(&test) && common.between.ports.len() == 2)
    }

    /// The run that it goes on with.
    pub(crate) fn resumes(&self) -> bool {
        self.parts().is_ok_and(|(common, _)| common.results.resume.is_some())
    }
}

/// Runs the test. Tester limits that were measured for it are `calibrated`; without any they are looked for in the store.
pub(crate) async fn run(
    arguments: Arguments,
    book: HostBook,
    calibrated: Vec<Calibrated>,
    cancel: watch::Receiver<bool>,
) -> Result<(), Failure> {
    let (common, test) = arguments.parts()?;
    let asked = common.asked(&test)?;
    let ended = common.measure((test, arguments.layout()?), &book, &asked, calibrated, cancel).await?;
    conclude(&ended, &common.results)
}

/// Runs the test as one of several runs of a command; nothing of it is shown.
pub(crate) async fn run_beside(
    arguments: &Arguments,
    book: &HostBook,
    asked: &RunRequest,
    calibrated: Vec<Calibrated>,
    cancel: watch::Receiver<bool>,
) -> Result<Ended, Failure> {
    let (common, test) = arguments.parts()?;
    common.measure((test, arguments.layout()?), book, asked, calibrated, cancel).await
}

/// Measures the tester limit, for a lab that is built with the device bypassed.
pub(crate) async fn calibrate(
    arguments: &Arguments,
    book: &HostBook,
    cancel: watch::Receiver<bool>,
) -> Result<Vec<Calibrated>, Failure> {
    let (common, test) = arguments.parts()?;
    let asked = common.asked(&test)?;
    let calibration = calibration_of(&test);
    let layout = arguments.layout()?;
    let ports = common.between.ports(&calibration, layout)?;
    let agents = reach(book, &ports.arguments, cancel.clone()).await?;
    let record = match common.plan(calibration, layout, &ports, &agents).await {
        Ok(plan) => asked.calibrate(Plan::of(Goal::Device(plan)), &agents, cancel).await,
        Err(failure) => Err(failure),
    };
    agents.close().await;
    record.map(|record| calibrated(&record))
}

impl Common {
    fn asked(&self, test: &DeviceTest) -> Result<RunRequest, Failure> {
        RunRequest::of(&self.results, Metric::Frames.applies_to_device(test), |metric| metric.applies_to_device(test))
    }

    async fn measure(
        &self,
        (test, layout): (DeviceTest, Layout),
        book: &HostBook,
        asked: &RunRequest,
        calibrated: Vec<Calibrated>,
        cancel: watch::Receiver<bool>,
    ) -> Result<Ended, Failure> {
        let ports = self.between.ports(&test, layout)?;
        let mut agents = reach(book, &ports.arguments, cancel.clone()).await?;
        let ended = async {
            let device = self.load.watch(book, &mut agents, &ports.arguments).await?;
            let device_plan = match test {
                DeviceTest::Echo { target } => self.echo_plan(target, &ports, &agents).await?,
                test => self.plan(test, layout, &ports, &agents).await?,
            };
            let calibrated = match &asked.store {
                Some(store) if calibrated.is_empty() && has_tester_limit(&device_plan.test) => {
                    calibrated_for(&device_plan, store)?
                }
                _ => calibrated,
            };
            let plan = Plan { calibrated, ..Plan::of(Goal::Device(device_plan)) };
            asked.run(plan, &agents, Beside { device, ..Beside::default() }, cancel).await
        }
        .await;
        agents.close().await;
        ended
    }
}

/// Tester limits of each size by its newest calibration between the same ports of the same host by the same means and ways.
fn calibrated_for(plan: &DevicePlan, store: &Store) -> Result<Vec<Calibrated>, Failure> {
    let mut found: Vec<Calibrated> = Vec::new();
    let calibration = calibration_of(&plan.test);
    let command = if calibration == DeviceTest::Calibrate { "calibrate" } else { "errors" };
    let finished = Query { states: vec![State::Finished], ..Query::text(command).map_err(Failure::usage)? };
    for record in store.newest(&finished, RECENT).map_err(Failure::measure)? {
        let mut record = record.map_err(Failure::measure)?;
        let same = |other: &DevicePlan| {
            other.test == calibration
                && other.host == plan.host
                && other.ports == plan.ports
                && other.engine == plan.engine
                && other.pattern == plan.pattern
                && other.directions.len() == plan.directions.len()
        };
        if record.plan.device().is_some_and(same) {
            linerate_method::replay(&mut record);
            for known in calibrated(&record) {
                if found.iter().all(|newer| newer.subject != known.subject) {
                    found.push(known);
                }
            }
        }
    }
    Ok(found)
}

/// Returns the test over a cable by which the tester is calibrated for a test.
fn calibration_of(test: &DeviceTest) -> DeviceTest {
    match test {
        DeviceTest::Errors { .. } => DeviceTest::Errors { cable: true },
        _ => DeviceTest::Calibrate,
    }
}

/// Whether the result is compared with the tester limit: a calibration is that limit, no cable joins the one port of an echo
/// test, and the others are no search for a rate that the device sustains.
fn has_tester_limit(test: &DeviceTest) -> bool {
    !matches!(
        test,
        DeviceTest::Calibrate
            | DeviceTest::Latency { rate: Some(_) }
            | DeviceTest::Echo { .. }
            | DeviceTest::Addresses { .. }
            | DeviceTest::Congestion
            | DeviceTest::Errors { cable: true }
            | DeviceTest::Hosts { .. }
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_choice_is_a_variant() {
        crate::choice::tests::check::<FrameEngine>(ENGINES);
        crate::choice::tests::check::<PortPattern>(PATTERNS);
    }
}
