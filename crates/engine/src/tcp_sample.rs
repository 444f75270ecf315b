//! TCP_INFO samples of running connections, for the series of a trial.

use linerate_model::{Readings, SeriesQuantity as Quantity};
use linerate_sys::handle::BorrowedSocket;
use linerate_sys::tcp::{self, Info};

/// Most connections that are sampled. A reading holds the lock of its connection for about a microsecond.
pub const SAMPLED_CONNECTIONS: usize = 64;

/// Value of `TCP_INFINITE_SSTHRESH` of <net/tcp.h>, before the first lost segment.
const NO_THRESHOLD: u32 = 0x7fff_ffff;

/// Adds samples of `sockets` to `readings`, from at most [`SAMPLED_CONNECTIONS`] that can be read. Times are
/// microseconds, rates kbit/s. Windows and round-trip times are means, all others sums.
pub fn sample_tcp<'a>(sockets: impl Iterator<Item = BorrowedSocket<'a>>, readings: &mut Readings) {
    let infos: Vec<Info> = sockets.take(SAMPLED_CONNECTIONS).filter_map(|socket| tcp::info(socket).ok()?).collect();
    add(&infos, readings);
}

/// Returns the number of segments that `sockets` sent again since they were connected.
pub fn retransmits<'a>(sockets: impl Iterator<Item = BorrowedSocket<'a>>) -> u64 {
    sockets.filter_map(|socket| tcp::info(socket).ok()?).map(|info| u64::from(info.total_retrans)).sum()
}

fn add(infos: &[Info], readings: &mut Readings) {
    if infos.is_empty() {
        return;
    }
    for (quantity, value) in [
        (Quantity::Timeouts, sum(infos, |info| info.total_rto.into())),
        (Quantity::Srtt, mean(infos, |info| info.rtt)),
        (Quantity::RttVar, mean(infos, |info| info.rttvar)),
        (Quantity::CongestionWindow, mean(infos, |info| info.snd_cwnd)),
        (Quantity::SlowStartThreshold, mean(infos, |info| finite(info.snd_ssthresh))),
        (Quantity::PacingRate, sum(infos, |info| kilobits(info.pacing_rate))),
        (Quantity::DeliveryRate, sum(infos, |info| kilobits(info.delivery_rate))),
        (Quantity::PeerWindow, mean(infos, |info| info.snd_wnd)),
        (Quantity::TransmittedBytes, sum(infos, transmitted)),
        (Quantity::Unsent, infos.iter().map(|info| u64::from(info.notsent_bytes)).sum::<u64>() / infos.len() as u64),
        (Quantity::Busy, sum(infos, |info| info.busy_time)),
        (Quantity::ReceiveWindowLimited, sum(infos, |info| info.rwnd_limited)),
        (Quantity::SendBufferLimited, sum(infos, |info| info.sndbuf_limited)),
        (Quantity::DeliveredCe, sum(infos, |info| info.delivered_ce.into())),
    ] {
        readings.add(quantity, "", value);
    }
}

/// Returns the bytes that were sent at least once: those acknowledged, and the segments in flight. The kernel's own counts of bytes sent and
/// sent again differ after failed retransmissions, for the rest of the connection.
fn transmitted(info: &Info) -> u64 {
    info.bytes_acked + u64::from(info.unacked) * u64::from(info.snd_mss)
}

fn sum(infos: &[Info], value: fn(&Info) -> u64) -> u64 {
    infos.iter().map(value).fold(0, u64::saturating_add)
}

/// Returns the mean of all values above zero. Connections without a value yet do not count.
fn mean(infos: &[Info], value: fn(&Info) -> u32) -> u64 {
    let mut sum = 0;
    let mut count = 0;
    for value in infos.iter().map(value).filter(|value| *value > 0) {
        sum += u64::from(value);
        count += 1;
    }
    sum / count.max(1)
}

fn finite(threshold: u32) -> u32 {
    if threshold >= NO_THRESHOLD { 0 } else { threshold }
}

/// Converts bytes per second to kbit/s. All ones (no limit) become zero.
fn kilobits(rate: u64) -> u64 {
    if rate == u64::MAX { 0 } else { (u128::from(rate) * 8 / 1_000) as u64 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_sys::handle::AsSocket as _;
    use std::io::{Read as _, Write as _};
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn busy_connection_has_a_round_trip_time_and_windows() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("binds");
        let mut sender = TcpStream::connect(listener.local_addr().expect("bound")).expect("connects");
        let (mut receiver, _) = listener.accept().expect("accepts");
        for _ in 0..100 {
            sender.write_all(&[1; 1_000]).expect("writes");
            receiver.read_exact(&mut [0; 1_000]).expect("reads");
        }
        let mut readings = Readings::default();
        sample_tcp([sender.as_socket()].into_iter(), &mut readings);
        for quantity in [Quantity::Srtt, Quantity::CongestionWindow, Quantity::PeerWindow] {
            assert!(readings.get(quantity).is_some_and(|value| value > 0), "{quantity:?}: {readings:?}");
        }
        assert!((1..10_000_000).contains(&readings.get(Quantity::Srtt).unwrap_or_default()), "{readings:?}");
        assert!(readings.get(Quantity::DeliveryRate).is_some_and(|rate| rate > 0), "{readings:?}");
        // The kernel counts an acknowledged SYN as a byte.
        let transmitted = readings.get(Quantity::TransmittedBytes);
        assert!(matches!(transmitted, Some(100_000 | 100_001)), "{transmitted:?}");
        assert_eq!(readings.get(Quantity::SlowStartThreshold), Some(0), "nothing was lost");
        assert_eq!(retransmits([sender.as_socket()].into_iter()), 0);
    }

    #[test]
    fn windows_are_averaged_and_rates_are_added() {
        let infos = [
            (100, 10, NO_THRESHOLD, 1_000_000, 5),
            (300, 30, 20, 500_000, 6),
            (0, 20, 30, u64::MAX, u64::from(u32::MAX)),
        ]
        .map(|(rtt, snd_cwnd, snd_ssthresh, pacing_rate, busy_time)| Info {
            rtt,
            snd_cwnd,
            snd_ssthresh,
            pacing_rate,
            busy_time,
            total_rto: 2,
            ..Info::default()
        });
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
