//! Enums whose variants have names: one row for each variant.

/// Defines an enum of named variants: `pub enum Type as "kind" { .. }`.
///
/// A row reads `Variant = "name-in-records", "name in words";`, with the variant's documentation before it. The macro adds `ALL`
/// (the variants in the order of their rows), `name` (the name in records, which is also an option's value), `text` (the name in
/// words, whose translations have the key `kind-name`) and `Display` (the name in words, in English). A property of each variant,
/// such as a limit's place, is a third column that the head names:
/// `pub enum Type as "kind", property: PropertyType { Variant = "name", "words", property; }`.
#[macro_export]
macro_rules! named {
    (
        $(#[$attribute:meta])*
        pub enum $Type:ident as $kind:literal, $(#[$meaning:meta])* $property:ident: $Property:ty {
            $($(#[$documentation:meta])* $Variant:ident = $name:literal, $words:literal, $value:expr;)+
        }
    ) => {
        $crate::named! {
            $(#[$attribute])*
            pub enum $Type as $kind {
                $($(#[$documentation])* $Variant = $name, $words;)+
            }
        }

        impl $Type {
            $(#[$meaning])*
            pub fn $property(self) -> $Property {
                match self {
                    $(Self::$Variant => $value,)+
                }
            }
        }
    };
    (
        $(#[$attribute:meta])*
        pub enum $Type:ident as $kind:literal {
            $($(#[$documentation:meta])* $Variant:ident = $name:literal, $words:literal;)+
        }
    ) => {
        $(#[$attribute])*
        #[derive(
            Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
            schemars::JsonSchema,
        )]
        pub enum $Type {
            $($(#[$documentation])* #[serde(rename = $name)] $Variant,)+
        }

        impl $Type {
            /// All of them, in their order.
            pub const ALL: [Self; [$($name),+].len()] = [$(Self::$Variant),+];

            /// Returns the name in records.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$Variant => $name,)+
                }
            }

            /// Returns the name in words, with the key of its translations.
            pub fn text(self) -> &'static $crate::Text {
                match self {
                    $(Self::$Variant => $crate::text!(concat!($kind, "-", $name), $words),)+
                }
            }
        }

        impl std::fmt::Display for $Type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.text().english)
            }
        }
    };
}
