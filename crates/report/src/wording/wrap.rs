//! Text in a width of columns.

use crate::figures;
use unicode_linebreak::linebreaks;
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// Returns the spaces that `text` lacks of a width.
pub(crate) fn spaces(width: usize, text: &str) -> impl Iterator<Item = char> {
    std::iter::repeat_n(' ', width.saturating_sub(text.width()))
}

/// `text` in exactly `width` columns: cut if it is longer, else at their right or left end.
pub(crate) fn cell(text: &str, width: usize, right: bool) -> String {
    let text = cut(text, width);
    let room: String = spaces(width, &text).collect();
    if right { room + &text } else { text + &room }
}

/// `text` in at most `width` columns.
pub(crate) fn cut(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut used = 0;
    let fits = |c: &char| {
        used += c.width().unwrap_or(0);
        used < width
    };
    text.chars().take_while(fits).chain(['\u{2026}']).collect()
}

/// `text` in lines of at most `width` columns. They are broken between words, and within those where a language may be (UAX
/// 14), but not between a number and its unit; what is longer than a line is broken in itself.
pub(crate) fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in figures::words(text) {
        let mut space = " ";
        let mut start = 0;
        for (end, _) in linebreaks(&word) {
            let piece = &word[start..end];
            // Latin words, which hold no such place, are whole; a path is broken only where it must be.
            if end < word.len() && word[..end].ends_with(|last: char| last.is_ascii()) {
                continue;
            }
            start = end;
            let line = lines.last_mut().expect("there is a line");
            if line.is_empty() || line.width() + space.width() + piece.width() > width {
                if !line.is_empty() {
                    lines.push(String::new());
                }
                push_pieces(&mut lines, piece, width);
            } else {
                line.push_str(space);
                line.push_str(piece);
            }
            space = "";
        }
    }
    lines
}

/// Puts `piece` on the last line, which is empty, and on as many more as it needs.
fn push_pieces(lines: &mut Vec<String>, piece: &str, width: usize) {
    for c in piece.chars() {
        let line = lines.last_mut().expect("there is a line");
        if line.width() + c.width().unwrap_or(0) > width {
            lines.push(c.to_string());
        } else {
            line.push(c);
        }
    }
}
