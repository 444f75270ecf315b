//! Entry points for fuzzing: what comes to the ports of a trial, from its peer or from a stranger.

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

/// Reads a greeting and an answer to one: first the bytes as they are, then true ones that differ from them in the bits that are set
/// in `bytes`. So the fuzzer need not find the key. That only true ones are taken is no property to fuzz for: the fuzzer watches which
/// numbers are compared, and so finds proofs that nobody else can.
pub fn greeting(bytes: &[u8]) {
    let hello = Hello { path: 3, flow: 513, backward: true };
    let _ = (Hello::decode(bytes, &KEY), hello.decode_answer(bytes, &KEY, &SALT));
    let change = |whole: &[u8]| -> Vec<u8> {
        let bits = bytes.iter().chain(std::iter::repeat(&0));
        whole.iter().zip(bits).map(|(byte, bits)| byte ^ bits).collect()
    };
    for whole in [hello.encode(&KEY, &SALT), hello.confirmation(&KEY, &SALT, 77)] {
        let _ = Hello::decode(&change(&whole), &KEY);
        assert_eq!(Hello::decode(&whole[..bytes.len().min(whole.len() - 1)], &KEY), None, "a part of one is none");
    }
    let greeted = Hello::decode(&hello.encode(&KEY, &SALT), &KEY).expect("it is one");
    let whole = greeted.answer(&KEY, Answer { port: 40_000, nonce: 77 });
    assert!(hello.decode_answer(&whole, &KEY, &SALT).is_some(), "it is one");
    let _ = hello.decode_answer(&change(&whole), &KEY, &SALT);
}

/// Counts datagrams of a sender that speaks iperf3's protocol, which tells no phases.
pub fn iperf3_datagrams(bytes: &[u8]) {
    let Some((&[size, flags], bytes)) = bytes.split_first_chunk() else { return };
    let numbering = Numbering::Iperf3 { wide: flags & 1 == 1 };
    let datagram_bytes = numbering.header() + usize::from(size % 64);
    let mut arrivals = Arrivals::new(numbering, WINDOW_NS);
    for (payload, now) in bytes.chunks(4 * datagram_bytes).zip((0..).map(|batch| 1 + batch * WINDOW_NS / 8)) {
        let phase = match now {
            _ if now < WINDOW_NS / 2 => Phase::WarmUp,
            _ if now < WINDOW_NS => Phase::Measured,
            _ => Phase::CoolDown,
        };
        arrivals.enter(phase, Some(WINDOW_NS / 2));
        let buffer = Arrived { payload, datagram_bytes, truncated: flags & 2 != 0, drops: 0 };
        arrivals.take(std::iter::once(buffer), now, flags & 4 == 0);
        arrivals.nothing(now);
    }
    let come = bytes.len().div_ceil(datagram_bytes) as u64;
    let outcome = arrivals.outcome(0, u64::MAX, 0, "recvmmsg");
    let received = outcome.received.expect("a receiver has an account");
    assert!(received.arrived <= come && received.messages <= come, "each datagram counts once");
}

/// Counts datagrams: each input byte string is cut into some, which get the tag of the trial.
pub fn datagrams(bytes: &[u8]) {
    let Some((&[size, step, flags], bytes)) = bytes.split_first_chunk() else { return };
    let datagram_bytes = HEADER + usize::from(size % 64);
    let tag = tag(&KEY, 0);
    let mut arrivals = Arrivals::new(Numbering::Own { tag }, WINDOW_NS);
    let mut now = 1;
    for batch in bytes.chunks(8 * datagram_bytes) {
        let mut payload = batch.to_vec();
        for datagram in payload.chunks_mut(datagram_bytes) {
            // One flag leaves strangers' datagrams as they are.
            if flags & 1 == 0
                && let Some(start) = datagram.first_chunk_mut::<4>()
            {
                *start = tag.to_be_bytes();
            }
        }
        let drops = u32::from(payload[0]);
        let buffer = Arrived { payload: &payload, datagram_bytes, truncated: flags & 2 != 0, drops };
        arrivals.take(std::iter::once(buffer), now, flags & 4 == 0);
        now += u64::from(step) << (flags >> 3);
        arrivals.nothing(now);
    }
    let come = bytes.len().div_ceil(datagram_bytes) as u64;
    assert!(arrivals.total().datagrams <= come, "each datagram counts once");
    let _ = (arrivals.missing(), arrivals.last(), arrivals.end());
    let received = arrivals.outcome(0, u64::MAX, 0, "recvmmsg").received.expect("a receiver has an account");
    assert!(received.arrived <= come && received.duplicates <= come);
    let _ = Header::read(bytes, tag);
}
