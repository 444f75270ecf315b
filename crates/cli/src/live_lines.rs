//! A line for each interval of the trial that runs, under column heads, in the style of iperf3.
//!
//! They go to standard error: standard output is for results, and a line of an interval is none.

use console::{Alignment, pad_str};
use linerate_method::Progress;
use linerate_model::{Direction, IntervalReport, StreamEvent, Task, TaskKind, Text, Transport, text};
use linerate_report::{Language, LiveColumn, live, said};
use linerate_runner::{Event, Telling};
use linerate_units::{BitRate, ByteCount, FrameRate, Nanos, OpRate, grouped};

/// An interval that was cut short by the trial's end has a line if it is at least this share of a whole one, as in iperf3.
const SHORTEST_SHARE: f64 = 0.1;
/// Width of `Interval`, in seconds with two places.
const INTERVAL_WIDTH: usize = 13;
/// Width that the last column is cut to: a host's name may be long.
const BUSIEST_WIDTH: usize = 14;
const GAP: &str = "  ";

/// Makes the lines of a run's trials.
#[derive(Debug)]
pub(crate) struct LiveLines {
    lang: Language,
    telling: Telling,
    every: Nanos,
    columns: Vec<&'static Column>,
    /// The trial's name and its column heads, until they are printed with its first line.
    heads: Option<[String; 2]>,
    /// A line was printed.
    has_begun: bool,
}

/// One column.
#[derive(Debug)]
struct Column {
    head: &'static Text,
    width: usize,
    cell: fn(&IntervalReport) -> String,
}

const RECEIVED: Column = Column { head: text!("live-head-received", "Received"), width: 8, cell: received };
const RATE: Column = Column {
    head: text!("live-head-rate", "Rate"),
    width: 11,
    cell: |report| known(report, report.received_bps, bits),
};
/// Where the receiver runs no agent.
const SENT: Column =
    Column { head: text!("live-head-sent", "Sent"), width: 8, cell: |report| bytes(report.sent_bytes) };
const RATE_OF_SENT: Column =
    Column { head: text!("live-head-rate", "Rate"), width: 11, cell: |report| bits(report.sent_bps) };
/// As iperf3 heads retransmits.
const RETRANSMITS: Column =
    Column { head: text!("live-head-retransmits", "Retr"), width: 6, cell: |report| grouped(report.retransmits) };
const LOST: Column = Column { head: text!("live-head-lost", "Lost"), width: 9, cell: |report| grouped(report.lost) };
const SRTT: Column = Column { head: text!("live-head-srtt", "srtt"), width: 7, cell: |report| time(report.srtt) };
const P50: Column = Column { head: text!("live-head-p50", "p50"), width: 7, cell: |report| time(report.p50) };
const P99: Column = Column { head: text!("live-head-p99", "p99"), width: 7, cell: |report| time(report.p99) };
const TRANSACTIONS: Column =
    Column { head: text!("live-head-transactions", "Transactions"), width: 12, cell: operations };
const CALLS: Column = Column { head: text!("live-head-calls", "Calls"), width: 12, cell: operations };
const OPERATIONS: Column = Column { head: text!("live-head-operations", "Operations"), width: 12, cell: operations };
const FILES: Column =
    Column { head: text!("live-head-files", "Files"), width: 9, cell: |report| grouped(report.operations) };
const COPIED: Column = Column { head: text!("live-head-copied", "Copied"), width: 8, cell: received };
const ALL_FILES: Column = Column {
    head: text!("live-head-all-files", "Files so far"),
    width: 12,
    cell: |report| grouped(report.total_operations),
};
const FRAMES: Column =
    Column { head: text!("live-head-frames", "Frames sent"), width: 11, cell: |report| grouped(report.operations) };
const FRAME_RATE: Column = Column {
    head: text!("live-head-frame-rate", "Frame rate"),
    width: 10,
    cell: |report| FrameRate::per_second(report.operations_per_s.round() as u64).to_string(),
};
const SENT_RATE: Column =
    Column { head: text!("live-head-sent", "Sent"), width: 11, cell: |report| bits(report.sent_bps) };
const RECEIVED_RATE: Column = Column {
    head: text!("live-head-received", "Received"),
    width: 11,
    cell: |report| known(report, report.received_bps, bits),
};

/// Returns the columns of a task, without the interval and the busiest thread.
fn columns(task: TaskKind, transport: Option<Transport>) -> Vec<&'static Column> {
    live(task).columns(transport).iter().map(|column| drawn(*column)).collect()
}

/// Returns how a column is printed.
fn drawn(column: LiveColumn) -> &'static Column {
    match column {
        LiveColumn::Received => &RECEIVED,
        LiveColumn::Rate => &RATE,
        LiveColumn::Retransmits => &RETRANSMITS,
        LiveColumn::Lost => &LOST,
        LiveColumn::Srtt => &SRTT,
        LiveColumn::P50 => &P50,
        LiveColumn::P99 => &P99,
        LiveColumn::Transactions => &TRANSACTIONS,
        LiveColumn::Calls => &CALLS,
        LiveColumn::Operations => &OPERATIONS,
        LiveColumn::Files => &FILES,
        LiveColumn::Copied => &COPIED,
        LiveColumn::AllFiles => &ALL_FILES,
        LiveColumn::Frames => &FRAMES,
        LiveColumn::FrameRate => &FRAME_RATE,
        LiveColumn::SentRate => &SENT_RATE,
        LiveColumn::ReceivedRate => &RECEIVED_RATE,
    }
}

/// The columns of a stream whose receiver runs no agent, and says what arrived only at the end.
fn sent_columns(transport: Transport) -> Vec<&'static Column> {
    match transport {
        Transport::Tcp => vec![&SENT, &RATE_OF_SENT, &RETRANSMITS, &SRTT],
        Transport::Udp => vec![&SENT, &RATE_OF_SENT],
    }
}

impl LiveLines {
    /// Lines of intervals of `every`.
    pub(crate) fn new(lang: Language, every: Nanos) -> Self {
        Self { lang, telling: Telling::new(Some(every)), every, columns: Vec::new(), heads: None, has_begun: false }
    }

    /// Takes an event. Returns the lines there are to print, each at most `width` columns wide.
    pub(crate) fn take(&mut self, event: &Event<'_>, width: usize) -> Vec<String> {
        if let Event::Begins { trial, attempt, progress } = event {
            self.columns = match trial.task() {
                Task::Stream(stream) if stream.iperf3.is_some() && stream.direction == Direction::Send => {
                    sent_columns(stream.net.transport)
                }
                task => columns(task.kind(), trial.net().map(|net| net.transport)),
            };
            self.heads = Some([title(self.lang, &trial.name, *attempt, progress), heads(self.lang, &self.columns)]);
        }
        let told = self.telling.take(event);
        let reports = told.iter().filter_map(|told| match told {
            StreamEvent::Interval(report) => Some(report),
            _ => None,
        });
        let long_enough = |report: &&IntervalReport| {
            (report.to - report.from).as_secs_f64() >= self.every.as_secs_f64() * SHORTEST_SHARE
        };
        let rows: Vec<String> =
            reports.filter(long_enough).map(|report| row(self.lang, &self.columns, report)).collect();
        let mut lines = Vec::new();
        if !rows.is_empty() {
            lines.extend(self.heads.take().into_iter().flatten());
            self.has_begun = true;
        }
        lines.extend(rows);
        if self.has_begun && matches!(event, Event::Concluded { .. }) {
            lines.push(String::new());
        }
        lines.iter().map(|line| console::truncate_str(line, width, "").into_owned()).collect()
    }
}

/// The column heads.
fn heads(lang: Language, columns: &[&Column]) -> String {
    let head = |column: &&Column| {
        let head = lang.text(column.head);
        format!("{GAP}{}", pad_str(&head, column.width, Alignment::Right, None))
    };
    let interval = format!("  {}", said!(lang, "live-head-interval", "Interval, s"));
    let interval = pad_str(&interval, INTERVAL_WIDTH, Alignment::Left, None);
    let heads: String = columns.iter().map(head).collect();
    format!("{interval}{heads}{GAP}{}", said!(lang, "live-head-busiest", "Busiest thread"))
}

/// The line of an interval.
fn row(lang: Language, columns: &[&Column], report: &IntervalReport) -> String {
    let interval = format!("{:>6.2}-{:<6.2}", report.from.as_secs_f64(), report.to.as_secs_f64());
    let cell = |column: &&Column| format!("{GAP}{:>width$}", (column.cell)(report), width = column.width);
    let cells: String = columns.iter().map(cell).collect();
    let mut remark =
        if report.warmup { format!(" ({})", said!(lang, "live-in-warm-up", "warm-up")) } else { String::new() };
    if let Some(silent) = report.silent.first() {
        remark += &format!(" ({})", said!(lang, "live-no-report", "no report: {host}", host = silent.0.clone()));
    }
    let line = format!("{interval}{cells}{GAP}{:<BUSIEST_WIDTH$}{remark}", busiest(report));
    line.trim_end().to_owned()
}

/// Which trial begins.
fn title(lang: Language, name: &str, attempt: u32, progress: &Progress) -> String {
    let number = progress.done + 1;
    let trial = match progress.at_most {
        Some(all) => said!(lang, "live-trial-of", "Trial {number} of {all}", number = number, all = all),
        None => said!(lang, "live-trial", "Trial {number}", number = number),
    };
    let again = (attempt > 0).then(|| said!(lang, "live-attempt", ", attempt {number}", number = attempt + 1));
    format!("{trial}{}: {name}", again.unwrap_or_default())
}

fn bytes(count: u64) -> String {
    ByteCount::new(count).to_string()
}

fn bits(per_second: f64) -> String {
    BitRate::per_second(per_second.round() as u64).to_string()
}

fn operations(report: &IntervalReport) -> String {
    known(report, report.operations_per_s, |per_second| OpRate::per_second(per_second.round() as u64).to_string())
}

fn received(report: &IntervalReport) -> String {
    known(report, report.received_bytes as f64, |_| bytes(report.received_bytes))
}

/// Returns a figure as `show` writes it, or a dash if the host that counts it has reported nothing.
fn known(report: &IntervalReport, figure: f64, show: impl Fn(f64) -> String) -> String {
    if report.is_unknown(figure) { "-".to_owned() } else { show(figure) }
}

fn time(time: Option<Nanos>) -> String {
    time.map_or_else(|| "-".to_owned(), |time| time.to_string())
}

/// The host with the busiest of the test's threads, with the share of a core that it used.
fn busiest(report: &IntervalReport) -> String {
    let hosts = report.hosts.iter().filter_map(|load| Some((load.busiest_thread?, &load.host)));
    let Some((percent, host)) = hosts.max_by_key(|(percent, _)| *percent) else { return "-".to_owned() };
    console::truncate_str(&format!("{percent:>3} % {host}"), BUSIEST_WIDTH, "").into_owned()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use linerate_model::{
        HostLoad, HostName, Iperf3End, Iperf3Server, Meter, Record, RecordId, SessionProgress, StreamTask, Timing,
        Trial,
    };
    use linerate_model::{Plan, Repeats};

    /// Columns of a usual terminal.
    const WIDTH: usize = 80;

    /// Lines of each kind of trial, as wide as they usually get.
    pub(crate) fn sample(lang: Language) -> String {
        let host = |host: &str, busiest_thread| HostLoad { host: HostName(host.to_owned()), busiest_thread };
        let report = IntervalReport {
            from: Nanos::from_secs(3),
            to: Nanos::from_millis(4_003),
            warmup: true,
            received_bytes: 1_176_250_000,
            sent_bytes: 1_187_500_000,
            received_bps: 9.41e9,
            sent_bps: 9.5e9,
            operations: 14_880_952,
            operations_per_s: 1_488_095.2,
            retransmits: 12_345,
            lost: 1_234_567,
            total_received_bytes: 4_700_000_000,
            total_operations: 59_523_808,
            srtt: Some(Nanos::new(12_345_678)),
            p50: Some(Nanos::new(84_300)),
            p99: Some(Nanos::new(99_400_000)),
            hosts: vec![host("a", Some(42)), host("server-of-the-store", Some(100)), host("c", None)],
            ..IntervalReport::default()
        };
        let counted = IntervalReport {
            from: report.to,
            to: Nanos::from_millis(5_000),
            warmup: false,
            received_bps: 94.1e6,
            received_bytes: 11_762_500,
            operations: 7,
            operations_per_s: 7.0,
            retransmits: 0,
            lost: 0,
            srtt: None,
            p50: None,
            p99: None,
            hosts: vec![host("b", Some(7))],
            ..report.clone()
        };
        let mut lines = Vec::new();
        for task in TaskKind::ALL {
            let transports: &[_] = match task {
                TaskKind::Stream | TaskKind::Transact => &[Some(Transport::Tcp), Some(Transport::Udp)],
                TaskKind::Hops => &[Some(Transport::Udp)],
                TaskKind::Rpc | TaskKind::Nfs => &[Some(Transport::Tcp)],
                TaskKind::Frames | TaskKind::Copy => &[None],
            };
            for transport in transports {
                let columns = columns(task, *transport);
                let over = transport.map_or_else(String::new, |transport| format!(" {transport}"));
                lines.push(format!("{}{over}", task.name()));
                lines.push(heads(lang, &columns));
                // These have no warm-up.
                let whole = matches!(task, TaskKind::Frames | TaskKind::Copy);
                lines.push(row(lang, &columns, &IntervalReport { warmup: !whole, ..report.clone() }));
                lines.push(row(lang, &columns, &counted));
            }
        }
        lines.join("\n")
    }

    #[test]
    fn lines_fit_80_columns() {
        for line in Language::ALL.map(sample).iter().flat_map(|sample| sample.lines()) {
            let columns = console::measure_text_width(line);
            assert!(columns <= WIDTH, "{columns} columns: {line}");
        }
    }

    #[test]
    fn a_trial_is_told_in_the_users_language() {
        let progress = |at_most| Progress { done: 1, at_most, known: None };
        let both = |at_most, attempt| Language::ALL.map(|lang| title(lang, "tcp", attempt, &progress(at_most)));
        let [english, japanese] = both(Some(3), 1);
        assert_eq!(english, "Trial 2 of 3, attempt 2: tcp");
        assert!(
            !japanese.contains("Trial") && !japanese.contains("attempt") && japanese.ends_with(": tcp"),
            "{japanese}"
        );
        assert_eq!(both(None, 0)[0], "Trial 2: tcp");
        let words = sample(Language::Japanese);
        for english in ["Interval", "Received", "Busiest", "warm-up", "Files", "Frame"] {
            assert!(!words.contains(english), "{english}: {words}");
        }
    }

    /// Lines of one trial whose hosts tell this much at these times, milliseconds.
    fn lines(every: Nanos, width: usize, told: &[(u64, Option<u64>)]) -> Vec<String> {
        let task = Task::Stream(StreamTask::plain(Transport::Tcp, ByteCount::new(1)));
        let trial = Trial::new("tcp", task, Timing::of(Nanos::default(), Nanos::from_secs(3)));
        let record = Record::new(RecordId(String::new()), Plan::sweep(vec![trial.clone()], Repeats::Times(3)));
        let mut live = LiveLines::new(Language::English, every);
        let progress = Progress { done: 1, at_most: Some(3), known: None };
        let mut lines = live.take(&Event::Begins { trial: &trial, attempt: 1, progress }, width);
        for (ms, measured) in told {
            let meter = Meter { received_bytes: ms * 125_000, ..Meter::default() };
            let measured = measured.map(Nanos::from_millis);
            let running = Nanos::from_millis(*ms);
            let progress = SessionProgress { running, measured, meter, ..SessionProgress::default() };
            lines.extend(live.take(&Event::Progress { host: &"b".into(), progress: &progress }, width));
        }
        lines.extend(live.take(&Event::Concluded { record: &record, failure: None }, width));
        lines
    }

    #[test]
    fn a_trial_has_its_heads_once_and_marks_its_warm_up() {
        let told = [(1_000, None), (2_001, Some(900)), (3_000, Some(1_899)), (3_050, Some(1_949))];
        let lines = lines(Nanos::from_secs(1), WIDTH, &told);
        let expected = [
            "Trial 2 of 3, attempt 2: tcp",
            "  Interval, s  Received         Rate    Retr     srtt  Busiest thread",
            "  0.00-1.00      125 MB     1 Gbit/s       0        -  -              (warm-up)",
            "  1.00-2.00      125 MB     1 Gbit/s       0        -  -              (warm-up)",
            "  2.00-3.00      125 MB     1 Gbit/s       0        -  -",
            "",
        ];
        assert_eq!(lines, expected, "an interval of 50 ms is too short for a line");
    }

    #[test]
    fn to_a_receiver_without_an_agent_what_is_sent_is_told() {
        let server =
            Iperf3Server { address: [192, 0, 2, 5].into(), port: Iperf3Server::PORT, report: false, login: None };
        let heads = |direction| {
            let plain = StreamTask::plain(Transport::Tcp, ByteCount::new(1));
            let task = StreamTask { iperf3: Some(Iperf3End::Server(server.clone())), direction, ..plain };
            let trial = Trial::new("tcp", Task::Stream(task), Timing::of(Nanos::default(), Nanos::from_secs(3)));
            let mut live = LiveLines::new(Language::English, Nanos::from_secs(1));
            let progress = Progress { done: 0, at_most: Some(1), known: None };
            live.take(&Event::Begins { trial: &trial, attempt: 0, progress }, WIDTH);
            let meter = Meter { sent_bytes: 125_000_000, ..Meter::default() };
            let progress = SessionProgress { running: Nanos::from_secs(1), meter, ..SessionProgress::default() };
            live.take(&Event::Progress { host: &"a".into(), progress: &progress }, WIDTH)
        };
        let sends = heads(Direction::Send);
        assert!(sends[1].contains("Sent") && !sends[1].contains("Received"), "{sends:?}");
        assert!(sends[2].contains("125 MB     1 Gbit/s"), "{sends:?}");
        assert!(heads(Direction::Receive)[1].contains("Received"));
    }

    #[test]
    fn host_without_reports_is_no_zero() {
        let report = IntervalReport { to: Nanos::from_secs(1), ..IntervalReport::default() };
        let columns = columns(TaskKind::Stream, Some(Transport::Tcp));
        assert!(row(Language::English, &columns, &report).contains("0 bit/s"));
        let silent = IntervalReport { silent: vec!["b".into()], ..report };
        let row = row(Language::English, &columns, &silent);
        assert!(!row.contains("bit/s") && row.contains("no report: b"), "{row}");
    }

    #[test]
    fn a_trial_shorter_than_an_interval_has_one_line() {
        let lines = lines(Nanos::from_secs(1), WIDTH, &[(500, Some(500))]);
        assert!(lines[2].starts_with("  0.00-0.50     62.5 MB"), "{lines:?}");
        assert_eq!(lines.len(), 4, "{lines:?}");
    }

    #[test]
    fn lines_are_cut_to_a_narrow_terminal() {
        for width in [0, 1, 20] {
            let lines = lines(Nanos::from_secs(1), width, &[(1_000, None)]);
            assert!(lines.iter().all(|line| line.len() <= width), "{lines:?}");
        }
        assert_eq!(lines(Nanos::from_secs(1), 20, &[(1_000, None)])[2], "  0.00-1.00      125");
    }
}
