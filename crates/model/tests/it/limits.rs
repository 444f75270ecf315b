//! What media can carry, against figures that are known from elsewhere, and rules that hold for every stack.

use linerate_model::{BadStack, Carried, Encapsulation, IpVersion, Layer, Medium, Stack, Transport};
use linerate_units::BitRate;
use proptest::prelude::*;

fn medium(name: &str) -> Medium {
    name.parse().expect(name)
}

fn on(name: &str) -> Stack {
    Stack::on(medium(name))
}

fn udp(stack: &Stack, bytes: u64) -> Carried {
    stack.carried(Transport::Udp, bytes).expect("the stack is sound")
}

fn tcp(stack: &Stack) -> Carried {
    stack.carried(Transport::Tcp, 65_536).expect("the stack is sound")
}

/// Payload, IP, layer 2, layer 2 with FCS and wire bytes.
fn layers(carried: &Carried) -> [u64; 5] {
    Layer::ALL.map(|layer| carried.bytes.at(layer))
}

fn bytes_of(carried: &Carried, name: &str) -> u32 {
    let parts = carried.packets.iter().flat_map(|packet| &packet.parts);
    parts.filter(|part| part.name == name).map(|part| part.bytes).sum()
}

/// RFC 2544 appendix B, at 10 Mbit/s; and the frame rates of 1 Gbit/s that every tester prints.
#[test]
fn ethernet_frame_rates() {
    for (name, frames) in [
        ("10base-t", [14_880, 8_445, 4_528, 2_349, 1_197, 961, 812]),
        ("1000base-t", [1_488_095, 844_594, 452_898, 234_962, 119_731, 96_153, 81_274]),
    ] {
        for (size, rate) in [64, 128, 256, 512, 1024, 1280, 1518].into_iter().zip(frames) {
            let carried = udp(&on(name), size - 18 - 28);
            assert_eq!(carried.bytes.at(Layer::Layer2Fcs), size);
            assert_eq!(carried.packets_per_s().floor(), f64::from(rate), "{name} {size}");
        }
    }
}

/// 1472/1538, 64/130, 1448/1538, and one byte in a minimum frame.
#[test]
fn ethernet_payload() {
    let stack = on("1000base-t");
    assert_eq!(layers(&udp(&stack, 1472)), [1472, 1500, 1514, 1518, 1538]);
    assert_eq!(layers(&udp(&stack, 64)), [64, 92, 106, 110, 130]);
    assert_eq!(layers(&udp(&stack, 1)), [1, 29, 60, 64, 84]);
    assert_eq!(layers(&tcp(&stack)), [1448, 1500, 1514, 1518, 1538]);
    let without = Stack { tcp_timestamps: false, ..stack.clone() };
    assert_eq!(layers(&tcp(&without)), [1460, 1500, 1514, 1518, 1538]);
    let ipv6 = Stack { ip: IpVersion::V6, ..stack.clone() };
    assert_eq!(layers(&tcp(&ipv6)), [1428, 1500, 1514, 1518, 1538]);
    assert_eq!(layers(&tcp(&stack.mtu(9000))), [8948, 9000, 9014, 9018, 9038]);
    let hundred = udp(&on("100base-tx"), 64);
    assert_eq!(
        [Layer::Payload, Layer::Ip, Layer::Layer2Fcs].map(|layer| hundred.rate(layer).get() / 10_000),
        [4_923, 7_076, 8_461]
    );
}

/// A message past the MTU: fragments of 1,500 and a last one, each a frame of its own.
#[test]
fn ethernet_fragments() {
    let carried = udp(&on("100base-tx"), 8192);
    assert_eq!(carried.packets.iter().map(|packet| packet.count).collect::<Vec<_>>(), [1, 4, 1]);
    // 8 of UDP once, 20 of IP six times; 14, 4 and 20 for each frame.
    assert_eq!(layers(&carried), [8192, 8320, 8404, 8428, 8548]);
    let ipv6 = Stack { ip: IpVersion::V6, ..on("100base-tx") };
    // The largest multiple of 8 in 1500 - 40 - 8 is 1448: six fragments, 48 bytes of headers each.
    assert_eq!(layers(&udp(&ipv6, 8192))[..2], [8192, 8200 + 6 * 48]);
}

/// 1,500 bytes of IP: 2 of LECID, 14 of Ethernet and 8 of trailer make 1,524, in 32 cells 1,696.
#[test]
fn atm_lan_emulation() {
    let stack = on("atm-oc3-lane");
    assert_eq!(stack.medium.line(), BitRate::per_second(155_520_000));
    assert_eq!(stack.medium.capacity(), BitRate::per_second(149_760_000));
    let carried = udp(&stack, 1472);
    assert_eq!(layers(&carried), [1472, 1500, 1516, 1536, 1696]);
    assert_eq!(carried.cells(), Some(32));
    assert_eq!(carried.rate(Layer::Payload).get() / 10_000, 12_998);
    // Five fragments in 32 cells each, the last in 18: 178 cells.
    let fragments = udp(&stack, 8192);
    assert_eq!((fragments.cells(), fragments.rate(Layer::Payload).get() / 10_000), (Some(178), 13_004));
    // A minimum frame: 62 bytes of AAL5 payload, so never a single cell.
    assert_eq!(layers(&udp(&stack, 1)), [1, 29, 62, 96, 106]);
    assert_eq!(medium("atm-oc12-lane").capacity(), BitRate::per_second(599_040_000));
}

/// RFC 2225: 9,180 bytes of IP, 8 of LLC/SNAP and 8 of trailer are 9,196, in 192 cells.
#[test]
fn atm_classical_ip() {
    let stack = on("atm-oc3-cip");
    let carried = udp(&stack, 9180 - 28);
    assert_eq!(carried.cells(), Some(192));
    assert_eq!(layers(&carried), [9152, 9180, 9188, 9216, 10_176]);
    // 40 bytes of TCP without data and 16 more just miss one cell.
    assert_eq!(udp(&stack, 4).cells(), Some(1));
    assert_eq!(udp(&stack, 5).cells(), Some(2));
}

/// RFC 1390: an IP packet of 4,352 bytes; 21 of header and 4 of FCS; 8 + 1 + 2 bytes around the frame.
#[test]
fn fddi() {
    let carried = udp(&on("fddi"), 4352 - 28);
    assert_eq!(layers(&carried), [4324, 4352, 4373, 4377, 4388]);
    // At most 9,000 symbols of four bits, of which the standard counts four of preamble.
    assert!(carried.bytes.at(Layer::Wire) * 2 <= 9_000);
    // There is no minimum.
    assert_eq!(layers(&udp(&on("fddi"), 1)), [1, 29, 50, 54, 65]);
}

/// What each encapsulation leaves of 1,500 bytes, as the makers of each print it, and what a full packet then is on the wire.
#[test]
fn mtu_inside_encapsulations() {
    for (over, inner, wire) in [
        ("vlan", 1500, 1542),
        ("qinq", 1500, 1546),
        ("pppoe", 1492, 1538),
        ("mpls", 1496, 1538),
        ("mpls,mpls", 1492, 1538),
        ("gre", 1476, 1538),
        ("vxlan", 1450, 1538),
        ("geneve", 1450, 1538),
        ("wireguard", 1440, 1538),
        ("esp", 1446, 1538),
        ("vlan,vxlan", 1450, 1542),
        ("vxlan,vlan", 1446, 1538),
        ("qinq,pppoe,gre", 1468, 1546),
        ("wireguard,vxlan", 1390, 1538),
    ] {
        let over: Vec<Encapsulation> = over.split(',').map(|one| one.parse().expect(one)).collect();
        let stack = on("1000base-t").over(&over);
        assert_eq!(stack.inner_mtu(), Ok(inner), "{over:?}");
        let carried = udp(&stack, u64::from(inner) - 28);
        assert_eq!(carried.bytes.at(Layer::Wire), wire, "{over:?}");
        assert_eq!(carried.bytes.at(Layer::Ip), u64::from(inner), "{over:?}");
    }
    for (over, inner) in [
        (Encapsulation::Gre, 1456),
        (Encapsulation::Vxlan, 1430),
        (Encapsulation::Wireguard, 1420),
        (Encapsulation::Esp, 1426),
    ] {
        let stack = Stack { outer_ip: IpVersion::V6, ..on("1000base-t").over(&[over]) };
        assert_eq!(stack.inner_mtu(), Ok(inner), "{over}");
    }
}

#[test]
fn tunnels_pad_what_they_seal() {
    // 92 bytes: to 96; with 16 + 16 + 8 + 20 and Ethernet's 38.
    let wireguard = udp(&on("1000base-t").over(&[Encapsulation::Wireguard]), 64);
    assert_eq!((bytes_of(&wireguard, "WireGuard padding"), layers(&wireguard)[4]), (4, 96 + 60 + 38));
    // A packet that fills the usual 1,420 is not padded past it.
    let usual = Stack { inner_mtu: Some(1420), ..on("1000base-t").over(&[Encapsulation::Wireguard]) };
    assert_eq!((bytes_of(&udp(&usual, 1392), "WireGuard padding"), tcp(&usual).inner_mtu), (0, 1420));
    // 92 + 2 to 96; with 16 + 16 + 20.
    let esp = udp(&on("1000base-t").over(&[Encapsulation::Esp]), 64);
    assert_eq!((bytes_of(&esp, "ESP padding"), layers(&esp)[4]), (2, 96 + 52 + 38));
}

#[test]
fn what_does_not_stand_is_refused() {
    use Encapsulation::{Gre, Mpls, Pppoe, Vlan, Vxlan, Wireguard};
    let refused = |stack: Stack| stack.carried(Transport::Udp, 64).expect_err("refused").to_string();
    for (below, over, why) in [
        ("fddi", vec![Vlan], "vlan does not go over FDDI"),
        ("atm-oc3-cip", vec![Pppoe], "pppoe does not go over ATM-OC3-CIP"),
        ("10base-t", vec![Gre, Vlan], "vlan does not go over gre"),
        ("10base-t", vec![Wireguard, Mpls], "IP packets only"),
        ("fddi", vec![Mpls, Pppoe], "not Ethernet frames"),
    ] {
        let error = refused(on(below).over(&over));
        assert!(error.contains(why), "{error}");
    }
    assert!(refused(on("fddi").mtu(4353)).contains("at most 4352"));
    assert!(refused(on("10base-t").mtu(100).over(&[Vxlan])).contains("50 bytes are left for IPv4"));
    assert!(refused(on("10base-t").mtu(40).over(&[Vxlan])).contains("0 bytes are left"));
    let ipv6 = Stack { ip: IpVersion::V6, ..on("10base-t").mtu(1279) };
    assert!(refused(ipv6).contains("at least 1280"));
    let inner = Stack { inner_mtu: Some(1451), ..on("10base-t").over(&[Vxlan]) };
    assert_eq!(inner.inner_mtu(), Err(BadStack::InnerMtuTooLarge { asked: 1451, left: 1450 }));
    let large = on("10base-t").carried(Transport::Udp, 65_508).expect_err("too large").to_string();
    assert!(large.contains("65507"), "{large}");
}

/// The blog's 77 Mbit/s at 64 bytes through a port of 100 Mbit/s, and what its author cannot have counted.
#[test]
fn a_claim_is_possible_from_a_layer_down() {
    let carried = udp(&on("100base-tx"), 64);
    for (claim, layer) in [
        (49_230_000, Some(Layer::Payload)),
        // Rounded up.
        (49_270_000, Some(Layer::Payload)),
        (49_300_000, Some(Layer::Ip)),
        (77_000_000, Some(Layer::Layer2)),
        (84_600_000, Some(Layer::Layer2Fcs)),
        (100_000_000, Some(Layer::Wire)),
        (101_000_000, None),
        (u64::MAX, None),
    ] {
        assert_eq!(carried.possible_at(BitRate::per_second(claim)), layer, "{claim}");
    }
    assert_eq!(udp(&on("1000base-t"), 64).possible_at(BitRate::per_second(124_000_000)), Some(Layer::Payload));
}

#[test]
fn media_are_read_as_people_write_them() {
    for medium in Medium::named() {
        assert_eq!(String::from(medium).parse(), Ok(medium));
        assert_eq!(medium.to_string().parse(), Ok(medium));
    }
    for (text, mbit) in
        [("100BASE-FX", 100), ("1000base-sx", 1_000), ("40gbase-lr4", 40_000), ("10base2", 10), ("37Mbit/s", 37)]
    {
        assert_eq!(text.parse(), Ok(Medium::Ethernet(BitRate::per_second(mbit * 1_000_000))), "{text}");
    }
    for text in ["", "ethernet", "base-t", "20gbase-r", "10gbase-lw", "0", "10base-t!", "atm"] {
        let error = text.parse::<Medium>().expect_err(text).to_string();
        assert!(error.contains("atm-oc3-lane"), "{error}");
    }
    let stack: Stack =
        serde_json::from_str(r#"{"medium":"100base-tx","over":["vlan","vxlan"],"mtu":1600}"#).expect("reads");
    assert_eq!(stack, on("100base-tx").over(&[Encapsulation::Vlan, Encapsulation::Vxlan]).mtu(1600));
    assert!(serde_json::from_str::<Stack>(r#"{"medium":"100base-tx","mut":1}"#).is_err());
}

fn any_medium() -> impl Strategy<Value = Medium> {
    let all: Vec<Medium> = Medium::named().collect();
    prop::sample::select(all)
}

fn any_over() -> impl Strategy<Value = Vec<Encapsulation>> {
    let all: Vec<Encapsulation> = Encapsulation::all().collect();
    prop::collection::vec(prop::sample::select(all), 0..4)
}

fn any_ip() -> impl Strategy<Value = IpVersion> {
    prop::sample::select(vec![IpVersion::V4, IpVersion::V6])
}

/// Stacks that stand.
fn any_stack() -> impl Strategy<Value = Stack> {
    let mtu = prop::option::of(68u32..20_000);
    let inner_mtu = prop::option::of(68u32..2_000);
    let parts = (any_medium(), any_over(), any_ip(), any_ip(), mtu, inner_mtu, any::<bool>());
    parts.prop_filter_map("does not stand", |(medium, over, ip, outer_ip, mtu, inner_mtu, tcp_timestamps)| {
        let stack = Stack { medium, over, ip, outer_ip, mtu, inner_mtu, tcp_timestamps, half_duplex: false };
        stack.inner_mtu().is_ok().then_some(stack)
    })
}

fn any_transport() -> impl Strategy<Value = Transport> {
    prop::sample::select(vec![Transport::Tcp, Transport::Udp])
}

/// On a hub two segments of 1,538 bytes and their acknowledgement of 84 take turns: 2,920 of 3,160 bytes are payload.
#[test]
fn acknowledgements_share_a_half_duplex_medium() {
    let hub = Stack { half_duplex: true, tcp_timestamps: false, ..on("10base-t") };
    let tcp = hub.carried(Transport::Tcp, 1).expect("it stands");
    assert_eq!(tcp.rate(Layer::Payload).get(), 10_000_000 * 2_920 / 3_160);
    assert_eq!(tcp.turn(), (2, 3_160));
    assert!((tcp.messages_per_s() - 2.0 * 10e6 / (8.0 * 3_160.0)).abs() < 1e-9);
    let full = Stack { half_duplex: false, ..hub.clone() };
    assert_eq!(full.carried(Transport::Tcp, 1).expect("it stands").rate(Layer::Payload).get(), 9_492_847);
    // Nobody answers datagrams.
    let udp = |stack: &Stack| stack.carried(Transport::Udp, 1472).expect("it stands").rate(Layer::Payload);
    assert_eq!(udp(&hub), udp(&full));
    for medium in ["10gbase-t", "fddi", "atm-oc3-lane"] {
        let stack = Stack { half_duplex: true, ..on(medium) };
        let error = stack.carried(Transport::Tcp, 1).expect_err(medium).to_string();
        assert!(error.contains("has no half duplex; it is of Ethernet up to 1 Gbit/s"), "{error}");
    }
}

proptest! {
    #[test]
    fn each_layer_counts_all_that_the_one_above_does(
        stack in any_stack(), transport in any_transport(), message in 0u64..=65_507,
    ) {
        let carried = stack.carried(transport, message).expect("it stands");
        prop_assert!(layers(&carried).is_sorted());
        prop_assert!(Layer::ALL.map(|layer| carried.rate(layer)).is_sorted());
        prop_assert_eq!(carried.rate(Layer::Wire), stack.medium.capacity());
        prop_assert!(carried.rate(Layer::Wire) <= stack.medium.line());
        if transport == Transport::Udp {
            prop_assert_eq!(carried.bytes.at(Layer::Payload), message);
        }
    }

    #[test]
    fn a_packet_never_exceeds_its_mtu(stack in any_stack(), message in 0u64..=65_507) {
        let carried = stack.carried(Transport::Udp, message).expect("it stands");
        for packet in &carried.packets {
            let counted = |layer| packet.parts.iter().filter(move |part| part.layer <= layer).map(|part| part.bytes);
            prop_assert!(counted(Layer::Ip).sum::<u32>() <= carried.inner_mtu);
            // FDDI's is the longest header, and each tag may come on top; only a minimum frame is longer.
            let header = 21 + 8 * stack.over.len() as u32;
            let most = (stack.mtu.unwrap_or(stack.medium.mtu()) + header).max(62);
            prop_assert!(counted(Layer::Layer2).sum::<u32>() <= most);
        }
    }

    /// A message that is cut may gain by being cut elsewhere: 1,473 bytes over Ethernet leave a last fragment that is mostly
    /// padding, and a label less of room moves bytes into it.
    #[test]
    fn one_more_encapsulation_never_gives_more_payload_to_messages_that_stay_whole(
        stack in any_stack(), more in prop::sample::select(Encapsulation::all().collect::<Vec<_>>()),
        transport in any_transport(), message in 1u64..2_000,
    ) {
        let plain = stack.carried(transport, message).expect("it stands");
        let with = Stack { over: [stack.over.clone(), vec![more]].concat(), ..stack };
        if let Ok(with) = with.carried(transport, message)
            && with.packet_count() == 1
        {
            prop_assert!(with.rate(Layer::Payload) <= plain.rate(Layer::Payload));
        }
    }

    #[test]
    fn whatever_is_asked_is_answered_or_refused(
        medium in any_medium(), over in any_over(), ip in any_ip(), outer_ip in any_ip(), mtu: Option<u32>,
        inner_mtu: Option<u32>, transport in any_transport(), message: u64,
    ) {
        let stack = Stack { medium, over, ip, outer_ip, mtu, inner_mtu, tcp_timestamps: true, half_duplex: false };
        let _ = stack.carried(transport, message);
    }

    #[test]
    fn no_text_panics(text in ".{0,24}") {
        let _ = text.parse::<Medium>();
        let _ = text.parse::<Encapsulation>();
    }
}
