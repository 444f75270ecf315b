//! Sessions sampled from their start to their end, and windows that open when they are ordered to.

use super::lifecycle::{failure, last};
use super::scripted::{Fault, Point, Scripted};
use super::*;
use linerate_control::AgentError;
use linerate_model::{FailureKind, Sampling, Series, SeriesQuantity, SessionProgress, Span, Warmup, Window};
use linerate_sys::clock;

const MEASURE: Nanos = Nanos::from_millis(300);
/// Long enough for what a test asks within the window.
const LONG: Nanos = Nanos::from_secs(3);
const AT_MOST: Nanos = Nanos::from_secs(10);

/// An engine whose warm-up ends when the load is steady.
fn steady(at_most: Nanos, measure: Nanos) -> Scripted {
    with(Window { warmup: Warmup::Steady { at_most, then: Nanos::default() }, measure })
}

fn with(window: Window) -> Scripted {
    let engine = Scripted::new();
    engine.change(|script| {
        script.demand.time = Some(window.longest());
        script.window = Some(window);
    });
    engine
}

fn fixed(warmup: Nanos, measure: Nanos) -> Window {
    Window { warmup: Warmup::Fixed(warmup), measure }
}

fn sampled(id: &str, period: Nanos, most_points: u32) -> Assignment {
    Assignment { sampling: Sampling { period, most_points }, ..assignment(id) }
}

fn open_in(delay: Nanos) -> Order {
    Order::Open { delay }
}

/// Opens a session and leads it to its start.
async fn started(client: &Client, assignment: &Assignment) -> SessionHandle {
    let mut session = client.open(assignment).await.expect("opened");
    until(&mut session, |stage| matches!(stage, Stage::Listening { .. })).await;
    client.order(session.id(), &connect_nothing()).await.expect("it listens");
    until(&mut session, |stage| matches!(stage, Stage::Ready(_))).await;
    // Long enough for the thread that watches to be there when the load begins, on a busy machine too.
    client.order(session.id(), &Order::Start { delay: Nanos::from_millis(500) }).await.expect("it is ready");
    session
}

/// Follows a session to its end, and returns what it told meanwhile.
async fn progress(client: &Client, session: &mut SessionHandle) -> Vec<SessionProgress> {
    let mut told = Vec::new();
    loop {
        match until(session, |_| true).await {
            Stage::Running(progress) => told.push(progress),
            Stage::Sent => client.order(session.id(), &Order::Drain).await.expect("it has sent"),
            Stage::Done => return told,
            _ => {}
        }
    }
}

/// Leads a session that opens its window by itself from the beginning to the end, and returns its series.
async fn series(client: &Client, assignment: &Assignment) -> Series {
    let mut session = started(client, assignment).await;
    progress(client, &mut session).await;
    client.counts(session.id()).await.expect("counts").series
}

async fn conflict(client: &Client, id: &SessionId, part: &str) {
    let error = client.order(id, &open_in(Nanos::default())).await.expect_err(part);
    assert!(matches!(error, AgentError::Rejected { .. }) && error.to_string().contains(part), "{error}");
}

/// Milliseconds that the engine counted in those points of the series that are `wanted`.
fn counted_ms(series: &Series, wanted: impl Fn(Span) -> bool) -> u64 {
    let operations = series.track(SeriesQuantity::Operations).expect("it counts milliseconds");
    series.spans().zip(operations).filter(|(span, _)| wanted(*span)).map(|(_, value)| value).sum()
}

/// No interval lies across an edge of the window, and they follow each other.
fn check_spans(series: &Series) {
    let window = (series.window.get() / 1_000) as i64;
    for span in series.spans() {
        let inside = span.from_us >= 0 && span.to_us <= window;
        assert!(inside || span.to_us <= 0, "{span:?} of a window of {window} us");
        assert!(span.to_us > span.from_us, "{span:?}");
    }
}

#[tokio::test]
async fn a_window_opens_when_it_is_ordered_to_and_the_series_tells_it_from_the_warm_up() {
    let agent = agent_with(steady(AT_MOST, LONG).boxed(), |_| ()).await;
    let client = connect(&agent).await;
    let mut session = started(&client, &sampled("steady", Nanos::from_millis(20), 1_200)).await;
    // Progress is what the end of the warm-up is judged by.
    let mut told = Vec::new();
    while told.len() < 6 {
        let Stage::Running(progress) = until(&mut session, |stage| matches!(stage, Stage::Running(_))).await else {
            unreachable!("it was waited for")
        };
        assert_eq!(progress.measured, None, "it is in the warm-up");
        told.push(progress.running);
    }
    assert!(told.is_sorted(), "{told:?}");
    // The first may be told before sampling begins, and that may begin late; with the second it has begun.
    let warmup = told[5] - told[1];
    let ordered = clock::now();
    client.order(session.id(), &open_in(Nanos::from_millis(30))).await.expect("it is in the warm-up");
    conflict(&client, session.id(), "has its window set already").await;
    let told = progress(&client, &mut session).await;
    let since_order_ms = (clock::now() - ordered) / 1_000_000;
    assert!(told.iter().all(|told| told.measured.is_none_or(|measured| measured <= LONG)), "{told:?}");
    conflict(&client, session.id(), "is done, so it cannot open its window").await;

    let counts = client.counts(session.id()).await.expect("counts");
    let series = &counts.series;
    check_spans(series);
    assert!(series.from_us <= -((warmup.get() / 1_000) as i64), "{} us of warm-up, {warmup} seen", series.from_us);
    let before = counted_ms(series, |span| span.to_us <= 0);
    let inside = counted_ms(series, |span| span.from_us >= 0);
    assert!(before >= warmup.get() / 1_000_000, "{before} ms counted in the warm-up of at least {warmup}");
    // The sample at either edge may come late, but what came before the order is warm-up.
    assert!(
        inside > 0 && inside <= since_order_ms,
        "{inside} ms counted in the window, {since_order_ms} ms after the order"
    );
    // The host is sampled with it: the agent's own connections are on loopback.
    let host = series.tracks_of(SeriesQuantity::InterfaceSentBytes).find(|track| track.subject == "lo");
    assert!(host.is_some_and(|track| track.values.len() == series.len()), "{:?}", series.tracks);
}

#[tokio::test]
async fn only_a_window_that_waits_for_it_can_be_ordered_open() {
    let engine = steady(AT_MOST, MEASURE);
    let agent = agent_with(engine.boxed(), |_| ()).await;
    let client = connect(&agent).await;
    let mut session = client.open(&assignment("early")).await.expect("opened");
    until(&mut session, |stage| matches!(stage, Stage::Listening { .. })).await;
    conflict(&client, session.id(), "waits for the order to connect, so it cannot open its window").await;
    client.order(session.id(), &connect_nothing()).await.expect("it listens");
    until(&mut session, |stage| matches!(stage, Stage::Ready(_))).await;
    conflict(&client, session.id(), "waits for the order to start, so it cannot open its window").await;
    client.order(session.id(), &START).await.expect("it is ready");
    until(&mut session, |stage| matches!(stage, Stage::Running(_))).await;
    let error = client.order(session.id(), &open_in(Nanos::from_secs(61))).await.expect_err("too late").to_string();
    assert!(error.contains("60 s from now at most"), "{error}");
    client.order(session.id(), &open_in(Nanos::default())).await.expect("it is still in the warm-up");
    progress(&client, &mut session).await;

    engine.change(|script| script.window = Some(fixed(Nanos::from_millis(100), LONG)));
    let mut session = started(&client, &assignment("fixed")).await;
    until(&mut session, |stage| matches!(stage, Stage::Running(_))).await;
    conflict(&client, session.id(), "has its window set already").await;
    progress(&client, &mut session).await;

    engine.change(|script| (script.window, script.fault) = (None, Some((Point::Running, Fault::Hold))));
    let mut session = started(&client, &assignment("without")).await;
    until(&mut session, |stage| matches!(stage, Stage::Running(_))).await;
    conflict(&client, session.id(), "has no window to open").await;
    client.close(session.id()).await.expect("closed");
}

/// An order that comes before the load begins opens the window with the load.
#[tokio::test]
async fn a_window_does_not_open_before_its_load_begins() {
    let agent = agent_with(steady(AT_MOST, MEASURE).boxed(), |_| ()).await;
    let client = connect(&agent).await;
    let mut session = client.open(&assignment("ahead")).await.expect("opened");
    until(&mut session, |stage| matches!(stage, Stage::Listening { .. })).await;
    client.order(session.id(), &connect_nothing()).await.expect("it listens");
    until(&mut session, |stage| matches!(stage, Stage::Ready(_))).await;
    client.order(session.id(), &Order::Start { delay: Nanos::from_secs(5) }).await.expect("it is ready");
    until(&mut session, |stage| matches!(stage, Stage::Running(_))).await;
    client.order(session.id(), &open_in(Nanos::default())).await.expect("it waits for it");
    progress(&client, &mut session).await;
    let series = client.counts(session.id()).await.expect("counts").series;
    assert_eq!(series.from_us, 0, "there is no warm-up");
    check_spans(&series);
    // Opened at the order, the window would be over before the load began.
    assert!(counted_ms(&series, |_| true) > 0, "{series:?}");
}

#[tokio::test]
async fn progress_counts_from_the_start_and_then_from_the_window_too() {
    let warmup = Nanos::from_millis(450);
    let agent = agent_with(with(fixed(warmup, MEASURE)).boxed(), |_| ()).await;
    let client = connect(&agent).await;
    let mut session = started(&client, &assignment("fixed")).await;
    let told = progress(&client, &mut session).await;
    // The first is told before the load begins, and the last when the window closes.
    assert!((2..=10).contains(&told.len()), "{told:?} in 750 ms");
    for told in &told {
        let measured = (told.running >= warmup).then(|| (told.running - warmup).min(MEASURE));
        assert_eq!(told.measured, measured, "{told:?}");
        assert!(told.meter.operations >= told.running.get() / 1_000_000, "{told:?}");
    }
    let rarely = told[1..]
        .windows(2)
        .all(|pair| pair[1].running - pair[0].running >= Nanos::from_millis(100) || pair[1].measured == Some(MEASURE));
    assert!(rarely, "{told:?} is too often");
}

#[tokio::test]
async fn a_series_keeps_to_its_most_points_and_loses_nothing() {
    let agent = agent_with(with(fixed(Nanos::from_millis(1_005), Nanos::from_secs(1))).boxed(), |_| ()).await;
    let client = connect(&agent).await;
    for most_points in [4, 20] {
        let series = series(&client, &sampled("short", Sampling::SHORTEST, most_points)).await;
        check_spans(&series);
        assert!((3..=most_points as usize).contains(&series.len()), "{} points of {most_points}", series.len());
        assert!(series.in_window().any(|inside| !inside), "the warm-up is told");
        let (length, counted) = (series.at_us[series.len() - 1] - series.from_us, counted_ms(&series, |_| true));
        // What one of four points holds would be 300 ms. The time of a sample and its count may be some apart.
        assert!((counted as i64 - length / 1_000).abs() <= 250, "{counted} ms counted in {length} us");
    }
}

#[tokio::test]
async fn samples_are_in_step_with_the_window() {
    let agent = agent_with(with(fixed(Nanos::from_millis(130), Nanos::from_millis(400))).boxed(), |_| ()).await;
    let client = connect(&agent).await;
    let series = series(&client, &sampled("step", Nanos::from_millis(100), 1_200)).await;
    check_spans(&series);
    // One of 130 ms and four of 100 ms. However late a sample comes on a busy machine, none is made up for.
    assert!((2..=5).contains(&series.len()), "{:?}", series.at_us);
}

#[tokio::test]
async fn a_period_longer_than_the_load_leaves_a_point_for_each_part() {
    let engine = with(fixed(Nanos::from_secs(1), MEASURE));
    let agent = agent_with(engine.boxed(), |_| ()).await;
    let client = connect(&agent).await;
    let series_of = async |id| series(&client, &sampled(id, Sampling::LONGEST, 1_200)).await;
    let both = series_of("both").await;
    assert_eq!((both.len(), both.at_us[0]), (2, 0), "{both:?}");
    assert_eq!(both.in_window().collect::<Vec<_>>(), [false, true]);
    for window in [Some(fixed(Nanos::default(), Nanos::from_secs(1))), None] {
        engine.change(|script| script.window = window);
        let all = series_of("all").await;
        assert_eq!((all.len(), all.from_us), (1, 0), "{all:?}");
        assert_eq!(all.in_window().collect::<Vec<_>>(), [true], "all of it is measured");
        assert!(all.window >= Nanos::from_millis(100), "{}", all.window);
    }
}

#[tokio::test]
async fn an_engine_that_takes_over_is_sampled_anew() {
    let engine = steady(AT_MOST, MEASURE);
    engine.change(|script| script.gives_way = true);
    let agent = agent_with(engine.boxed(), |_| ()).await;
    let client = connect(&agent).await;
    let mut session = started(&client, &sampled("second", Nanos::from_millis(20), 1_200)).await;
    until(&mut session, |stage| matches!(stage, Stage::Running(told) if told.running > Nanos::default())).await;
    // What was told may be of the first: the second is sampled before this has passed.
    client.order(session.id(), &open_in(Nanos::from_secs(1))).await.expect("it is in the warm-up");
    progress(&client, &mut session).await;
    let series = client.counts(session.id()).await.expect("counts").series;
    check_spans(&series);
    assert!(series.from_us < 0 && counted_ms(&series, |span| span.from_us >= 0) > 0, "{series:?}");
}

#[tokio::test]
async fn sampling_out_of_range_is_refused_over_the_wire() {
    let agent = agent_with(Scripted::new().boxed(), |_| ()).await;
    let client = connect(&agent).await;
    for (period, most_points, part) in [
        (Nanos::default(), 1_200, "sampled every 0 ns, and an agent takes samples every 10 ms to 10 s"),
        (Nanos::from_millis(9), 1_200, "10 ms to 10 s"),
        (Nanos::from_millis(10_001), 1_200, "10 ms to 10 s"),
        (Nanos::from_millis(100), 3, "keeps 4 to 1200"),
        (Nanos::from_millis(100), 1_201, "keeps 4 to 1200"),
    ] {
        let error = client.open(&sampled("beyond", period, most_points)).await.expect_err(part);
        assert!(matches!(error, AgentError::Rejected { .. }) && error.to_string().contains(part), "{error}");
    }
}

#[tokio::test]
async fn a_session_stopped_in_its_warm_up_leaves_no_counts() {
    let engine = steady(AT_MOST, MEASURE);
    let agent = agent_with(engine.boxed(), |_| ()).await;
    let client = connect(&agent).await;
    let mut session = started(&client, &assignment("stopped")).await;
    until(&mut session, |stage| matches!(stage, Stage::Running(told) if told.running > Nanos::default())).await;
    let id = session.id().clone();
    assert_eq!(client.close(&id).await.expect("closed"), Vec::<String>::new());
    assert_eq!(engine.under_way(), 0);
    assert_eq!(failure(last(session).await).kind, FailureKind::Stopped);
    for error in [
        client.counts(&id).await.expect_err("it was closed").to_string(),
        client.order(&id, &open_in(Nanos::default())).await.expect_err("it was closed").to_string(),
    ] {
        assert!(error.contains("no session `stopped`"), "{error}");
    }
}

#[tokio::test]
async fn a_window_that_nobody_opens_ends_the_session() {
    let engine = steady(Nanos::from_millis(200), MEASURE);
    let timeouts = Timeouts { unordered: Duration::from_secs(3), ..Timeouts::default() };
    let agent = agent_with(engine.boxed(), |options| options.timeouts = timeouts).await;
    let client = connect(&agent).await;
    let session = started(&client, &assignment("unopened")).await;
    let id = session.id().clone();
    let failure = failure(last(session).await);
    assert_eq!(failure.kind, FailureKind::Stopped);
    assert!(failure.message.contains("open its window for 3 s after the 200 ms"), "{failure:?}");
    assert_eq!(engine.under_way(), 0);
    conflict(&client, &id, "has failed").await;
}
