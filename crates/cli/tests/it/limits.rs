//! What media can carry, through the command line: figures known from elsewhere, claims, each form of output.

use crate::program::{Ran, TestFolder, close, number, words};
use serde_json::Value;

fn limits(line: &str) -> Value {
    TestFolder::new().measure(&words(&format!("limits {line} --json")))
}

#[test]
fn one_cell_is_one_object_of_plain_numbers() {
    let lane = limits("--medium atm-oc3-lane --udp 1472");
    close("129.98 Mbit/s over LAN emulation", number(&lane, "/payload_bps"), 129.98e6, 1e-5);
    assert_eq!((&lane["cells"], &lane["wire_bytes"]), (&Value::from(32), &Value::from(1_696)));
    let fragments = limits("--medium ATM-OC3-LANE --udp 8192");
    close("130.04 Mbit/s in fragments", number(&fragments, "/payload_bps"), 130.04e6, 1e-4);
    assert_eq!((&fragments["packets"], &fragments["cells"]), (&Value::from(6), &Value::from(178)));

    let smallest = limits("--medium 1000base-t --udp 18");
    assert_eq!(number(&smallest, "/packets_per_s").floor(), 1_488_095.0);
    assert_eq!(smallest["cells"], Value::Null);
    let tcp = limits("--medium 1gbit/s --tcp");
    close("1448/1538", number(&tcp, "/payload_bps"), 1e9 * 1448.0 / 1538.0, 1e-8);
    let tcp = limits("--medium 10gbase-t --tcp --no-timestamps --ip 6 --mtu 9000 --over vlan,vxlan");
    // 9,000 - 50 of VXLAN - 40 - 20, in 9,042 with the tag.
    assert_eq!((&tcp["message_bytes"], &tcp["wire_bytes"]), (&Value::from(8_890), &Value::from(9_042)));
    assert_eq!(tcp["over"], serde_json::json!(["vlan", "vxlan"]));
}

#[test]
fn several_cells_are_a_list() {
    let all = limits("");
    let all = all.as_array().expect("a list");
    // 13 rates of Ethernet, FDDI and four of ATM; six sizes of UDP, and TCP.
    assert_eq!(all.len(), 18 * 7);
    for cell in all {
        let layers = ["/payload_bps", "/ip_bps", "/layer2_bps", "/layer2_fcs_bps", "/wire_bps", "/line_bps"];
        assert!(layers.map(|layer| number(cell, layer)).is_sorted(), "{cell}");
    }
    assert_eq!(limits("--medium fddi,10base-t --udp 64,1472").as_array().map(Vec::len), Some(4));
    // Tags are for Ethernet frames: the others are left out, unless asked for by name.
    assert_eq!(limits("--over vlan --tcp").as_array().map(Vec::len), Some(15));
}

#[test]
fn a_bus_carries_so_many_frames_of_each_size() {
    let rows = limits("--bus pci-32-33,pcie-1-x1");
    let row = |bus: &str, bytes: u64| {
        let all = rows.as_array().expect("a list");
        all.iter().find(|row| row["bus"] == bus && row["frame_bytes"] == bytes).expect("a row").clone()
    };
    // A clock of 33.33 MHz, 379 words and 2 clocks more; 2 Gbit/s, 1,514 bytes and 20 for each of six packets.
    close("PCI", number(&row("pci-32-33", 1_518), "/frames_per_s"), 33_333_333.0 / 381.0, 1e-6);
    close("PCI Express", number(&row("pcie-1-x1", 1_518), "/frames_per_s"), 2e9 / 8.0 / 1_634.0, 1e-6);
    assert_eq!(
        (&row("pci-32-33", 1_518)["fills"], &row("pci-32-33", 64)["fills"]),
        (&"1000base-t".into(), &"1000base-t".into())
    );
    let place = TestFolder::new();
    place.run(&words("limits --bus pci-16-33")).says(2, &["pci-16-33", "pcie-3-x4"]);
    place.run(&words("limits --bus pci-32-33 --medium fddi")).says(2, &["--bus", "--medium"]);
    place.run(&words("limits --bus pci-32-33 --out bus.svg")).says(2, &["--bus has no chart", ".csv"]);
}

#[test]
fn each_byte_is_explained() {
    let cell = limits("--medium 100base-tx --over qinq,esp --udp 3000 --explain");
    let mut sums = [0.0; 5];
    for packet in cell["explained"].as_array().expect("packets") {
        for part in packet["parts"].as_array().expect("parts") {
            let from =
                ["payload", "ip", "layer2", "layer2-fcs", "wire"].iter().position(|layer| part["layer"] == *layer);
            for sum in &mut sums[from.expect("a layer")..] {
                *sum += number(part, "/bytes") * number(packet, "/count");
            }
            assert!(
                part["name"] == "payload" || part["source"].as_str().is_some_and(|source| !source.is_empty()),
                "{part}"
            );
        }
    }
    let said = ["payload", "ip", "layer2", "layer2_fcs", "wire"].map(|layer| number(&cell, &format!("/{layer}_bytes")));
    assert_eq!(sums, said);
    let ran = TestFolder::new().run(&words("limits --medium 100base-tx --over qinq,esp --udp 64 --explain"));
    for said in
        ["service VLAN tag", "ESP check value", "RFC 4106", "8 x 194 bytes", "Bytes by layer: payload 64, IP 92,"]
    {
        assert!(ran.shows(said), "`{said}` is missing in {}", ran.out);
    }
}

/// A script learns from the exit code whether a claim is possible as payload, from the record what else it can be.
#[test]
fn claims_are_held_against_the_limits() {
    let place = TestFolder::new();
    for (line, code, said) in [
        (
            "--claim 77Mbit/s --medium 100base-tx --udp 64",
            1,
            "not possible as payload (49.2) or IP (70.8); possible counted at layer 2 (84.6 with FCS)",
        ),
        ("--claim 124Mbit/s --medium 1000base-t --udp 64", 0, "possible as payload (492)"),
        ("--claim 129.93Mbit/s --medium atm-oc3-lane --udp 1472", 0, "possible as payload (129.98)"),
        ("--claim 949Mbit/s --medium 1000base-t --tcp", 1, "possible counted as IP (975)"),
        ("--claim 2Gbit/s --medium 1000base-t", 1, "not possible at any layer"),
    ] {
        let ran = place.run(&words(&format!("limits {line}")));
        assert_eq!(ran.code, Some(code), "{line}: {} {}", ran.out, ran.err);
        assert!(ran.shows(said), "`{said}` is missing in {}", ran.out);
    }
    let ran = place.run(&words("limits --claim 77Mbit/s --medium 100base-tx --udp 64 --json"));
    assert_eq!((ran.code, ran.json()["claim_possible_at"].clone()), (Some(1), Value::from("layer2")));
}

#[test]
fn every_form_says_the_same() {
    let place = TestFolder::new();
    let asked = "limits --medium fddi,100base-tx --udp 64,1472 --tcp";
    let csv = place.run(&words(&format!("{asked} --csv")));
    let mut lines = csv.out.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let head = lines.next().expect("a header line");
    let column = head.iter().position(|name| *name == "payload_bps").expect("a column");
    let of_csv: Vec<f64> = lines.map(|line| line[column].parse().expect("a number")).collect();
    let json = place.measure(&words(&format!("{asked} --json")));
    let of_json: Vec<f64> = json.as_array().expect("a list").iter().map(|cell| number(cell, "/payload_bps")).collect();
    assert_eq!((of_csv.len(), &of_csv), (6, &of_json));

    for (name, says) in [
        ("l.html", "<figure>"),
        ("l.svg", "<svg xmlns=\"http://www.w3.org/2000/svg\""),
        ("l.md", "| FDDI, UDP 64 | 50.000 Mbit/s |"),
        ("l.csv", "payload_bps"),
        ("l.json", "\"payload_bps\":50000000"),
        ("l.txt", "FDDI, UDP 64"),
    ] {
        let ran = place.run(&words(&format!("{asked} --out {name}")));
        ran.says(0, &[name]);
        let written = std::fs::read_to_string(place.path(name)).expect("it was written");
        assert!(written.contains(says), "{name}: {written}");
    }
    let markdown = place.run(&words(&format!("{asked} --markdown --explain")));
    assert!(markdown.out.contains("| ending delimiter and status | 2 | wire |"), "{}", markdown.out);
}

#[test]
fn a_result_that_cannot_be_written_is_a_failure() {
    let full = std::fs::File::options().write(true).open("/dev/full").expect("it is there");
    let place = TestFolder::new();
    let mut command = place.command(&words("limits --medium 1000base-t"));
    let ran: Ran = command.stdout(full).output().expect("the program starts").into();
    ran.says(3, &["cannot write to standard output"]);
}

#[test]
fn what_cannot_be_asked_is_refused_with_its_remedy() {
    let place = TestFolder::new();
    for (line, code, said) in [
        ("--medium token-ring", 2, "atm-oc3-lane"),
        ("--medium 10gbase-lw", 2, "is no medium"),
        ("--medium fddi --over vlan", 2, "vlan does not go over FDDI"),
        ("--over gre,vlan", 2, "the outermost is named first"),
        ("--over tunnel", 2, "wireguard"),
        ("--udp 65508", 2, "at most 65507"),
        ("--udp many", 2, "1472"),
        ("--mtu 60", 2, "at least 68"),
        ("--medium fddi --mtu 9000", 2, "at most 4352"),
        ("--ip 5", 2, "give 4 or 6"),
        ("--claim quick", 2, "100Mbit/s"),
        ("--json --csv", 2, "cannot be used"),
        ("--out l.png", 2, ".svg"),
        ("--out nowhere/l.svg", 3, "nowhere"),
    ] {
        let ran = place.run(&words(&format!("limits {line}")));
        ran.says(code, &[said]);
        assert_eq!(ran.out, "", "{line}");
    }
}
