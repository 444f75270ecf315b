//! What a host has counted since it was started: for those who take differences of it at times of their own choosing.

use crate::disk::Disk;
use crate::proc::ProcFile;
use crate::stat;
use crate::{ObserveError, interface_counters};
use linerate_model::HostCounters;
use linerate_sys::clock;
use linerate_sys::netlink::Route;
use linerate_units::Nanos;

/// Reads the machine's cores and disks, and the interfaces of the calling thread's network namespace.
pub fn counters() -> Result<HostCounters, ObserveError> {
    let text = ProcFile::open("/proc/stat").read().unwrap_or_default();
    let at = Nanos::new(clock::now());
    Ok(HostCounters {
        at,
        cores: stat::cores(&text).since_start().to_vec(),
        interfaces: interface_counters::since(&Route::open()?.links()?, &[]),
        disks: Disk::all().iter().filter_map(Disk::read).filter(|disk| disk.reads + disk.writes > 0).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_on_loopback_is_counted() {
        let before = counters().expect("counters");
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").expect("a socket");
        for _ in 0..100 {
            socket.send_to(&[0; 100], socket.local_addr().expect("an address")).expect("a datagram");
        }
        let after = counters().expect("counters");
        let sent = |counters: &HostCounters| {
            counters.interfaces.iter().find(|interface| interface.name == "lo").map_or(0, |lo| lo.tx_packets)
        };
        assert!(sent(&after) >= sent(&before) + 100, "{before:?} {after:?}");
        assert!(after.at > before.at && after.cores.len() == before.cores.len() && !after.cores.is_empty());
    }
}
