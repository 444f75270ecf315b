//! What a device says of its own load by SNMP, and that the password is kept nowhere.

use crate::device_load::{Burning, bench, most_stolen};
use crate::program::{counted, number, words};
use linerate_observe::snmp::{Session, Target};
use linerate_testsuite::servers::Snmpd;
use linerate_testsuite::{alone, server_test, wait_until};

/// A community that must be seen nowhere.
const COMMUNITY: &str = "c0mmunity-s3cret";
/// Where CPU time is read from if the service counts it.
const CPU_COUNTERS: &str = "snmp UCD raw counters";

/// Waits until the service has counters of CPU time, which it has from 5 s after its start on.
fn wait_until_cpu_is_counted(target: &str) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let target = target.parse::<Target>().expect("a target");
    let mut session = wait_until("snmpd answers", || runtime.block_on(Session::open(&target)).ok());
    wait_until("snmpd counts CPU time", || {
        let reading = runtime.block_on(session.sample()).expect("it answers");
        (reading.load_since(&reading).source == CPU_COUNTERS).then_some(())
    });
}

#[server_test(Root, Program("snmpd"))]
fn snmp_tells_the_cpu_and_its_community_is_kept_nowhere() {
    let snmpd = Snmpd::start(&format!("rocommunity {COMMUNITY} 127.0.0.1\n"));
    let _alone = alone();
    let place = bench();
    wait_until_cpu_is_counted(&format!("snmp://{COMMUNITY}@127.0.0.1:{}", snmpd.port));
    let measure = |time: &str, community: &str| {
        let target = format!("snmp://{community}@127.0.0.1:{}", snmpd.port);
        let line = "device latency --ports tester:p0,tester:p1 --sizes 64 --rate 1k --json --time";
        place.run(&[&words(line)[..], &[time, "--device-snmp", &target]].concat())
    };
    // Counters that are renewed every 5 s are renewed once in 8 s at least.
    let burning = Burning::start();
    let ran = measure("8s", COMMUNITY);
    drop(burning);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let record = ran.json();
    let load = &record["outcome"]["latency"][0]["device_load"];
    assert_eq!(load["source"], CPU_COUNTERS);
    let cores = std::thread::available_parallelism().expect("cores").get();
    let least = 0.8 * (1.0 - most_stolen(counted(&record))) / cores as f64;
    assert!(number(load, "/cpu") > least, "a core burns all the time that this machine is given, {least}: {load}");

    // Too short for a figure: said, with what to do.
    let short = measure("500ms", COMMUNITY);
    assert_eq!(short.code, Some(0), "{}", short.err);
    let found = &short.json()["outcome"]["latency"][0];
    if found["device_load"]["cpu"].is_null() {
        assert!(found["caveats"].to_string().contains("--time 10s"), "{found}");
    }
    let wrong = measure("500ms", "s3cret-but-wrong");
    wrong.says(3, &["did not answer SNMP", "community"]);
    let unreadable =
        place.run(&words("device latency --ports tester:p0,tester:p1 --rate 1k --device-snmp s3cret@host"));
    unreadable.says(2, &["--device-snmp", "snmp://"]);

    let listed = place.run(&["results"]);
    let shown = place.run(&["results", "show", "--json"]);
    let kept = std::fs::read(place.path("results.db")).expect("the store");
    let said = [&ran, &short, &wrong, &unreadable, &listed, &shown].map(|ran| format!("{}{}", ran.out, ran.err));
    for text in said.into_iter().chain([String::from_utf8_lossy(&kept).into_owned()]) {
        assert!(!text.contains("s3cret"), "a secret is in: {text}");
    }
    assert!(listed.out.contains("snmp://***@127.0.0.1"), "{}", listed.out);
}
