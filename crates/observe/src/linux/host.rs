//! What a host is.

use crate::cache;
use crate::slot::slot;
use crate::stat;
use crate::wire::has_wire;
use crate::{HostOptions, ObserveError, capabilities, memory};
use linerate_model::{Duplex, Host, Nic};
use linerate_sys::affinity;
use linerate_sys::ethtool::{Driver, Ethtool};
use linerate_sys::interface::{Address, Link};
use linerate_sys::netlink::Route;
use linerate_units::BitRate;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// Describes this host as the calling thread's network namespace shows it.
pub fn host(options: &HostOptions) -> Result<Host, ObserveError> {
    let mut route = Route::open()?;
    let links = route.links()?;
    let addresses = route.addresses()?;
    let cpu_info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    Ok(Host {
        name: options.name.clone(),
        version: options.version.clone(),
        protocol: options.protocol,
        system: format!("{} {}", kernel_setting("kernel/ostype")?, kernel_setting("kernel/osrelease")?),
        cpu_model: cpu_model(&cpu_info).unwrap_or_else(|| format!("unknown {}", std::env::consts::ARCH)),
        cores: stat::cores(&read("/proc/stat")?).count(),
        core_groups: cache::groups(Path::new("/sys"), &affinity::allowed_unless_cleared()),
        memory_bytes: memory::total(&read("/proc/meminfo")?).unwrap_or(0),
        boot_id: kernel_setting("kernel/random/boot_id")?,
        congestion_controls: congestion_controls(
            &kernel_setting("net/ipv4/tcp_congestion_control")?,
            &kernel_setting(if is_root() {
                "net/ipv4/tcp_available_congestion_control"
            } else {
                "net/ipv4/tcp_allowed_congestion_control"
            })?,
        ),
        nics: nics(&links, &addresses, options)?,
        data_addresses: options.data_addresses.clone(),
        capabilities: capabilities(),
    })
}

fn read(path: &str) -> Result<String, ObserveError> {
    fs::read_to_string(path).map_err(|source| ObserveError::Read { path: path.into(), source })
}

fn kernel_setting(name: &str) -> Result<String, ObserveError> {
    read(&format!("/proc/sys/{name}")).map(|text| text.trim().to_owned())
}

/// x86 says `model name`, other architectures variously or not at all.
fn cpu_model(cpu_info: &str) -> Option<String> {
    let field = |name: &str| {
        let of_name = |line: &str| {
            let (key, value) = line.split_once(':')?;
            (key.trim() == name && !value.trim().is_empty()).then(|| value.trim().to_owned())
        };
        cpu_info.lines().find_map(of_name)
    };
    ["model name", "cpu model", "Model", "Hardware", "cpu"].into_iter().find_map(field)
}

/// This process may use what the system has, and not only what it allows everyone: who owns a process is its effective
/// user.
fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0)
}

/// The default first, then the others in the kernel's order.
fn congestion_controls(default: &str, available: &str) -> Vec<String> {
    let others = available.split_ascii_whitespace().filter(|other| *other != default);
    std::iter::once(default).chain(others).map(str::to_owned).collect()
}

fn nics(links: &[Link], addresses: &[Address], options: &HostOptions) -> Result<Vec<Nic>, ObserveError> {
    let ethtool = Ethtool::open()?;
    // Drivers that answer nothing (some virtual ones) are known by what made the link.
    let told = |link: &Link| {
        ethtool.driver(&link.name).unwrap_or_else(|_| Driver { name: link.kind.clone(), ..Driver::default() })
    };
    let driver_of = |link: &Link| told(link).name;
    let nic = |link: &Link| {
        let Driver { name: driver, version, firmware, bus } = told(link);
        let wired = has_wire(link, &driver, links, &driver_of);
        let stated = || {
            let mbps = ethtool.speed_mbps(&link.name).ok()??;
            wired.then(|| BitRate::per_second(u64::from(mbps) * 1_000_000))
        };
        let stated_duplex = || {
            let full = ethtool.full_duplex(&link.name).ok()??;
            wired.then_some(if full { Duplex::Full } else { Duplex::Half })
        };
        Nic {
            name: link.name.clone(),
            speed: options.link_speeds.get(&link.name).copied().or_else(stated),
            duplex: options.link_duplexes.get(&link.name).copied().or_else(stated_duplex),
            driver,
            mtu: link.mtu,
            up: link.up,
            mac: link.mac.iter().map(|octet| format!("{octet:02x}")).collect::<Vec<_>>().join(":"),
            addresses: addresses.iter().filter(|own| own.link == link.index).map(|own| own.address).collect(),
            offloads: ethtool.features(&link.name).unwrap_or_default(),
            qdisc: link.qdisc.clone(),
            driver_version: version,
            firmware,
            slot: slot(Path::new("/sys"), &bus),
        }
    };
    Ok(links.iter().filter(|link| !link.loopback).map(nic).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn reads_planted_texts() {
        let x86 = "processor\t: 0\nmodel\t\t: 17\nmodel name\t: AMD EPYC\nprocessor\t: 1\nmodel name\t: AMD EPYC\n";
        assert_eq!(cpu_model(x86).as_deref(), Some("AMD EPYC"));
        let arm = "processor\t: 0\nBogoMIPS\t: 108.00\n\nHardware\t: BCM2835\nModel\t\t: Raspberry Pi 4 Model B\n";
        assert_eq!(cpu_model(arm).as_deref(), Some("Raspberry Pi 4 Model B"));
        assert_eq!(cpu_model("processor : 0\n"), None);
        assert_eq!(congestion_controls("bbr", "reno bbr cubic"), ["bbr", "reno", "cubic"]);
    }

    #[test]
    fn describes_this_host() {
        let options = HostOptions {
            name: "here".into(),
            version: "1".into(),
            protocol: 1,
            link_speeds: BTreeMap::new(),
            link_duplexes: BTreeMap::new(),
            data_addresses: Vec::new(),
        };
        let host = host(&options).expect("this host");
        assert!(host.system.starts_with("Linux "), "{}", host.system);
        assert_eq!(host.boot_id.len(), 36);
        assert!(host.cores >= 1 && host.memory_bytes > 64 << 20);
        assert!(!host.congestion_controls.is_empty());
        assert!(host.nics.iter().all(|nic| nic.name != "lo"));
    }
}
