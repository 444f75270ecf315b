//! RPC results in every form.

use crate::sample;
use linerate_model::{Record, RpcCall, Transport};
use linerate_report::csv;

/// Calls over both transports; over UDP some were sent again.
pub(crate) fn record() -> Record {
    let results = vec![
        sample::calls("rpc udp write 8192", Transport::Udp, RpcCall::Write, 8_192, 0.9),
        sample::calls("rpc tcp read 8192", Transport::Tcp, RpcCall::Read, 8_192, 0.99),
    ];
    sample::record(&["a"], "b", results)
}

#[test]
fn csv_has_the_call_and_its_retransmissions() {
    let table = csv(&record());
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
