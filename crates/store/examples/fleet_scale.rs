//! Fills a PostgreSQL store with the records of a fleet, and measures its queries. `cargo xtask bench fleet-store` runs it.
//!
//! Arguments: number of records, hosts, sites, and peers of each host.

use linerate_model::{
    Counts, EndCounts, Path, PathCounts, Plan, Received, Record, RecordId, Repeats, Sent, Standing, StreamTask, Task,
    Timing, Transport, Trial, TrialResult,
};
use linerate_store::{Ending, FleetHost, Level, MatrixQuery, Page, Query, Selection, Store};
use linerate_testsuite::servers::Postgres;
use linerate_units::{ByteCount, Nanos};
use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Number of records that are stored at once.
const BATCH: usize = 512;
/// Number of times each query is run.
const REPEATS: usize = 100;
/// Start of the first record: 1 November 2026.
const START_UNIX_NS: u64 = 1_793_491_200_000_000_000;
/// Time from one record to the next.
const STEP_NS: u64 = 1_300_000_000;
/// Maximum time of 99 % of all calls of a query.
const QUERY_GOAL: Duration = Duration::from_millis(300);
/// Minimum rate of ingest, in records per second.
const INGEST_GOAL: f64 = 2000.0;

/// Size of the fleet.
struct Fleet {
    records: usize,
    hosts: usize,
    sites: usize,
    peers: usize,
}

fn main() -> ExitCode {
    let numbers: Vec<usize> = std::env::args().skip(1).map(|word| word.parse().expect("a number")).collect();
    let [records, hosts, sites, peers] = numbers[..] else { panic!("arguments: RECORDS HOSTS SITES PEERS") };
    assert!(records > 0 && sites > 0 && peers > 0 && peers < hosts, "each host has peers among the others");
    let fleet = Fleet { records, hosts, sites, peers };
    let server = Postgres::start_with(&["shared_buffers=512MB", "max_wal_size=1GB"]);
    let url = server.create_database("fleet");
    let store = Store::open(&url.parse().expect("a URL")).expect("opens");
    store.put_hosts(&fleet.members()).expect("hosts");
    let fast = fill(&store, &fleet);
    server.sql("fleet", "VACUUM ANALYZE");
    print_sizes(&server, records);
    let quick = measure_queries(&store, &fleet);
    if fast && quick {
        return ExitCode::SUCCESS;
    }
    println!("a goal was not met");
    ExitCode::FAILURE
}

impl Fleet {
    fn members(&self) -> Vec<FleetHost> {
        let host = |number: usize| FleetHost {
            name: host_name(number),
            labels: BTreeMap::from([("site".to_owned(), format!("site-{:02}", number % self.sites))]),
            seen_unix_ns: START_UNIX_NS,
        };
        (0..self.hosts).map(host).collect()
    }

    /// Returns a record: in each round every host measures one of its peers.
    fn record(&self, number: usize) -> Record {
        let from = number % self.hosts;
        let peer = number / self.hosts % self.peers;
        let to = (from + 1 + peer * (self.hosts - 1) / self.peers) % self.hosts;
        let trial = trial(&host_name(from), &host_name(to), rate(number, from + to));
        let command = format!("linerate stream fleet:{} fleet:{} --time 5s", host_name(from), host_name(to));
        let mut record = Record {
            version: "0.1.0".into(),
            command: command.split_whitespace().map(str::to_owned).collect(),
            started_unix_ns: START_UNIX_NS + number as u64 * STEP_NS,
            ..Record::new(
                RecordId(format!("20261101T000000-{number:08x}")),
                Plan::sweep(vec![trial.trial.clone()], Repeats::Times(1)),
            )
        };
        record.trials.push(trial);
        linerate_method::replay(&mut record);
        record
    }
}

fn host_name(number: usize) -> String {
    format!("host-{number:04}")
}

/// Returns the rate of a pair in bit/s: about 940 Mbit/s, a little different each time; every hundredth pair has another level.
fn rate(number: usize, pair: usize) -> u64 {
    let noise = (number as u64).wrapping_mul(6_364_136_223_846_793_005) >> 33;
    let level = if pair.is_multiple_of(100) && (number / 7).is_multiple_of(3) { 400_000_000 } else { 930_000_000 };
    level + noise % 10_000_000
}

fn trial(from: &str, to: &str, payload_bps: u64) -> TrialResult {
    let plain = StreamTask::plain(Transport::Tcp, ByteCount::new(131_072));
    let task = StreamTask { paths: vec![Path::between(from, to)], ..plain };
    let cell = Trial::new("tcp", Task::Stream(task), Timing::of(Nanos::from_millis(100), Nanos::from_secs(5)));
    let window = Nanos::from_secs(5);
    let payload_bytes = payload_bps / 8 * 5;
    let path = PathCounts {
        client: EndCounts { sent: Some(Sent { window, payload_bytes, ..Sent::default() }), ..EndCounts::default() },
        server: EndCounts {
            received: Some(Received { window, payload_bytes, ..Received::default() }),
            ..EndCounts::default()
        },
        forward_loss: None,
        backward_loss: None,
    };
    TrialResult {
        standing: Standing::Counted,
        started_unix_ns: 1,
        counts: vec![Counts::Flows(vec![path])],
        ..TrialResult::failed(cell, 0, "")
    }
}

/// Stores all records. Returns whether the rate meets its goal.
fn fill(store: &Store, fleet: &Fleet) -> bool {
    let mut storing = Duration::ZERO;
    let start = Instant::now();
    let mut last = start;
    for first in (0..fleet.records).step_by(BATCH) {
        let batch: Vec<Record> = (first..fleet.records.min(first + BATCH)).map(|number| fleet.record(number)).collect();
        let ended: Vec<(&Record, Ending)> = batch.iter().map(|record| (record, Ending::Finished)).collect();
        let begun = Instant::now();
        store.ingest_records(&ended).expect("stored");
        storing += begun.elapsed();
        if last.elapsed() > Duration::from_secs(20) {
            last = Instant::now();
            eprintln!("{} records, {:.0}/s stored", first + BATCH, (first + BATCH) as f64 / storing.as_secs_f64());
        }
    }
    let rate = fleet.records as f64 / storing.as_secs_f64();
    println!(
        "ingest: {} records in {:.0} s, {rate:.0} records/s (goal: {INGEST_GOAL}); {:.0} s with making them",
        fleet.records,
        storing.as_secs_f64(),
        start.elapsed().as_secs_f64()
    );
    rate >= INGEST_GOAL
}

fn print_sizes(server: &Postgres, records: usize) {
    let size = |tables: &str| -> u64 {
        let sql = format!(
            "SELECT coalesce(sum(pg_total_relation_size(oid)), 0)::bigint FROM pg_class WHERE relkind = 'r' AND relname ~ '{tables}'"
        );
        server.sql("fleet", &sql).parse().expect("a number")
    };
    for (name, tables) in [
        ("rows of runs", "^run$"),
        ("bodies", "^(plan|trial|found)_"),
        ("results of pairs", "^(pair_result|pair_latest)$"),
        ("sums by hour", "^(pair_hour|site_hour)$"),
    ] {
        let bytes = size(tables);
        println!("{name}: {} MB, {} bytes a record", bytes / 1_000_000, bytes / records as u64);
    }
}

/// Prints the times of the queries. Returns whether all meet their goal.
fn measure_queries(store: &Store, fleet: &Fleet) -> bool {
    let newest = store.list(&Query::default(), 0, 1).expect("list");
    let newest = newest.first().expect("a record");
    let kind = Query { kind: Some("stream".into()), ..Query::default() };
    let changed = Query { changed: true, ..Query::default() };
    let since = START_UNIX_NS + (fleet.records as u64).saturating_sub(60_000) * STEP_NS;
    let host_matrix = MatrixQuery {
        from: Selection::Sites(vec!["site-00".into()]),
        to: Selection::Sites(vec!["site-01".into()]),
        ..MatrixQuery::all(Level::Host)
    };
    let all_hosts = MatrixQuery { rows: Page::FIRST, columns: Page::FIRST, ..MatrixQuery::all(Level::Host) };
    let text = |number: usize| Query::text(&host_name(number * 37 % fleet.hosts)).expect("a word");
    let pair = |number: usize| (host_name(number % fleet.hosts), host_name((number + 1) % fleet.hosts));
    let mut met = true;
    let mut time = |name: &str, query: &mut dyn FnMut(usize)| {
        let mut times: Vec<Duration> = (0..REPEATS)
            .map(|number| {
                let start = Instant::now();
                query(number);
                start.elapsed()
            })
            .collect();
        times.sort();
        let p99 = times[REPEATS * 99 / 100 - 1];
        let shown = |time: Duration| time.as_secs_f64() * 1e3;
        println!("{name}: median {:.1} ms, p99 {:.1} ms", shown(times[REPEATS / 2]), shown(p99));
        met &= p99 < QUERY_GOAL;
    };
    println!("times of {REPEATS} calls each (goal: p99 < {} ms)", QUERY_GOAL.as_millis());
    time("list", &mut |_| drop(store.list(&Query::default(), 0, 50).expect("list")));
    time("list, page 20", &mut |_| drop(store.list(&Query::default(), 950, 50).expect("list")));
    time("count", &mut |_| {
        store.count(&Query::default()).expect("count");
    });
    time("filter by host", &mut |number| drop(store.list(&text(number), 0, 50).expect("list")));
    time("filter by host, count", &mut |number| {
        store.count(&text(number)).expect("count");
    });
    time("filter by a word that does not occur", &mut |_| {
        drop(store.list(&Query::text("nosuch").expect("a word"), 0, 50).expect("list"));
    });
    time("filter by kind", &mut |_| drop(store.list(&kind, 0, 50).expect("list")));
    time("filter by change", &mut |_| drop(store.list(&changed, 0, 50).expect("list")));
    time("tests", &mut |_| drop(store.tests().expect("tests")));
    time("matrix of sites", &mut |_| drop(store.matrix(&MatrixQuery::all(Level::Site)).expect("matrix")));
    time("matrix of the hosts of two sites", &mut |_| drop(store.matrix(&host_matrix).expect("matrix")));
    time("matrix of 100 x 100 hosts", &mut |_| drop(store.matrix(&all_hosts).expect("matrix")));
    time("history of a pair", &mut |number| {
        let (from, to) = pair(number);
        drop(store.pair_history(&from, &to, "stream --time 5s", 0, 300).expect("history"));
    });
    time("trend of a command", &mut |_| drop(store.of_command(newest, 300).expect("runs")));
    time("changes of a day", &mut |_| drop(store.changed_since(since, 1000).expect("changes")));
    time("record", &mut |_| drop(store.load(&newest.id.0).expect("load")));
    met
}
