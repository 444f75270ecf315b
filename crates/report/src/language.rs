//! The languages of reports. The English of a text stands where it is used; its translations are in `locales/*.ftl` (Project Fluent), by key.
//!
//! Numbers and units are written the same in every language, and so are CSV and JSON.

use fluent_bundle::concurrent::FluentBundle;
use fluent_bundle::{FluentArgs, FluentResource, FluentValue};
use linerate_model::{DelayGrade, Medium, Message, MessagePart, MessageValue, RecordId, Text, Transport};
use linerate_units::{BitRate, ByteCount, Nanos, grouped};
use std::fmt;
use std::str::FromStr;
use std::sync::LazyLock;
use unic_langid::LanguageIdentifier;

const JAPANESE: &str = include_str!("../locales/ja.ftl");

/// A language that reports come in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Language {
    /// English, where nothing else is asked for.
    #[default]
    English,
    /// Japanese.
    Japanese,
}

/// Name of a language that no report comes in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownLanguage(String);

impl fmt::Display for UnknownLanguage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "there are no reports in `{}`; give en or ja", self.0)
    }
}

impl std::error::Error for UnknownLanguage {}

impl FromStr for Language {
    type Err = UnknownLanguage;

    /// By its tag: `en`, `ja`.
    fn from_str(tag: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|language| language.tag() == tag).ok_or_else(|| UnknownLanguage(tag.to_owned()))
    }
}

impl Language {
    /// All languages.
    pub const ALL: [Self; 2] = [Self::English, Self::Japanese];

    /// Returns the tag (BCP 47), which is also its name as an option's value: `en`, `ja`.
    pub fn tag(self) -> &'static str {
        match self {
            Self::English => "en",
            Self::Japanese => "ja",
        }
    }

    /// The language of a locale such as `ja_JP.UTF-8`; English where there are no reports in that.
    pub fn of_locale(locale: &str) -> Self {
        let tag = locale.split(['_', '.', '@', '-']).next().unwrap_or_default();
        tag.parse().unwrap_or_default()
    }

    /// Returns whether the text has a translation into this language.
    pub fn has(self, text: &Text) -> bool {
        self.translated(text.key, &[]).is_some()
    }

    /// Returns a text that holds no values.
    pub fn text(self, text: &Text) -> String {
        self.filled(text, &[])
    }

    /// Returns a text with its values.
    pub fn filled(self, text: &Text, values: &[(&str, Held)]) -> String {
        let filled =
            |words: String, (name, value): &(&str, Held)| words.replace(&format!("{{{name}}}"), &value.to_string());
        self.said(text, || values.iter().fold(text.english.to_owned(), filled), values)
    }

    /// Returns a text with its values, of which `english` has them already. A text that this language lacks is in English.
    pub fn said(self, text: &Text, english: impl FnOnce() -> String, values: &[(&str, Held)]) -> String {
        self.translated(text.key, values).map_or_else(english, |(translation, _)| translation)
    }

    /// Items of a list within a sentence.
    pub(crate) fn list(self, items: &[String]) -> String {
        items.join(&crate::said!(self, "list-comma", ", "))
    }

    /// Returns the tag of English text, such as commands, on a page of this language; `None` on an English page.
    pub fn foreign_tag(self) -> Option<&'static str> {
        (self != Self::English).then(|| Self::English.tag())
    }

    /// Returns whether a text is written in this language, by its characters. English has none of its own.
    pub fn wrote(self, text: &str) -> bool {
        self == Self::Japanese && text.contains(is_japanese)
    }

    /// A text in parts, in their order, each with the tag of its language where that is not this one: English that stands in a Japanese
    /// text, three words of it at least. Names of fewer words are read well enough.
    pub(crate) fn parts(self, text: &str) -> Vec<(Option<&'static str>, &str)> {
        if self == Self::English {
            return vec![(None, text)];
        }
        let is_word = |word: &&str| word.chars().filter(char::is_ascii_alphabetic).nth(1).is_some();
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some(first) = rest.chars().next() {
            let end = rest.find(|c| is_japanese(c) != is_japanese(first)).unwrap_or(rest.len());
            let (part, further) = rest.split_at(end);
            let is_english = part.split_whitespace().filter(is_word).nth(2).is_some();
            parts.push((self.foreign_tag().filter(|_| is_english), part));
            rest = further;
        }
        parts
    }

    /// Returns a record's message. A text that this language lacks, as an error from elsewhere, is
    /// given in English and marked as such.
    pub fn message(self, message: &Message) -> String {
        let told: Option<Vec<String>> = message.parts.iter().map(|part| self.part(part)).collect();
        match (self, told) {
            (Self::English, _) => message.text.clone(),
            (Self::Japanese, Some(parts)) if !parts.is_empty() => parts.concat(),
            _ => crate::said!(self, "message-in-english", "{text}", text = message.text),
        }
    }

    /// Returns a part of a message, `None` if its key is unknown or its text names a value that it lacks.
    fn part(self, part: &MessagePart) -> Option<String> {
        let values: Vec<(&str, Held)> =
            part.values.iter().map(|(name, value)| (name.as_str(), self.value(value).held())).collect();
        let (text, is_whole) = self.translated(&part.key, &values)?;
        is_whole.then_some(text)
    }

    fn value(self, value: &MessageValue) -> String {
        match value {
            MessageValue::Message(message) => self.message(message),
            own => own.to_string(),
        }
    }

    /// Returns the text of a key, and whether it has all values that it holds; `None` in English, which has no locale file.
    fn translated(self, key: &str, values: &[(&str, Held)]) -> Option<(String, bool)> {
        static JAPANESE_TEXTS: LazyLock<FluentBundle<FluentResource>> =
            LazyLock::new(|| bundle(Language::Japanese, JAPANESE));
        let bundle = match self {
            Self::English => return None,
            Self::Japanese => &JAPANESE_TEXTS,
        };
        let (key, attribute) = key.split_once('.').map_or((key, None), |(key, attribute)| (key, Some(attribute)));
        let message = bundle.get_message(key)?;
        let pattern = match attribute {
            Some(name) => message.get_attribute(name)?.value(),
            None => message.value()?,
        };
        let args: FluentArgs<'_> = values.iter().map(|(name, value)| (*name, value.fluent())).collect();
        let mut errors = Vec::new();
        let text = bundle.format_pattern(pattern, Some(&args), &mut errors);
        Some((closed_up(&text), errors.is_empty()))
    }
}

fn is_japanese(c: char) -> bool {
    c >= '\u{2e80}'
}

/// Marks around each value of a text (Unicode's isolates), as Fluent sets them.
const AROUND_VALUE: [char; 2] = ['\u{2068}', '\u{2069}'];

/// Removes the marks around values, and a space next to one that separates Japanese from Japanese: `スループット は`. A
/// value of Latin letters or digits keeps its spaces.
fn closed_up(text: &str) -> String {
    let is_closed = |c: char| is_japanese(c) && !matches!(c, '\u{3000}' | '\u{ff5e}');
    let mut closed = String::with_capacity(text.len());
    let mut ends_value = false;
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        if AROUND_VALUE.contains(&c) {
            ends_value = c == AROUND_VALUE[1];
            continue;
        }
        let mut next = rest.clone().peekable();
        let starts_value = next.next_if_eq(&AROUND_VALUE[0]).is_some();
        if c == ' '
            && (ends_value || starts_value)
            && closed.ends_with(is_closed)
            && next.find(|c| !AROUND_VALUE.contains(c)).is_some_and(is_closed)
        {
            continue;
        }
        ends_value = false;
        closed.push(c);
    }
    closed
}

/// The words of one language.
fn bundle(language: Language, source: &str) -> FluentBundle<FluentResource> {
    let tag: LanguageIdentifier = language.tag().parse().expect("a tag of BCP 47");
    let mut bundle = FluentBundle::new_concurrent(vec![tag]);
    bundle.set_use_isolating(true);
    bundle.set_formatter(Some(|value, _| match value {
        FluentValue::Number(number) => Some(grouped(number.value as u64)),
        _ => None,
    }));
    // A message that cannot be read is left out; a test reads them all.
    let resource = FluentResource::try_new(source.to_owned()).unwrap_or_else(|(resource, _)| resource);
    bundle.add_resource_overriding(resource);
    bundle
}

/// A value of a text: a count, on which its words may depend, or words.
#[derive(Debug, Clone)]
pub enum Held {
    /// A whole number, shown in groups of three digits.
    Count(u64),
    /// Shown as it is.
    Words(String),
}

impl Held {
    /// Returns whether the value is this count, so that the words for one differ from those for many.
    pub fn is(&self, count: u64) -> bool {
        matches!(self, Self::Count(own) if *own == count)
    }

    fn fluent(&self) -> FluentValue<'static> {
        match self {
            Self::Count(count) => FluentValue::from(*count),
            Self::Words(words) => FluentValue::String(words.clone().into()),
        }
    }
}

/// As English shows it.
impl fmt::Display for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count(count) => f.write_str(&grouped(*count)),
            Self::Words(words) => f.write_str(words),
        }
    }
}

/// A value that a text may hold.
///
/// Whole numbers are counts: a text may have other words for one than for many, and they are written in groups of three
/// digits. Other numbers, such as a port or an MTU, are given as text.
pub trait Argument {
    /// The value as a text holds it.
    fn held(&self) -> Held;
}

impl<T: Argument + ?Sized> Argument for &T {
    fn held(&self) -> Held {
        (**self).held()
    }
}

impl Argument for str {
    fn held(&self) -> Held {
        Held::Words(self.to_owned())
    }
}

macro_rules! counts {
    ($($count:ty),*) => { $(impl Argument for $count {
        fn held(&self) -> Held {
            Held::Count(*self as u64)
        }
    })* };
}

macro_rules! words {
    ($($words:ty),*) => { $(impl Argument for $words {
        fn held(&self) -> Held {
            Held::Words(self.to_string())
        }
    })* };
}

counts!(u8, u16, u32, u64, usize);
words!(f64, String, BitRate, ByteCount, DelayGrade, Medium, Nanos, RecordId, Transport);

/// Returns a text in a language, from its key, its English words and the values in them:
/// `said!(lang, "attempts-more", "Not listed: {more} more.", more = 3)`.
///
/// English that has other words for one count names it:
/// `said!(lang, "live-lost", if count == 1 { "1 datagram lost" } else { "{count} datagrams lost" }, count = lost)`. A [`Text`] that was
/// made elsewhere stands for key and words: `said!(lang, title, unit = "bit/s")`.
///
/// The other languages have their text by the key, with the same values (`locales/`); a test compares them.
#[macro_export]
macro_rules! said {
    ($language:expr, $key:literal, $english:literal $(, $name:ident = $value:expr)* $(,)?) => {{
        let values: [(&str, $crate::Held); _] = [$((stringify!($name), $crate::Argument::held(&$value))),*];
        let [$((_, $name)),*] = &values;
        $crate::Language::said($language, $crate::linerate_model::text!($key, $english), || format!($english), &values)
    }};
    (
        $language:expr, $key:literal, if $count:ident == $number:literal { $one:literal } else { $many:literal }
        $(, $name:ident = $value:expr)* $(,)?
    ) => {{
        let values: [(&str, $crate::Held); _] = [$((stringify!($name), $crate::Argument::held(&$value))),*];
        let [$((_, $name)),*] = &values;
        let english = || if $count.is($number) { format!($one) } else { format!($many) };
        $crate::Language::said($language, $crate::linerate_model::text!($key, $many), english, &values)
    }};
    ($language:expr, $text:expr $(, $name:ident = $value:expr)* $(,)?) => {{
        $crate::Language::filled($language, $text, &[$((stringify!($name), $crate::Argument::held(&$value))),*])
    }};
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Marks stand around values, as Fluent writes them.
    #[test]
    fn japanese_values_stand_without_spaces_in_japanese_text() {
        for (written, shown) in [
            ("\u{2068}スループット\u{2069} は", "スループットは"),
            ("が \u{2068}高い\u{2069} です", "が高いです"),
            ("\u{2068}TCP\u{2069} は \u{2068}UDP\u{2069} より", "TCP は UDP より"),
            ("\u{2068}コピー\u{2069} \u{2068}速度\u{2069}", "コピー速度"),
            ("\u{2068}下限\u{2069} ～ \u{2068}上限\u{2069}", "下限 ～ 上限"),
            ("ファイル \u{2068}東京 大阪.csv\u{2069} を", "ファイル東京 大阪.csv を"),
            ("文の中 の空白", "文の中 の空白"),
        ] {
            assert_eq!(closed_up(written), shown);
        }
    }
}
