//! The languages of reports. Every word that is not a record's own comes from `locales/*.ftl` (Project Fluent), by its key.
//!
//! Numbers and units are written the same in every language, and so are CSV and JSON.

use fluent_bundle::concurrent::FluentBundle;
use fluent_bundle::{FluentArgs, FluentResource, FluentValue};
use linerate_model::{DelayGrade, Medium, Message, MessagePart, MessageValue, RecordId, Transport};
use linerate_units::{BitRate, ByteCount, Nanos, grouped};
use std::fmt;
use std::str::FromStr;
use std::sync::LazyLock;
use unic_langid::LanguageIdentifier;

const ENGLISH: &str = include_str!("../locales/en.ftl");
const JAPANESE: &str = include_str!("../locales/ja.ftl");
/// Japanese texts of records' messages. Their English stands next to the key where a message is made
/// (`linerate_model::message!`).
const MESSAGES_IN_JAPANESE: &str = include_str!("../locales/messages.ja.ftl");

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

    /// The text of `key` with what it holds; [`crate::said!`] writes it shorter. A key that is not known is shown as itself.
    pub fn tell(self, key: &str, held: &[(&str, Held)]) -> String {
        self.pattern(key, None, held).unwrap_or_else(|| key.to_owned())
    }

    /// Returns a sentence on what the column of `key` counts.
    pub(crate) fn meaning(self, key: &str) -> String {
        self.pattern(key, Some("meaning"), &[]).unwrap_or_else(|| key.to_owned())
    }

    /// The name of a value of the model, which by itself is English: `limit` and `sender's CPU` have the key
    /// `limit-sender-s-cpu`.
    pub fn named(self, kind: &str, value: impl fmt::Display) -> String {
        let text = value.to_string();
        let letters = text.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' });
        let key: String = kind.chars().chain(['-']).chain(letters).collect();
        self.pattern(&key, None, &[]).unwrap_or(text)
    }

    /// Items of a list within a sentence.
    pub(crate) fn list(self, items: &[String]) -> String {
        items.join(&crate::said!(self, "list-comma"))
    }

    /// Returns the tag of English text, such as commands, on a page of this language; `None` on an English page.
    pub fn foreign_tag(self) -> Option<&'static str> {
        (self != Self::English).then(|| Self::English.tag())
    }

    /// A text in parts, in their order, each with the tag of its language where that is not this one: English that stands in a Japanese
    /// text, three words of it at least. Names of fewer words are read well enough.
    pub(crate) fn parts(self, text: &str) -> Vec<(Option<&'static str>, &str)> {
        if self == Self::English {
            return vec![(None, text)];
        }
        let is_japanese = |c: char| c >= '\u{2e80}';
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

    /// Returns a record's message. A text that this language lacks, as of a record that an older version wrote, is
    /// given in English and marked as such.
    pub fn message(self, message: &Message) -> String {
        let told: Option<Vec<String>> = message.parts.iter().map(|part| self.part(part)).collect();
        match (self, told) {
            (Self::English, _) => message.text.clone(),
            (Self::Japanese, Some(parts)) if !parts.is_empty() => parts.concat(),
            _ => crate::said!(self, "message-in-english", text = message.text),
        }
    }

    /// Returns a part of a message, `None` if its key is unknown or its text names a value that it lacks.
    fn part(self, part: &MessagePart) -> Option<String> {
        let held: Vec<(&str, Held)> =
            part.values.iter().map(|(name, value)| (name.as_str(), self.value(value).held())).collect();
        let (text, is_whole) = self.formatted(&part.key, None, &held)?;
        is_whole.then_some(text)
    }

    fn value(self, value: &MessageValue) -> String {
        match value {
            MessageValue::Term { kind, name } => self.named(kind, name),
            MessageValue::Message(message) => self.message(message),
            own => own.to_string(),
        }
    }

    fn pattern(self, key: &str, attribute: Option<&str>, held: &[(&str, Held)]) -> Option<String> {
        // What is missing among the arguments is shown by its name: a test sees to it that nothing is.
        self.formatted(key, attribute, held).map(|(text, _)| text)
    }

    /// The text of a key, and whether it has all that it holds.
    fn formatted(self, key: &str, attribute: Option<&str>, held: &[(&str, Held)]) -> Option<(String, bool)> {
        static ENGLISH_WORDS: LazyLock<FluentBundle<FluentResource>> =
            LazyLock::new(|| bundle(Language::English, &[ENGLISH]));
        static JAPANESE_WORDS: LazyLock<FluentBundle<FluentResource>> =
            LazyLock::new(|| bundle(Language::Japanese, &[JAPANESE, MESSAGES_IN_JAPANESE]));
        let bundle = match self {
            Self::English => &ENGLISH_WORDS,
            Self::Japanese => &JAPANESE_WORDS,
        };
        let message = bundle.get_message(key)?;
        let pattern = match attribute {
            Some(name) => message.get_attribute(name)?.value(),
            None => message.value()?,
        };
        let args: FluentArgs<'_> = held.iter().map(|(name, value)| (*name, value.0.clone())).collect();
        let mut errors = Vec::new();
        let text = bundle.format_pattern(pattern, Some(&args), &mut errors).into_owned();
        Some((text, errors.is_empty()))
    }
}

/// The words of one language.
fn bundle(language: Language, sources: &[&str]) -> FluentBundle<FluentResource> {
    let tag: LanguageIdentifier = language.tag().parse().expect("a tag of BCP 47");
    let mut bundle = FluentBundle::new_concurrent(vec![tag]);
    bundle.set_use_isolating(false);
    bundle.set_formatter(Some(|value, _| match value {
        FluentValue::Number(number) => Some(grouped(number.value as u64)),
        _ => None,
    }));
    for source in sources {
        // A message that cannot be read is left out; a test reads them all.
        let resource = FluentResource::try_new((*source).to_owned()).unwrap_or_else(|(resource, _)| resource);
        bundle.add_resource_overriding(resource);
    }
    bundle
}

/// Value of a message: a count, on which its words may depend, or text.
#[derive(Debug, Clone)]
pub struct Held(FluentValue<'static>);

/// A value that a message may hold.
///
/// Whole numbers are counts: a message may have other words for one than for many, and they are written in groups of three
/// digits. What is no count, as a port or an MTU, is given as text.
pub trait Argument {
    /// The value as a message holds it.
    fn held(&self) -> Held;
}

impl<T: Argument + ?Sized> Argument for &T {
    fn held(&self) -> Held {
        (**self).held()
    }
}

impl Argument for str {
    fn held(&self) -> Held {
        Held(FluentValue::String(self.to_owned().into()))
    }
}

/// Counts: exact up to 2^53, as Fluent's numbers are.
macro_rules! counts {
    ($($count:ty),*) => { $(impl Argument for $count {
        fn held(&self) -> Held {
            Held(FluentValue::from(*self))
        }
    })* };
}

/// What is written by its own rule.
macro_rules! texts {
    ($($text:ty),*) => { $(impl Argument for $text {
        fn held(&self) -> Held {
            self.to_string().as_str().held()
        }
    })* };
}

counts!(u8, u16, u32, u64, usize);
texts!(f64, String, BitRate, ByteCount, DelayGrade, Medium, Nanos, RecordId, Transport);

/// The text of a key in a language, with what it holds: `said!(language, "figures-runs", runs = 3)`.
#[macro_export]
macro_rules! said {
    ($language:expr, $key:expr $(, $name:ident = $value:expr)* $(,)?) => {
        $crate::Language::tell($language, $key, &[$((stringify!($name), $crate::Argument::held(&$value))),*])
    };
}
