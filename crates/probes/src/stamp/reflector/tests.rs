use super::*;
use crate::stamp::{AccessReport, ClassOfService, DirectMeasurement, Key};
use proptest::prelude::*;

/// 29 November 2026.
const NOW_UNIX_NS: i64 = 1_795_910_400_000_000_000;

fn authenticated() -> Mode {
    Mode::Authenticated(Key::new(b"key"))
}

fn reflector(change: impl FnOnce(&mut ReflectorOptions)) -> Reflector {
    let mut options = ReflectorOptions::default();
    change(&mut options);
    Reflector::new(options)
}

fn arrival(from: &str) -> Arrival {
    let from = from.parse().expect("an address and a port");
    Arrival { from, at_unix_ns: NOW_UNIX_NS - 5_000, ttl: Some(61), traffic_class: Some(0xb9) }
}

fn time(monotonic_ns: u64) -> ReplyTime {
    ReplyTime { monotonic_ns, unix_ns: NOW_UNIX_NS, error: ErrorEstimate(0x8001) }
}

fn packet(sequence: u32, mode: &Mode, tlvs: &[Tlv]) -> Vec<u8> {
    let sent = Timestamp::from_unix_ns(NOW_UNIX_NS - 20_000, TimestampFormat::Ntp);
    let mut bytes = Vec::new();
    TestPacket { sequence, sent, error: ErrorEstimate(0x0007), ssid: 9 }.write(mode, tlvs, &mut bytes);
    bytes
}

fn read(reply: &Reply, mode: &Mode) -> (ReflectedPacket, Vec<Tlv>) {
    ReflectedPacket::read(&reply.bytes, mode).expect("a reply of this mode")
}

#[test]
fn replies_carry_times_ttl_and_a_copy_of_the_sender() {
    for mode in [Mode::Unauthenticated, authenticated()] {
        let mut reflector = reflector(|options| options.mode = mode.clone());
        let request = packet(7, &mode, &[]);
        let reply = reflector.answer(&request, &arrival("127.0.0.1:5000"), time(0)).expect("answers");
        assert_eq!(reply.bytes.len(), request.len());
        assert_eq!(reply.traffic_class, 0xb8, "the DSCP of the packet, without its ECN");
        let (reflected, tlvs) = read(&reply, &mode);
        assert!(tlvs.is_empty());
        assert_eq!(reflected.sequence, 0, "the reflector's own number");
        assert_eq!((reflected.sender.sequence, reflected.ssid, reflected.sender_ttl), (7, 9, 61));
        assert_eq!(reflected.received.unix_ns(TimestampFormat::Ntp), NOW_UNIX_NS - 5_000);
        assert_eq!(reflected.sent.unix_ns(TimestampFormat::Ntp), NOW_UNIX_NS);
        assert_eq!(reflected.sender.sent.unix_ns(TimestampFormat::Ntp), NOW_UNIX_NS - 20_000);
        assert_eq!((reflected.error, reflected.sender.error), (ErrorEstimate(0x8001), ErrorEstimate(7)));
    }
}

#[test]
fn sequence_numbers_count_each_session_on_its_own() {
    let mode = Mode::Unauthenticated;
    let mut stateful = reflector(|_| {});
    for (from, sequence, now, number) in [
        ("10.0.0.1:5000", 0, 0, 0),
        // Packets 1 to 4 were lost on their way here.
        ("10.0.0.1:5000", 5, 1, 1),
        ("10.0.0.1:5001", 5, 2, 0),
        ("[::ffff:10.0.0.1]:5000", 6, 3, 2),
        // A session ends after 900 s.
        ("10.0.0.1:5000", 7, 4 + IDLE_NS, 0),
    ] {
        let reply = stateful.answer(&packet(sequence, &mode, &[]), &arrival(from), time(now)).expect("answers");
        assert_eq!(read(&reply, &mode).0.sequence, number, "{from}, packet {sequence}");
    }
    let mut stateless = reflector(|options| options.is_stateful = false);
    let reply = stateless.answer(&packet(5, &mode, &[]), &arrival("10.0.0.1:5000"), time(0)).expect("answers");
    assert_eq!(read(&reply, &mode).0.sequence, 5);
    assert_eq!(stateless.sessions(), 0);
}

#[test]
fn forged_sources_neither_fill_memory_nor_end_a_busy_session() {
    let mode = Mode::Unauthenticated;
    let mut reflector = reflector(|options| {
        options.max_sessions = 100;
        options.max_rate = 1_000_000;
    });
    let mut sequence = 0;
    for flood in 0..5_000u64 {
        // 50 us apart, so that each source has its rate again.
        let now = flood * 50_000;
        if flood % 250 == 0 {
            let busy = reflector.answer(&packet(0, &mode, &[]), &arrival("10.9.9.9:5000"), time(now)).expect("answers");
            assert_eq!(read(&busy, &mode).0.sequence, sequence);
            sequence += 1;
            // The second packet follows at once.
            let busy = reflector.answer(&packet(0, &mode, &[]), &arrival("10.9.9.9:5000"), time(now)).expect("answers");
            assert_eq!(read(&busy, &mode).0.sequence, sequence);
            sequence += 1;
        }
        let source = format!("10.0.{}.{}:{}", flood / 250, flood % 250, 1 + flood);
        let _ = reflector.answer(&packet(0, &mode, &[]), &arrival(&source), time(now));
        assert!(reflector.sessions.len() <= 100 && reflector.sources.len() <= 100);
    }
}

#[test]
fn sources_that_are_not_allowed_get_no_reply() {
    let mode = Mode::Unauthenticated;
    let mut local = reflector(|_| {});
    for (source, is_allowed) in [
        ("127.0.0.1:5000", true),
        ("172.31.0.1:5000", true),
        ("[fe80::1]:5000", true),
        ("[fd00::1]:5000", true),
        ("[::ffff:192.168.1.1]:5000", true),
        ("172.32.0.1:5000", false),
        ("192.0.2.1:5000", false),
        ("[2001:db8::1]:5000", false),
        ("10.0.0.1:0", false),
    ] {
        let answer = local.answer(&packet(0, &mode, &[]), &arrival(source), time(0));
        assert_eq!(answer.err(), (!is_allowed).then_some(Refusal::Source), "{source}");
    }
    let mut open = reflector(|options| options.allowed = AllowedPeers::default());
    for (source, is_allowed) in [
        ("192.0.2.1:5000", true),
        ("255.255.255.255:5000", false),
        ("224.0.0.1:5000", false),
        ("[ff02::1]:5000", false),
        ("0.0.0.0:5000", false),
    ] {
        let answer = open.answer(&packet(0, &mode, &[]), &arrival(source), time(0));
        assert_eq!(answer.err(), (!is_allowed).then_some(Refusal::Source), "{source}");
    }
}

#[test]
fn packets_without_a_valid_hmac_get_no_reply() {
    let mut reflector = reflector(|options| options.mode = authenticated());
    let unsigned = packet(0, &Mode::Unauthenticated, &[Tlv::padding(100)]);
    let other = packet(0, &Mode::Authenticated(Key::new(b"other")), &[]);
    for request in [unsigned, other] {
        let answer = reflector.answer(&request, &arrival("127.0.0.1:5000"), time(0));
        assert_eq!(answer, Err(Refusal::Hmac));
    }
    let answer = reflector.answer(&[0; 44], &arrival("127.0.0.1:5000"), time(0));
    assert_eq!(answer, Err(Refusal::Short));
    assert_eq!(reflector.sessions(), 0);
}

/// Attack: a packet with the source of one reflector is sent to another, and they answer each other for ever.
#[test]
fn two_reflectors_do_not_answer_each_other() {
    for mode in [Mode::Unauthenticated, authenticated()] {
        let mut reflector = reflector(|options| options.mode = mode.clone());
        let request = packet(0, &mode, &[]);
        for length in 0..=request.len() {
            let first = reflector.answer(&request[..length], &arrival("127.0.0.1:862"), time(0));
            let Ok(reply) = first else {
                assert!(length < 24 || length < mode.packet_bytes() && mode.packet_bytes() > 44, "{length}");
                continue;
            };
            // The clock of the other one is years off.
            let later = ReplyTime { unix_ns: 0, ..time(1_000_000_000) };
            let again = reflector.answer(&reply.bytes, &arrival("127.0.0.2:862"), later);
            assert_eq!(again, Err(Refusal::Reflected), "{length} bytes");
        }
    }
}

#[test]
fn rates_bound_each_source_and_all_together() {
    let mode = Mode::Unauthenticated;
    let mut reflector = reflector(|options| options.max_rate = 1_000);
    let request = packet(0, &mode, &[]);
    // 1,000 packets in 1 s: 100 and a burst of 10.
    let source = arrival("10.0.0.1:5000");
    let ms = 1_000_000;
    let one = (0..1_000).filter(|n| reflector.answer(&request, &source, time(n * ms)).is_ok()).count();
    assert!((100..=110).contains(&one), "{one}");
    let other_port = reflector.answer(&request, &arrival("10.0.0.1:6000"), time(999 * ms));
    assert_eq!(other_port, Err(Refusal::Rate));
    // 100 sources at one time share the burst of the total.
    let now = time(10_000_000_000);
    let sources = (0..100).map(|n| format!("10.0.1.{n}:5000"));
    let all: usize = sources
        .map(|source| (0..9).filter(|_| reflector.answer(&request, &arrival(&source), now).is_ok()).count())
        .sum();
    assert_eq!(all, 100);
}

#[test]
fn tlvs_are_filled_in_and_flagged() {
    for mode in [Mode::Unauthenticated, authenticated()] {
        let mut reflector = reflector(|options| options.mode = mode.clone());
        let class = ClassOfService { requested_dscp: 10, ..Default::default() };
        let counts = DirectMeasurement { sender_transmitted: 77, ..Default::default() };
        let report = TlvValue::AccessReport(AccessReport { access_id: 1, return_code: 2 });
        let unknown = TlvValue::Unknown { kind: 200, value: vec![1, 2, 3] };
        let padding = TlvValue::ExtraPadding(vec![5; 9]);
        let sent = [
            TlvValue::ClassOfService(class),
            TlvValue::DirectMeasurement(counts),
            report.clone(),
            unknown.clone(),
            padding.clone(),
        ]
        .map(Tlv::new);
        let request = packet(0, &mode, &sent);
        let reply = reflector.answer(&request, &arrival("127.0.0.1:5000"), time(0)).expect("answers");
        assert_eq!(reply.bytes.len(), request.len());
        assert_eq!(reply.traffic_class >> 2, 10);
        let class = ClassOfService { received_dscp: 0xb9 >> 2, received_ecn: 1, ..class };
        let counts = DirectMeasurement { reflector_received: 1, reflector_transmitted: 1, ..counts };
        let clear = TlvFlags::default();
        let expected = [
            Tlv { flags: clear, value: TlvValue::ClassOfService(class) },
            Tlv { flags: clear, value: TlvValue::DirectMeasurement(counts) },
            Tlv { flags: clear, value: report },
            Tlv { flags: TlvFlags { unrecognised: true, ..clear }, value: unknown },
            Tlv { flags: clear, value: padding },
        ];
        assert_eq!(read(&reply, &mode).1, expected);
    }
}

#[test]
fn network_control_is_not_sent_on_request() {
    let class = TlvValue::ClassOfService(ClassOfService { requested_dscp: 48, ..Default::default() });
    let request = packet(0, &Mode::Unauthenticated, &[Tlv::new(class)]);
    let reply = reflector(|_| {}).answer(&request, &arrival("127.0.0.1:5000"), time(0)).expect("answers");
    assert_eq!(reply.traffic_class, 0xb8, "the DSCP of the packet");
    let TlvValue::ClassOfService(class) = read(&reply, &Mode::Unauthenticated).1[0].value else {
        panic!("the TLV comes back")
    };
    assert_eq!((class.requested_dscp, class.reverse_path), (48, 1));
}

#[test]
fn tlvs_that_fail_verification_come_back_unprocessed() {
    let class = TlvValue::ClassOfService(ClassOfService { requested_dscp: 10, ..Default::default() });
    let mut request = packet(0, &authenticated(), &[Tlv::new(class.clone())]);
    let last = request.len() - 1;
    request[last] ^= 1;
    let mut reflector = reflector(|options| options.mode = authenticated());
    let reply = reflector.answer(&request, &arrival("127.0.0.1:5000"), time(0)).expect("the base packet is valid");
    assert_eq!((reply.bytes.len(), reply.traffic_class), (request.len(), 0xb8));
    let (_, tlvs) = read(&reply, &authenticated());
    assert_eq!(tlvs.len(), 2);
    assert_eq!(tlvs[0].value, class);
    assert!(tlvs.iter().all(|tlv| tlv.flags.integrity_failed));
}

#[test]
fn malformed_tlvs_are_copied_with_the_rest_of_the_packet() {
    let tail = [0x80, 5, 0, 99, 1, 2, 3, 4, 5, 6, 7];
    let request = [&packet(0, &Mode::Unauthenticated, &[])[..], &tail].concat();
    let reply = reflector(|_| {}).answer(&request, &arrival("127.0.0.1:5000"), time(0)).expect("answers");
    assert_eq!((reply.bytes[44], &reply.bytes[45..]), (0x40, &tail[1..]));
}

proptest! {
    #[test]
    fn replies_have_the_length_of_their_packets(
        base_bytes in 0usize..113,
        tail in proptest::collection::vec(0u8..20, 0..60),
        signed in any::<bool>(),
    ) {
        for mode in [Mode::Unauthenticated, authenticated()] {
            let mut reflector = reflector(|options| options.mode = mode.clone());
            let base = packet(0, &mode, &[]);
            let request = if signed { [&base[..], &tail].concat() } else { base[..base_bytes.min(base.len())].to_vec() };
            if let Ok(reply) = reflector.answer(&request, &arrival("127.0.0.1:5000"), time(0)) {
                prop_assert_eq!(reply.bytes.len(), request.len());
            } else {
                prop_assert!(!signed, "a packet of full length");
            }
        }
    }
}
