//! Sender and reflector of this crate with stamp-suite 1.0.0 at the other end.

#![cfg(target_os = "linux")]

use linerate_probes::stamp::{
    AccessReport, ClassOfService, DirectMeasurement, ErrorEstimate, Key, Losses, Mode, ReflectorOptions, Sender,
    StampService, Tlv, TlvFlags, TlvValue,
};
use linerate_sys::clock;
use linerate_testsuite::server_test;
use linerate_testsuite::servers::StampSuite;
use std::net::{Ipv4Addr, UdpSocket};
use std::time::Duration;

const PACKETS: u32 = 20;

/// Sends packets with these TLVs to a reflector on loopback. Returns the sender, and the TLVs of the last reply.
fn measure(port: u16, mode: Mode, tlvs: &[Tlv]) -> (Sender, Vec<Tlv>) {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("binds");
    socket.connect((Ipv4Addr::LOCALHOST, port)).expect("connects");
    socket.set_read_timeout(Some(Duration::from_secs(60))).expect("sets");
    socket.set_ttl(200).expect("sets");
    let mut sender = Sender::new(mode, 77);
    let mut answered = Vec::new();
    for sequence in 0..PACKETS {
        let mut packet = Vec::new();
        let sent_ns = clock::unix_now().cast_signed();
        sender.next(sent_ns, ErrorEstimate::unsynchronised(), tlvs, &mut packet);
        socket.send(&packet).expect("sends");
        let mut buffer = [0; 1_500];
        let length = socket.recv(&mut buffer).expect("a reply");
        assert_eq!(length, packet.len(), "the reply has the length of the packet");
        let now_ns = clock::unix_now().cast_signed();
        let answer = sender.read(&buffer[..length], now_ns).expect("the reply belongs to the packet");
        assert_eq!((answer.reflected.sequence, answer.reflected.ssid), (sequence, 77));
        assert_eq!(answer.reflected.sender_ttl, 200);
        // Both ends have one clock.
        assert!(answer.forward_ns >= 0 && answer.backward_ns >= 0, "{answer:?}");
        assert!(answer.round_trip_ns <= now_ns - sent_ns, "{answer:?}");
        answered = answer.tlvs;
    }
    (sender, answered)
}

fn tlvs() -> [Tlv; 5] {
    [
        TlvValue::ClassOfService(ClassOfService { requested_dscp: 10, ..Default::default() }),
        TlvValue::DirectMeasurement(DirectMeasurement { sender_transmitted: 5, ..Default::default() }),
        TlvValue::AccessReport(AccessReport { access_id: 1, return_code: 1 }),
        TlvValue::Unknown { kind: 200, value: vec![1, 2, 3] },
        TlvValue::ExtraPadding(vec![9; 30]),
    ]
    .map(Tlv::new)
}

/// Checks the TLVs of the last reply of a reflector.
fn check(answered: &[Tlv]) {
    let flags: Vec<TlvFlags> = answered.iter().map(|tlv| tlv.flags).collect();
    let clear = TlvFlags::default();
    assert_eq!(flags, [clear, clear, clear, TlvFlags { unrecognised: true, ..clear }, clear]);
    let [TlvValue::ClassOfService(class), TlvValue::DirectMeasurement(counts)] =
        [&answered[0].value, &answered[1].value]
    else {
        panic!("{answered:?}")
    };
    assert_eq!((class.requested_dscp, class.received_dscp, class.reverse_path), (10, 0, 0));
    assert_eq!((counts.sender_transmitted, counts.reflector_received), (5, PACKETS));
    // stamp-suite counts a reply after it was sent, this crate with it.
    assert!([PACKETS - 1, PACKETS].contains(&counts.reflector_transmitted), "{counts:?}");
    assert_eq!(
        answered[3..],
        [
            Tlv { flags: flags[3], value: TlvValue::Unknown { kind: 200, value: vec![1, 2, 3] } },
            Tlv { flags: clear, value: TlvValue::ExtraPadding(vec![9; 30]) },
        ]
    );
}

#[server_test(Program("stamp-suite"))]
fn a_foreign_reflector_answers_this_sender() {
    let none_lost = Losses { sent: PACKETS.into(), answered: PACKETS.into(), forward: 0, backward: 0 };
    let suite = StampSuite::reflect(&[]);
    let (sender, answered) = measure(suite.port(), Mode::Unauthenticated, &[]);
    assert_eq!((sender.losses(), answered), (none_lost, Vec::new()));
    check(&measure(suite.port(), Mode::Unauthenticated, &tlvs()).1);

    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("key");
    let key = Key::from_hex(&StampSuite::write_key(&file)).expect("a key");
    let file = file.to_str().expect("UTF-8");
    let suite = StampSuite::reflect(&["--auth-mode", "A", "--hmac-key-file", file, "--verify-tlv-hmac"]);
    let (sender, answered) = measure(suite.port(), Mode::Authenticated(key.clone()), &[]);
    assert_eq!((sender.losses(), answered), (none_lost, Vec::new()));
    check(&measure(suite.port(), Mode::Authenticated(key), &tlvs()).1);
}

#[server_test(Program("stamp-suite"))]
fn this_reflector_answers_a_foreign_sender() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("key");
    let key = Key::from_hex(&StampSuite::write_key(&file)).expect("a key");
    let file = file.to_str().expect("UTF-8");
    let authenticated = ["--auth-mode", "A", "--hmac-key-file", file, "--verify-tlv-hmac"];
    for (mode, options) in [(Mode::Unauthenticated, &[][..]), (Mode::Authenticated(key), &authenticated)] {
        let is_authenticated = !options.is_empty();
        let service = StampService::start(
            &[(Ipv4Addr::LOCALHOST, 0).into()],
            ReflectorOptions { mode, ..ReflectorOptions::default() },
        )
        .expect("the kernel chooses a port");
        let port = service.addresses()[0].port();
        let short = ["--count", "20", "--send-delay", "5ms", "--timeout", "30", "--ssid", "9"];
        let plain = StampSuite::send(port, &[&short, options].concat());
        assert_eq!((&plain["packets_sent"], &plain["packets_lost"]), (&20.into(), &0.into()), "{plain}");
        assert!(plain["owd"]["samples"] == 20 && plain["measurements"]["last_reflector_sequence"] == 19, "{plain}");

        let extended = ["--cos", "--dscp", "10", "--direct-measurement", "--extra-padding", "30", "--location"];
        let extended = StampSuite::send(port, &[&short, options, &extended[..]].concat());
        let measured = &extended["measurements"];
        assert_eq!(extended["packets_lost"], 0, "{extended}");
        assert_eq!(measured["tlv_validation"]["rejected_replies"], 0, "{extended}");
        // Location is not implemented here, and is flagged as such.
        let flags = &measured["tlv_validation"]["flags"];
        assert_eq!((&flags["unrecognized"], &flags["malformed"]), (&20.into(), &0.into()), "{extended}");
        assert_eq!(flags["integrity_failed"], 0, "{extended}");
        let verified = &measured["tlv_validation"]["hmac"]["verified"];
        assert_eq!(*verified, if is_authenticated { 20 } else { 0 }, "{extended}");
        let counted = &measured["direct_measurement"];
        assert_eq!((&counted["forward_missing"], &counted["reverse_missing"]), (&0.into(), &0.into()), "{extended}");

        let malformed = StampSuite::send(port, &[&short, options, &["--malformed", "bad-length"]].concat());
        assert_eq!(malformed["packets_lost"], 0, "{malformed}");
        assert_eq!(service.stop().answered, 60);
    }
}
