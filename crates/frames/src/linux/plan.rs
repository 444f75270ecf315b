//! The plan of a trial: its ports, its frames and its times.

use crate::FrameError;
use crate::linux::attempt::FCS;
use crate::linux::headers::frame;
use crate::linux::layout::Layout;
use crate::linux::pace::{Pace, time_on_line};
use crate::linux::port::{mac, usable};
use crate::linux::signature::{BYTES, Signature};
use crate::linux::vary::Change;
use linerate_model::{FrameReceiver, FrameStream, FramesTask, MOST_VARIED, Mac, MacRule, RawFrame, SimulatedHosts};
use linerate_sys::netlink::Route;
use linerate_sys::xdp::RECEIVERS;
use linerate_units::{BitRate, FrameSize, Nanos};
use std::net::IpAddr;

/// Bytes of an untagged Ethernet header, which the MTU does not count.
const ETHERNET_HEADER: u32 = 14;

/// Port of this host.
#[derive(Debug, Clone)]
pub(crate) struct Port {
    /// Index in the trial.
    pub(crate) number: u16,
    pub(crate) interface: String,
    pub(crate) link: u32,
    pub(crate) mac: Mac,
    /// Whether the kernel polls it (NAPI), as all interfaces except those of `tun`.
    pub(crate) polled: bool,
    /// Largest IP packet, bytes.
    mtu: u32,
    /// Whether it has a line of its own that spaces its frames.
    has_line: bool,
}

/// Stream of the trial.
#[derive(Debug, Clone)]
pub(crate) struct Stream {
    pub(crate) wish: FrameStream,
    /// Sending port of this host. `None` if another host sends.
    pub(crate) from: Option<usize>,
    /// Receiving port of this host. `None` if another host receives.
    pub(crate) to: Option<usize>,
    /// Ports of this host that receive further copies.
    pub(crate) copies: Vec<usize>,
    /// Frame with number 0, or one frame for each size of a mix.
    pub(crate) frames: Vec<Vec<u8>>,
    /// Order of the frames in a round.
    pub(crate) round: Vec<u8>,
    /// Fields that vary.
    pub(crate) changes: Vec<Change>,
    /// Offset of the signature. `None` for frames without one.
    pub(crate) signature_at: Option<usize>,
    pub(crate) pace: Pace,
    /// Number of frames that are due in the trial's time. `None` without a rate or a count.
    pub(crate) due: Option<u64>,
}

/// Plan of a trial.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    pub(crate) tag: u16,
    pub(crate) ports: Vec<Port>,
    pub(crate) streams: Vec<Stream>,
    /// Sending time, nanoseconds.
    pub(crate) time: u64,
    /// Line rate of the ports, if the task gives it.
    pub(crate) line: Option<BitRate>,
    /// Place at which the frames count as received.
    pub(crate) receiver: FrameReceiver,
}

impl Plan {
    /// Creates the plan of a task on this host, which has the ports with the indices `own`. The frames carry `tag`.
    pub(crate) fn new(task: &FramesTask, own: &[u16], tag: u16) -> Result<Self, FrameError> {
        let bad = FrameError::BadTrial;
        if let Some(port) = own.iter().find(|port| usize::from(**port) >= task.ports.len()) {
            return Err(bad(format!("this host is to have port {port}, but there are {}", task.ports.len())));
        }
        let links = Route::open()?.links()?;
        let mut ports = Vec::new();
        for (number, name) in (0..).zip(&task.ports).filter(|(number, _)| own.contains(number)) {
            let link = usable(&links, &name.interface)?;
            ports.push(Port {
                number,
                interface: name.interface.clone(),
                link: link.index,
                mac: mac(&link)?,
                polled: link.kind != "tun",
                mtu: link.mtu,
                has_line: !matches!(link.kind.as_str(), "veth" | "tun"),
            });
        }
        if task.streams.is_empty() || task.streams.len() > usize::from(u16::MAX) {
            return Err(bad(format!("it has {} streams: 1 to 65535 can be told apart", task.streams.len())));
        }
        for hosts in &task.hosts {
            check_hosts(hosts, task.ports.len()).map_err(bad)?;
        }
        let mut streams = Vec::with_capacity(task.streams.len());
        for (index, wish) in (0u16..).zip(&task.streams) {
            if usize::from(wish.from.max(wish.to)) >= task.ports.len() {
                let ports = task.ports.len();
                return Err(bad(format!("stream {index} goes from port {} to {} of {ports}", wish.from, wish.to)));
            }
            check_copies(wish, task.ports.len()).map_err(|why| bad(format!("stream {index}: {why}")))?;
            let signature = Signature { tag, stream: index, number: 0, time: 0 };
            let frames = frames(wish, signature).map_err(|why| bad(format!("stream {index}: {why}")))?;
            let layout = Layout::of(&frames[0]);
            let signature_at = layout.signature_at(&frames[0]).filter(|_| wish.form.signed());
            if wish.form.vary.len() > MOST_VARIED {
                return Err(bad(format!("stream {index} varies more than {MOST_VARIED} fields")));
            }
            let changes = wish.form.vary.iter().map(|vary| Change::new(vary, &layout, &frames[0]));
            let changes = changes.collect::<Result<_, _>>().map_err(|why| bad(format!("stream {index}: {why}")))?;
            let rate = wish.rate.map(|rate| rate.get());
            if rate == Some(0) {
                return Err(bad(format!("stream {index} has rate 0: leave the stream out")));
            }
            let length = wish.length(task.time);
            if wish.after + length > task.time || length.get() == 0 {
                return Err(bad(format!(
                    "stream {index} begins after {} and is sent for {length}, but the trial takes {}",
                    wish.after, task.time
                )));
            }
            let in_time = rate.map(|rate| in_time(rate, length.get()));
            let from = ports.iter().position(|port| port.number == wish.from);
            // A NIC sends the frames of a burst as closely as its line permits.
            let line = task.line.filter(|_| from.is_some_and(|from| !ports[from].has_line));
            let least_gap = line.map_or(0, |line| time_on_line(wish.size, line));
            streams.push(Stream {
                wish: wish.clone(),
                from,
                to: ports.iter().position(|port| port.number == wish.to),
                copies: (0..ports.len()).filter(|at| wish.copies_to.contains(&ports[*at].number)).collect(),
                frames,
                round: wish.form.mix.as_ref().map_or_else(|| vec![0], |mix| mix.round()),
                changes,
                signature_at,
                pace: Pace::new(rate, wish.form.burst, least_gap),
                due: match (in_time, wish.count) {
                    (Some(in_time), Some(count)) => Some(in_time.min(count)),
                    (in_time, count) => in_time.or(count),
                },
            });
        }
        for stream in streams.iter().filter(|stream| stream.signature_at.is_none()) {
            if streams.iter().filter(|other| other.wish.to == stream.wish.to).count() > 1 {
                return Err(bad(format!(
                    "frames without a signature and other frames go to port {}: its counter cannot tell them apart",
                    task.ports[usize::from(stream.wish.to)]
                )));
            }
        }
        Ok(Self { tag, ports, streams, time: task.time.get(), line: task.line, receiver: task.receiver })
    }
}

impl Port {
    /// Returns an error for frames of this size if they exceed what the port sends with an MTU of `extra` bytes more.
    pub(crate) fn check_size(&self, size: FrameSize, extra: u32) -> Result<(), FrameError> {
        let packet = size.without_fcs() - ETHERNET_HEADER;
        if packet <= self.mtu + extra {
            return Ok(());
        }
        Err(FrameError::TooLargeForPort { interface: self.interface.clone(), size: size.get(), mtu: packet })
    }
}

impl Plan {
    /// Returns the streams that this host sends.
    pub(crate) fn sent_here(&self) -> Vec<usize> {
        (0..self.streams.len()).filter(|index| self.streams[*index].from.is_some()).collect()
    }

    /// Returns the time after the end in which the trial may still send late frames.
    pub(crate) fn late_time(&self) -> u64 {
        late_time(self.time)
    }

    /// Returns the latest sending time of `stream` in a trial that began at `start`.
    pub(crate) fn end(&self, stream: &Stream, start: u64) -> u64 {
        self.planned_end(stream, start) + if stream.pace.is_unlimited() { 0 } else { self.late_time() }
    }

    /// Returns the end of sending `stream` on time.
    pub(crate) fn planned_end(&self, stream: &Stream, start: u64) -> u64 {
        stream.begin(start) + stream.length(self.time)
    }
}

impl Stream {
    /// Returns whether its frames are shorter than Ethernet permits.
    pub(crate) fn is_undersize(&self) -> bool {
        self.wish.form.raw.as_ref().is_some_and(RawFrame::is_undersize)
    }

    /// Iterates over the ports of this host that are to receive each frame.
    pub(crate) fn receivers(&self) -> impl Iterator<Item = usize> {
        self.to.into_iter().chain(self.copies.iter().copied())
    }

    /// Returns the due time of its first frame in a trial that began at `start`.
    pub(crate) fn begin(&self, start: u64) -> u64 {
        start + self.wish.after.get()
    }

    /// Returns its sending time in a trial of `time` nanoseconds.
    pub(crate) fn length(&self, time: u64) -> u64 {
        self.wish.length(Nanos::new(time)).get()
    }

    /// Returns the index of the frame with `number`.
    pub(crate) fn frame_of(&self, number: u32) -> usize {
        usize::from(self.round[number as usize % self.round.len()])
    }
}

/// Builds the frames of a stream: one, or one for each size of a mix. The error names the fault of the stream.
fn frames(wish: &FrameStream, signature: Signature) -> Result<Vec<Vec<u8>>, String> {
    if let Some(raw) = &wish.form.raw {
        if wish.form.mix.is_some() || wish.size != raw.bytes.size() {
            let size = raw.bytes.size().get();
            return Err(format!("its raw frame has {size} bytes with FCS, and cannot have another size"));
        }
        return Ok(vec![raw_frame(raw, signature)?]);
    }
    let headers = &wish.headers;
    if headers.source.is_ipv4() != headers.destination.is_ipv4() {
        return Err(format!("{} and {} are of two families", headers.source, headers.destination));
    }
    if headers.vlans.len() > 2 {
        return Err(format!("it has {} VLAN tags; at most 2 are read", headers.vlans.len()));
    }
    let sizes = match &wish.form.mix {
        None => vec![wish.size],
        Some(mix) if mix.largest() != Some(wish.size) => {
            return Err(format!("its size of {} is not the largest of the mix {mix}", wish.size.get()));
        }
        Some(mix) => mix.parts().iter().map(|part| part.size).collect(),
    };
    let smallest = headers.smallest_frame();
    if let Some(size) = sizes.iter().find(|size| **size < smallest) {
        return Err(format!(
            "frames of {} bytes have no room for the headers and the signature; the smallest are {}",
            size.get(),
            smallest.get()
        ));
    }
    Ok(sizes.iter().map(|size| frame(headers, size.without_fcs() as usize, signature)).collect())
}

/// Builds a raw frame, filled up to Ethernet's minimum unless it is an undersize frame. A signature replaces the beginning of its payload, and its
/// checksum is updated.
fn raw_frame(raw: &RawFrame, signature: Signature) -> Result<Vec<u8>, String> {
    let mut frame = raw.bytes.get().to_vec();
    frame.resize((u64::from(raw.line_bytes()) - FCS) as usize, 0);
    if raw.signed {
        let layout = Layout::of(raw.bytes.get());
        let at = layout.signature_at(raw.bytes.get()).ok_or_else(|| {
            format!(
                "its raw frame has no room for a signature: that takes {BYTES} bytes of payload behind UDP, ICMP or TCP \
                 without options, over IPv6 or IPv4 without options, or right behind EtherType 0x88b5; send it without a signature"
            )
        })?;
        let old = frame[at..at + BYTES].to_vec();
        let new = signature.to_bytes();
        frame[at..at + BYTES].copy_from_slice(&new);
        layout.mend_transport(&mut frame, &old, &new);
    }
    Ok(frame)
}

/// Checks the further receivers of a stream. The error names the fault.
fn check_copies(wish: &FrameStream, ports: usize) -> Result<(), String> {
    if wish.copies_to.is_empty() {
        return Ok(());
    }
    if !wish.form.signed() {
        return Err(String::from("frames without a signature are counted at one port only"));
    }
    let mut receivers: Vec<u16> = wish.receivers().collect();
    receivers.sort_unstable();
    if receivers.windows(2).any(|pair| pair[0] == pair[1]) {
        return Err(String::from("it is to arrive at one port twice"));
    }
    if receivers.len() > RECEIVERS {
        return Err(format!("it is to arrive at {} ports; at most {RECEIVERS} count it", receivers.len()));
    }
    match receivers.last().filter(|port| usize::from(**port) >= ports) {
        Some(port) => Err(format!("it is to arrive at port {port} of {ports}")),
        None => Ok(()),
    }
}

/// Checks that the addresses of simulated hosts are unicast and within their range.
fn check_hosts(hosts: &SimulatedHosts, ports: usize) -> Result<(), String> {
    let first = hosts.first;
    let steps = hosts.count.saturating_sub(1);
    if usize::from(hosts.port) >= ports {
        return Err(format!("hosts from {first} on are behind port {} of {ports}", hosts.port));
    }
    let last = match first {
        IpAddr::V4(v4) => v4.to_bits().checked_add(steps).map(|bits| IpAddr::from(bits.to_be_bytes())),
        IpAddr::V6(v6) => v6.to_bits().checked_add(steps.into()).map(|bits| IpAddr::from(bits.to_be_bytes())),
    };
    let Some(last) = last.filter(|last| hosts.count > 0 && !first.is_multicast() && !last.is_multicast()) else {
        return Err(format!("there are no {} hosts from {first} on: give 1 or more, none a group's", hosts.count));
    };
    if let MacRule::Counting { first: mac } = hosts.mac {
        let end = mac.plus(steps);
        if mac.0[0] & 1 != 0 || end.0[0] != mac.0[0] {
            return Err(format!("hosts {first} to {last} cannot have Ethernet addresses {mac} to {end}: take 02:..."));
        }
    }
    Ok(())
}

/// Returns the time after the end in which a trial of `time` nanoseconds may still send: a delayed sender sends the
/// remaining frames later, at the trial's rate.
pub(crate) fn late_time(time: u64) -> u64 {
    time / 8 + 20_000_000
}

/// Returns the number of frames that are due within `time` nanoseconds at `rate`, the first at once.
pub(crate) fn in_time(rate: u64, time: u64) -> u64 {
    (u128::from(rate) * u128::from(time)).div_ceil(1_000_000_000) as u64
}

/// Distributes the `streams` over `lanes`, in turn.
pub(crate) fn deal(streams: &[usize], lanes: usize) -> Vec<Vec<usize>> {
    (0..lanes.min(streams.len())).map(|lane| streams.iter().copied().skip(lane).step_by(lanes).collect()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_due_are_counted_from_the_first() {
        assert_eq!(in_time(10_000, 1_000_000_000), 10_000);
        assert_eq!(in_time(3, 1_000_000_000), 3);
        assert_eq!(in_time(3, 1_000_000_001), 4);
        assert_eq!(in_time(14_880_952, 60_000_000_000), 892_857_120);
    }

    #[test]
    fn every_stream_has_a_lane() {
        assert_eq!(deal(&[0, 1, 2, 3, 4], 2), [vec![0, 2, 4], vec![1, 3]]);
        assert_eq!(deal(&[7], 4), [vec![7]]);
    }
}
