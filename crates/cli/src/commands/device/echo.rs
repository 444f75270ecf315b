//! `linerate device echo`: from one port to whoever answers, and back.

use super::Common;
use super::layout::Layout;
use super::plan::address;
use super::ports::Ports;
use crate::exit::Failure;
use crate::hosts::ReachedAgents;
use linerate_control::Resolve;
use linerate_model::{DevicePlan, DeviceTest, FrameHeaders, FramePayload, PortPair};
use std::net::IpAddr;

/// The frame of a ping as Windows sends it by default: 32 bytes behind Ethernet, IPv4 and ICMP.
const SIZE: u32 = 78;
/// The same with IPv6.
const SIZE_IPV6: u32 = 98;

impl Common {
    /// Echo requests to `target`, whose answers come back to the same port.
    pub(super) async fn echo_plan(
        &self,
        target: IpAddr,
        ports: &Ports,
        agents: &ReachedAgents,
    ) -> Result<DevicePlan, Failure> {
        if self.between.both {
            return Err(Failure::usage("--both: echo requests and their answers go both ways as it is"));
        }
        self.between.check_untagged()?;
        let test = DeviceTest::Echo { target };
        let found = ports.find(agents, self.between.force).await?;
        let [found] = &found[..] else { return Err(Failure::usage("--ports: this test takes one port")) };
        let port = &found.info;
        let own = address(0, port, target.is_ipv6());
        let neighbour = self.between.gateway.first().copied().unwrap_or(target);
        let ask = Resolve { interface: port.interface.clone(), mac: port.mac, own, target: neighbour };
        let headers = FrameHeaders {
            source_mac: port.mac,
            destination_mac: found.agent.client.resolve(&ask).await.map_err(Failure::measure)?,
            vlans: self.between.vlan.clone(),
            priority: self.between.priority,
            dscp: self.between.dscp,
            source: own,
            destination: target,
            payload: FramePayload::Echo,
        };
        let default = if target.is_ipv6() { SIZE_IPV6 } else { SIZE };
        let sizes = self.sizes_or(&[default], headers.smallest_frame(), port.mtu)?;
        let line = self.line.or_else(|| found.speed());
        let directions = vec![PortPair { from: 0, to: 0, copies_to: Vec::new(), headers }];
        self.plan_of(test, Layout::default(), (ports, line), directions, sizes)
    }
}
