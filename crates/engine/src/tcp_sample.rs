//! TCP's own account of running connections, for the series of a trial.

use linerate_model::{Readings, SeriesQuantity as Quantity};
use linerate_sys::tcp::{self, Info};
use std::os::fd::BorrowedFd;

/// Connections that are sampled at the most: to read one takes its lock for about a microsecond, which its thread may wait for.
pub const SAMPLED_CONNECTIONS: usize = 64;

/// `TCP_INFINITE_SSTHRESH` of <net/tcp.h>: no segment was lost yet.
const NO_THRESHOLD: u32 = 0x7fff_ffff;

/// Adds what TCP says of `sockets` to `readings`: of the first [`SAMPLED_CONNECTIONS`], less those that cannot be read. Times are
/// microseconds, rates kbit/s. Of windows and round-trip times it is the mean, of all else the sum.
pub fn sample_tcp<'a>(sockets: impl Iterator<Item = BorrowedFd<'a>>, readings: &mut Readings) {
    let infos: Vec<Info> = sockets.take(SAMPLED_CONNECTIONS).filter_map(|socket| tcp::info(socket).ok()).collect();
    add(&infos, readings);
}

/// Segments that `sockets` sent again since they were connected.
pub fn retransmits<'a>(sockets: impl Iterator<Item = BorrowedFd<'a>>) -> u64 {
    sockets.filter_map(|socket| tcp::info(socket).ok()).map(|info| u64::from(info.total_retrans)).sum()
}

fn add(infos: &[Info], readings: &mut Readings) {
    if infos.is_empty() {
        return;
    }
    let sum = |of: fn(&Info) -> u64| infos.iter().map(of).fold(0, u64::saturating_add);
    // Where a connection has no value yet, it has no part in the mean.
    let mean = |of: fn(&Info) -> u32| {
        let known = infos.iter().map(|info| u64::from(of(info))).filter(|value| *value > 0);
        known.clone().sum::<u64>() / (known.count() as u64).max(1)
    };
    for (quantity, value) in [
        (Quantity::Timeouts, sum(|info| info.total_rto.into())),
        (Quantity::Srtt, mean(|info| info.rtt)),
        (Quantity::RttVar, mean(|info| info.rttvar)),
        (Quantity::CongestionWindow, mean(|info| info.snd_cwnd)),
        (Quantity::SlowStartThreshold, mean(|info| finite(info.snd_ssthresh))),
        (Quantity::PacingRate, sum(|info| kilobits(info.pacing_rate))),
        (Quantity::DeliveryRate, sum(|info| kilobits(info.delivery_rate))),
        (Quantity::PeerWindow, mean(|info| info.snd_wnd)),
        (Quantity::TransmittedBytes, sum(|info| info.bytes_sent.saturating_sub(info.bytes_retrans))),
        (Quantity::Unsent, infos.iter().map(|info| u64::from(info.notsent_bytes)).sum::<u64>() / infos.len() as u64),
        (Quantity::Busy, sum(|info| info.busy_time)),
        (Quantity::ReceiveWindowLimited, sum(|info| info.rwnd_limited)),
        (Quantity::SendBufferLimited, sum(|info| info.sndbuf_limited)),
        (Quantity::DeliveredCe, sum(|info| info.delivered_ce.into())),
    ] {
        readings.add(quantity, "", value);
    }
}

fn finite(threshold: u32) -> u32 {
    if threshold >= NO_THRESHOLD { 0 } else { threshold }
}

/// Of bytes a second; all ones say that there is no limit.
fn kilobits(rate: u64) -> u64 {
    if rate == u64::MAX { 0 } else { (u128::from(rate) * 8 / 1_000) as u64 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read as _, Write as _};
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsFd as _;

    #[test]
    fn a_connection_at_work_has_a_round_trip_time_and_windows() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("binds");
        let mut sender = TcpStream::connect(listener.local_addr().expect("bound")).expect("connects");
        let (mut receiver, _) = listener.accept().expect("accepts");
        for _ in 0..100 {
            sender.write_all(&[1; 1_000]).expect("writes");
            receiver.read_exact(&mut [0; 1_000]).expect("reads");
        }
        let mut readings = Readings::default();
        sample_tcp([sender.as_fd()].into_iter(), &mut readings);
        for quantity in [Quantity::Srtt, Quantity::CongestionWindow, Quantity::PeerWindow] {
            assert!(readings.get(quantity).is_some_and(|value| value > 0), "{quantity:?}: {readings:?}");
        }
        assert!((1..10_000_000).contains(&readings.get(Quantity::Srtt).unwrap_or_default()), "{readings:?}");
        assert!(readings.get(Quantity::DeliveryRate).is_some_and(|rate| rate > 0), "{readings:?}");
        assert_eq!(readings.get(Quantity::TransmittedBytes), Some(100_000));
        assert_eq!(readings.get(Quantity::SlowStartThreshold), Some(0), "nothing was lost");
        assert_eq!(retransmits([sender.as_fd()].into_iter()), 0);
    }

    #[test]
    fn windows_are_averaged_and_rates_are_added() {
        let info = |rtt, cwnd, threshold, pacing_rate, busy_time| Info {
            rtt,
            snd_cwnd: cwnd,
            snd_ssthresh: threshold,
            pacing_rate,
            busy_time,
            total_rto: 2,
            ..Info::default()
        };
        let infos = [
            info(100, 10, NO_THRESHOLD, 1_000_000, 5),
            info(300, 30, 20, 500_000, 6),
            info(0, 20, 30, u64::MAX, u64::from(u32::MAX)),
        ];
        let mut readings = Readings::default();
        add(&infos, &mut readings);
        for (quantity, value) in [
            (Quantity::Srtt, 200),
            (Quantity::CongestionWindow, 20),
            (Quantity::SlowStartThreshold, 25),
            (Quantity::PacingRate, 12_000),
            (Quantity::Busy, 11 + u64::from(u32::MAX)),
            (Quantity::Timeouts, 6),
        ] {
            assert_eq!(readings.get(quantity), Some(value), "{quantity:?}");
        }
        let mut none = Readings::default();
        sample_tcp(std::iter::empty(), &mut none);
        assert_eq!(none, Readings::default());
    }
}
