//! Device between the hosts of a bench, as the command line and bench files write it.

use super::required_text;
use crate::linux::chain::ROUTERS;
use crate::linux::hub_limits::HubLimits;
use crate::linux::limit_field::{LimitField, each_field, field};
use crate::linux::open_vswitch_limits::OpenVswitchLimits;
use crate::linux::path::PathLimits;
use crate::linux::reference_limits::ReferenceLimits;
use linerate_units::{BitRate, ParseError};
use serde::{Deserialize, Deserializer, de};
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

/// Number of routers of a chain without one.
const ROUTERS_DEFAULT: u8 = 4;
const ROUTERS_FIELD: LimitField =
    field("routers", "routers of a chain: 1 to 12", "--routers 4, or routers = 4 in a file");

/// The device between the hosts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(try_from = "WrittenDevice")]
pub struct Device {
    /// Kind of the device, with its limits.
    pub kind: DeviceKind,
}

/// Kinds of devices.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum DeviceKind {
    /// A Linux bridge: a switch.
    #[default]
    Bridge,
    /// A Linux router; each host is in a network of its own.
    Router,
    /// Open vSwitch with the userspace datapath: a switch in software.
    OpenVswitch(OpenVswitchLimits),
    /// A switch of exactly known limits.
    Reference(ReferenceLimits),
    /// A switch that does to the frames for each host what a long or poor path would.
    Path(PathLimits),
    /// A hub: all ports share one half-duplex medium.
    Hub(HubLimits),
    /// Linux routers in a row between two hosts; each link is a network of its own.
    Chain {
        /// Number of the routers.
        routers: u8,
    },
    /// Nothing: two hosts, or two ports of the tester, back to back.
    None,
}

/// The `[device]` table of a bench file.
#[derive(Debug, Deserialize)]
struct WrittenDevice {
    #[serde(deserialize_with = "required_text")]
    kind: DeviceKind,
    #[serde(flatten)]
    limits: WrittenLimits,
}

/// Limits in a table of a bench file.
#[derive(Debug, Deserialize)]
#[serde(transparent)]
pub(super) struct WrittenLimits(BTreeMap<String, toml::Value>);

impl WrittenLimits {
    /// The limits as the command line writes them: one reader for both.
    pub(super) fn line(&self) -> String {
        let items = self.0.iter().map(|(name, value)| match value {
            toml::Value::String(text) => format!("{name}={text}"),
            other => format!("{name}={other}"),
        });
        items.collect::<Vec<_>>().join(",")
    }
}

/// The limits in a table of their own.
pub(super) fn path<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<PathLimits>, D::Error> {
    let limits = WrittenLimits::deserialize(deserializer)?;
    limits.line().parse().map(Some).map_err(de::Error::custom)
}

impl TryFrom<WrittenDevice> for Device {
    type Error = ParseError;

    fn try_from(written: WrittenDevice) -> Result<Self, ParseError> {
        let WrittenDevice { kind, limits } = written;
        if limits.0.is_empty() {
            return Ok(Self { kind });
        }
        Ok(Self { kind: format!("{kind},{}", limits.line()).parse()? })
    }
}

impl DeviceKind {
    /// Returns whether a program forwards the frames, and not the kernel.
    pub(crate) fn is_program(self) -> bool {
        matches!(self, Self::Path(_) | Self::Hub(_) | Self::OpenVswitch(_))
    }

    /// Returns the rate that the device's ports have of themselves, or `None` if they have that of the links.
    pub(crate) fn port_rate(self) -> Option<BitRate> {
        match self {
            Self::Reference(limits) => limits.port_rate,
            _ => None,
        }
    }
}

impl fmt::Display for DeviceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bridge => f.pad("bridge"),
            Self::Router => f.pad("router"),
            Self::OpenVswitch(limits) if *limits == OpenVswitchLimits::default() => f.pad("open-vswitch"),
            Self::OpenVswitch(limits) => f.pad(&format!("open-vswitch,{limits}")),
            Self::Reference(limits) if *limits == ReferenceLimits::default() => f.pad("reference"),
            Self::Reference(limits) => f.pad(&format!("reference,{limits}")),
            Self::Path(limits) if *limits == PathLimits::default() => f.pad("path"),
            Self::Path(limits) => f.pad(&format!("path,{limits}")),
            Self::Hub(limits) if *limits == HubLimits::default() => f.pad("hub"),
            Self::Hub(limits) => f.pad(&format!("hub,{limits}")),
            Self::Chain { routers } if *routers == ROUTERS_DEFAULT => f.pad("chain"),
            Self::Chain { routers } => f.pad(&format!("chain,routers={routers}")),
            Self::None => f.pad("none"),
        }
    }
}

impl FromStr for DeviceKind {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let (kind, limits) = text.split_once(',').map_or((text, None), |(kind, limits)| (kind, Some(limits)));
        match (kind, limits) {
            ("bridge", None) => Ok(Self::Bridge),
            ("router", None) => Ok(Self::Router),
            ("none", None) => Ok(Self::None),
            ("open-vswitch", limits) => limits.unwrap_or_default().parse().map(Self::OpenVswitch),
            ("reference", limits) => limits.unwrap_or_default().parse().map(Self::Reference),
            ("path", limits) => limits.unwrap_or_default().parse().map(Self::Path),
            ("hub", limits) => limits.unwrap_or_default().parse().map(Self::Hub),
            ("chain", limits) => chain(limits.unwrap_or_default()),
            ("bridge" | "router" | "none", Some(limits)) => Err(ParseError {
                text: limits.to_owned(),
                expected: "for this kind of device: only a reference device, a path, a hub, a chain and Open vSwitch have fields",
                example: "reference,max-frames=200000 or path,delay=20ms",
            }),
            _ => Err(ParseError {
                text: text.to_owned(),
                expected: "a device",
                example: "bridge, router, none, open-vswitch, reference,max-frames=200000, path,delay=20ms, hub,rate=10Mbit/s or \
                          chain,routers=4",
            }),
        }
    }
}

/// Reads the fields of a chain.
fn chain(fields: &str) -> Result<DeviceKind, ParseError> {
    let mut routers = ROUTERS_DEFAULT;
    each_field(fields, "a field of a chain with its value", "chain,routers=4", |name, value| {
        if name != ROUTERS_FIELD.name {
            return Err(ParseError {
                text: name.to_owned(),
                expected: "a field of a chain: it has routers",
                example: "chain,routers=4",
            });
        }
        routers = ROUTERS_FIELD.read(value, |routers| ROUTERS.contains(routers))?;
        Ok(())
    })?;
    Ok(DeviceKind::Chain { routers })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn device(text: &str) -> Device {
        toml::from_str(text).expect(text)
    }

    #[test]
    fn a_device_is_written_in_a_file_as_on_the_command_line() {
        for (file, line) in [
            ("kind = 'reference'\nmax-frames = 200000\nloss = '1/1000'", "reference,max-frames=200000,loss=1/1000"),
            ("kind = 'path'\ndelay = '20ms'\nloss = '1%'\nloss-burst = 8", "path,delay=20ms,loss=1%,loss-burst=8"),
            ("kind = 'path'\nmtu = 1400\nmtu-silent = true", "path,mtu=1400,mtu-silent=true"),
            ("kind = 'path'", "path"),
            ("kind = 'reference'", "reference"),
            (
                "kind = 'reference'\nport-rate = '10Mbit/s'\nqueues = 'input'\npause = true\nundersize = 'drop'",
                "reference,port-rate=10Mbit/s,queues=input,pause=true,undersize=drop",
            ),
            ("kind = 'hub'", "hub"),
            (
                "kind = 'hub'\nrate = '100Mbit/s'\ncollisions = true\nseed = 3",
                "hub,rate=100Mbit/s,collisions=true,seed=3",
            ),
            ("kind = 'router'", "router"),
            ("kind = 'open-vswitch'", "open-vswitch"),
            ("kind = 'open-vswitch'\naddresses = 256\nageing = '60s'", "open-vswitch,addresses=256,ageing=60s"),
            ("kind = 'chain'", "chain,routers=4"),
            ("kind = 'chain'\nrouters = 12", "chain,routers=12"),
        ] {
            let given: DeviceKind = line.parse().expect(line);
            assert_eq!(device(file).kind, given);
            assert_eq!(given.to_string().parse(), Ok(given));
        }
    }

    #[test]
    fn a_device_without_limits_takes_none() {
        let error = "bridge,rate=1M".parse::<DeviceKind>().expect_err("no limits").to_string();
        assert!(error.contains("`rate=1M`") && error.contains("path,delay=20ms"), "{error}");
        for (text, part) in [
            ("chain,routers=0", "`0` is not routers of a chain: 1 to 12"),
            ("chain,routers=99", "--routers 4"),
            ("chain,delay=1ms", "`delay`"),
            ("open-vswitch,queue=1", "addresses or ageing"),
            ("chain,routers", "chain,routers=4"),
        ] {
            let error = text.parse::<DeviceKind>().expect_err(text).to_string();
            assert!(error.contains(part), "{error}");
        }
        let error = "ring".parse::<DeviceKind>().expect_err("no device").to_string();
        assert!(error.contains("`ring`") && error.contains("bridge, router"), "{error}");
    }
}
