//! RPC results in every form.

use crate::sample::{calls, record};
use linerate_model::{RpcCall, Transport};
use linerate_report::Language;
use linerate_report::{Style, csv, html, markdown, text};

#[test]
fn every_form_shows_what_calls_moved_and_what_they_cost() {
    let results = vec![
        calls("rpc udp write 8192", Transport::Udp, RpcCall::Write, 8_192, 0.9),
        calls("rpc tcp read 8192", Transport::Tcp, RpcCall::Read, 8_192, 0.99),
    ];
    let record = record(&["a"], "b", results);
    let plain = text(&record, &Style::default());
    for shown in [plain, markdown(Language::English, &record), html(Language::English, &record)] {
        let flowing = shown.split_whitespace().collect::<Vec<_>>().join(" ");
        for said in [
            "of data at the receiving end.",
            "This is 90.0 % of what the link can carry at MTU 1500.",
            "calls a second (3 runs",
            "Response time of 254,311 requests: p50 ",
            "17 calls were sent again because no reply came in time",
            "CPU time per call: client ",
            "rpc tcp read 8192",
        ] {
            assert!(flowing.contains(said), "{said}: {flowing}");
        }
        assert_eq!(flowing.matches("calls were sent again").count(), 1, "nothing was over TCP: {flowing}");
    }
    let table = csv(&record);
    let mut lines = table.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let heads = lines.next().expect("a head");
    let rows: Vec<Vec<&str>> = lines.collect();
    let cell = |row: usize, name: &str| rows[row][heads.iter().position(|head| *head == name).expect(name)].to_owned();
    assert_eq!(
        (cell(0, "task"), cell(0, "call"), cell(0, "retransmitted_calls")),
        ("rpc".into(), "write".into(), "17".into())
    );
    assert_eq!((cell(1, "call"), cell(1, "retransmitted_calls")), ("read".into(), "0".into()));
}
