//! Linux.

mod address;
mod agent;
mod bench;
mod chain;
pub mod child_processes;
pub mod cross;
mod ethernet;
mod hub_limits;
mod kept;
mod lab;
mod lifeline;
mod limit_field;
mod load_failure;
pub mod open_vswitch;
mod open_vswitch_limits;
pub mod path;
mod policer;
mod receiving;
mod reference;
mod reference_limits;
pub mod slow_disk;
pub mod slow_router;
mod slow_server;
mod user;
mod wiring;
mod written;

pub use bench::{
    AnswerAddress, Bench, BusyCore, ChainWay, Congestion, CpuQuota, CrossTraffic, DEVICE, Device, DeviceKind,
    DropFilter, Ecmp, Fault, FaultPlace, FilterKind, HostQueue, IcmpRate, Link, LinkPath, Loss, NoOffload, OneCore,
    RouterAnswers, SoftirqLoad, TESTER, TcpMemory, WrongSpeed,
};
pub use chain::{ChainLink, ChainNode};
pub use hub_limits::HubLimits;
pub use kept::{Kept, kept};
pub use lab::Lab;
pub use open_vswitch::OpenVswitchWatch;
pub use open_vswitch_limits::OpenVswitchLimits;
pub use path::{DirectionCounts, HubPortCounts, PathCounts, PathLimits, PathPlan, PathWatch};
pub use reference::{ReferenceCounts, ReferenceWatch, pause};
pub use reference_limits::{Queues, ReferenceLimits, Treatment};
pub use slow_disk::SlowDisk;
pub use slow_router::SlowRouter;
pub use slow_server::SlowServer;
pub use user::enter_user_namespace;
