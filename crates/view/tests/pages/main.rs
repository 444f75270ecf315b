//! The pages as a browser gets them.

mod browser;
mod fleet;
mod foreign;
mod http;
mod place;
mod proxy;
mod snapshots;
mod table;
mod trend;

use http::Answer;
use linerate_model::{Caveat, CaveatKind, Goal, Limit, Message, RunSummary, TrialState};
use linerate_store::Ending;
use linerate_testsuite::wait_until;
use place::{TestView, attempt, interval, record, stream_record};
use std::io::{ErrorKind, Read as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

#[test]
fn the_list_is_newest_first_filtered_and_paged() {
    let place = TestView::new();
    for number in 0..120_u64 {
        let command = if number % 3 == 0 { "linerate transact alpha beta" } else { "linerate stream alpha beta --udp" };
        place.keep(&record(&format!("20261121T{number:06}-aaaa"), 1_795_253_400_000_000_000 + number, command));
    }
    let first = place.get("");
    assert_eq!(first.status, 200);
    assert_eq!(first.body.matches("name=\"with\"").count(), 50);
    assert!(first.body.contains("1 to 50 of 120, newest first"), "{}", first.body);
    let (newest, next) = (first.at("20261121T000119-aaaa"), first.at("20261121T000118-aaaa"));
    assert!(newest < next, "newest first");
    assert!(first.body.contains("href=\"./?page=2\" rel=\"next\""));

    let last = place.get("?page=3");
    assert!(last.body.contains("101 to 120 of 120") && last.body.contains("20261121T000000-aaaa"));
    assert!(place.get("?page=99").body.contains("101 to 120 of 120"), "past the end is the end");

    let filtered = place.get("?text=TRANSACT+beta&page=1");
    assert!(filtered.body.contains("1 to 40 of 40") && filtered.body.contains("value=\"TRANSACT beta\""));
    assert!(place.get("?kind=stream").body.contains("of 80"));
    assert!(place.get("?kind=stream&page=2").body.contains("href=\"./?kind=stream\""), "pages keep the filter");
    assert!(place.get("?text=nosuch").body.contains("No record fits."));
    assert!(place.get("?from=2026-11-22").body.contains("No record fits."));
    assert!(place.get("?from=2026-11-21&to=2026-11-21&ended=finished").body.contains("of 120"));
    let wrong = place.get("?from=yesterday");
    assert_eq!(wrong.status, 400);
    assert!(wrong.body.contains("`yesterday` is not a day") && wrong.body.contains("value=\"yesterday\""));
}

/// Another user of the machine reaches the port without knowing the key.
#[test]
fn silent_connections_keep_nobody_out_and_are_bounded() {
    let place = TestView::new();
    place.keep(&stream_record("20261121T093000-4f2a", 1, &[941_000_000]));
    let mut silent: Vec<TcpStream> = (0..400).map(|_| TcpStream::connect(place.address).expect("it listens")).collect();
    assert_eq!(place.get("").status, 200);
    wait_until("the oldest are closed", || {
        let mut closed = 0;
        for connection in &mut silent {
            connection.set_nonblocking(true).expect("set");
            // Neither an end nor an error while it is open.
            let is_open = connection.read(&mut [0]).is_err_and(|error| error.kind() == ErrorKind::WouldBlock);
            closed += usize::from(!is_open);
        }
        (closed >= 400 - 128).then_some(())
    });
    assert_eq!(place.get("").status, 200);
}

#[test]
fn an_empty_store_says_what_to_do() {
    let place = TestView::new();
    assert!(place.get("").body.contains("Nothing is kept yet"));
}

#[test]
fn a_record_opens_as_its_report() {
    let place = TestView::new();
    place.keep(&stream_record("20261121T093000-4f2a", 1, &[941_000_000, 940_000_000, 942_000_000]));
    let page = place.get("record?id=20261121T093000-4f2a");
    assert_eq!(page.status, 200);
    assert!(page.body.contains("941 Mbit/s") && page.body.contains("href=\"./\""), "{}", page.body);
    assert!(place.get("record?id=20261121T09").body.contains("941 Mbit/s"), "an unmistakable beginning is enough");
    let unknown = place.get("record?id=nosuch");
    assert_eq!(unknown.status, 404);
    assert!(unknown.body.contains("No record is called nosuch"));
    assert_eq!(place.get("record").status, 404);
    assert_eq!(place.get("nosuch").status, 404);
}

#[test]
fn two_records_are_compared_the_older_first() {
    let place = TestView::new();
    place.keep(&stream_record("old", 1, &[941_000_000, 940_000_000, 942_000_000]));
    place.keep(&stream_record("new", 2, &[800_000_000, 801_000_000, 799_000_000]));
    let page = place.get("compare?with=new&with=old");
    assert_eq!(page.status, 200);
    assert!(page.at("record?id=old") < page.at("record?id=new"), "{}", page.body);
    assert!(page.body.contains("WORSE") && page.body.contains("-15.0 %"), "{}", page.body);
    let swapped = place.get("compare?with=new&with=old&swapped=yes");
    assert!(!swapped.body.contains("WORSE") && swapped.body.contains("+17.6 %"), "{}", swapped.body);
    let lenient = place.get("compare?with=new&with=old&tolerance=50%25");
    assert!(!lenient.body.contains("WORSE") && lenient.body.contains("value=\"50%\""), "{}", lenient.body);
    for (query, said) in [
        ("with=old", "Tick two records to compare, not 1."),
        ("with=old&with=new&with=old", "not 3"),
        ("", "not 0"),
        ("with=old&with=old", "the same record"),
        ("with=old&with=new&confidence=100", "not a percentage"),
        ("with=old&with=new&tolerance=much", "`much`"),
    ] {
        let page = place.get(&format!("compare?{query}"));
        assert_eq!(page.status, 400, "{query}");
        assert!(page.body.contains(said), "{query}: {}", page.body);
    }
    assert_eq!(place.get("compare?with=old&with=nosuch").status, 404);
}

#[test]
fn a_run_is_held_against_the_one_before_of_the_same_command() {
    let place = TestView::new();
    place.keep(&stream_record("first", 1, &[941_000_000, 940_000_000, 942_000_000]));
    place.keep(&stream_record("second", 2, &[800_000_000, 801_000_000, 799_000_000]));
    let mut moved = stream_record("third", 3, &[880_000_000, 881_000_000, 879_000_000]);
    moved.command[0] = "/opt/linerate".into();
    place.keep(&moved);
    let mut other = stream_record("other", 4, &[100_000_000]);
    other.command.push("--zerocopy".into());
    place.keep(&other);

    let list = place.get("");
    for (pair, change) in
        [("with=first&amp;with=second", "worse: -15.0 %"), ("with=second&amp;with=third", "better: +10.0 %")]
    {
        let link = format!("href=\"compare?{pair}\" title=\"{change} against the run before\"");
        assert!(list.body.contains(&link), "{link}: {}", list.body);
    }
    assert_eq!(list.body.matches("against the run before").count(), 2, "other commands are not compared");

    let page = place.get("record?id=second");
    assert!(page.body.contains("href=\"record?id=first\">Run before<"), "{}", page.body);
    assert!(page.body.contains("href=\"record?id=third\">Run after<"));
    assert!(page.body.contains("href=\"compare?with=first&amp;with=second\">Compare with the run before<"));
    let alone = place.get("record?id=other");
    assert!(!alone.body.contains(">Run before<") && !alone.body.contains(">Run after<"));
}

/// The command to repeat a record stands before its results, quoted for a shell.
#[test]
fn a_record_shows_the_command_that_repeats_it() {
    let place = TestView::new();
    let mut run = stream_record("run", 1, &[941_000_000]);
    run.command = ["/opt/linerate", "stream", "alpha", "be ta"].map(str::to_owned).into();
    place.keep(&run);
    let page = place.get("record?id=run");
    assert!(page.at("<code>linerate stream alpha 'be ta'</code>") < page.at("<section"), "{}", page.body);
    assert!(page.body.contains("data-copy=\"Copy\""));
}

#[test]
fn the_list_is_filtered_by_limit_and_draws_the_last_runs() {
    let place = TestView::new();
    for (number, (payload, limit)) in
        [(900_000_000, Limit::Wire), (450_000_000, Limit::Shaper), (900_000_000, Limit::Wire)].into_iter().enumerate()
    {
        let mut run = stream_record(&format!("run-{number}"), number as u64 + 1, &[payload]);
        run.results[0].verdict.limit = limit;
        place.keep(&run);
    }
    let list = place.get("");
    for bars in ["d=\"M70 24v-24.0h7v24.0zM80 24v-12.0h7v12.0z\"", "d=\"M80 24v-24.0h7v24.0z\""] {
        assert!(list.body.contains(bars), "{bars}: {}", list.body);
    }
    assert!(list.body.contains("3 runs of this command, to 900 Mbit/s"));
    let wire = place.get("?limit=wire").body;
    assert!(wire.contains("id=run-0") && !wire.contains("id=run-1\"") && wire.contains("id=run-2"), "{wire}");
    assert!(wire.contains("value=\"wire\" selected") && wire.contains("1 to 2 of 2"), "{wire}");
    let unknown = place.get("?limit=kindness");
    assert!(unknown.status == 400 && unknown.body.contains("`kindness` is not a limit"), "{}", unknown.body);
}

/// The filter takes what the list shows as the change, says what it asks for, and stays from page to page.
#[test]
fn the_list_is_filtered_by_changed_figures() {
    let place = TestView::new();
    let rates = std::iter::repeat_n([940_000_000, 920_000_000, 800_000_000], 30).flatten();
    for (number, rate) in (0_u64..).zip(rates) {
        place.keep(&stream_record(&format!("run-{number:02}"), number + 1, &[rate]));
    }
    let rule = "differs by more than 5 % from that of the run before: the latest earlier run of the same command that finished";
    assert!(!place.get("").body.contains(rule));
    // Every third falls by 13 %, every third but the first rises by 17.5 %, the others fall by 2 %.
    let changed = place.get("?changed=yes");
    assert!(changed.body.contains("1 to 50 of 59, newest first") && changed.body.contains(rule), "{}", changed.body);
    assert!(changed.body.contains("value=\"yes\" selected") && changed.body.contains("changed by more than 5 %"));
    assert_eq!(changed.body.matches("-13.0 % against").count() + changed.body.matches("+17.5 % against").count(), 50);
    assert!(!changed.body.contains("-2.1 % against"), "{}", changed.body);
    assert!(changed.body.contains("href=\"./?changed=yes&amp;page=2\" rel=\"next\""), "{}", changed.body);
    let last = place.get("?changed=yes&page=2");
    assert!(
        last.body.contains("51 to 59 of 59") && last.body.contains("id=run-02") && !last.body.contains("id=run-00\"")
    );
    assert!(place.get("?changed=yes&text=run-02").body.contains("1 to 1 of 1"), "with other filters");
    assert!(place.get("?changed=yes&text=nosuch").body.contains("No record fits."));
    assert_eq!(place.get("?changed=no").status, 400);
}

/// Commands and verdicts come first, then both distributions over one axis; means and medians are called so.
#[test]
fn what_changed_is_told_before_the_figures() {
    let place = TestView::new();
    place.keep(&stream_record("old", 1, &[940_000_000, 941_000_000, 942_000_000]));
    place.keep(&stream_record("new", 2, &[470_000_000, 471_000_000, 472_000_000]));
    let page = place.get("compare?with=old&with=new");
    let verdict = page.at("<li>tcp: cannot tell (low) before and after</li>");
    let (chart, table) = (page.at("Each run against the median before"), page.at(">before</th>"));
    assert!(page.at("linerate stream alpha beta") < verdict && verdict < chart && chart < table, "{}", page.body);
    assert!(page.body.contains("after, run 2: 471 Mbit/s, 50.1 % of the median before"), "{}", page.body);
    assert!(page.body.contains("before, run 2: 941 Mbit/s, 100.0 % of the median before"), "{}", page.body);
    assert!(page.body.contains("Before and after are medians of the runs; the change is that of their means."));
}

#[test]
fn a_run_is_watched_until_it_ends() {
    let place = TestView::new();
    let mut run = stream_record("run", 1, &[]);
    let mut live = place.store.begin(&run).expect("begin");
    live.trial(&place::trial(941_000_000), &RunSummary::default()).expect("trial");
    let page = place.get("record?id=run");
    assert!(page.body.contains("Under way") && page.body.contains("1 of 3"), "{}", page.body);
    assert!(page.body.contains("data-events=\"events?id=run\"") && page.body.contains("http-equiv=\"refresh\""));
    assert!(place.get("").body.contains("running"));

    let mut events = place.events("run");
    events.wait_for("live-progress", "1 of 3");
    live.trial(&place::trial(941_000_000), &RunSummary::default()).expect("trial");
    events.wait_for("live-progress", "2 of 3");
    assert!(place.get("record?id=run").body.contains("2 of 3"));
    run.caveats.push(Caveat::new(CaveatKind::Interrupted, Message::untranslated("the run ended early: interrupted")));
    live.end(&run, Ending::Interrupted).expect("end");
    events.wait_for("ended", "kept");
    let page = place.get("record?id=run");
    assert!(!page.body.contains("Under way") && page.body.contains("interrupted"), "{}", page.body);
    assert!(place.get("").body.contains("interrupted"));
    assert_eq!(place.get("events?id=nosuch").status, 404);
}

/// Also before its first trial is done, when the store does not know it yet.
#[test]
fn a_run_is_drawn_as_its_feed_tells_of_it() {
    let place = TestView::new();
    assert!(!place.get("").body.contains("data-events"), "nothing is under way, and nothing is waited for");
    let mut feed = place.tell("run");
    let list = place.get("");
    assert!(list.at("Runs under way") < list.at("record?id=run") && list.body.contains("data-events=\"events\""));
    let page = place.get("record?id=run");
    assert!(page.body.contains("linerate stream alpha beta") && page.body.contains("No trial is done yet."));
    assert!(!page.body.contains("<svg"), "there is nothing to draw yet");

    let (mut events, mut of_list) = (place.events("run"), place.list_events());
    for second in 0..3 {
        feed.tell(interval(0, second, 941e6 + second as f64 * 1e6));
        let rate = format!("{} Mbit/s", 941 + second);
        let now = events.wait_for("live-now", &rate);
        assert!(now.contains("3 retransmits") && now.contains("round-trip time 7 ms"), "{now}");
        assert!(
            now.contains("busiest thread 63 % of a core (host alpha)") && now.contains("warm-up") == (second == 0),
            "{now}"
        );
    }
    let chart = events.wait_for("live-over-time", "<svg");
    let page = place.get("record?id=run");
    assert!(page.body.contains(&chart) && page.body.contains("943 Mbit/s"), "a page shows what its events draw");
    assert!(of_list.wait_for("live-runs", "943 Mbit/s").contains("record?id=run"));
    assert!(place.get("?text=x").body.find("Runs under way").is_none(), "it fits no filter yet");

    let mut run = stream_record("run", 1, &[]);
    let mut live = place.store.begin(&run).expect("begin");
    live.trial(&place::trial(942_000_000), &RunSummary::default()).expect("trial");
    feed.tell(attempt(0, TrialState::Counted));
    events.wait_for("live-progress", "1 of 3");
    feed.tell(attempt(1, TrialState::Begins));
    feed.tell(interval(1, 0, 950e6));
    events.wait_for("live-now", "950 Mbit/s");
    run.trials.push(place::trial(942_000_000));
    linerate_method::replay(&mut run);
    live.end(&run, Ending::Finished).expect("end");
    drop(feed);
    assert_eq!(events.wait_for("ended", ""), "kept");
    assert_eq!(of_list.wait_for("ended", ""), "kept");
    let page = place.get("record?id=run");
    assert!(!page.body.contains("Under way") && page.body.contains("942 Mbit/s"), "{}", page.body);
    assert!(!place.get("").body.contains("Runs under way"));
}

#[test]
fn a_run_that_leaves_no_record_says_so_at_its_end() {
    let place = TestView::new();
    let feed = place.tell("run");
    let mut events = place.events("run");
    events.wait_for("live-progress", "No trial is done yet.");
    drop(feed);
    events.wait_for("live-progress", "no record is kept");
    assert_eq!(events.wait_for("ended", ""), "nothing");
    assert_eq!(place.get("record?id=run").status, 404);
}

#[test]
fn pages_that_follow_are_limited_and_make_room_when_they_are_closed() {
    let place = TestView::new();
    let _feed = place.tell("run");
    let mut followers: Vec<_> = (0..32).map(|_| place.events("run")).collect();
    let refused = place.get("events?id=run");
    assert_eq!(refused.status, 503);
    assert!(refused.body.contains("close some of them"), "{}", refused.body);
    assert_eq!(place.get("record?id=run").status, 200, "pages are shown all the same");
    drop(followers.pop());
    wait_until("there is room again", || {
        let mut again = place.events("run");
        again.is_open().then(|| again.wait_for("live-progress", "Under way"))
    });
}

/// The end of the program does not wait for browsers that watch.
#[test]
fn watchers_are_let_go_at_the_end() {
    let place = TestView::new();
    let _live = place.store.begin(&stream_record("run", 1, &[])).expect("begin");
    let _events = place.events("run");
    let start = Instant::now();
    place.end();
    assert!(start.elapsed() < Duration::from_secs(60), "it ends");
}

#[test]
fn what_a_store_holds_cannot_become_markup() {
    let place = TestView::new();
    let id = "<script>alert(1)</script>\"'&x=1#";
    let mut record = stream_record(id, 5, &[1_000_000, 1_000_000, 1_000_000]);
    record.command = vec!["linerate".into(), "stream".into(), "<img src=x onerror=alert(2)>\u{202e}".into()];
    record.results[0].name = "<b>name</b>".into();
    let Goal::Sweep(plan) = &mut record.plan.goal else { panic!("a sweep") };
    plan.cells[0].name = "<b>name</b>".into();
    record.trials.iter_mut().for_each(|trial| trial.trial.name = "<b>name</b>".into());
    place.keep(&record);
    let mut other = record.clone();
    other.id.0 = "</title><i>".into();
    place.keep(&other);
    let list = place.get("");
    let link = list.body.split("href=\"record?").nth(2).and_then(|rest| rest.split('"').next()).expect("a link");
    let opened = place.get(&format!("record?{}", link.replace("&amp;", "&")));
    assert_eq!(opened.status, 200, "the list's link leads to its record");
    let compare = "compare?with=%3Cscript%3Ealert%281%29%3C%2Fscript%3E%22%27%26x%3D1%23&with=%3C%2Ftitle%3E%3Ci%3E";
    let compared = place.get(compare);
    assert_eq!(compared.status, 200, "{}", compared.body);
    let typed = place.get("?text=%3Cscript%3E%22&kind=%3Ci%3E&from=%3Cu%3E");
    let unknown = place.get("record?id=%3Ci%3E");
    for page in [&list, &opened, &compared, &typed, &unknown] {
        // The record itself, at the end of a report, is data.
        let shown = page.body.split("id=\"record\"").next().expect("a beginning");
        assert!(!page.body.contains("<script>alert"));
        for broken in ["<script>alert", "<img src=x", "<b>name", "<i>", "<u>", "\u{202e}", "value=\"<", "text\"<"] {
            assert!(!shown.contains(broken), "{broken} in {shown}");
        }
    }
}

#[test]
fn who_has_no_key_is_told_nothing() {
    let place = TestView::new();
    place.keep(&stream_record("secret-name", 1, &[1_000_000]));
    let key = place.key();
    let wrong = format!("{}{}", &key[..31], if key.ends_with('0') { '1' } else { '0' });
    for path in ["/", "/record?id=latest", "/style.css", &format!("/{wrong}/"), &format!("/x/{key}/"), "//", "/%2e%2e/"]
    {
        let answer = place.get_path(path);
        assert_eq!(answer.status, 403, "{path}");
        assert!(!answer.body.contains("secret-name") && !answer.body.contains(&key), "{path}");
    }
    assert_eq!(place.get_path(&format!("/{key}/../{key}/x")).status, 404);
}

#[test]
fn pages_only_read_and_fetch_nothing_from_elsewhere() {
    let place = TestView::new();
    place.keep(&stream_record("one", 1, &[1_000_000, 1_000_000, 1_000_000]));
    for method in ["POST", "PUT", "DELETE", "PATCH"] {
        assert_eq!(place.ask(method, "record?id=one").status, 405, "{method}");
    }
    assert!(place.store.load("one").is_ok());
    for page in ["", "record?id=one", "compare?with=one", "style.css", "view.js", "nosuch"] {
        let answer = place.get(page);
        let policy = answer.header("content-security-policy").expect("a policy");
        assert!(policy.contains("default-src 'none'") && policy.contains("frame-ancestors 'none'"), "{policy}");
        assert_eq!(answer.header("referrer-policy"), Some("no-referrer"), "{page}");
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"), "{page}");
        assert_eq!(elsewhere(&answer), Vec::<&str>::new(), "{page}");
    }
}

/// What a page would fetch from elsewhere.
fn elsewhere(page: &Answer) -> Vec<&str> {
    let attributes = ["src=\"", "href=\"", "action=\"", "url("];
    let values = attributes.iter().flat_map(|name| page.body.split(name).skip(1));
    values.filter(|value| value.starts_with("http") || value.starts_with("//")).collect()
}

#[test]
fn broken_requests_do_no_harm() {
    let place = TestView::new();
    for request in ["\r\n\r\n", "GET\r\n\r\n", "GET / HTTP/9.9\r\n\r\n", "\0\u{1}\u{2}", &"A".repeat(100_000)] {
        place.send(request);
    }
    let many = place.get(&format!("?text={}", "a+".repeat(20_000)));
    assert!(many.status == 400 && many.body.contains("20,000 words"), "{}", many.status);
    assert_eq!(place.get("?text=%00%ff%fe").status, 200);
    assert_eq!(place.get("").status, 200);
}
