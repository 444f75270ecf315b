//! Log lines of a server about the tests, trials and requests of its clients.

use linerate_sys::clock;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// Longest line, in bytes.
const MAX_LINE: usize = 400;
/// Most lines that are written at once.
const BURST: u32 = 60;
/// Time in which one more line may be written, in nanoseconds.
const LINE_NS: u64 = 1_000_000_000;
/// Most bytes that are written within [`DAY_NS`].
const MAX_DAY: usize = 1 << 20;
const DAY_NS: u64 = 86_400 * 1_000_000_000;

/// Writer of lines about the requests of clients, on the calling thread.
///
/// Clients choose a part of the text and the number of lines. So each line stays one line whatever it contains, and
/// length, rate and sum are limited. Lines that are left out are counted, and the next written line reports their
/// number.
#[derive(Clone, Default)]
pub struct Report(Option<Arc<Shared>>);

struct Shared {
    write: Box<dyn Fn(&str) + Send + Sync>,
    allowance: Mutex<Allowance>,
}

impl Report {
    /// Creates a report that writes its lines by `write`. The default report writes nothing.
    pub fn new(write: impl Fn(&str) + Send + Sync + 'static) -> Self {
        let allowance = Mutex::new(Allowance::new(clock::now()));
        Self(Some(Arc::new(Shared { write: Box::new(write), allowance })))
    }

    /// Writes a line, unless too many were written lately.
    pub fn line(&self, text: &str) {
        let Some(shared) = &self.0 else { return };
        let line = one_line(text);
        let taken = shared.allowance.lock().unwrap_or_else(PoisonError::into_inner).take(line.len(), clock::now());
        match taken {
            Some(0) => (shared.write)(&line),
            Some(left_out) => {
                (shared.write)(&format!("{left_out} lines were left out: more came than are written"));
                (shared.write)(&line);
            }
            None => {}
        }
    }
}

impl fmt::Debug for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Report")
    }
}

/// Returns the text as one line of at most [`MAX_LINE`] bytes. Line breaks and other control characters are written as
/// `\n` and the like: they could make two lines of one, and the second look like one of this program's own.
fn one_line(text: &str) -> String {
    let mut line = String::new();
    for character in text.chars() {
        if line.len() >= MAX_LINE {
            line.truncate(line.floor_char_boundary(MAX_LINE));
            line.push('…');
            break;
        }
        match character {
            // Unicode's separators of lines and paragraphs break lines as well.
            '\u{2028}' | '\u{2029}' => line.extend(character.escape_unicode()),
            _ if character.is_control() => line.extend(character.escape_default()),
            _ => line.push(character),
        }
    }
    line
}

/// Allowance of lines and bytes.
struct Allowance {
    /// Lines that may be written at once, at `counted_at`.
    lines: u32,
    counted_at: u64,
    /// Bytes written since `day`.
    bytes: usize,
    day: u64,
    left_out: u64,
}

impl Allowance {
    fn new(now: u64) -> Self {
        Self { lines: BURST, counted_at: now, bytes: 0, day: now, left_out: 0 }
    }

    /// Reserves a line of `bytes` bytes. Returns the number of lines left out before it, or `None` if it is left out as
    /// well.
    fn take(&mut self, bytes: usize, now: u64) -> Option<u64> {
        let earned = now.saturating_sub(self.counted_at) / LINE_NS;
        self.counted_at += earned * LINE_NS;
        self.lines = self.lines.saturating_add(u32::try_from(earned).unwrap_or(u32::MAX)).min(BURST);
        if now.saturating_sub(self.day) >= DAY_NS {
            self.day = now;
            self.bytes = 0;
        }
        if self.lines == 0 || self.bytes + bytes > MAX_DAY {
            self.left_out += 1;
            return None;
        }
        self.lines -= 1;
        self.bytes += bytes;
        Some(std::mem::take(&mut self.left_out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(texts: &[&str]) -> Vec<String> {
        let lines = Arc::<Mutex<Vec<String>>>::default();
        let report = Report::new({
            let lines = Arc::clone(&lines);
            move |line| lines.lock().expect("no panic").push(line.to_owned())
        });
        texts.iter().for_each(|text| report.line(text));
        drop(report);
        Arc::into_inner(lines).expect("the last one").into_inner().expect("no panic")
    }

    #[test]
    fn foreign_text_cannot_forge_a_second_line() {
        for breaking in ['\n', '\r', '\u{b}', '\u{85}', '\u{2028}', '\u{2029}'] {
            let lines = written(&[&format!("eth0{breaking}linerate: 192.0.2.1 has paired")]);
            let [line] = &lines[..] else { panic!("one line") };
            assert!(!line.contains(breaking) && line.contains("\\"), "{line}");
        }
    }

    #[test]
    fn line_length_is_limited() {
        for text in ["x".repeat(200_000), "ö".repeat(100_000), "\n".repeat(100_000)] {
            let lines = written(&[&text]);
            assert!(lines[0].len() <= MAX_LINE + '…'.len_utf8() && lines[0].ends_with('…'), "{}", lines[0].len());
        }
    }

    #[test]
    fn rate_of_lines_is_limited_and_omitted_lines_are_counted() {
        let mut allowance = Allowance::new(0);
        let lines = (0..10_000).filter(|_| allowance.take(100, 0).is_some()).count();
        assert_eq!(lines, BURST as usize);
        assert_eq!(allowance.take(100, LINE_NS), Some(10_000 - u64::from(BURST)));
        assert_eq!(allowance.take(100, LINE_NS), None);
        assert_eq!(allowance.take(100, 2 * LINE_NS), Some(1));
    }

    #[test]
    fn bytes_per_day_are_limited() {
        let mut allowance = Allowance::new(0);
        let seconds = DAY_NS / LINE_NS;
        let bytes =
            (0..seconds).filter(|second| allowance.take(MAX_LINE, second * LINE_NS).is_some()).count() * MAX_LINE;
        assert!(bytes <= MAX_DAY && bytes + MAX_LINE > MAX_DAY, "{bytes}");
        assert!(allowance.take(MAX_LINE, DAY_NS).is_some());
    }
}
