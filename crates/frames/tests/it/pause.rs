//! PAUSE frames that reach a port of packet sockets.

use crate::ports::{AMPLE, UDP, counted, counts_of, session, stream, trial, with_ports};
use linerate_frames::Frames;
use linerate_model::{FrameEngine, FrameStreamCounts, FramesTask, SeriesQuantity};
use linerate_sys::netlink::Route;
use linerate_sys::packet::PacketSocket;
use linerate_testsuite::{lab_test, wait_until};
use linerate_units::{BitRate, Nanos};
use std::thread;

/// Runs a trial, and calls `work` with a socket at the other end once frames arrive.
fn while_it_sends(task: &FramesTask, work: impl FnOnce(&PacketSocket)) -> FrameStreamCounts {
    let far = PacketSocket::open(Route::open().unwrap().index_of("right").unwrap(), None).unwrap();
    let session = session(task);
    thread::scope(|scope| {
        let running = scope.spawn(|| session.run(&Frames));
        wait_until("frames arrive", || {
            let readings = session.readings()?;
            readings.of(SeriesQuantity::FramesReceived).any(|(_, frames)| frames > 10).then_some(())
        });
        work(&far);
        counts_of(running.join().unwrap().unwrap()).streams.remove(0)
    })
}

/// Builds a PAUSE frame (IEEE 802.3 annex 31B).
fn pause(quanta: u16) -> Vec<u8> {
    let mut frame = vec![0x01, 0x80, 0xc2, 0, 0, 1, 2, 0, 0, 0, 0, 9, 0x88, 0x08, 0, 1];
    frame.extend(quanta.to_be_bytes());
    frame.resize(60, 0);
    frame
}

/// At 10 Mbit/s, 9766 quanta take 500 ms.
#[lab_test]
fn paused_stream_sends_its_frames_later() {
    with_ports(|_| {
        let mut task = trial(FrameEngine::PacketSocket, AMPLE, vec![counted(64, 1_000, UDP, 3_000)]);
        task.line = Some(BitRate::per_second(10_000_000));
        let result = while_it_sends(&task, |far| far.send(&pause(9_766)).unwrap());
        assert!(result.paused >= Nanos::from_millis(490), "{result:?}");
        assert!(result.send_time >= Nanos::from_millis(2_950) + result.paused, "{result:?}");
        assert_eq!((result.sent, result.received, result.last_gap), (3_000, 3_000, None), "{result:?}");
    });
}

/// At 1 Mbit/s, the longest pause takes 33 s.
#[lab_test]
fn pause_of_no_quanta_ends_another() {
    with_ports(|_| {
        let mut task = trial(FrameEngine::PacketSocket, AMPLE, vec![counted(64, 1_000, UDP, 3_000)]);
        task.line = Some(BitRate::per_second(1_000_000));
        let result = while_it_sends(&task, |far| {
            far.send(&pause(u16::MAX)).unwrap();
            thread::sleep(std::time::Duration::from_millis(200));
            far.send(&pause(0)).unwrap();
        });
        assert!((190..20_000).contains(&(result.paused.get() / 1_000_000)), "{result:?}");
        assert_eq!((result.sent, result.received, result.last_gap), (3_000, 3_000, None), "{result:?}");
    });
}

#[lab_test]
fn frames_that_are_paused_until_the_end_are_not_sent() {
    with_ports(|_| {
        let mut task = trial(FrameEngine::PacketSocket, 3_000, vec![stream(0, 0, 64, Some(1_000), UDP)]);
        task.line = Some(BitRate::per_second(1_000_000));
        let result = while_it_sends(&task, |far| far.send(&pause(u16::MAX)).unwrap());
        assert_eq!((result.intended, result.received, result.last_gap), (3_000, result.sent, None), "{result:?}");
        let missing = Nanos::from_millis(result.intended - result.sent);
        assert!(result.sent < 3_000 && result.paused + result.held_up + Nanos::from_millis(50) > missing, "{result:?}");
    });
}
