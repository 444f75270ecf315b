//! Tests that a stalled sender sends all frames, in no burst, and only a little faster.

use crate::ports::with_ports;
use linerate_sys::clock;
use linerate_sys::netlink::Route;
use linerate_sys::xdp::{HEAD, Lane, TransmitFrame, TransmitStream, include_bytes_aligned};
use linerate_testsuite::lab_test;

static TRANSMIT: &[u8] = include_bytes_aligned!("../../bpf/transmit.bpf.o");

/// Eighteen frames are overdue by up to 90 us when the sender begins.
#[lab_test(Bpf)]
fn a_delay_is_made_up_for_gently() {
    with_ports(|_| {
        let gap: u64 = 5_000;
        let frames = 19;
        let link = Route::open().unwrap().index_of("left").unwrap();
        let stream = |start| TransmitStream {
            frames: vec![TransmitFrame { head: [0; HEAD], length: 60 }],
            round: vec![0],
            changes: Vec::new(),
            signature_at: None,
            link,
            start,
            end: start + 10_000_000_000,
            gap: u128::from(gap) << 32,
            burst: 1,
            rest: 0,
            limit: frames,
        };
        let sent_in_batches_of = |batch| {
            let now = clock::now();
            let lane = Lane::load(TRANSMIT, &[stream(now)], &[0; 60], batch).unwrap();
            while lane.send().unwrap() {}
            let sent = lane.sent(0).unwrap();
            assert_eq!(sent.sent, frames);
            sent.last - sent.first
        };
        // A sixteenth faster, in whole nanoseconds, minus the leeway of a batch. Loading takes longer than the delay.
        let least = (frames - 1) * (gap - gap.div_ceil(16)) - 16_000;
        for batch in [1, 16] {
            let took = sent_in_batches_of(batch);
            assert!(took >= least, "batches of {batch}: {frames} frames in {took} ns");
        }
        // Another program may use the core at the same time.
        let took = (0..20).map(|_| sent_in_batches_of(64)).min().unwrap();
        assert!(took < least / 2, "a fast lane: {frames} frames in {took} ns");
    });
}
