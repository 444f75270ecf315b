use super::*;
use crate::ladder::LadderRequest;
use crate::measure::tests::host;
use crate::results::measurements;
use crate::transfer::tests::{spec, stream_of, trial};
use linerate_model::{
    Calibration, CaveatKind, Direction, Host, HostName, IpVersion, Limit, Measurement, Offered, Path, Plan, Planned,
    RecordId, Repeats, SocketOptions, Support, Task, Timing, TransactTask, Transport, Trial, TrialResult,
};
use linerate_units::{BitRate, OpRate};
use std::collections::BTreeMap;

const DAY_NS: u64 = 86_400_000_000_000;
/// When the calibrations of these tests began.
const THEN_NS: u64 = 1_000 * DAY_NS;

fn hosts() -> Vec<Host> {
    let named = |name| {
        let mut host = host(name, Some(1_000_000_000));
        (host.system, host.cpu_model, host.version) = ("Linux 6.18.44".into(), "Xeon".into(), "0.1.0".into());
        host.congestion_controls = vec!["cubic".into()];
        host.nics[0].qdisc = "fq".into();
        host.nics[0].offloads = BTreeMap::from([("rx-gro".into(), true)]);
        host
    };
    vec![named("a"), named("b")]
}

fn interfaces() -> BTreeMap<HostName, String> {
    BTreeMap::from(["a", "b"].map(|host| (host.into(), "eth0".to_owned())))
}

/// The record of a calibration for runs of `cells`, in which each host or pair of hosts reached the next of `rates`, datagrams of
/// 1,000 bytes per second; the last one stands for all that follow.
fn calibration(id: &str, cells: Vec<Trial>, how: Calibration, rates: &[u64]) -> Record {
    let plan = plan(&Plan::sweep(cells, Repeats::Times(1)), how).expect("it can be calibrated");
    let rate = |at: usize| rates.get(at).or(rates.last()).copied().unwrap_or(1_000);
    let run = |(at, cell): (usize, &Trial)| TrialResult { trial: cell.clone(), ..trial(rate(at), 0) };
    let trials = plan.cells().iter().enumerate().map(run).collect();
    let record = Record::new(RecordId(id.into()), plan);
    let mut record = Record { hosts: hosts(), trials, started_unix_ns: THEN_NS, ..record };
    record.results = measurements(&record);
    // The trials are of a stream: transactions and calls have a figure of their own.
    for (at, result) in record.results.iter_mut().enumerate() {
        result.main = one(rate(at) as f64 * 8_000.0);
    }
    record
}

fn by_cable(rate: u64) -> Record {
    calibration("cable", vec![spec()], Calibration::cable(interfaces()), &[rate])
}

/// Fits `record` to a run of `cells` between these hosts, so many days later.
fn fitted(record: &Record, cells: &[Trial], hosts: &[Host], days: u64) -> Result<Fit, Misfit> {
    let plan = Plan::sweep(cells.to_vec(), Repeats::Times(1));
    let now_unix_ns = THEN_NS + days * DAY_NS;
    fit(record, &Uncalibrated { plan: &plan, hosts, interfaces: &interfaces(), now_unix_ns })
}

fn rates(limits: &[Calibrated]) -> Vec<f64> {
    limits.iter().map(|limit| limit.reached.median).collect()
}

/// The result of a run that got `arrived` datagrams through, held against `limits`.
fn held(arrived: u64, limits: Vec<Calibrated>) -> Measurement {
    let plan = Plan { calibrated: limits, ..Plan::sweep(vec![spec()], Repeats::Times(1)) };
    let record = Record::new(RecordId("run".into()), plan);
    measurements(&Record { trials: vec![trial(arrived, 0)], ..record }).remove(0)
}

#[test]
fn the_same_hosts_with_the_same_settings_fit_whatever_load_is_offered() {
    let record = by_cable(1_000);
    let fit = fitted(&record, &[spec()], &hosts(), 3).expect("it fits");
    assert_eq!((rates(&fit.limits), fit.missing.len()), (vec![8e6], 0));
    let limit = &fit.limits[0];
    assert_eq!((limit.bypass, age_in_words(limit.age).text.as_str()), (Bypass::Cable, "3 days"));
    assert_eq!(limit.subject, CalibratedSubject::Result("udp 1000".into()));
    // A name is no setting, and a rate asks for less than there is.
    let mut slower = Trial { name: "slower".into(), ..spec() };
    stream_of(&mut slower).offered = Some(Offered::PayloadBps(BitRate::per_second(1_000)));
    stream_of(&mut slower).net.socket.dscp = Some(46);
    let fit = fitted(&record, &[slower], &hosts(), 0).expect("it fits");
    assert_eq!(fit.limits[0].subject, CalibratedSubject::Result("slower".into()));
}

#[test]
fn other_settings_do_not_fit_and_are_named() {
    let record = by_cable(1_000);
    type Change = fn(&mut Trial);
    let changes: [(Change, &str); 5] = [
        (|cell| stream_of(cell).net.flows = 4, "flows 1, not 4"),
        (|cell| stream_of(cell).message_bytes = linerate_units::ByteCount::new(64), "message bytes 1000, not 64"),
        (|cell| stream_of(cell).direction = Direction::Receive, "direction send, not receive"),
        (|cell| stream_of(cell).net.ip = IpVersion::V6, "ip"),
        (|cell| stream_of(cell).net.socket.congestion = Some("bbr".into()), "congestion unset, not bbr"),
    ];
    for (change, words) in changes {
        let mut cell = spec();
        change(&mut cell);
        let misfit = fitted(&record, &[cell.clone()], &hosts(), 0).expect_err(words);
        assert!(matches!(misfit, Misfit::OtherSettings(_)) && misfit.to_string().contains(words), "{misfit}");
        // Beside one that fits, it is only missing.
        cell.name = "other".into();
        let fit = fitted(&record, &[spec(), cell], &hosts(), 0).expect("one of them fits");
        assert_eq!((fit.limits.len(), fit.missing[0].0.as_str()), (1, "other"));
    }
    let mut back = spec();
    stream_of(&mut back).paths = vec![Path::between("b", "a")];
    let misfit = fitted(&record, &[back], &hosts(), 0).expect_err("the other way");
    assert!(misfit.to_string().contains("no stream from b to a"), "{misfit}");
}

#[test]
fn a_host_that_has_changed_does_not_fit_and_what_changed_is_named() {
    let record = by_cable(1_000);
    type Change = fn(&mut Host);
    let changes: [(Change, &str); 12] = [
        (|host| host.system = "Linux 6.19".into(), "the kernel of b was Linux 6.18.44, and is Linux 6.19"),
        (|host| host.cpu_model = "Atom".into(), "the CPU of b was Xeon"),
        (|host| host.cores = 8, "the number of cores of b was 2, and is 8"),
        (|host| host.version = "0.2.0".into(), "the version of linerate of b was 0.1.0"),
        (|host| host.nics[0].driver = "ixgbe".into(), "the driver of eth0 of b was veth, and is ixgbe"),
        (
            |host| host.nics[0].driver_version = "6.1".into(),
            "the driver's version of eth0 of b was unknown, and is 6.1",
        ),
        (|host| host.nics[0].firmware = "9.54".into(), "the firmware of eth0 of b was unknown, and is 9.54"),
        (
            |host| {
                let bus = "pcie-1-x1".parse().expect("a bus");
                host.nics[0].slot = Some(linerate_model::Slot { bus, card: None, numa_node: None });
            },
            "the bus of eth0 of b was unknown, and is pcie-1-x1",
        ),
        (|host| host.nics[0].mtu = 9000, "the MTU of eth0 of b was 1500, and is 9000"),
        (|host| host.nics[0].qdisc = "tbf".into(), "the queueing discipline of eth0 of b was fq"),
        (|host| host.nics[0].offloads.clear(), "rx-gro of eth0 of b was on, and is off"),
        (|host| host.nics[0].name = "eth1".into(), "the interface of b was eth0, and is unknown"),
    ];
    for (change, words) in changes {
        let mut now = hosts();
        change(&mut now[1]);
        let misfit = fitted(&record, &[spec()], &now, 0).expect_err(words);
        assert!(matches!(misfit, Misfit::Changed { .. }) && misfit.to_string().contains(words), "{misfit}");
    }
    // Only TCP has a congestion control, and what the test sets itself is no default.
    let mut now = hosts();
    now[0].congestion_controls = vec!["bbr".into()];
    assert!(fitted(&record, &[spec()], &now, 0).is_ok());
    let mut tcp = spec();
    stream_of(&mut tcp).net.transport = Transport::Tcp;
    let of_tcp = calibration("tcp", vec![tcp.clone()], Calibration::cable(interfaces()), &[1]);
    let misfit = fitted(&of_tcp, &[tcp], &now, 0).expect_err("another default");
    assert!(misfit.to_string().contains("the congestion control of a was cubic, and is bbr"), "{misfit}");
}

#[test]
fn a_device_may_slow_the_link_down_but_a_slow_cable_hides_the_tester() {
    let record = by_cable(1_000);
    let at = |speed: u64| {
        let mut now = hosts();
        now.iter_mut().for_each(|host| host.nics[0].speed = Some(BitRate::per_second(speed)));
        fitted(&record, &[spec()], &now, 0)
    };
    assert!(at(100_000_000).is_ok());
    let misfit = at(10_000_000_000).expect_err("a faster link than the cable");
    assert!(misfit.to_string().contains("the speed of eth0 of a was 1 Gbit/s, and is 10 Gbit/s"), "{misfit}");
}

#[test]
fn other_hosts_and_other_records_do_not_fit() {
    let record = by_cable(1_000);
    let mut cell = spec();
    stream_of(&mut cell).paths = vec![Path::between("a", "c")];
    let named = Host { name: "c".into(), ..hosts().remove(1) };
    let misfit = fitted(&record, &[cell], &[hosts().remove(0), named], 0).expect_err("c was not measured");
    assert_eq!(misfit.to_string(), "it is of other hosts: a and b, not a and c");
    let mut plain = record.clone();
    plain.plan.calibration = None;
    assert_eq!(fitted(&plain, &[spec()], &hosts(), 0), Err(Misfit::NotACalibration));
    let mut alone = spec();
    stream_of(&mut alone).paths = vec![Path::between("a", "a")];
    assert_eq!(fitted(&record, &[alone], &hosts(), 0), Err(Misfit::NothingToCompare));
    let open = TransactTask {
        paths: vec![Path::between("a", "b")],
        rate: Some(OpRate::per_second(9)),
        ..TransactTask::plain(Transport::Udp)
    };
    let open = Trial::new("open", Task::Transact(open), spec().load().timing);
    assert_eq!(fitted(&record, &[open], &hosts(), 0), Err(Misfit::NothingToCompare));
}

#[test]
fn of_two_hosts_against_themselves_the_slower_one_is_the_limit() {
    let record = calibration("loopback", vec![spec()], Calibration::loopback(), &[3_000, 2_000]);
    let names: Vec<&str> = record.results.iter().map(|result| result.name.as_str()).collect();
    assert_eq!(names, ["udp 1000, a alone", "udp 1000, b alone"]);
    // The interfaces took no part.
    let mut now = hosts();
    now[0].nics[0].driver = "ixgbe".into();
    let fit = fitted(&record, &[spec()], &now, 0).expect("it fits");
    assert_eq!((rates(&fit.limits), fit.limits[0].bypass), (vec![16e6], Bypass::Loopback));
    let support = |result: &Measurement| {
        result.verdict.weighed.iter().find(|weighed| weighed.limit == Limit::Tester).map(|weighed| weighed.support)
    };
    let at = held(1_980, fit.limits.clone());
    assert_eq!(support(&at), Some(Support::Strong));
    assert!(at.caveats.iter().any(|caveat| caveat.kind == CaveatKind::LoopbackCalibration), "{:?}", at.caveats);
    assert!(at.verdict.proofs.is_empty(), "an estimate tests nothing");
    // Below it the interfaces may be the limit as well as the device, and above it the estimate does not hold.
    assert_eq!(support(&held(1_000, fit.limits.clone())), Some(Support::Hint));
    assert_eq!(support(&held(3_000, fit.limits)), Some(Support::Unknown));
}

#[test]
fn at_the_limit_of_a_calibration_it_is_the_tester_and_below_it_the_device() {
    let limits = |days| fitted(&by_cable(1_000), &[spec()], &hosts(), days).expect("it fits").limits;
    let result = held(990, limits(1));
    assert_eq!(result.verdict.limit, Limit::Tester);
    assert!(result.caveats.iter().all(|caveat| caveat.kind != CaveatKind::OldCalibration));
    assert_eq!(result.tester_limit.map(|limit| limit.share), Some(0.99));
    assert_eq!(held(500, limits(1)).verdict.limit, Limit::Device);
    let old = held(500, limits(41)).caveats;
    assert!(old.iter().any(|caveat| caveat.text.contains("measured 41 days before this run")), "{old:?}");
}

#[test]
fn the_newest_calibration_that_fits_counts_and_a_cable_before_a_loopback() {
    let plan = Plan::sweep(vec![spec()], Repeats::Times(1));
    let (hosts, interfaces) = (hosts(), interfaces());
    let run = Uncalibrated { plan: &plan, hosts: &hosts, interfaces: &interfaces, now_unix_ns: THEN_NS };
    let search = |records: &[&Record]| {
        let mut search = Search::new(run);
        records.iter().for_each(|record| search.take(record));
        (search.is_complete(), search.found())
    };
    let loopback = calibration("loopback", vec![spec()], Calibration::loopback(), &[5_000]);
    let mut changed = by_cable(7_000);
    changed.id = RecordId("changed".into());
    changed.hosts[0].system = "Linux 5".into();
    let (complete, found) = search(&[&changed, &loopback]);
    assert!(!complete, "there may be one by cable");
    assert_eq!(rates(&found.limits), [40e6]);
    let (complete, found) = search(&[&loopback, &by_cable(1_000), &by_cable(2_000)]);
    assert!(complete);
    assert_eq!((rates(&found.limits), found.missing.len(), found.misfit), (vec![8e6], 0, None));
    let (_, found) = search(&[&changed]);
    assert_eq!((found.limits.len(), found.missing), (0, vec!["udp 1000".to_owned()]));
    assert_eq!(found.misfit.expect("it is told").0.0, "changed");
}

#[test]
fn what_has_no_limit_is_not_calibrated() {
    let refused = |change: fn(&mut Plan)| {
        let mut run = Plan::sweep(vec![spec()], Repeats::Times(1));
        change(&mut run);
        plan(&run, Calibration::cable(interfaces())).expect_err("it is refused").to_string()
    };
    let set_rate: fn(&mut Plan) = |run| {
        let mut cell = spec();
        stream_of(&mut cell).offered = Some(Offered::PayloadBps(BitRate::per_second(9)));
        *run = Plan::sweep(vec![cell], Repeats::Times(1));
    };
    let one_host: fn(&mut Plan) = |run| {
        let mut cell = spec();
        stream_of(&mut cell).paths = vec![Path::between("a", "a")];
        *run = Plan::sweep(vec![cell], Repeats::Times(1));
    };
    for (change, words) in [(set_rate, "--rate"), (one_host, "--loopback"), ((|run| run.prove = true), "--prove")] {
        let said = refused(change);
        assert!(said.contains(words), "{said}");
    }
}

#[test]
fn the_usual_calibration_serves_streams_transactions_and_a_ladder() {
    let request = LadderRequest {
        path: Path::between("a", "b"),
        ip: IpVersion::V4,
        mtu: 1500,
        flows: 1,
        socket: SocketOptions::default(),
        calls_over: Transport::Tcp,
        timing: Timing::when_steady(linerate_units::Nanos::from_secs(1)),
        repeats: Repeats::Times(2),
        frames: Planned::Missing(String::new()),
        hops: false,
    };
    let known = plan(&usual(&request), Calibration::cable(interfaces())).expect("a calibration");
    let rates = vec![1_000; known.cells().len()];
    let record = calibration("usual", known.cells().to_vec(), Calibration::cable(interfaces()), &rates);
    let ladder = crate::ladder::plan(&request);
    let (hosts, interfaces) = (hosts(), interfaces());
    let run = Uncalibrated { plan: &ladder, hosts: &hosts, interfaces: &interfaces, now_unix_ns: THEN_NS };
    let fit = fit(&record, &run).expect("it fits");
    assert_eq!(fit.missing, [], "each layer but NFS");
    let names: Vec<&str> = known.cells().iter().map(|cell| cell.name.as_str()).collect();
    for name in ["udp 64", "udp 1472", "udp 1472, no offload", "tcp", "tcp transactions", "udp transactions"] {
        assert_eq!(names.iter().filter(|known| **known == name).count(), 1, "{name} in {names:?}");
    }
}

#[test]
fn ages_are_told_in_the_largest_unit_that_there_are_two_of() {
    let told = |seconds| age_in_words(linerate_units::Nanos::from_secs(seconds));
    let ages = [0, 60, 119, 3_600, 7_200, 86_400, 172_800].map(told);
    assert_eq!(ages, ["less than a minute", "1 minute", "1 minute", "60 minutes", "2 hours", "24 hours", "2 days"]);
}
