//! Bulk datagrams: warm-up, measured phase and cool-down without a pause, each datagram marked with its phase.

mod backlog;
mod receiver;
mod sender;

pub(crate) use receiver::{receive, receive_all};
pub(crate) use sender::{send, send_all};

use crate::datagram::Phase;
use crate::window::Timeline;
use std::net::UdpSocket;

const PLAIN_BATCH: usize = 64;
/// Most bytes of one batch of plain datagrams.
const PLAIN_BATCH_BYTES: usize = 256 << 10;
/// Time for which the sender goes on after its window, because the receiver's closes later.
const COOL_DOWN_NS: u64 = 100_000_000;
/// Fewest datagrams of the cool-down, which also mark the end of the measured ones. A slow sender goes on until it has
/// sent them.
const MARKS: u64 = 3;
/// Longest extension of the cool-down for these datagrams.
const MARKS_NS: u64 = 1_000_000_000;

/// Sockets of flows, with the indices of the flows.
pub(crate) type Sockets<'a> = [(usize, &'a UdpSocket)];

/// Returns the phase at `now`, or `None` after the cool-down.
#[inline]
fn phase_at(timeline: &Timeline, now: u64) -> Option<Phase> {
    let open = timeline.open();
    let close = open + timeline.measure().get();
    if now < open {
        Some(Phase::WarmUp)
    } else if now < close {
        Some(Phase::Measured)
    } else {
        (now < close + COOL_DOWN_NS).then_some(Phase::CoolDown)
    }
}

#[cfg(test)]
mod tests {
    use super::receiver::PendingVolume;
    use super::*;
    use crate::arrivals::Arrivals;
    use crate::datagram::{self, Header};
    use crate::flow::{Flow, Link, Shared};
    use crate::hello::Hello;
    use crate::job::Job;
    use linerate_model::{Assignment, Offered, SessionId, SessionKey, StreamTask, Task, Timing, Transport};
    use linerate_sys::clock;
    use linerate_units::{BitRate, ByteCount, Nanos};

    /// Returns a stream of 8 Mbit/s: one datagram per millisecond.
    fn spec() -> StreamTask {
        StreamTask {
            offered: Some(Offered::PayloadBps(BitRate::per_second(8_000_000))),
            ..StreamTask::plain(Transport::Udp, ByteCount::new(1_000))
        }
    }

    /// Returns a sender that begins now, its socket, and the receiver's socket.
    fn connected(spec: &StreamTask, warmup: u64, measure: u64) -> (Shared, UdpSocket, UdpSocket) {
        let assignment = Assignment {
            id: SessionId("t".into()),
            key: SessionKey([1; 16]),
            task: Task::Stream(spec.clone()),
            timing: Timing::of(Nanos::from_millis(warmup), Nanos::from_millis(measure)),
            roles: Vec::new(),
            password: None,
            sampling: linerate_model::Sampling::default(),
        };
        let job = Job::check(&assignment).expect("valid");
        let sending = UdpSocket::bind("127.0.0.1:0").expect("binds");
        let receiving = UdpSocket::bind("127.0.0.1:0").expect("binds");
        let local = sending.local_addr().expect("is bound");
        let peer = receiving.local_addr().expect("is bound");
        sending.connect(peer).expect("connects");
        receiving.connect(local).expect("connects");
        let timeline = job.timeline(clock::now());
        let hello = Hello { path: 0, flow: 0, backward: false };
        let link = Link::Udp(sending.try_clone().expect("dup"));
        let flow = Flow { end: 0, hello, client: true, peer, local, link, round_trip_ns: 0 };
        (Shared::new(job, timeline, vec![flow], linerate_engine::AllowedPeers::default()), sending, receiving)
    }

    #[test]
    fn phases_follow_without_pause_and_share_one_numbering() {
        let spec = spec();
        let (shared, sending, receiving) = connected(&spec, 150, 200);
        let tag = datagram::tag(&shared.job.key, 0);
        let reading = std::thread::spawn(move || {
            let mut datagram = [0; 1_000];
            let mut marks = Vec::new();
            // An empty datagram ends it.
            while receiving.recv(&mut datagram).expect("receives") > 0 {
                let header = Header::read(&datagram, tag).expect("its tag");
                let (phase, number) = Phase::of(header.sequence).expect("a phase");
                marks.push((phase, number));
            }
            marks
        });
        let sent = send(&shared, 0, &spec, &sending).expect("sends").sent.expect("it sends");
        // A datagram that finds no room in the reader's socket is lost.
        while !reading.is_finished() {
            // The reader may end, and close its socket, meanwhile.
            let _ = sending.send(&[]);
            std::thread::yield_now();
        }
        let marks = reading.join().expect("reads");
        // A reader that waits for its core loses datagrams that its socket has no room for.
        assert!(marks.is_sorted_by(|before, after| before.0 as u8 <= after.0 as u8 && before.1 < after.1), "{marks:?}");
        let [warm_up, measured, cool_down] = [Phase::WarmUp, Phase::Measured, Phase::CoolDown]
            .map(|phase| marks.iter().filter(|mark| mark.0 == phase).count() as u64);
        // A sender without a core for a part of a phase skips the datagrams that were due.
        assert!(warm_up <= 150 && cool_down <= 100, "{warm_up} {cool_down}");
        assert_eq!(sent.messages + sent.not_sent, 200);
        assert!(measured <= sent.messages, "{measured} of {}", sent.messages);
    }

    #[test]
    fn receiver_may_go_away_during_the_cool_down() {
        let spec = spec();
        let (shared, sending, receiving) = connected(&spec, 0, 50);
        let closing = std::thread::spawn(move || {
            let mut datagram = [0; 1_000];
            // An empty datagram ends it.
            while receiving.recv(&mut datagram).expect("receives") > 0 {
                let sequence = u64::from_be_bytes(datagram[8..16].try_into().expect("eight"));
                if Phase::of(sequence).is_some_and(|(phase, _)| phase == Phase::CoolDown) {
                    break;
                }
            }
        });
        send(&shared, 0, &spec, &sending).expect("it has its counts");
        // Refused if the receiver is gone.
        let _ = sending.send(&[]);
        closing.join().expect("closes");
    }

    #[test]
    fn volume_with_lost_marks_ends_after_a_silence() {
        // A datagram of the second one is due every 10 s.
        for (rate, silence_s) in [(8_000_000, 5), (800, 100)] {
            let offered = Some(Offered::PayloadBps(BitRate::per_second(rate)));
            let spec = StreamTask { offered, volume: Some(ByteCount::new(10_000)), ..spec() };
            let (shared, ..) = connected(&spec, 0, 50);
            let arrivals = Arrivals::of_volume(shared.numbering(0), 50_000_000, 1_000);
            let mut volume = PendingVolume::new(&shared, 0, &spec);
            let start = shared.timeline.start();
            for (after_s, has_ended) in [(silence_s - 1, false), (silence_s + 20, true)] {
                let now = start + after_s * 1_000_000_000;
                assert_eq!(volume.has_ended(&arrivals, now, start), has_ended, "{rate} bit/s, {after_s} s");
            }
        }
    }
}
