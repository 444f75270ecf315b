//! Draws the state of a run on a terminal of any size.

use super::state::{Point, State, TrialSoFar};
use linerate_model::{HostName, TaskKind, Transport};
use linerate_report::{Style as TextStyle, live, said};
use linerate_units::{BitRate, Nanos, OpRate, Ratio, grouped};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Paragraph, Sparkline, SparklineBar};

/// Below this many columns or rows there is no room for frames.
const NARROWEST: u16 = 40;
const LOWEST: u16 = 12;
/// Rows of the border of a panel.
const BORDER: u16 = 2;
/// Columns of the bar that shows how far the run is.
const BAR: usize = 24;
/// A core this busy is likely to be the limit, percent.
const BUSY: u8 = 90;
/// What stands where nothing is known.
const UNKNOWN: &str = "\u{2013}";

const DIM: Style = Style::new().fg(Color::DarkGray);
const STRONG: Style = Style::new().add_modifier(Modifier::BOLD);
const ALARM: Style = Style::new().fg(Color::Red);
const RATE: Style = Style::new().fg(Color::Cyan);
const LATENCY: Style = Style::new().fg(Color::Yellow);

/// Draws `state`, `running` after the run began. Results stand in lines of `text`'s look.
pub(super) fn draw(frame: &mut Frame<'_>, state: &State, running: Nanos, text: &TextStyle) {
    let area = frame.area();
    if area.width < NARROWEST || area.height < LOWEST {
        return small(frame, state, running);
    }
    let heights = Heights::of(area.height, state);
    let rows = [1, 1, heights.rate, heights.latency, heights.hosts, heights.results, 1].map(Constraint::Length);
    let [head, progress, rate, latency, hosts, results, foot] = Layout::vertical(rows).areas(area);
    frame.render_widget(Paragraph::new(title(state)).style(STRONG), head);
    frame.render_widget(Paragraph::new(progress_line(state, running)), progress);
    frame.render_widget(rate_panel(state, rate), rate);
    if heights.latency > 0 {
        frame.render_widget(latency_panel(state, latency), latency);
    }
    let cpu_title = said!(state.language, "tui-cpu", "CPU, busiest thread");
    let loss_title = said!(state.language, "tui-loss", "Loss and retransmits");
    let [cpu, loss] = Layout::horizontal([Constraint::Fill(1), Constraint::Fill(1)]).areas(hosts);
    frame.render_widget(Paragraph::new(cpu_lines(state, cpu)).block(panel(&cpu_title)), cpu);
    frame.render_widget(Paragraph::new(loss_lines(state)).block(panel(&loss_title)), loss);
    frame.render_widget(results_panel(state, results, text), results);
    frame.render_widget(Paragraph::new(foot_line(state)), foot);
}

/// Rows of each panel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Heights {
    rate: u16,
    latency: u16,
    hosts: u16,
    results: u16,
}

impl Heights {
    /// Shares out a terminal of `height` rows. The course of the rate has what the others do not need.
    fn of(height: u16, state: &State) -> Self {
        const AROUND: u16 = 3;
        let left = height.saturating_sub(AROUND);
        let rows = |count: usize, most: u16| u16::try_from(count).unwrap_or(u16::MAX).clamp(1, most.max(1)) + BORDER;
        let hosts = rows(state.hosts.len().max(loss_lines(state).len()), left / 5);
        let results = rows(state.results.len(), (left / 4).saturating_sub(BORDER));
        let left = left.saturating_sub(hosts + results);
        // A terminal too low for both shows the rate alone.
        let latency = if has_latency(state) && left >= 8 { left * 2 / 5 } else { 0 };
        Self { rate: left - latency, latency, hosts, results }
    }
}

/// A terminal without room for panels: the most important lines, and the course of the rate below them.
fn small(frame: &mut Frame<'_>, state: &State, running: Nanos) {
    let area = frame.area();
    let mut lines = vec![title(state), progress_line_in(state, running, 0)];
    if let Some(trial) = &state.trial {
        lines.push(trial.latest.as_ref().map_or_else(String::new, |_| current_rate(state, trial)));
        lines.extend(current_latency(trial));
    }
    let text = u16::try_from(lines.len()).unwrap_or(u16::MAX).min(area.height);
    let [above, below] = Layout::vertical([Constraint::Length(text), Constraint::Fill(1)]).areas(area);
    frame.render_widget(Paragraph::new(lines.join("\n")), above);
    frame.render_widget(course(state, below.width, |point| point.rate.map(|rate| rate as u64)).style(RATE), below);
}

/// The trial that runs, and which run of it.
fn title(state: &State) -> String {
    let Some(trial) = &state.trial else {
        return said!(state.language, "tui-preparing", "preparing the first trial");
    };
    let repeats = match state.repeats() {
        Some(repeats) => {
            said!(state.language, "tui-run-of", "run {run} of {runs}", run = trial.repeat, runs = repeats)
        }
        None => said!(state.language, "tui-run", "run {run}", run = trial.repeat),
    };
    format!("{}  {repeats}", trial.name)
}

fn progress_line(state: &State, running: Nanos) -> String {
    progress_line_in(state, running, BAR)
}

/// How far the run is, with a bar of `columns`; what is known so far where the number of trials is not.
fn progress_line_in(state: &State, running: Nanos, columns: usize) -> String {
    let mut parts = Vec::new();
    if let Some(share) = state.share_done() {
        if columns > 0 {
            parts.push(bar(share, columns));
        }
        parts.push(format!("{:>3.0} %", share * 100.0));
    }
    parts.push(clock(running));
    parts.extend(state.progress.known.as_ref().map(|known| state.language.message(known)));
    parts.join("  ")
}

/// `1:05`, or `1:00:05`.
fn clock(time: Nanos) -> String {
    let seconds = time.get() / 1_000_000_000;
    let (hours, minutes, seconds) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    if hours > 0 { format!("{hours}:{minutes:02}:{seconds:02}") } else { format!("{minutes}:{seconds:02}") }
}

/// A bar of `columns` of which `share` is filled.
fn bar(share: f64, columns: usize) -> String {
    let filled = ((share.clamp(0.0, 1.0) * columns as f64).round() as usize).min(columns);
    format!("{}{}", "\u{2588}".repeat(filled), "\u{2591}".repeat(columns - filled))
}

fn panel(title: &str) -> Block<'static> {
    Block::bordered().border_style(DIM).title(Span::styled(format!(" {title} "), STRONG))
}

/// Formats the highest visible value of a panel.
fn highest(state: &State, value: &str) -> Line<'static> {
    let text = said!(state.language, "tui-highest", "highest {value}", value = value);
    Line::from(format!(" {text} ")).right_aligned()
}

fn rate_panel(state: &State, area: Rect) -> Sparkline<'_> {
    let mut block = panel(&rate_title(state));
    if let Some(highest) = visible(state, area.width).filter_map(|point| point.rate).reduce(f64::max) {
        block = block.title(self::highest(state, &rate_text(state, highest)));
    }
    course(state, area.width.saturating_sub(BORDER), |point| point.rate.map(|rate| rate as u64))
        .block(block)
        .style(RATE)
}

fn rate_title(state: &State) -> String {
    let lang = state.language;
    let Some(trial) = &state.trial else { return said!(lang, "tui-rate", "Rate") };
    let title = lang.text(live(trial.task).panel);
    let Some(latest) = &trial.latest else { return title };
    let rate = format!("{title} {}", current_rate(state, trial));
    match trial.mean() {
        Some(mean) => {
            let mean = said!(lang, "tui-window-so-far", "window so far {mean}", mean = rate_text(state, mean));
            format!("{rate}  {mean}")
        }
        None if latest.warmup => format!("{rate}  {}", said!(lang, "tui-warm-up", "warm-up")),
        None => rate,
    }
}

fn current_rate(state: &State, trial: &TrialSoFar) -> String {
    let rate = trial.latest.as_ref().map(|latest| trial.rate(latest));
    rate.map_or_else(|| UNKNOWN.to_owned(), |rate| rate_text(state, rate))
}

fn rate_text(state: &State, rate: f64) -> String {
    let whole = rate.round() as u64;
    if state.trial.as_ref().is_none_or(TrialSoFar::counts_bytes) {
        BitRate::per_second(whole).to_string()
    } else {
        OpRate::per_second(whole).to_string()
    }
}

fn latency_panel(state: &State, area: Rect) -> Sparkline<'_> {
    let now = state.trial.as_ref().and_then(current_latency).unwrap_or_default();
    let title = said!(state.language, "tui-latency", "Latency");
    let mut block = panel(&format!("{title} {now}"));
    if let Some(highest) = visible(state, area.width).filter_map(|point| point.latency).max() {
        block = block.title(self::highest(state, &highest.to_string()));
    }
    course(state, area.width.saturating_sub(BORDER), |point| point.latency.map(Nanos::get)).block(block).style(LATENCY)
}

fn has_latency(state: &State) -> bool {
    state.points.iter().any(|point| point.latency.is_some())
}

/// Latency in the latest interval; none where none is measured.
fn current_latency(trial: &TrialSoFar) -> Option<String> {
    let latest = trial.latest.as_ref()?;
    match (latest.p50, latest.p99, latest.srtt) {
        (Some(p50), Some(p99), _) => Some(format!("p99 {p99}  p50 {p50}")),
        (.., Some(srtt)) => Some(format!("srtt {srtt}")),
        _ => None,
    }
}

/// The points that `columns` have room for.
fn visible(state: &State, columns: u16) -> impl Iterator<Item = &Point> {
    state.points.iter().skip(state.points.len().saturating_sub(usize::from(columns)))
}

/// The course of one quantity; warm-up is dim, and attempts are set apart by a gap.
fn course(state: &State, columns: u16, quantity: impl Fn(&Point) -> Option<u64>) -> Sparkline<'static> {
    let bars = visible(state, columns).map(|point| {
        let bar = SparklineBar::from(quantity(point));
        if point.warmup { bar.style(DIM) } else { bar }
    });
    Sparkline::default().data(bars.collect::<Vec<_>>()).absent_value_symbol(" ")
}

/// A line for each host: its name, and how busy the busiest of the test's threads is.
fn cpu_lines(state: &State, area: Rect) -> Vec<Line<'static>> {
    let width = usize::from(area.width.saturating_sub(BORDER));
    let longest = state.hosts.iter().map(|(host, _)| host.0.chars().count()).max().unwrap_or(0).min(width / 2);
    let columns = width.saturating_sub(longest + " 100 % ".len());
    let line = |(host, busiest): &(HostName, Option<u8>)| {
        let name: String = host.0.chars().take(longest).collect();
        match busiest {
            Some(percent) => {
                let text = format!("{name:<longest$} {} {percent:>3} %", bar(f64::from(*percent) / 100.0, columns));
                Line::styled(text, if *percent >= BUSY { ALARM } else { Style::new() })
            }
            None => Line::raw(format!("{name:<longest$} {UNKNOWN}")),
        }
    };
    state.hosts.iter().map(line).collect()
}

/// What was lost or retransmitted in this attempt, and by place in the runs before it.
fn loss_lines(state: &State) -> Vec<Line<'static>> {
    let lang = state.language;
    let Some(trial) = &state.trial else { return Vec::new() };
    let line = |name: &str, count: u64| {
        let style = if count > 0 { ALARM } else { Style::new() };
        Line::styled(format!("{name} {}", grouped(count)), style)
    };
    let mut lines = Vec::new();
    match (trial.task, trial.transport) {
        (TaskKind::Stream, Some(Transport::Udp)) => {
            let name = said!(lang, "tui-lost", "datagrams lost in this run");
            lines.push(line(&name, trial.lost));
        }
        (TaskKind::Stream | TaskKind::Transact, Some(Transport::Tcp)) | (TaskKind::Rpc | TaskKind::Nfs, Some(_)) => {
            let name = said!(lang, "tui-retransmits", "retransmits in this run");
            lines.push(line(&name, trial.retransmits));
        }
        _ => lines.push(Line::raw(UNKNOWN)),
    }
    if let Some(loss) = state.loss_before() {
        let share = Ratio { part: loss.lost, of: loss.of };
        lines.push(Line::raw(said!(
            lang,
            "tui-lost-before",
            "runs before: {lost} of {sent} ({share})",
            lost = loss.lost,
            sent = loss.of,
            share = share.to_string()
        )));
        let places = loss.places.named().into_iter().filter(|(_, count)| *count > 0);
        lines.extend(places.map(|(place, count)| line(&format!("  {}", lang.text(place)), count)));
    }
    lines
}

fn results_panel(state: &State, area: Rect, text: &TextStyle) -> Paragraph<'static> {
    let all = state.results.len();
    let rows = usize::from(area.height.saturating_sub(BORDER));
    let look = TextStyle { width: usize::from(area.width.saturating_sub(BORDER)), colour: false, ..*text };
    // The results of trials that run now stand last.
    let shown: Vec<Line<'_>> =
        state.results.iter().skip(all.saturating_sub(rows)).map(|line| Line::raw(line.text(&look))).collect();
    let title = if all > rows {
        said!(state.language, "tui-last-results", "Results so far: last {shown} of {all}", shown = rows, all = all)
    } else {
        said!(state.language, "tui-results", "Results so far")
    };
    let block = panel(&title);
    if shown.is_empty() {
        let text = said!(state.language, "tui-no-result", "known when the first run has ended");
        return Paragraph::new(format!("  {text}")).style(DIM).block(block);
    }
    Paragraph::new(shown).block(block)
}

fn foot_line(state: &State) -> Line<'static> {
    if state.stopping {
        let text = said!(state.language, "tui-stopping", "stopping: what was measured is kept; Ctrl-C stops at once");
        Line::styled(text, ALARM)
    } else if state.notice.is_empty() {
        let text = said!(state.language, "tui-keys", "q, Esc or Ctrl-C: stop, and print what was measured");
        Line::styled(text, DIM)
    } else {
        Line::raw(state.notice.clone())
    }
}
