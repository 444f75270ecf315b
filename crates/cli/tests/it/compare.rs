//! Two records compared through the command line, on lab links of known rates.

use crate::program::{TestFolder, close, number, words};
use linerate_testsuite::{alone, lab_test};

#[lab_test]
fn a_slower_link_is_worse_and_the_same_link_is_not() {
    let _alone = alone();
    let place = TestFolder::new();
    let measure = |link: &str| {
        let line =
            format!("lab --hosts 2 --link {link} -- stream a b --udp --sizes 1472 --time 400ms --warmup 200ms --json");
        let record = place.measure(&words(&line));
        record["id"].as_str().expect("a record has a name").to_owned()
    };
    let (first, again, slower) = (measure("20Mbit/s"), measure("20Mbit/s"), measure("8Mbit/s"));

    let same = place.run(&["compare", &first, &again, "--tolerance", "30%"]);
    same.says(0, &[]);
    assert!(same.out.contains("udp 1472") && !same.out.contains("WORSE"), "{}", same.out);

    let worse = place.run(&["compare", &first, &slower, "--tolerance", "30%", "--json"]);
    worse.says(1, &[]);
    let found = worse.json();
    assert_eq!((&found["before"], &found["after"]), (&first.clone().into(), &slower.clone().into()));
    let payload = &found["figures"][0];
    assert_eq!((&payload["quantity"], &payload["change"]), (&"payload_bps".into(), &"worse".into()), "{found:#}");
    let difference = number(payload, "/difference");
    close("three fifths less", difference, -0.6, 0.1);
    assert!(
        (number(payload, "/interval/low")..=number(payload, "/interval/high")).contains(&difference),
        "{payload:#}"
    );

    // The latest is what is compared unless another is named.
    place.run(&["compare", &first, "--tolerance", "30%"]).says(1, &["something became worse"]);
    place.run(&["compare", &slower]).says(2, &["both are the record"]);
    place.run(&["compare", &first, "nosuch"]).says(2, &["nosuch"]);
    place.run(&["compare", &first, &again, "--confidence", "100"]).says(2, &["--confidence"]);
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
    assert!(ran.out.contains("not the same measurement"), "{}", ran.out);
}
