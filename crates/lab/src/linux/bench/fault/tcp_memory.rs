//! TCP memory: little room for what TCP sockets of the host send and receive (`tcp_wmem`, `tcp_rmem`; tcp(7)).

use super::{HostInterface, Kind};
use crate::linux::bench::Bench;
use crate::linux::written;
use linerate_model::HostName;
use linerate_sys::Error;
use linerate_sys::namespace::{network_setting, set_network_setting};
use linerate_units::ByteCount;
use serde::Deserialize;
use std::io;

/// Range of the kernel's settings, bytes: a page, and the largest value of its integers.
const SIZES: std::ops::RangeInclusive<u64> = 4096..=1 << 30;

/// The largest buffers of TCP sockets in the host's network.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TcpMemory {
    /// The host.
    pub at: HostName,
    /// The largest receive buffer; the kernel's own unless said.
    #[serde(default, deserialize_with = "written::optional")]
    pub receive: Option<ByteCount>,
    /// The largest send buffer; the kernel's own unless said.
    #[serde(default, deserialize_with = "written::optional")]
    pub send: Option<ByteCount>,
}

impl TcpMemory {
    /// Fields, the kernel's names for them, and their values.
    fn settings(&self) -> impl Iterator<Item = (&'static str, &'static str, ByteCount)> {
        let settings = [("receive", "ipv4/tcp_rmem", self.receive), ("send", "ipv4/tcp_wmem", self.send)];
        settings.into_iter().filter_map(|(field, setting, size)| Some((field, setting, size?)))
    }
}

impl Kind for TcpMemory {
    fn name(&self) -> &'static str {
        "tcp-memory"
    }

    fn host(&self) -> Option<&HostName> {
        Some(&self.at)
    }

    fn check(&self, _bench: &Bench) -> Result<(), String> {
        if self.settings().next().is_none() {
            return Err(String::from("say which buffers: receive, send, or both"));
        }
        match self.settings().find(|(_, _, size)| !SIZES.contains(&size.get())) {
            Some((field, _, size)) => Err(format!("{field}: a buffer has 4 KiB to 1 GiB, not {size}")),
            None => Ok(()),
        }
    }

    fn plant(&self, interface: &HostInterface<'_>) -> Result<(), Error> {
        interface.namespace.enter(|| {
            for (_, setting, size) in self.settings() {
                let was = network_setting(setting)?;
                if !set_network_setting(setting, &with_maximum(&was, size))? {
                    return Err(Error::new("write", setting, io::ErrorKind::NotFound));
                }
            }
            Ok(())
        })?
    }
}

/// The setting `was` (least, default and largest size) with the largest `size`, which the others do not exceed.
fn with_maximum(was: &str, size: ByteCount) -> String {
    let sizes = was.split_ascii_whitespace().filter_map(|size| size.parse::<u64>().ok());
    let [least, default] = {
        let mut sizes = sizes.map(|own| own.min(size.get())).chain(std::iter::repeat(size.get()));
        [(); 2].map(|()| sizes.next().unwrap_or(size.get()))
    };
    format!("{least} {default} {}", size.get())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_size_is_above_the_largest() {
        let set = |size| with_maximum("4096\t131072\t6291456\n", ByteCount::new(size));
        assert_eq!(set(65_536), "4096 65536 65536");
        assert_eq!(set(1 << 30), "4096 131072 1073741824");
        assert_eq!(set(4096), "4096 4096 4096");
    }
}
