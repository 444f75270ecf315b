//! Flame graphs of a tool's run: where the CPUs spend their time, by call stack.
//!
//! perf samples the stacks of every CPU. They are written as folded stacks, which other tools read too, and drawn as SVG.

use super::counters::{Event, Perf};
use crate::process::{self, Running};
use anyhow::{Context, Result};
use nix::sys::signal::Signal;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// Samples per second and CPU. No divisor of the kernel's ticks.
const FREQUENCY: &str = "997";
/// Time limit of reading the samples.
const LIMIT: Duration = Duration::from_secs(120);
/// Time that perf has to write its last samples.
const GRACE: Duration = Duration::from_secs(20);
/// Name of the kernel's idle threads, which are left out.
const IDLE: &str = "swapper";

/// Width of the picture and height of a frame, in pixels.
const WIDTH: f64 = 1200.0;
const HEIGHT: usize = 16;
/// Narrowest frame that is drawn, and narrowest with a name, in pixels.
const NARROWEST: f64 = 0.3;
const NAMED: f64 = 35.0;
/// Width of a character, in pixels.
const CHARACTER: f64 = 6.5;

/// Samples by stack: the program and its frames, outermost first, joined by semicolons.
type Folded = BTreeMap<String, u64>;

/// Samples every CPU during a run. Writes `NAME.folded` and `NAME.svg` in `folder`.
pub(super) fn record<T>(perf: &Perf, folder: &Path, name: &str, run: impl FnOnce() -> Result<T>) -> Result<T> {
    std::fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;
    let samples = tempfile::NamedTempFile::new()?;
    let event = if perf.counts(Event::Cycles) { "cycles" } else { "cpu-clock" };
    let mut command = Command::new("perf");
    command.args(["record", "-q", "-a", "-g", "-e", event, "-F", FREQUENCY, "-o"]).arg(samples.path());
    let recording = Running::start(command)?;
    let result = run();
    recording.stop_within(Signal::SIGINT, GRACE)?;
    let result = result?;
    let mut command = Command::new("perf");
    command.args(["script", "-F", "comm,ip,sym", "-i"]).arg(samples.path());
    let stacks = fold(&process::run(command, LIMIT)?.stdout);
    anyhow::ensure!(!stacks.is_empty(), "perf took no samples");
    let mut text = String::new();
    for (stack, count) in &stacks {
        writeln!(text, "{stack} {count}")?;
    }
    let file = folder.join(format!("{name}.folded"));
    std::fs::write(&file, text).with_context(|| format!("writing {}", file.display()))?;
    let file = folder.join(format!("{name}.svg"));
    std::fs::write(&file, draw(name, &stacks)).with_context(|| format!("writing {}", file.display()))?;
    Ok(result)
}

/// Reads the output of `perf script -F comm,ip,sym`: for each sample the program's name, its frames from the innermost
/// on, and an empty line.
fn fold(text: &str) -> Folded {
    let mut folded = Folded::new();
    for sample in text.split("\n\n") {
        let mut lines = sample.lines().filter(|line| !line.trim().is_empty());
        let Some(program) = lines.next().map(str::trim) else { continue };
        if program == IDLE {
            continue;
        }
        let mut frames: Vec<String> = lines.filter_map(symbol).collect();
        frames.push(program.replace(';', ":"));
        frames.reverse();
        *folded.entry(frames.join(";")).or_default() += 1;
    }
    folded
}

/// Returns the function of a frame, which follows its address.
fn symbol(line: &str) -> Option<String> {
    let (_, name) = line.trim().split_once(' ')?;
    Some(name.trim().replace(';', ":"))
}

/// A function with the functions that it calls.
#[derive(Default)]
struct Frame<'a> {
    samples: u64,
    calls: BTreeMap<&'a str, Frame<'a>>,
}

impl<'a> Frame<'a> {
    fn of(stacks: &'a Folded) -> Self {
        let mut root = Self::default();
        for (stack, count) in stacks {
            root.samples += count;
            let mut frame = &mut root;
            for name in stack.split(';') {
                frame = frame.calls.entry(name).or_default();
                frame.samples += count;
            }
        }
        root
    }

    fn depth(&self) -> usize {
        1 + self.calls.values().map(Frame::depth).max().unwrap_or_default()
    }
}

/// Draws stacks as SVG: the width of a function is its share of the samples, and what it calls lies on top of it.
fn draw(name: &str, stacks: &Folded) -> String {
    let root = Frame::of(stacks);
    let height = root.depth() * HEIGHT;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" font-family=\"monospace\" \
         font-size=\"11\">\n"
    );
    draw_frame(&mut svg, name, &root, 0.0, height - HEIGHT, root.samples);
    svg + "</svg>\n"
}

fn draw_frame(svg: &mut String, name: &str, frame: &Frame<'_>, left: f64, top: usize, all: u64) {
    let width = frame.samples as f64 / all as f64 * WIDTH;
    if width < NARROWEST {
        return;
    }
    let share = frame.samples as f64 / all as f64 * 100.0;
    let label = escaped(name);
    // Neighbours differ in colour, and a function has the same one everywhere.
    let green = 80 + name.bytes().fold(0_u32, |sum, byte| sum.wrapping_mul(31).wrapping_add(u32::from(byte))) % 140;
    let _ = writeln!(
        svg,
        "<g><title>{label}: {} samples, {share:.2} %</title>\
         <rect x=\"{left:.1}\" y=\"{top}\" width=\"{width:.1}\" height=\"{HEIGHT}\" fill=\"rgb(230,{green},60)\" \
         stroke=\"white\" stroke-width=\"0.5\"/>",
        frame.samples
    );
    if width > NAMED {
        let fitting: String = name.chars().take((width / CHARACTER) as usize).collect();
        let _ = writeln!(svg, "<text x=\"{:.1}\" y=\"{}\">{}</text>", left + 2.0, top + HEIGHT - 4, escaped(&fitting));
    }
    svg.push_str("</g>\n");
    let mut left = left;
    for (name, call) in &frame.calls {
        draw_frame(svg, name, call, left, top.saturating_sub(HEIGHT), all);
        left += call.samples as f64 / all as f64 * WIDTH;
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// perf 6.1.
    const SCRIPT: &str = "linerate \n\tffffffff81c2f2a0 tcp_sendmsg\n\tffffffff81b0c3f0 sock_write_iter\n\
        \t           dc13a0 <engine::Sender as Send>::send\n\n\
        linerate \n\tffffffff81c2f2a0 tcp_sendmsg\n\tffffffff81b0c3f0 sock_write_iter\n\
        \t           dc13a0 <engine::Sender as Send>::send\n\n\
        swapper \n\tffffffff81e0a0f0 pv_native_safe_halt\n\n\
        opt cgu.00 \n\t               8 [unknown]\n\n";

    #[test]
    fn stacks_are_folded_from_the_outermost_frame() {
        let folded = fold(SCRIPT);
        let expected = Folded::from([
            ("linerate;<engine::Sender as Send>::send;sock_write_iter;tcp_sendmsg".to_owned(), 2),
            ("opt cgu.00;[unknown]".to_owned(), 1),
        ]);
        assert_eq!(folded, expected);
    }

    #[test]
    fn width_is_the_share_of_samples() {
        let svg = draw("tcp-1 linerate", &fold(SCRIPT));
        assert!(svg.contains("<title>tcp_sendmsg: 2 samples, 66.67 %</title><rect x=\"0.0\" y=\"0\" width=\"800.0\""));
        assert!(svg.contains("<title>&lt;engine::Sender as Send&gt;::send: 2 samples"), "{svg}");
        assert!(svg.contains("[unknown]: 1 samples, 33.33 %</title><rect x=\"800.0\""), "{svg}");
        assert_eq!(svg.matches("<g>").count(), svg.matches("</g>").count());
    }
}
