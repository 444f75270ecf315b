//! Entry points for fuzzing: bytes that arrive at the ports of a trial, from its peer or from anybody else.

use crate::arrivals::Arrivals;
use crate::datagram::{HEADER, Header, Numbering, Phase, tag};
use crate::hello::{Answer, Hello};
use linerate_engine::proof::Salt;
use linerate_model::SessionKey;
use linerate_sys::udp::Arrived;

const KEY: SessionKey = SessionKey(*b"k\x91\x02\xf7z\x1e\xc4\x05\x8d9\xb3q\x60\xee\x14\xa8");
const SALT: Salt = [5; 16];
/// The window of a receiver, nanoseconds.
const WINDOW_NS: u64 = 1_000_000;

/// Reads a greeting and an answer: first the bytes as they are, then valid ones with the bits flipped that are set in
/// `bytes`, so that the fuzzer need not find the key. That only valid ones are accepted is not asserted: the fuzzer
/// watches comparisons, and so finds proofs that nobody else can.
pub fn greeting(bytes: &[u8]) {
    let hello = Hello { path: 3, flow: 513, backward: true };
    let _ = Hello::decode(bytes, &KEY);
    let _ = hello.decode_answer(bytes, &KEY, &SALT);
    for valid in [hello.encode(&KEY, &SALT), hello.confirmation(&KEY, &SALT, 77)] {
        let _ = Hello::decode(&flipped(&valid, bytes), &KEY);
        assert_eq!(Hello::decode(&valid[..bytes.len().min(valid.len() - 1)], &KEY), None, "it is truncated");
    }
    let greeted = Hello::decode(&hello.encode(&KEY, &SALT), &KEY).expect("it is valid");
    let valid = greeted.answer(&KEY, Answer { port: 40_000, nonce: 77 });
    assert!(hello.decode_answer(&valid, &KEY, &SALT).is_some(), "it is valid");
    let _ = hello.decode_answer(&flipped(&valid, bytes), &KEY, &SALT);
}

/// Returns `valid` with the bits flipped that are set in `bits`.
fn flipped(valid: &[u8], bits: &[u8]) -> Vec<u8> {
    valid.iter().zip(bits.iter().chain(std::iter::repeat(&0))).map(|(byte, bits)| byte ^ bits).collect()
}

/// Counts datagrams of a sender that marks no phases.
pub fn timestamped_datagrams(bytes: &[u8]) {
    let Some((&[size, flags], bytes)) = bytes.split_first_chunk() else { return };
    let numbering = Numbering::Timestamped { wide: flags & 1 == 1 };
    let datagram_bytes = numbering.header() + usize::from(size % 64);
    let mut arrivals = Arrivals::new(numbering, WINDOW_NS);
    for (payload, now) in bytes.chunks(4 * datagram_bytes).zip((0..).map(|batch| 1 + batch * WINDOW_NS / 8)) {
        let phase = if now < WINDOW_NS / 2 {
            Phase::WarmUp
        } else if now < WINDOW_NS {
            Phase::Measured
        } else {
            Phase::CoolDown
        };
        arrivals.enter(phase, Some(WINDOW_NS / 2));
        let buffer = Arrived { payload, datagram_bytes, truncated: flags & 2 != 0, drops: 0, traffic_class: None };
        arrivals.take(std::iter::once(buffer), now, flags & 4 == 0);
        arrivals.nothing(now);
    }
    let datagrams = bytes.len().div_ceil(datagram_bytes) as u64;
    let outcome = arrivals.outcome(0, u64::MAX, Some(0), "recvmmsg");
    let received = outcome.received.expect("a receiver has an account");
    assert!(received.arrived <= datagrams && received.messages <= datagrams, "each datagram counts once");
}

/// Counts datagrams: cuts the bytes into datagrams with the tag of the trial.
pub fn datagrams(bytes: &[u8]) {
    let Some((&[size, step, flags], bytes)) = bytes.split_first_chunk() else { return };
    let datagram_bytes = HEADER + usize::from(size % 64);
    let tag = tag(&KEY, 0);
    let mut arrivals = Arrivals::new(Numbering::Tagged { tag }, WINDOW_NS);
    let mut now = 1;
    for batch in bytes.chunks(8 * datagram_bytes) {
        let mut payload = batch.to_vec();
        for datagram in payload.chunks_mut(datagram_bytes) {
            // One flag keeps the tags of the input.
            if flags & 1 == 0
                && let Some(start) = datagram.first_chunk_mut::<4>()
            {
                *start = tag.to_be_bytes();
            }
        }
        let drops = u32::from(payload[0]);
        let buffer =
            Arrived { payload: &payload, datagram_bytes, truncated: flags & 2 != 0, drops, traffic_class: None };
        arrivals.take(std::iter::once(buffer), now, flags & 4 == 0);
        now += u64::from(step) << (flags >> 3);
        arrivals.nothing(now);
    }
    let datagrams = bytes.len().div_ceil(datagram_bytes) as u64;
    assert!(arrivals.total().datagrams <= datagrams, "each datagram counts once");
    let _ = (arrivals.missing(), arrivals.last(), arrivals.end());
    let received = arrivals.outcome(0, u64::MAX, Some(0), "recvmmsg").received.expect("a receiver has an account");
    assert!(received.arrived <= datagrams && received.duplicates <= datagrams);
    let _ = Header::read(bytes, tag);
}
