//! Texts of the program: the English words stand where they are used, translations are found by key.

#![forbid(unsafe_code)]

#[doc(hidden)]
pub use linkme;

/// A text that readers see, in English and with the key of its translations.
///
/// [`text!`] makes one and registers it in [`TEXTS`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Text {
    /// Identifies the text in other languages: names its meaning, not its words.
    pub key: &'static str,
    /// The text in English; `{name}` stands for a value.
    pub english: &'static str,
}

/// Every text of the crates that are linked into this program, so that a test finds those without a translation.
#[linkme::distributed_slice]
pub static TEXTS: [Text];

/// Registers a [`Text`] and returns a reference to it: `text!("column-limit", "limit")`.
#[macro_export]
macro_rules! text {
    ($key:expr, $english:expr) => {{
        #[$crate::linkme::distributed_slice($crate::TEXTS)]
        #[linkme(crate = $crate::linkme)]
        static TEXT: $crate::Text = $crate::Text { key: $key, english: $english };
        &TEXT
    }};
}
