//! Systems without network namespaces. What a lab is made of has no value here, so that nothing can be done with it.

use crate::{LabError, LabOptions};
use linerate_model::{AgentUrl, HostName, Message};
use linerate_units::BitRate;
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::str::FromStr;
use std::sync::Arc;

/// The tester of a bench that has one.
pub const TESTER: &str = "tester";
/// The device, where it has an agent.
pub const DEVICE: &str = "device";

/// Property of a lab that only Linux has. It has no value here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinuxOnly(Nothing);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Nothing {}

impl FromStr for LinuxOnly {
    type Err = LabError;

    fn from_str(_text: &str) -> Result<Self, LabError> {
        Err(LabError::NeedsLinux)
    }
}

/// Traffic between hosts that nobody measures.
pub type CrossTraffic = LinuxOnly;
/// Limits of Open vSwitch.
pub type OpenVswitchLimits = LinuxOnly;
/// A planted fault.
pub type Fault = LinuxOnly;
/// A planted slow disk.
pub type SlowDisk = LinuxOnly;
/// A planted slow router.
pub type SlowRouter = LinuxOnly;
/// A planted slow NFS server.
pub type SlowServer = LinuxOnly;
/// Plan of a path between hosts.
pub type PathPlan = LinuxOnly;

/// Device between the hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeviceKind {
    /// A cable.
    None,
    /// Routers in a row.
    Chain {
        /// Number of routers.
        routers: u8,
    },
}

impl FromStr for DeviceKind {
    type Err = LabError;

    fn from_str(_text: &str) -> Result<Self, LabError> {
        Err(LabError::NeedsLinux)
    }
}

impl fmt::Display for DeviceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::Chain { routers } => write!(f, "{routers} routers"),
        }
    }
}

/// A device and what it does.
#[derive(Debug, Clone, PartialEq)]
pub struct Device {
    /// Its kind.
    pub kind: DeviceKind,
}

/// A link between a host and the device, or between two hosts.
#[derive(Debug, Clone, PartialEq)]
pub struct Link {
    /// Rate of Ethernet that the link behaves as.
    pub rate: Option<BitRate>,
}

/// A bench. There is none on this system.
#[derive(Debug, Clone, PartialEq)]
pub struct Bench {
    /// Names of the hosts.
    pub hosts: Vec<HostName>,
    /// Device between the hosts.
    pub device: Device,
    /// Ports of the tester.
    pub tester_ports: u8,
    /// Properties of every link.
    pub link: Link,
    /// Planted faults.
    pub faults: Vec<Fault>,
    /// Traffic between hosts that nobody measures.
    pub cross_traffic: Vec<CrossTraffic>,
    /// Planted slow NFS servers.
    pub slow_servers: Vec<SlowServer>,
    /// Planted slow disks.
    pub slow_disks: Vec<SlowDisk>,
    nothing: LinuxOnly,
}

/// Functions that change a bench of Linux.
macro_rules! changes {
    ($($(#[$doc:meta])* $name:ident($($argument:ty)?);)*) => {
        impl Bench {
            $($(#[$doc])* pub fn $name(self $(, _: $argument)?) -> Self { self })*
        }
    };
}

changes! {
    /// With this rate of every link.
    with_link(BitRate);
    /// With a shaper.
    with_shaper(BitRate);
    /// With a policer.
    with_policer(BitRate);
    /// With a fault.
    with_fault(Fault);
    /// Without faults.
    without_faults();
    /// With cross traffic.
    with_cross_traffic(CrossTraffic);
    /// With a slow NFS server.
    with_slow_server(SlowServer);
    /// With a slow disk.
    with_slow_disk(SlowDisk);
    /// With another device.
    with_device(DeviceKind);
    /// With ports of a tester.
    with_tester(u8);
    /// With hosts that test the device.
    with_testers(&[HostName]);
    /// With this number of hosts.
    with_hosts(usize);
}

impl Bench {
    /// Returns a bench that comes with the program.
    ///
    /// # Errors
    /// Always, with [`LabError::NeedsLinux`].
    pub fn named(_name: &str) -> Result<Self, LabError> {
        Err(LabError::NeedsLinux)
    }

    /// Returns a bench by its name or path.
    ///
    /// # Errors
    /// Always, with [`LabError::NeedsLinux`].
    pub fn find(_text: &str) -> Result<Self, LabError> {
        Err(LabError::NeedsLinux)
    }

    /// Returns a bench from the text of a file.
    ///
    /// # Errors
    /// Always, with [`LabError::NeedsLinux`].
    pub fn parse(_text: &str, _origin: &str) -> Result<Self, LabError> {
        Err(LabError::NeedsLinux)
    }

    /// Returns whether a link has a rate.
    pub fn has_rates(&self) -> bool {
        match self.nothing.0 {}
    }

    /// Checks that the programs of the device are installed.
    ///
    /// # Errors
    /// A program is missing.
    pub fn check_programs(&self) -> Result<(), LabError> {
        match self.nothing.0 {}
    }

    /// Checks that the bench can be built.
    ///
    /// # Errors
    /// It cannot.
    pub fn check(&self) -> Result<(), LabError> {
        match self.nothing.0 {}
    }
}

/// A running lab. There is none on this system.
#[derive(Debug)]
pub struct Lab(LinuxOnly);

impl Lab {
    /// Builds a bench.
    ///
    /// # Errors
    /// There is no bench on this system.
    pub async fn up(bench: &Bench, _options: &LabOptions) -> Result<Self, LabError> {
        match bench.nothing.0 {}
    }

    /// Returns the hosts and the URLs of their agents.
    pub fn hosts(&self) -> &BTreeMap<HostName, AgentUrl> {
        match self.0.0 {}
    }

    /// Starts a program in a host.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn run_in(&self, _host: &HostName, _command: Command) -> Result<Child, LabError> {
        match self.0.0 {}
    }

    /// Returns the counts of the path between the hosts.
    ///
    /// # Errors
    /// The path does not answer.
    pub fn path_counts(&self) -> Result<Option<PathCounts>, LabError> {
        match self.0.0 {}
    }

    /// Returns the path between the hosts.
    pub fn path(&self) -> Option<Arc<PathWatch>> {
        match self.0.0 {}
    }

    /// Returns the Open vSwitch between the hosts.
    pub fn open_vswitch(&self) -> Option<Arc<OpenVswitchWatch>> {
        match self.0.0 {}
    }

    /// Returns the device of known limits.
    pub fn reference(&self) -> Option<ReferenceWatch> {
        match self.0.0 {}
    }

    /// Takes the lab down.
    pub async fn down(self) {
        match self.0.0 {}
    }

    /// Leaves the lab to itself.
    ///
    /// # Errors
    /// It was not built for that.
    pub fn keep(self) -> Result<Kept, LabError> {
        match self.0.0 {}
    }
}

/// A lab that was kept. There is none on this system.
#[derive(Debug, Clone)]
pub struct Kept(LinuxOnly);

impl Kept {
    /// Returns the hosts and the URLs of their agents.
    pub fn hosts(&self) -> BTreeMap<HostName, AgentUrl> {
        match self.0.0 {}
    }

    /// Runs a program in a host.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn enter(&self, _host: &HostName, _command: Command) -> Result<ExitStatus, LabError> {
        match self.0.0 {}
    }

    /// Takes the lab down.
    ///
    /// # Errors
    /// An agent does not end.
    pub fn down(self) -> Result<(), LabError> {
        match self.0.0 {}
    }
}

/// Returns the kept lab. Always `None`.
///
/// # Errors
/// None on this system.
pub fn kept() -> Result<Option<Kept>, LabError> {
    Ok(None)
}

/// Prepares this process for building labs.
///
/// # Errors
/// Always, with [`LabError::NeedsLinux`].
pub fn enter_user_namespace() -> Result<(), LabError> {
    Err(LabError::NeedsLinux)
}

/// A path that can be asked for its counts.
#[derive(Debug)]
pub struct PathWatch(LinuxOnly);

impl PathWatch {
    /// Returns a warning if the path has not done what was planted.
    ///
    /// # Errors
    /// The path has ended.
    pub fn missed(&self) -> Result<Option<Message>, LabError> {
        match self.0.0 {}
    }
}

/// A running Open vSwitch.
#[derive(Debug)]
pub struct OpenVswitchWatch(LinuxOnly);

impl OpenVswitchWatch {
    /// Returns `None` while it runs.
    ///
    /// # Errors
    /// One of its programs has ended.
    pub fn missed(&self) -> Result<Option<Message>, LabError> {
        match self.0.0 {}
    }
}

/// A device of known limits that can be asked for its counts.
#[derive(Debug)]
pub struct ReferenceWatch(LinuxOnly);

impl ReferenceWatch {
    /// Returns a warning if the device has not kept its limits.
    ///
    /// # Errors
    /// The device cannot be asked.
    pub fn missed(&self) -> Result<Option<Message>, LabError> {
        match self.0.0 {}
    }
}

/// Counts of a path so far.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PathCounts {
    /// By the host at the port of a hub.
    pub from: BTreeMap<HostName, HubPortCounts>,
}

/// Counts of a hub's port.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HubPortCounts {
    /// Frames that came from the host.
    pub arrived: u64,
    /// Frames that the port sent on the medium.
    pub sent: u64,
    /// Attempts that ended in a collision.
    pub collisions: u64,
    /// Frames dropped after 16 collisions.
    pub excessive_collisions: u64,
    /// Frames dropped because the port's queue was full.
    pub queue_full: u64,
}

/// Processes of a lab of Linux. Each function fails.
macro_rules! processes {
    ($($module:ident: $name:ident($($argument:ty),*);)*) => {
        $(
            /// A process of a lab.
            pub mod $module {
                use super::*;

                /// Fails on this system.
                ///
                /// # Errors
                /// Always, with [`LabError::NeedsLinux`].
                pub fn $name($(_: $argument),*) -> Result<(), LabError> {
                    Err(LabError::NeedsLinux)
                }
            }
        )*
    };
}

processes! {
    cross: exchange(linerate_units::Nanos, u16);
    open_vswitch: serve(&OpenVswitchLimits, Option<u32>);
    path: serve(&PathPlan);
    pause: serve();
    slow_disk: serve(&SlowDisk, &[PathBuf]);
    slow_router: serve(&SlowRouter);
}

/// Processes that maintain a lab's faults.
pub mod child_processes {
    use super::{LabError, Path};

    /// Fails on this system.
    ///
    /// # Errors
    /// Always, with [`LabError::NeedsLinux`].
    pub fn neighbour(_core: u32, _share: f64, _first: bool) -> Result<(), LabError> {
        Err(LabError::NeedsLinux)
    }

    /// Fails on this system.
    ///
    /// # Errors
    /// Always, with [`LabError::NeedsLinux`].
    pub fn keeper(_group: &Path) -> Result<(), LabError> {
        Err(LabError::NeedsLinux)
    }
}
