//! Plain generating and address tables through the command line, in labs of known truth.

use crate::program::{TestFolder, close, frames_sent, number, words};
use linerate_testsuite::{lab_test, wait_until};
use serde_json::Value;

fn flow(record: &Value, index: usize) -> &Value {
    record.pointer(&format!("/results/0/flows/{index}")).unwrap_or_else(|| panic!("no flow {index} in {record}"))
}

#[lab_test]
fn frames_of_every_template_are_sent_and_counted() {
    for (options, bytes) in [
        ("--size 128 --rate 1k", 128.0 * 500.0),
        ("--template tcp --size 128 --rate 1k --vary src-port:100:random --vlan 100,7 --vary vlan:10", 128.0 * 500.0),
        ("--flows 7 --size 128 --rate 1k", 128.0 * 500.0),
        ("--template echo --rate 1k --vary src-ip:50 --vary dst-ip:50:random", 64.0 * 500.0),
        ("--sizes 64:3,1000:1,1518:1 -6 --rate max", 0.0),
        ("--sizes 84:3,1000:1,1518:1 -6 --rate 4Mbit/s", (84.0 * 3.0 + 2518.0) * 100.0),
        ("--engine packet-socket --sizes imix --rate 1k", 0.0),
    ] {
        // A port's ring has room for 256 frames: at 1,000 a second a machine may be held up for a quarter of a second.
        let line =
            format!("lab --device bridge -- frames --ports tester:p0,tester:p1 --count 500 --json --both {options}");
        let place = TestFolder::new();
        if options.contains("64:3") {
            place.run(&words(&line)).says(2, &["84 bytes at least"]);
            continue;
        }
        let record = place.measure(&words(&line));
        for index in [0, 1] {
            let flow = flow(&record, index);
            let counts = ["/sent", "/received", "/lost", "/duplicates", "/reordered"].map(|count| number(flow, count));
            let sent = frames_sent(flow, 500.0);
            assert_eq!(counts, [sent, sent, 0.0, 0.0, 0.0], "{options}: {flow}");
            assert_eq!(number(flow, "/latency_ns/count"), sent, "{options}");
            assert_eq!(number(flow, "/sent_bytes"), number(flow, "/received_bytes"), "{options}");
            if bytes > 0.0 && sent == 500.0 {
                assert_eq!(number(flow, "/received_bytes"), bytes, "{options}");
            }
        }
        assert_eq!(record["trials"].as_array().map(Vec::len), Some(1), "it is kept");
    }
}

/// An agent that sends goes before other sessions on its core, and only while it sends.
#[lab_test]
fn an_agent_goes_first_only_while_it_sends() {
    let place = TestFolder::new();
    place.run(&words("lab --bench tester --keep")).says(0, &["lab down"]);
    let order = format!("/proc/{}/autogroup", place.agent("tester"));
    let nice = || std::fs::read_to_string(&order).unwrap_or_default();
    let sending = place.start(&words("frames --ports tester:p0,tester:p1 --engine xdp --rate 1k --time 3s --json"));
    // Kernels without autogroups have no such file.
    if !nice().is_empty() {
        wait_until("the agent goes first", || nice().contains("nice -10").then_some(()));
    }
    let sent = sending.end();
    assert_eq!(sent.code, Some(0), "{}", sent.err);
    assert!(nice().is_empty() || nice().contains("nice 0"), "{}", nice());
    place.run(&["lab", "down"]).says(0, &["is down"]);
}

#[lab_test]
fn planted_loss_and_rates_show() {
    let place = TestFolder::new();
    let record = place.measure(&words(
        "lab --device reference,loss=1/100 -- frames --ports tester:p0,tester:p1 --count 1000 --rate 1k --json",
    ));
    let flow = flow(&record, 0);
    let (sent, lost) = (number(flow, "/sent"), number(flow, "/lost"));
    // The device loses every hundredth frame; learning frames move its count by a few.
    assert!(sent > 100.0 && (lost - sent / 100.0).abs() <= 2.0, "{lost} of {sent} were lost");
    let (frames, wire) = (number(flow, "/arrived/frames_per_s"), number(flow, "/arrived/wire_bits_per_s"));
    close("bits on the line", wire, frames * 84.0 * 8.0, 1e-9);

    // The record is kept, and every form of report can show it.
    for (form, said) in
        [("text", "sent/s"), ("html", "on the line"), ("markdown", "| sent |"), ("csv", "wire_bits_per_s")]
    {
        let ran = place.run(&["report", "--format", form]);
        assert_eq!(ran.code, Some(0), "{}", ran.err);
        assert!(ran.shows(said), "{form}: {}", ran.out);
    }
}

#[lab_test]
fn raw_frames_are_counted_by_the_ports_or_signed() {
    // UDP over IPv4 to all stations, without a checksum, 22 bytes of payload.
    let frame = "ffffffffffff02000000aa01080045000032000040004011adcfc6120063c612006400070007001e0000".to_owned()
        + &"00".repeat(22);
    let place = TestFolder::new();
    let pcap: Vec<u8> = [0xa1b2_c3d4_u32, 0x0002_0004, 0, 0, 65_535, 1, 0, 0, 64, 64].map(u32::to_be_bytes).concat();
    let bytes = (0..64).map(|at| u8::from_str_radix(&frame[2 * at..2 * at + 2], 16).expect("hexadecimal"));
    std::fs::write(place.path("one.pcap"), [pcap, bytes.collect()].concat()).expect("a file can be written");
    let send = |options: &str| {
        place.measure(&words(&format!(
            "lab --device bridge -- frames --ports tester:p0,tester:p1 --count 200 --rate 1k --settle 1s --json {options}"
        )))
    };
    for template in [format!("hex:{frame}"), format!("pcap:{}", place.path("one.pcap").display())] {
        let record = send(&format!("--template {template}"));
        let flow = flow(&record, 0);
        assert_eq!((&flow["by_port_counters"], &flow["latency_ns"]), (&Value::Bool(true), &Value::Null));
        // Neighbours and bridges talk too.
        let (sent, received) = (frames_sent(flow, 200.0), number(flow, "/received"));
        assert!((sent..sent + 60.0).contains(&received), "{received} of {sent}");
        assert!(flow["caveats"].to_string().contains("port-counters-only"), "{flow}");
    }
    let record = send(&format!("--template hex:{frame} --sign --vary src-mac:50"));
    let signed = flow(&record, 0);
    let sent = frames_sent(signed, 200.0);
    assert_eq!([number(signed, "/received"), number(signed, "/latency_ns/count")], [sent; 2], "{signed}");
}

#[test]
fn what_cannot_be_sent_is_refused() {
    let place = TestFolder::new();
    for (options, words_said) in [
        ("--rate fast", "is not a rate"),
        ("--vary ttl:5", "src-ip:1000"),
        ("--template hex:00", "raw frame of 1 bytes"),
        ("--template pcap:/nowhere", "/nowhere"),
        ("--sizes 64", "not a mix"),
        ("--size 60", "minimum of 64"),
        ("--flows 8 --rate 7", "a frame a second"),
        ("--flows 2 --template echo", "udp or tcp"),
    ] {
        let line = format!("frames --ports lo,lo2 {options}");
        place.run(&words(&line)).says(2, &[words_said]);
    }
    place.run(&words("device addresses --ports a,b")).says(2, &["three ports"]);
}

/// A host that only receives reports progress too.
#[lab_test]
fn intervals_show_what_another_host_receives() {
    for engine in ["xdp", "packet-socket"] {
        let line = format!("lab --bench cable -- frames --ports a:eth0,b:eth0 --rate 1k --time 3s --engine {engine}");
        let output = TestFolder::new().run(&words(&line));
        assert_eq!(output.code, Some(0), "{}", output.err);
        let mut rows = output.out.lines().chain(output.err.lines()).filter(|line| line.contains("bit/s"));
        let has_report = rows.any(|row| row.trim_start().starts_with(char::is_numeric) && !row.contains("no report"));
        assert!(has_report, "{engine}: {}{}", output.out, output.err);
    }
}

/// Frames that a UDP socket of the receiving host reads, and frames that a firewall keeps from it.
#[lab_test(Program("nft"))]
fn frames_are_counted_at_a_socket() {
    let place = TestFolder::new();
    place.run(&words("lab --bench cable --keep")).says(0, &["lab down"]);
    let send = |options: &str| {
        let line = format!("frames --ports a:eth0,b:eth0 --receiver socket --count 500 --rate 1k --json {options}");
        place.measure(&words(&line))
    };
    for options in
        ["--engine xdp", "--engine packet-socket", "--engine xdp --ipv6 --size 200 --both", "--engine xdp --flows 3"]
    {
        let record = send(options);
        let flow = flow(&record, 0);
        let sent = frames_sent(flow, 500.0);
        let counts = ["/to_socket/at_port", "/to_socket/dropped", "/received", "/duplicates", "/reordered"];
        assert_eq!(counts.map(|count| number(flow, count)), [sent, 0.0, sent, 0.0, 0.0], "{options}: {flow}");
        assert_eq!(number(flow, "/sent_bytes"), number(flow, "/received_bytes"), "{options}");
    }
    place.run(&words("lab shell b -- nft add table inet f")).says(0, &[]);
    place.run(&words("lab shell b -- nft add chain inet f c { type filter hook input priority 0 ; }")).says(0, &[]);
    place.run(&words("lab shell b -- nft add rule inet f c udp dport 7 drop")).says(0, &[]);
    let record = send("--engine xdp");
    let flow = flow(&record, 0);
    let sent = frames_sent(flow, 500.0);
    assert_eq!([number(flow, "/to_socket/at_port"), number(flow, "/received")], [sent, 0.0], "{flow}");
    assert_eq!(flow["verdict"]["limit"], "cannot-tell", "{flow}");
    assert!(flow["verdict"].to_string().contains("firewall"), "{flow}");
    place.run(&["lab", "down"]).says(0, &["is down"]);
    for (options, said) in
        [("--template echo", "UDP only"), ("--vary dst-port:5", "dst-port varied"), ("--vlan 7 --size 68", "VLAN tags")]
    {
        let line = format!("lab --bench cable -- frames --ports a:eth0,b:eth0 --receiver socket --count 5 {options}");
        place.run(&words(&line)).says(3, &[said]);
    }
}

/// The reference device keeps 200 addresses, those that came first: the tester's three ports and 197 others.
#[lab_test]
fn a_table_of_addresses_is_found_exactly() {
    for (device, most, found) in
        [("addresses=200", "1000", [200.0, 197.0, 3.0]), ("addresses=500", "600", [500.0, 497.0, 3.0])]
    {
        let record = TestFolder::new().measure(&words(&format!(
            "lab --device reference,{device} -- device addresses --ports tester:p0,tester:p1,tester:p2 --most {most} \
             --learn-rate 1k --json"
        )));
        let table = &record["outcome"]["addresses"];
        if table["firmness"]["is"] != "firm" {
            // A tester that was held up gives a lower bound.
            assert!(number(table, "/capacity") <= found[0] && table["verdict"]["limit"] == "tester", "{table}");
            continue;
        }
        assert_eq!(["/capacity", "/learned", "/own"].map(|count| number(table, count)), found, "{table}");
        assert_eq!(number(table, "/flooded_at"), found[1] + 1.0);
        // A switch sends nothing back to the port that it came by.
        for iteration in table["iterations"].as_array().expect("iterations") {
            let floods = ["/flooded_to_test", "/flooded_to_learning", "/flooded_to_monitoring"];
            let flooded = number(iteration, "/flooded");
            assert_eq!(floods.map(|port| number(iteration, port)), [0.0, 0.0, flooded], "{iteration}");
        }
    }
}
