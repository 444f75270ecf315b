//! Sentences of a record: kept with their values, so that a report tells them in its reader's language.

use crate::{HostName, Text};
use linerate_units::{BitRate, ByteCount, FrameRate, Nanos, grouped};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::borrow::Borrow;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Deref;

/// What a record says to its reader: in English, and as keys with values for other languages.
///
/// [`crate::message!`] makes one. Messages are equal if they say the same in English.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct Message {
    /// The message in English.
    pub text: String,
    /// What it consists of, in order; empty if it is known in English only, as the text of an error from elsewhere.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<MessagePart>,
}

/// One part of a message: usually a sentence.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MessagePart {
    /// The key of its text.
    pub key: String,
    /// What the text holds, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub values: BTreeMap<String, MessageValue>,
}

/// A value that a message holds, with its unit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MessageValue {
    /// A share from 0 to 1, shown in percent with as many digits as it takes.
    Share(f64),
    /// A share, shown in percent with a fixed number of decimal places.
    Percent {
        /// The share, where 1 is the whole.
        share: f64,
        /// Decimal places of the percentage.
        places: u8,
    },
    /// Bits per second.
    BitsPerS(u64),
    /// Frames per second.
    FramesPerS(u64),
    /// Nanoseconds.
    Ns(u64),
    /// Bytes.
    Bytes(u64),
    /// A count, shown in groups of three digits.
    Count(u64),
    /// A number, with the unit that its text gives.
    Number {
        /// The number.
        value: f64,
        /// Decimal places shown.
        places: u8,
    },
    /// A name, or a text from elsewhere: the same in all languages.
    Name(String),
    /// A message within the message.
    Message(Message),
}

/// Makes a [`Message`] from its key, its English text and the values that the text holds:
/// `message!("path-loss-lost", "{share} of the datagrams were lost.", share = MessageValue::Share(0.02))`. A value that stands
/// in a variable of its name is given by that alone.
///
/// The other languages have their text by the key, with the same names (`report/locales/messages.ja.ftl`). A test
/// compares both.
#[macro_export]
macro_rules! message {
    (@value $name:ident = $value:expr) => {
        $value
    };
    (@value $name:ident) => {
        $name
    };
    ($key:literal, $english:literal $(, $name:ident $(= $value:expr)?)* $(,)?) => {{
        let values: [(&'static str, $crate::MessageValue); _] =
            [$((stringify!($name), $crate::MessageValue::from($crate::message!(@value $name $(= $value)?)))),*];
        let [$((_, $name)),*] = &values;
        let english = format!($english $(, $name = $name)*);
        $crate::Message::of($crate::text!($key, $english), english, values)
    }};
}

impl Message {
    /// A message of one part; [`crate::message!`] writes it shorter.
    pub fn of<const N: usize>(text: &Text, english: String, values: [(&'static str, MessageValue); N]) -> Self {
        let values = values.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        Self { text: english, parts: vec![MessagePart { key: text.key.to_owned(), values }] }
    }

    /// A text that is known in English only, as an error from elsewhere.
    pub fn untranslated(text: impl Into<String>) -> Self {
        Self { text: text.into(), parts: Vec::new() }
    }

    /// This message, and `further` behind it.
    #[must_use]
    pub fn and(mut self, further: impl Into<Option<Self>>) -> Self {
        let Some(further) = further.into() else { return self };
        self.text = format!("{} {}", self.text, further.text);
        // A part that is known in English only makes the whole so.
        match self.parts.is_empty() || further.parts.is_empty() {
            true => self.parts.clear(),
            false => self.parts.extend(further.parts),
        }
        self
    }
}

impl From<&'static Text> for Message {
    fn from(text: &'static Text) -> Self {
        Self::of(text, text.english.to_owned(), [])
    }
}

impl PartialEq for Message {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Message {}

impl PartialEq<&str> for Message {
    fn eq(&self, other: &&str) -> bool {
        self.text == *other
    }
}

impl PartialOrd for Message {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Message {
    fn cmp(&self, other: &Self) -> Ordering {
        self.text.cmp(&other.text)
    }
}

/// As its English text.
impl Deref for Message {
    type Target = str;

    fn deref(&self) -> &str {
        &self.text
    }
}

/// As its English text, which order and equality go by.
impl Borrow<str> for Message {
    fn borrow(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

impl MessageValue {
    /// A share of 1, shown in percent with as many digits as it takes.
    pub fn share(share: f64) -> Self {
        Self::finite(Self::Share(share), share)
    }

    /// A share of 1, shown in percent with `places` decimal places.
    pub fn percent(share: f64, places: u8) -> Self {
        Self::finite(Self::Percent { share, places }, share)
    }

    /// A number shown with `places` decimal places.
    pub fn number(value: f64, places: u8) -> Self {
        Self::finite(Self::Number { value, places }, value)
    }

    /// JSON has no other numbers: what is not finite is kept as it is shown.
    fn finite(self, value: f64) -> Self {
        if value.is_finite() { self } else { Self::Name(self.to_string()) }
    }
}

/// As an English text shows it.
impl fmt::Display for MessageValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Share(share) => share_in_percent(*share, f),
            Self::Percent { share, places } => write!(f, "{:.*} %", usize::from(*places), share * 100.0),
            Self::BitsPerS(rate) => BitRate::per_second(*rate).fmt(f),
            Self::FramesPerS(rate) => FrameRate::per_second(*rate).fmt(f),
            Self::Ns(time) => Nanos::new(*time).fmt(f),
            Self::Bytes(bytes) => ByteCount::new(*bytes).fmt(f),
            Self::Count(count) => f.write_str(&grouped(*count)),
            Self::Number { value, places } => write!(f, "{value:.*}", usize::from(*places)),
            Self::Name(name) => f.write_str(name),
            Self::Message(message) => f.write_str(&message.text),
        }
    }
}

fn share_in_percent(share: f64, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let percent = share * 100.0;
    match percent {
        0.0 => f.write_str("0 %"),
        ..0.1 => write!(f, "{percent:.3} %"),
        ..1.0 => write!(f, "{percent:.2} %"),
        ..10.0 => write!(f, "{percent:.1} %"),
        _ => write!(f, "{percent:.0} %"),
    }
}

macro_rules! values {
    ($($own:ty: $given:ident => $value:expr;)*) => {
        $(impl From<$own> for MessageValue {
            fn from($given: $own) -> Self {
                $value
            }
        })*
    };
}

values! {
    &str: name => Self::Name(name.to_owned());
    &String: name => Self::Name(name.clone());
    String: name => Self::Name(name);
    &HostName: name => Self::Name(name.0.clone());
    u16: number => Self::Number { value: number.into(), places: 0 };
    u32: number => Self::Number { value: number.into(), places: 0 };
    u64: number => Self::Number { value: number as f64, places: 0 };
    usize: number => Self::Number { value: number as f64, places: 0 };
    BitRate: rate => Self::BitsPerS(rate.get());
    FrameRate: rate => Self::FramesPerS(rate.get());
    Nanos: time => Self::Ns(time.get());
    ByteCount: bytes => Self::Bytes(bytes.get());
    Message: message => Self::Message(message);
    &'static Text: text => Self::Message(text.into());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Caveat, CaveatKind};

    fn lost(share: f64) -> Message {
        crate::message!(
            "lost",
            "{share} of {count} were lost by {host}.",
            share = MessageValue::share(share),
            count = MessageValue::Count(12_000),
            host = "a"
        )
    }

    #[test]
    fn a_message_says_in_english_what_its_values_say() {
        let message = lost(0.0213).and(crate::message!("why", "Nobody knows why."));
        assert_eq!(&*message, "2.1 % of 12,000 were lost by a. Nobody knows why.");
        assert_eq!(message.parts.iter().map(|part| part.key.as_str()).collect::<Vec<_>>(), ["lost", "why"]);
        assert_eq!(message.parts[0].values["share"], MessageValue::Share(0.0213));
    }

    #[test]
    fn a_message_is_read_as_it_was_written() {
        let caveat = Caveat::new(CaveatKind::FewRuns, lost(0.5).and(lost(f64::NAN)));
        let json = serde_json::to_string(&caveat).expect("it is written");
        assert!(json.starts_with(r#"{"kind":"few-runs","text":"50 % of 12,000 were lost by a. NaN %"#), "{json}");
        let read: Caveat = serde_json::from_str(&json).expect("it is read");
        assert_eq!(read.text.parts, caveat.text.parts);
        assert_eq!(read, caveat);
    }

    #[test]
    fn a_message_behind_one_that_is_known_in_english_only_is_so_too() {
        let both = Message::untranslated("It was full.").and(lost(0.1));
        assert_eq!((&*both, both.parts.len()), ("It was full. 10 % of 12,000 were lost by a.", 0));
    }
}
