//! Two records compared through the command line, on lab links of known rates.

use crate::program::{TestFolder, close, number, words};
use linerate_testsuite::lab_test;
use serde_json::json;

#[lab_test]
fn a_slower_link_is_worse_and_the_same_link_is_not() {
    let place = TestFolder::new();
    let measure = |link: &str| {
        let line =
            format!("lab --hosts 2 --link {link} -- stream a b --udp --sizes 1472 --time 400ms --warmup 200ms --json");
        let record = place.measure(&words(&line));
        record["id"].as_str().expect("a record has a name").to_owned()
    };
    let (first, again, slower) = (measure("10Mbit/s"), measure("10Mbit/s"), measure("1Mbit/s"));

    // Half a link of 10 Mbit/s is filled by any machine.
    let same = place.run(&["compare", &first, &again, "--tolerance", "50%"]);
    same.says(0, &[]);
    assert!(same.shows("udp 1472") && !same.out.contains("WORSE"), "{}", same.out);

    let worse = place.run(&["compare", &first, &slower, "--tolerance", "50%", "--json"]);
    let found = worse.json();
    assert_eq!((&found["before"], &found["after"]), (&json!([first]), &json!([slower])));
    let warnings =
        found["warnings"].as_array().expect("warnings").iter().filter_map(|warning| warning["text"].as_str());
    let bench = |warning: &str| warning.contains("--link 10Mbit/s") && warning.contains("--link 1Mbit/s");
    assert!(warnings.clone().any(bench), "{found:#}");
    assert!(warnings.clone().any(|warning| warning.starts_with("one session each")), "{found:#}");
    let payload = &found["figures"][0];
    assert_eq!(payload["quantity"], "payload_bps", "{found:#}");
    let difference = number(payload, "/difference");
    // The difference of the means of what both records hold, whatever this machine filled of either link.
    let values = |id: &str| -> Vec<f64> {
        let record = place.run(&["results", "show", id, "--json"]).json();
        let values = record["results"][0]["received"]["payload_bps"]["values"].as_array().expect("three runs").clone();
        values.iter().map(|value| value.as_f64().expect("a rate")).collect()
    };
    let mean = |id: &str| values(id).iter().sum::<f64>() / 3.0;
    close("nine tenths less", difference, mean(&slower) / mean(&first) - 1.0, 1e-6);
    if payload["interval"].is_object() {
        let interval = number(payload, "/interval/low")..=number(payload, "/interval/high");
        assert!(interval.contains(&difference), "{payload:#}");
    }
    // Three runs of which a busy machine held one up leave it open, and the exit code says so.
    let is_worse = payload["change"] == "worse";
    let is_apart = |id: &str| values(id).iter().any(|value| (value / mean(id) - 1.0).abs() > 0.1);
    let held_up = is_apart(&first) || is_apart(&slower);
    assert!(is_worse || held_up && payload["change"] == "undecided", "{found:#}");
    worse.says(i32::from(is_worse), &[]);

    // One session against two.
    let sessions = place.run(&["compare", &format!("{first},{again}"), &slower, "--json"]).json();
    assert_eq!((&sessions["samples"], &sessions["before"]), (&"sessions".into(), &json!([first, again])));
    place.run(&["compare", &format!("{first},{first}"), &slower]).says(2, &["named twice"]);
    // The latest is what is compared unless another is named.
    let said: &[&str] = if is_worse { &["something became worse"] } else { &[] };
    place.run(&["compare", &first, "--tolerance", "50%"]).says(i32::from(is_worse), said);
    place.run(&["compare", &slower]).says(2, &["both are the record"]);
    place.run(&["compare", &first, "nosuch"]).says(2, &["nosuch"]);
    place.run(&["compare", &first, &again, "--confidence", "100"]).says(2, &["--confidence"]);
}

#[lab_test]
fn two_commands_run_in_turn_and_both_records_are_kept() {
    let place = TestFolder::new();
    let brief = "stream a b --udp --time 200ms --warmup 100ms --rate";
    let (fast, slow) = (format!("{brief} 20Mbit/s"), format!("linerate {brief} 1Mbit/s"));
    let line = ["lab", "--", "compare", "--live", &fast, &slow, "--pairs", "3", "--max-pairs", "3", "--json"];
    let ran = place.run(&line);
    let found = ran.json();
    assert_eq!(found["samples"], "pairs");
    let payload = &found["figures"][0];
    assert_eq!(payload["quantity"], "payload_bps");
    // A busy machine may keep a sender back for most of a window of 340 datagrams; the other has 17. Three pairs as far from one another as
    // that decide nothing, and the exit code says so.
    assert!(number(payload, "/difference") < 0.0, "{payload:#}");
    assert!(payload["change"] == "worse" || payload["change"] == "undecided", "{found:#}");
    let figures = found["figures"].as_array().expect("figures");
    let is_worse = figures.iter().any(|figure| figure["change"] == "worse");
    ran.says(i32::from(is_worse), &["pair 3 of 3 at most, A", "3 runs kept as"]);
    let kept = place.run(&["results"]);
    assert_eq!(kept.out.lines().count(), 2, "{}", kept.out);
    for (side, rate) in [("before", "20Mbit/s"), ("after", "1Mbit/s")] {
        let id = found[side][0].as_str().expect("a record has a name");
        // Both were made by one command, and are reported together.
        let both = place.run(&["report", id, "--json"]).json();
        let record =
            both.as_array().and_then(|both| both.iter().find(|record| record["id"] == id)).expect("it is kept");
        assert_eq!(record["results"][0]["main"]["runs"], 3, "{}", record["results"][0]);
        assert!(record["command"].as_array().expect("words").contains(&rate.into()), "{}", record["command"]);
    }
}

#[test]
fn a_slip_in_a_command_to_run_in_turn_costs_nothing() {
    let place = TestFolder::new();
    for (line, said) in [
        (["compare", "--live", "stream local", "stream local --nosuch"].as_slice(), "--nosuch"),
        (&["compare", "--live", "stream local", "stream local --repeats 3"], "--pairs of `compare`"),
        (&["compare", "--live", "stream local", "probe local"], "it measures nothing"),
        (&["compare", "--live", "stream local"], "<AFTER>"),
        (&["compare", "--live", "stream local", "stream local", "--pairs", "5", "--max-pairs", "4"], "--max-pairs 4"),
        (&["compare", "x", "y", "--pairs", "5"], "--live"),
    ] {
        place.run(line).says(2, &[said]);
    }
    assert_eq!(place.run(&["results"]).out.lines().count(), 0);
}

#[test]
fn different_measurements_are_refused() {
    let place = TestFolder::new();
    let brief = ["--time", "300ms", "--warmup", "0s", "--repeats", "2", "--json"];
    let measure = |arguments: &[&str]| {
        let record = place.measure(&[arguments, &brief].concat());
        record["id"].as_str().expect("a record has a name").to_owned()
    };
    let one = measure(&["stream", "local"]);
    let four = measure(&["stream", "local", "--flows", "4"]);
    let ran = place.run(&["compare", &one, &four]);
    ran.says(2, &["no measurement in common"]);
    assert!(ran.shows("not the same measurement"), "{}", ran.out);
}
