//! Text as a row of words: that of a Rust file apart by identifiers and by comments and strings.

/// One word, or the break between two sentences, table cells or identifiers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Word {
    /// In lower case, except in [`Text::types`]; empty for a break.
    pub(super) word: String,
    /// Counted from 1; 0 in a file's name.
    pub(super) line: usize,
}

impl Word {
    pub(super) fn is_break(&self) -> bool {
        self.word.is_empty()
    }
}

/// A Rust file's words.
#[derive(Debug, Default)]
pub(super) struct Text {
    /// The words of each identifier, with a break behind each identifier.
    pub(super) code: Vec<Word>,
    /// The words of comments and strings. Comments on successive lines are one text.
    pub(super) text: Vec<Word>,
    /// Each identifier as it is written, with a break behind each.
    pub(super) types: Vec<Word>,
}

/// Returns the words of a file's name, without its extension.
pub(super) fn read_name(name: &str) -> Vec<Word> {
    let mut words = Vec::new();
    push_words(&mut words, name.split('.').next().unwrap_or(name), 0);
    words
}

/// Returns the words of a text that is no program.
pub(super) fn read_plain(text: &str) -> Vec<Word> {
    let mut words = Vec::new();
    push_words(&mut words, text, 1);
    words
}

/// Reads a Rust file. One that is not well-formed is read as far as it goes: the compiler complains of it elsewhere.
pub(super) fn read_rust(source: &str) -> Text {
    let mut reader = Reader { rest: source, line: 1, read: Text::default() };
    while !reader.rest.is_empty() {
        reader.step();
    }
    reader.read
}

/// Appends the words of `text`, which begins on `line`.
fn push_words(words: &mut Vec<Word>, text: &str, mut line: usize) {
    let mut word = String::new();
    let mut previous = ' ';
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        let in_word = letter.is_alphanumeric() || letter == '%';
        // A word within an identifier begins at an upper-case letter: `FrameHalf`, `XDPEngine`.
        let hump = letter.is_uppercase()
            && (previous.is_lowercase()
                || (previous.is_uppercase() && letters.peek().is_some_and(|next| next.is_lowercase())));
        if (!in_word || hump) && !word.is_empty() {
            words.push(Word { word: std::mem::take(&mut word), line });
        }
        if in_word {
            word.extend(letter.to_lowercase());
        } else if is_break(letter) {
            words.push(Word { word: String::new(), line });
        }
        if letter == '\n' {
            line += 1;
        }
        previous = letter;
    }
    if !word.is_empty() {
        words.push(Word { word, line });
    }
}

/// Signs that end a phrase. White space, quotes, emphasis, hyphens and underscores do not.
fn is_break(letter: char) -> bool {
    ".,;:!?()[]{}|=<>".contains(letter)
}

/// A Rust file while it is read.
struct Reader<'a> {
    rest: &'a str,
    line: usize,
    read: Text,
}

impl Reader<'_> {
    /// Reads a comment, a literal, an identifier or a sign.
    fn step(&mut self) {
        let rest = self.rest;
        if rest.starts_with("//") {
            let content = rest.trim_start_matches('/').trim_start_matches('!');
            let end = content.find('\n').unwrap_or(content.len());
            // The line's end is white space between this comment and the next.
            push_words(&mut self.read.text, &content[..end], self.line);
            self.skip(rest.len() - content.len() + end);
        } else if rest.starts_with("/*") {
            let end = block_comment_end(rest);
            push_words(&mut self.read.text, &rest[..end], self.line);
            self.skip(end);
        } else if let Some(hashes) = raw_string(rest) {
            let start = rest.find('"').map_or(rest.len(), |quote| quote + 1);
            let closing = format!("\"{}", "#".repeat(hashes));
            let end = rest[start..].find(&closing).map_or(rest.len(), |end| start + end);
            self.string(start, end, (end + closing.len()).min(rest.len()));
        } else if rest.starts_with('"') {
            let end = string_end(rest);
            self.string(1, end, (end + 1).min(rest.len()));
        } else if rest.starts_with('\'') {
            let end = character_end(rest);
            self.skip(end);
        } else {
            self.word_or_sign();
        }
    }

    /// Takes the content of a string literal, which ends at `behind`, into the text.
    fn string(&mut self, start: usize, end: usize, behind: usize) {
        let content = self.rest[start..end].replace("\\n", ". ").replace('\\', " ");
        self.end_of_text();
        push_words(&mut self.read.text, &content, self.line);
        self.end_of_text();
        self.skip(behind);
    }

    fn word_or_sign(&mut self) {
        let rest = self.rest;
        let is_part = |letter: char| letter.is_alphanumeric() || letter == '_';
        let end = rest.find(|letter| !is_part(letter)).unwrap_or(rest.len());
        if end > 0 {
            let identifier = &rest[..end];
            push_words(&mut self.read.code, identifier, self.line);
            self.read.code.push(Word { word: String::new(), line: self.line });
            self.read.types.push(Word { word: identifier.to_owned(), line: self.line });
            self.read.types.push(Word { word: String::new(), line: self.line });
            self.end_of_text();
            self.skip(end);
        } else if let Some(sign) = rest.chars().next() {
            if !sign.is_whitespace() {
                self.end_of_text();
            }
            self.skip(sign.len_utf8());
        }
    }

    /// Code stands between two comments or strings: no phrase goes across it.
    fn end_of_text(&mut self) {
        if self.read.text.last().is_some_and(|last| !last.is_break()) {
            self.read.text.push(Word { word: String::new(), line: self.line });
        }
    }

    fn skip(&mut self, bytes: usize) {
        self.line += self.rest[..bytes].matches('\n').count();
        self.rest = &self.rest[bytes..];
    }
}

/// Returns the number of `#` of a raw string (`r"`, `br##"`, `cr#"`), if one begins here.
fn raw_string(rest: &str) -> Option<usize> {
    let behind = ["r", "br", "cr"].iter().find_map(|prefix| rest.strip_prefix(prefix))?;
    let hashes = behind.len() - behind.trim_start_matches('#').len();
    behind[hashes..].starts_with('"').then_some(hashes)
}

/// Returns the index of the quote that closes the string at the start.
fn string_end(rest: &str) -> usize {
    let mut escaped = false;
    for (at, letter) in rest.char_indices().skip(1) {
        match letter {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at,
            _ => {}
        }
    }
    rest.len()
}

/// Returns the index behind the character literal at the start, or behind the quote of a lifetime.
fn character_end(rest: &str) -> usize {
    let mut letters = rest.char_indices().skip(1);
    match letters.next() {
        Some((_, '\\')) => {
            letters.next();
            letters.find(|&(_, letter)| letter == '\'').map_or(rest.len(), |(at, _)| at + 1)
        }
        Some(_) => match letters.next() {
            Some((at, '\'')) => at + 1,
            _ => 1,
        },
        None => rest.len(),
    }
}

/// Returns the index behind the block comment at the start; such comments nest.
fn block_comment_end(rest: &str) -> usize {
    let mut depth = 0_usize;
    let mut at = 0;
    while at < rest.len() {
        if rest[at..].starts_with("/*") {
            depth += 1;
            at += 2;
        } else if rest[at..].starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += rest[at..].chars().next().map_or(1, char::len_utf8);
        }
    }
    rest.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn joined(words: &[Word]) -> String {
        words.iter().map(|word| if word.is_break() { "/" } else { &word.word }).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn code_and_text_are_told_apart() {
        for (source, code, text) in [
            ("fn f() { // no more\n}", "fn / f /", "no more /"),
            ("let s = \"// no \\\" comment\"; x", "let / s / x /", "no comment /"),
            ("r#\"a \" b\"# c", "c /", "a b /"),
            ("b\"x\" y", "b / y /", "x /"),
            ("f::<'a>('\"', '\\'', '\\u{1F}', x)", "f / a / x /", ""),
            ("/* a /* b */ c */ d", "d /", "a b c /"),
            ("\"one\\ntwo\"", "", "one / two /"),
            ("/// A b\n/// c.\nx", "x /", "a b c /"),
            ("let r = 1;", "let / r / 1 /", ""),
        ] {
            let read = read_rust(source);
            assert_eq!((joined(&read.code).as_str(), joined(&read.text).as_str()), (code, text), "{source}");
        }
    }

    #[test]
    fn identifiers_are_split_at_humps_and_underscores() {
        assert_eq!(joined(&read_name("frame_half.rs")), "frame half");
        assert_eq!(joined(&read_plain("XDPEngine HalfSpec p50 MAX_RATE")), "xdp engine half spec p50 max rate");
    }

    #[test]
    fn lines_are_counted_through_strings_and_comments() {
        let read = read_rust("/* a\nb */\nlet x = \"c\n d\";\n// e\ny");
        let lines: Vec<_> = read.text.iter().filter(|word| !word.is_break()).map(|word| word.line).collect();
        assert_eq!(lines, [1, 2, 3, 4, 5]);
        assert_eq!(read.types.iter().rev().nth(1).map(|word| word.line), Some(6));
    }

    #[test]
    fn source_that_breaks_off_is_read_to_its_end() {
        for source in ["\"a", "/* a", "'", "'\\", "r#\"a", "// a", "r\"é"] {
            read_rust(source);
        }
    }
}
