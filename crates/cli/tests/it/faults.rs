//! Bad input and faults: a clear message, the right exit code, what was measured kept, nothing left behind.

use crate::program::{TestFolder, wait_until_gone, words};
use linerate_testsuite::{lab_test, wait_until};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use std::net::TcpStream;
use std::os::unix::process::CommandExt as _;
use std::time::Instant;

#[test]
fn what_cannot_be_asked_is_refused_with_its_remedy() {
    let place = TestFolder::new();
    let narrow = place.file("narrow.toml", "name = \"narrow\"\n[link]\nmtu = 500\n");
    let strange = place.file(
        "strange.toml",
        "name = \"strange\"\nhosts = [\"a\", \"b\"]\n[[fault]]\nkind = \"cpu-quota\"\nat = \"c\"\nratio = \"1%\"\n",
    );
    for (arguments, words) in [
        (&["stream", "nowhere"][..], &["nowhere", "agent URL"][..]),
        (&["stream", "a,a", "b"], &["named twice", "--flows"]),
        (&["stream", "linerate://h#x"], &["port is missing"]),
        (&["stream", "local", "--udp", "--size", "15"], &["16 to 65507"]),
        (&["stream", "local", "--udp", "--sizes", "64,70000"], &["70000"]),
        (&["stream", "local", "--size", "0"], &["1 to"]),
        (&["stream", "local", "--rate", "0"], &["sends nothing"]),
        (&["stream", "local", "--rate", "fast"], &["bit rate", "100Mbit/s"]),
        (&["stream", "local", "--time", "1ms"], &["too short"]),
        (&["stream", "local", "--repeats", "0"], &["0 is not in 1..=1000"]),
        (&["stream", "local", "--confidence", "100"], &["percentage"]),
        (&["stream", "local", "--expect", "p99<1ms"], &["does not measure that"]),
        (&["stream", "local", "--expect", "speed>1"], &["not a metric"]),
        (&["stream", "local", "--congestion", "warp"], &["warp", "cubic"]),
        (&["transact", "local", "--request", "0"], &["1 to"]),
        (&["transact", "local", "--connect", "--udp"], &["cannot be used"]),
        (&["lab", "--bench", "moebius"], &["moebius", "switch"]),
        (&["lab", "--", "strem", "a", "b"], &["strem", "stream"]),
        (&["lab", "--", "lab"], &["cannot hold another lab"]),
        (&["lab", "--json", "--", "stream", "a", "b"], &["--json", "behind `--`"]),
        (&["lab", "--keep", "--expect", "loss<1%"], &["--keep"]),
        (&["lab", "--bench", &narrow, "--", "stream", "a", "b"], &["narrow.toml", "1280"]),
        (&["stream", "local", "--out", "report.pdf"], &["report.pdf", ".html"]),
        (&["stream", "local", "--out", "nowhere/report.html"], &["nowhere"]),
        (&["lab", "--device", "none", "--shape", "1Mbit/s", "--", "stream", "a", "b"], &["device that shapes"]),
        (&["lab", "--bench", &strange, "--", "stream", "a", "b"], &["`c`", "a, b"]),
        (&["lab", "--fault", "one-core,at=z", "--", "stream", "a", "b"], &["fault one-core at `z`", "no such host"]),
        (&["lab", "--fault", "gremlin,at=a", "--", "stream", "a", "b"], &["gremlin", "softirq-load"]),
        (
            &["lab", "--fault", "softirq-load,at=b,cost=0", "--", "stream", "a", "b"],
            &["softirq-load at `b`", "above 0"],
        ),
        (
            &["lab", "--fault", "one-core,at=b", "--fault", "one-core,at=b", "--", "stream", "a", "b"],
            &["fault one-core at `b`", "twice"],
        ),
        (&["lab", "--cross", "from=a,to=b,rate=1M,speed=2", "--", "stream", "a", "b"], &["`speed`", "`size`"]),
        (
            &["lab", "--cross", "from=a,to=b,rate=0,size=9", "--", "stream", "a", "b"],
            &["cross traffic from a to b", "rate"],
        ),
        (&["explain", "nosuch"], &["nosuch"]),
        (&["lab", "--link", "0", "--", "stream", "a", "b"], &["0"]),
        (&["report", "nosuch"], &["nosuch"]),
        (&["report"], &["nothing is kept yet"]),
        (&["results", "delete", "nosuch"], &["nosuch"]),
        (&["serve", "--link-speed", "eth0"], &["eth0=1Gbit/s"]),
    ] {
        let ran = place.run(arguments);
        assert!(matches!(ran.code, Some(2 | 3)), "{arguments:?}: {:?} {}", ran.code, ran.err);
        assert_eq!(ran.out, "", "{arguments:?}");
        for word in words {
            assert!(ran.err.contains(word), "{arguments:?}: `{word}` is missing in: {}", ran.err);
        }
    }
}

/// A quota is a directory, which no kernel removes by itself.
#[lab_test]
fn a_killed_lab_leaves_no_quota_no_neighbour_and_no_cross_traffic() {
    let place = TestFolder::new();
    let bench = place.file(
        "faulty.toml",
        "name = \"faulty\"\nhosts = [\"a\", \"b\"]\n[link]\nrate = \"10Mbit/s\"\n\
         [[fault]]\nkind = \"cpu-quota\"\nat = \"a\"\nratio = \"10%\"\n\
         [[fault]]\nkind = \"busy-core\"\nat = \"b\"\nratio = \"50%\"\n\
         [[cross]]\nfrom = \"a\"\nto = \"b\"\nrate = \"1Mbit/s\"\nsize = 100\n",
    );
    let running = place.start(&["lab", "--bench", &bench, "--", "stream", "a", "b", "--time", "30s"]);
    // Two agents, the keeper of the quota, the neighbour, and what exchanges the datagrams.
    let children = running.wait_for_children(5);
    let own = linerate_sys::cgroup::groups("cpu").into_iter().next().expect("the cpu controller is mounted");
    let groups: Vec<_> = children.iter().map(|pid| own.join(format!("linerate-{pid}"))).collect();
    let planted = || groups.iter().filter(|group| group.exists()).count();
    wait_until("a quota is planted", || (planted() > 0).then_some(()));
    running.signal(Signal::SIGKILL);
    wait_until_gone(&children);
    assert_eq!(planted(), 0, "{groups:?}");
}

#[lab_test]
fn cross_traffic_comes_at_its_rate_and_ends_with_the_lab() {
    let place = TestFolder::new();
    // 100 bytes of line time each: 5,000 a second.
    let cross = "from=c,to=b,rate=4Mbit/s,size=34";
    place.run(&["lab", "--keep", "--hosts", "3", "--link", "100Mbit/s", "--cross", cross]).says(0, &["lab down"]);
    let (start, before) = (Instant::now(), place.packets_received("b", "eth0"));
    let came = wait_until("2,000 datagrams came", || {
        Some(place.packets_received("b", "eth0") - before).filter(|came| *came >= 2_000)
    });
    // Up to 100 were late, and some other packets come.
    let most = 5_000.0 * start.elapsed().as_secs_f64() + 200.0;
    assert!((came as f64) < most, "{came} packets, at most {most} were due");
    assert!(place.packets_received("a", "eth0") < 500, "they are for b alone");
    // A port that nobody reads from would be answered.
    let counters = place.run(&["lab", "shell", "b", "--", "cat", "/proc/net/snmp"]).out;
    let line = counters.lines().filter(|line| line.starts_with("Icmp: ")).nth(1).expect("counters").to_owned();
    let names = counters.lines().find(|line| line.starts_with("Icmp: ")).expect("names");
    let unreachable =
        names.split_whitespace().zip(line.split_whitespace()).find(|(name, _)| *name == "OutDestUnreachs");
    assert_eq!(unreachable.expect("a counter").1, "0");
    place.run(&["lab", "down"]).says(0, &["is down"]);
}

#[test]
fn an_agent_that_cannot_be_used_is_named_with_the_reason() {
    let place = TestFolder::new();
    let mut agent = place.start(&words("serve --listen 127.0.0.1:0 --ephemeral --max-time 2s"));
    let join = agent.line();
    let (address, secrets) = join.split_once('#').expect("an agent URL has secrets");
    let (token, fingerprint) = secrets.split_once('.').expect("a token and a fingerprint");
    let stream = |join: &str| place.run(&["stream", join, "--time", "300ms", "--warmup", "0s", "--repeats", "1"]);

    stream(&join).says(0, &[]);
    stream(&format!("{address}#{}.{fingerprint}", "0".repeat(32))).says(3, &["token", "agent URL"]);
    stream(&format!("{address}#{token}.{}", "0".repeat(64))).says(3, &["certificate"]);
    place.run(&["stream", &join, "--time", "5s"]).says(3, &["--max-time"]);

    let taken = address.rsplit_once(':').expect("an address has a port").1;
    place
        .run(&["serve", "--listen", &format!("127.0.0.1:{taken}"), "--ephemeral"])
        .says(3, &["another program", taken]);

    // The port of a connection's own end: nobody listens on it, and nobody else is given it.
    let held = TcpStream::connect(("127.0.0.1", taken.parse().expect("a port"))).expect("connects");
    let free = held.local_addr().expect("is bound").port();
    stream(&format!("linerate://127.0.0.1:{free}#{secrets}")).says(3, &["no agent answers", "linerate serve"]);
}

#[lab_test]
fn an_agent_killed_in_mid_trial_leaves_what_was_measured() {
    let place = TestFolder::new();
    let lab = place
        .start(&words("lab --hosts 2 --link 10Mbit/s -- stream a b --time 500ms --warmup 0s --repeats 300 --json"));
    let agents = lab.wait_for_children(2);
    wait_until("a trial counts", || (place.trials() > 0).then_some(()));
    kill(Pid::from_raw(agents[1]), Signal::SIGKILL).expect("the agent runs");
    let ran = lab.end();
    // Its peer may see the connection end first. On a busy machine the loss may be noticed too late to be named instead.
    let is_named = ["lost", "198.18.0.2"].iter().any(|what| ran.err.contains(what));
    assert!(ran.code == Some(3) && is_named, "{:?}: {}", ran.code, ran.err);
    let record = ran.json();
    let attempts = record["trials"].as_array().expect("a record has trials");
    let standing = |standing: &str| attempts.iter().filter(|attempt| attempt["standing"]["is"] == standing).count();
    let trials = standing("counted");
    assert!((1..300).contains(&trials), "{trials} trials were done before the agent was killed");
    assert_eq!(standing("failed"), 1, "the trial that it was killed in");
    let caveats = record["caveats"].as_array().expect("a record has caveats");
    assert!(caveats.iter().any(|caveat| caveat["kind"] == "interrupted"), "{caveats:?}");
    let listed = place.run(&["results", "list", "--json"]).json();
    assert_eq!(
        (&listed[0]["trials"], &listed[0]["state"]),
        (&trials.into(), &"failed".into()),
        "they are in the store"
    );
    wait_until_gone(&agents);
}

#[lab_test]
fn ctrl_c_keeps_what_was_measured_and_takes_the_lab_down() {
    // While the lab is built, once its agents run, and once a trial counts.
    for (agents, trials) in [(1, 0), (2, 0), (2, 1)] {
        let place = TestFolder::new();
        let lab = place
            .start(&words("lab --hosts 2 --link 10Mbit/s -- stream a b --udp --time 500ms --warmup 0s --repeats 300"));
        let agents = lab.wait_for_children(agents);
        wait_until("a trial counts", || (trials == 0 || place.trials() >= trials).then_some(()));
        lab.signal(Signal::SIGINT);
        let ran = lab.end();
        assert!(matches!(ran.code, Some(3) | None), "{:?} {}", ran.code, ran.err);
        wait_until_gone(&agents);
        if trials > 0 {
            assert!(ran.err.contains("interrupted"), "{}", ran.err);
            assert!(ran.out.contains("payload"), "what was measured is shown: {}", ran.out);
        }
    }
}

/// Agents that outlive the program must not go on for the rest of the trial.
#[lab_test]
fn ctrl_c_stops_agents_of_others_too() {
    let place = TestFolder::new();
    place.run(&["lab", "--keep", "--hosts", "2", "--link", "10Mbit/s"]).says(0, &["lab down"]);
    let stream = place.start(&words("stream a b --time 300s --repeats 1"));
    let before = place.packets_received("b", "eth0");
    wait_until("the trial runs", || (place.packets_received("b", "eth0") > before + 500).then_some(()));
    stream.signal(Signal::SIGINT);
    stream.end().says(3, &["interrupted"]);
    place.wait_for_silence("b");
    place.run(&["lab", "down"]).says(0, &["is down"]);
}

#[lab_test]
fn kill_nine_leaves_nothing_behind() {
    let place = TestFolder::new();
    let lab = place.start(&words("lab --link 10Mbit/s -- stream a b --time 500ms --warmup 0s --repeats 300"));
    let agents = lab.wait_for_children(4);
    wait_until("a trial counts", || (place.trials() > 0).then_some(()));
    lab.signal(Signal::SIGKILL);
    assert_eq!(lab.end().code, None);
    wait_until_gone(&agents);
    // The namespaces were held by those processes only. What was measured is there.
    let listed = place.run(&["results", "list", "--json"]).json();
    assert_eq!(listed[0]["state"], "killed");
    assert!(crate::program::number(&listed, "/0/trials") >= 1.0, "{listed}");
    assert!(place.run(&["report"]).out.contains("payload"), "a run that was killed can be reported");
}

#[lab_test]
fn a_kept_lab_serves_until_it_is_taken_down() {
    let place = TestFolder::new();
    place.run(&["lab", "--keep", "--hosts", "2"]).says(0, &["lab down"]);
    place.run(&["lab", "--keep"]).says(2, &["lab down"]);
    let shown = place.run(&words("lab shell a -- ip -br address"));
    assert!(shown.code == Some(0) && shown.out.contains("198.18.0.1"), "{}{}", shown.out, shown.err);
    assert_eq!(place.run(&["lab", "shell", "a", "--", "sh", "-c", "exit 7"]).code, Some(7));
    place.run(&["lab", "shell", "z"]).says(2, &["z", "a, b"]);
    place.measure(&words("transact a b --time 1s --warmup 0s --repeats 1 --json"));
    place.run(&["lab", "down"]).says(0, &["is down"]);
    place.run(&["lab", "down"]).says(0, &["no lab is up"]);
    place.run(&["stream", "a", "b"]).says(2, &["no lab is up"]);
}

#[lab_test]
fn an_ordinary_user_has_a_lab_too() {
    const NOBODY: u32 = 65_534;
    let place = TestFolder::new();
    // The user must be able to reach the program and the place, whatever the modes of the directories above.
    let program = place.path("linerate");
    // By another process: a program that a child of this one still holds open to be written cannot be started.
    let copied = std::process::Command::new("cp").arg(env!("CARGO_BIN_EXE_linerate")).arg(&program).status();
    assert!(copied.is_ok_and(|status| status.success()), "the program can be copied");
    std::os::unix::fs::chown(place.directory.path(), Some(NOBODY), Some(NOBODY)).expect("root may chown");
    let mut command = std::process::Command::new(program);
    command
        .args(["lab", "--link", "10Mbit/s", "--", "stream", "a", "b", "--time", "500ms", "--repeats", "1", "--json"])
        .current_dir(place.directory.path())
        .env("LINERATE_STORE", place.path("results.db"))
        .env("XDG_RUNTIME_DIR", place.directory.path())
        .env("HOME", place.directory.path())
        .uid(NOBODY)
        .gid(NOBODY);
    let ran: crate::program::Ran = command.output().expect("the program starts").into();
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    // The link is set for this user too. A reader that is held up at an edge of the window of 500 ms moves the rate.
    let of_line = crate::program::number(&ran.json(), "/results/0/received/payload_bps/median") / 1e7;
    assert!((0.3..1.3).contains(&of_line), "{of_line} of the line's rate");
}

#[lab_test]
fn a_full_disk_costs_the_store_not_the_measurement() {
    let place = TestFolder::new();
    let disk = place.path("disk");
    std::fs::create_dir(&disk).expect("a directory can be made");
    let mount =
        std::process::Command::new("mount").args(["-t", "tmpfs", "-o", "size=160k", "none"]).arg(&disk).status();
    assert!(mount.is_ok_and(|status| status.success()), "root may mount");
    let store = disk.join("results.db").display().to_string();
    let ran = place.run(&words(&format!("stream local --udp --sizes 64,128,256,512 --rate 1Mbit/s --time 100ms --warmup 0s --repeats 5 --json --store {store}")));
    let unmounted = std::process::Command::new("umount").arg(&disk).status();
    assert!(unmounted.is_ok_and(|status| status.success()), "nothing holds the disk");
    ran.says(3, &["no space left", "results.db", "--store"]);
    // On a busy machine some are repeated, and the attempts before are kept too.
    let counted = |trials: &Vec<Value>| trials.iter().filter(|trial| trial["standing"]["is"] == "counted").count();
    assert_eq!(ran.json()["trials"].as_array().map(counted), Some(20), "all trials are in the record printed");
}

#[test]
fn an_expectation_decides_the_exit_code() {
    let place = TestFolder::new();
    let stream = |condition: &str| {
        place.run(&["stream", "local", "--time", "300ms", "--warmup", "0s", "--repeats", "1", "--expect", condition])
    };
    stream("throughput>=1kbit/s").prints(0, &["pass  tcp: ", "meets"]);
    stream("throughput>=900Tbit/s").prints(1, &["FAIL  tcp: ", "misses"]);
    let file = place.path("linerate.xml");
    let junit = format!("junit={}", file.display());
    let words =
        "stream local --time 300ms --warmup 0s --repeats 1 --expect throughput>=1 --expect throughput>=900Tbit/s";
    let told = place.run(&[&crate::program::words(words)[..], &["--report", &junit, "--report", "github"]].concat());
    told.prints(1, &["::error title=linerate --expect::tcp: "]);
    assert!(told.out.starts_with("pass  tcp: "), "what was expected comes first: {}", told.out);
    let text = std::fs::read_to_string(file).expect("the report");
    assert!(
        text.contains("tests=\"2\" failures=\"1\"") && text.contains("name=\"throughput&gt;=900Tbit/s\""),
        "{text}"
    );
    place.run(&["stream", "local", "--report", "github"]).says(2, &["--expect"]);
}
