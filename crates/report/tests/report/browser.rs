//! The page in a real browser: its script runs, nothing complains, a point can be focused.

use crate::sample;
use linerate_report::Language;
use linerate_testsuite::report_page::opened;
use linerate_testsuite::server_test;

#[server_test(Program("chromium|chromium-browser|google-chrome"))]
fn the_script_runs_and_nothing_complains() {
    let (document, console) = opened(&linerate_report::html(Language::English, &sample::demonstration()));
    assert!(document.contains("data-ready=\"yes\""), "the script did not reach its end: {console:?}");
    assert!(document.contains("Download the record (JSON)"));
    assert_eq!(document.matches("<figure>").count(), 6);
    assert_eq!(console, Vec::<String>::new());
}

#[server_test(Program("chromium|chromium-browser|google-chrome"))]
fn a_focused_point_shows_its_figures_and_arrow_keys_go_on() {
    let probe = "<script>
        const point = document.querySelectorAll('svg .s0 .point')[0];
        point.focus();
        document.body.dataset.first = document.getElementById('tip').textContent;
        point.dispatchEvent(new KeyboardEvent('keydown', { key: 'ArrowRight' }));
        document.body.dataset.second = document.getElementById('tip').textContent;
        document.body.dataset.hidden = document.getElementById('tip').hidden;
    </script></body>";
    let page = linerate_report::html(Language::English, &sample::udp_sweep()).replace("</body>", probe);
    let (document, console) = opened(&page);
    for shown in [
        "data-first=\"udp 64: 277 Mbit/s payload",
        "data-second=\"udp 512: 549 Mbit/s payload",
        "data-hidden=\"false\"",
    ] {
        assert!(document.contains(shown), "{shown}: {console:?}");
    }
}

/// The page forbids itself to fetch; and a complaint would be seen, which the first test relies on.
#[server_test(Program("chromium|chromium-browser|google-chrome"))]
fn a_fetch_from_elsewhere_is_refused_and_seen() {
    let page = linerate_report::html(Language::English, &sample::udp_sweep())
        .replace("</body>", "<img src=\"file:///x.png\"></body>");
    let (_, console) = opened(&page);
    assert!(console.iter().any(|line| line.contains("Content Security Policy")), "{console:?}");
}

#[server_test(Program("chromium|chromium-browser|google-chrome"))]
fn a_ladder_is_drawn_and_nothing_complains() {
    let (document, console) = opened(&linerate_report::html(Language::English, &crate::ladder::record()));
    assert!(document.contains("data-ready=\"yes\""), "the script did not reach its end: {console:?}");
    // The ladder, its streams, and their runs.
    assert_eq!(document.matches("<figure>").count(), 3);
    assert_eq!(console, Vec::<String>::new());
}

#[server_test(Program("chromium|chromium-browser|google-chrome"))]
fn a_device_test_is_drawn_and_nothing_complains() {
    let (document, console) = opened(&linerate_report::html(Language::English, &crate::device::record()));
    assert!(document.contains("data-ready=\"yes\""), "the script did not reach its end: {console:?}");
    assert_eq!(document.matches("<figure>").count(), 6);
    assert_eq!(console, Vec::<String>::new());
}

#[server_test(Program("chromium|chromium-browser|google-chrome"))]
fn limits_are_drawn_and_nothing_complains() {
    let limits = linerate_report::limits::html(Language::English, &crate::limits::overview());
    let (document, console) = opened(&limits);
    assert!(document.contains("data-ready=\"yes\""), "the script did not reach its end: {console:?}");
    assert_eq!(document.matches("<figure>").count(), 1);
    assert_eq!(console, Vec::<String>::new());
}

#[server_test(Program("chromium|chromium-browser|google-chrome"))]
fn charts_over_time_are_drawn_and_each_line_says_what_it_reached() {
    let probe = "<script>
        const line = document.querySelector('svg.over-time .s1 .point');
        line.focus();
        document.body.dataset.line = document.getElementById('tip').textContent;
    </script></body>";
    for (name, record) in crate::over_time::all() {
        let page = linerate_report::html(Language::English, &record);
        let figures = page.matches("<figure>").count();
        let probe = if name == "over-time-stream" { probe } else { "</body>" };
        let (document, console) = opened(&page.replace("</body>", probe));
        assert!(document.contains("data-ready=\"yes\""), "{name}: the script did not reach its end: {console:?}");
        assert_eq!(document.matches("<figure>").count(), figures, "{name}");
        let said = "data-line=\"run 2: median 94.0 Mbit/s, lowest 75.0 Mbit/s";
        assert!(name != "over-time-stream" || document.contains(said), "{console:?}");
        assert_eq!(console, Vec::<String>::new(), "{name}");
    }
}

/// A cursor stands at the same moment in each chart of the result. Dragging and keys zoom all of them, and paper has the whole time.
#[server_test(Program("chromium|chromium-browser|google-chrome"))]
fn charts_over_time_have_one_cursor_and_zoom_together() {
    let probe = "<script>
        const said = document.body.dataset;
        const charts = [...document.querySelectorAll('.wide svg[data-time]')];
        const each = (what) => charts.map((chart) => what(chart)).join(' ');
        const [, , , left, right] = charts[0].dataset.time.split(' ').map(Number);
        const send = (type, part) => {
            const at = new DOMPoint(left + (right - left) * part, 60).matrixTransform(charts[1].getScreenCTM());
            charts[1].dispatchEvent(new PointerEvent(type, { clientX: at.x, clientY: at.y, pointerId: 1, bubbles: true }));
        };
        const cursors = () => each((chart) => chart.querySelector('.cursor').getAttribute('visibility'));
        const hidden = () => each((chart) => chart.querySelectorAll('.tick[visibility=hidden]').length);
        const shown = () => each((chart) => {
            const ticks = [...chart.querySelectorAll('.seconds .tick')].map((tick) => tick.textContent);
            return `${ticks[0]}..${ticks.at(-1)}`;
        });
        const press = (key, shiftKey) =>
            charts[2].querySelector('.point').dispatchEvent(new KeyboardEvent('keydown', { key, shiftKey, bubbles: true }));
        said.before = shown();
        said.hint = document.querySelector('p.zoom').hidden;
        send('pointermove', 0.5);
        said.cursors = cursors();
        said.hidden = hidden();
        said.moments = each((chart) => chart.querySelector('.moment').textContent.replace(' ', '_'));
        said.places = new Set(charts.map((chart) => Math.round(chart.querySelector('.cursor').getBoundingClientRect().x))).size;
        send('pointerleave', 0.5);
        said.left = cursors();
        said.back = hidden();
        send('pointerdown', 0.48);
        send('pointermove', 0.76);
        send('pointerup', 0.76);
        said.dragged = shown();
        said.moved = each((chart) => [...chart.querySelectorAll('.run, .reach, .area')].every((one) => one.hasAttribute('transform')));
        press('ArrowRight', true);
        said.panned = shown();
        press('-');
        said.out = shown();
        press('0');
        said.whole = shown();
        press('+');
        said.keyed = shown();
        dispatchEvent(new Event('beforeprint'));
        said.printed = shown();
        said.unmoved = each((chart) => chart.querySelector('.run, .area').hasAttribute('transform'));
    </script></body>";
    let page = linerate_report::html(Language::English, &crate::over_time::processors());
    let (document, console) = opened(&page.replace("</body>", probe));
    let of_each = |value: &str| [value; 4].join(" ");
    for (name, value) in [
        ("before", of_each("-0.2..1")),
        ("hint", "false".to_owned()),
        ("cursors", of_each("visible")),
        ("moments", of_each("0.40_s")),
        ("places", "1".to_owned()),
        ("hidden", of_each("1")),
        ("left", of_each("hidden")),
        ("back", of_each("0")),
        ("dragged", of_each("0.4..0.7")),
        ("moved", of_each("true")),
        ("panned", of_each("0.5..0.75")),
        ("out", of_each("0.3..0.8")),
        ("whole", of_each("-0.2..1")),
        ("keyed", of_each("0.3..0.8")),
        ("printed", of_each("-0.2..1")),
        ("unmoved", of_each("false")),
    ] {
        let shown = format!("data-{name}=\"{value}\"");
        let body = document.split("<body").nth(1).and_then(|body| body.split('>').next()).unwrap_or_default();
        assert!(document.contains(&shown), "{shown}: {body} {console:?}");
    }
    assert_eq!(console, Vec::<String>::new());
    // Without the script nothing stands there that does nothing.
    assert!(page.contains("<p class=\"zoom\" hidden>"));
}

#[server_test(Program("chromium|chromium-browser|google-chrome"))]
fn a_curve_and_rpc_are_drawn_and_nothing_complains() {
    for (record, figures) in [(crate::nfs::record(), 3), (crate::nfs::rpc(), 4)] {
        let (document, console) = opened(&linerate_report::html(Language::English, &record));
        assert!(document.contains("data-ready=\"yes\""), "the script did not reach its end: {console:?}");
        assert_eq!(document.matches("<figure>").count(), figures);
        assert_eq!(console, Vec::<String>::new());
    }
}

#[server_test(Program("chromium|chromium-browser|google-chrome"))]
fn a_page_of_a_thousand_results_opens_and_has_its_figures_to_download() {
    let (document, console) = opened(&linerate_report::html(Language::English, &crate::large::record(1_000)));
    assert!(document.contains("data-ready=\"yes\""), "the script did not reach its end: {console:?}");
    assert!(document.contains("Download the figures (CSV)") && document.contains(".csv\""));
    assert_eq!(console, Vec::<String>::new());
}
