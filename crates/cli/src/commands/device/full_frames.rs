//! Full frames from one host's port to another's, as many as the line takes: the raw-frame rung of a ladder.

use super::{Common, Engine, UDP};
use crate::commands::ladder::FramesAsked;
use crate::exit::Failure;
use crate::hosts::Company;
use linerate_method::device::Device;
use linerate_model::{DeviceTest, FrameForm, FrameTrial, IpVersion, Nic};
use linerate_units::{BitRate, FrameSize, Nanos, Ratio};

/// What Ethernet adds to an IP packet: 14 bytes of header and 4 of FCS (IEEE 802.3 clause 3.1.1).
const AROUND: u32 = 18;
/// Wait for stragglers: what still stands in the queues of a path.
const SETTLE: Nanos = Nanos::from_millis(300);

/// A port at one end of the path.
pub(crate) struct End<'a> {
    /// Its host, as given on the command line.
    pub(crate) host: &'a str,
    pub(crate) nic: &'a Nic,
}

/// The trial, if both hosts let it be run: from the first end to the second.
pub(crate) async fn full_frames(
    ends: [End<'_>; 2],
    asked: FramesAsked<'_>,
    company: &Company,
) -> Result<FrameTrial, Failure> {
    let nics = || ends.iter().map(|end| end.nic);
    let mtu = nics().map(|nic| nic.mtu).min().unwrap_or_default();
    let size = FrameSize::with_fcs(mtu + AROUND).map_err(Failure::usage)?;
    let line = nics().filter_map(|nic| nic.speed).min();
    // A veth takes XDP's frames only where its other end is made ready for them; it always takes a socket's.
    let engine = if nics().any(|nic| nic.driver == "veth") { Engine::Packet } else { Engine::Auto };
    let common = Common {
        ports: ends.iter().map(|end| format!("{}:{}", end.host, end.nic.name)).collect(),
        sizes: vec![size.get()],
        both: false,
        time: asked.time,
        search_time: asked.time,
        settle: SETTLE,
        line,
        loss: Ratio::new(0, 1),
        resolution: Ratio::new(1, 500),
        ipv6: asked.ip == IpVersion::V6,
        vlan: Vec::new(),
        gateway: Vec::new(),
        engine,
        force: asked.force,
        load: Default::default(),
        results: asked.results.clone(),
        payload: UDP,
    };
    let rate = line.map(|line: BitRate| size.line_rate(line));
    let test = DeviceTest::Frames { rate, count: None, form: FrameForm::default() };
    let plan = common.plan(test.clone(), &common.ports(&test)?, company).await?;
    let trial = Device::new(plan, None).next();
    trial.ok_or_else(|| Failure::usage("no trial of full frames can be made"))
}
