//! A heat map: a field for each row and column, the stronger its colour the higher its value, which is printed in it.

use super::{CHARACTER, NAME_CHARS, RIGHT, WIDTH, at, reachable, short};
use maud::{Markup, html};

/// More find no room for their figures.
pub(crate) const MOST_COLUMNS: usize = 14;
/// Height of a row, and width of the widest column.
const ROW: f64 = 30.0;
const WIDEST: f64 = 120.0;
/// Room above for the title of the columns.
const TITLE: f64 = 20.0;
/// How strong the colour of the lowest and of the highest field is. What is printed on it has to be read, in light and in dark.
const STRENGTH: [f64; 2] = [0.06, 0.55];
/// A name at a slant reaches so far up and to the side, for its length.
const SLANT: f64 = 0.707;

/// A field.
pub(crate) struct Field {
    /// What its colour tells.
    pub(crate) value: f64,
    /// What is printed in it.
    pub(crate) figure: String,
    /// What it says when it is pointed at.
    pub(crate) label: String,
}

/// Fields in rows and columns, all of which have a name.
pub(crate) struct Heat {
    pub(crate) row_title: String,
    pub(crate) column_title: String,
    pub(crate) rows: Vec<String>,
    pub(crate) columns: Vec<String>,
    /// A row for each of the rows; none where nothing is known.
    pub(crate) fields: Vec<Vec<Option<Field>>>,
}

impl Heat {
    fn values(&self) -> impl Iterator<Item = f64> {
        self.fields.iter().flatten().flatten().map(|field| field.value)
    }

    /// The lowest and the highest value.
    pub(crate) fn extremes(&self) -> Option<(f64, f64)> {
        self.values().reduce(f64::min).zip(self.values().reduce(f64::max))
    }
}

/// Fields under the names of their columns.
pub(super) fn heat(title: &str, map: &Heat) -> Markup {
    let longest = |names: &[String]| names.iter().map(|name| short(name).chars().count()).max().unwrap_or(0) as f64;
    let named = longest(&map.rows).max((map.row_title.chars().count().min(NAME_CHARS)) as f64);
    let left = 14.0 + CHARACTER * named;
    let columns = map.columns.len().max(1) as f64;
    let head = CHARACTER * longest(&map.columns);
    // Names that are wider than their column stand at a slant.
    let slanted = head + 8.0 > ((RIGHT - left) / columns).min(WIDEST);
    let reach = if slanted { SLANT * head } else { 0.0 };
    let width = ((RIGHT - left - reach) / columns).min(WIDEST);
    let top = TITLE + if slanted { reach + 20.0 } else { 26.0 };
    let height = top + ROW * map.rows.len() as f64 + 6.0;
    let (low, high) = map.extremes().unwrap_or((0.0, 0.0));
    let strength = |value: f64| {
        let place = if high > low { (value - low) / (high - low) } else { 0.5 };
        STRENGTH[0] + place.clamp(0.0, 1.0) * (STRENGTH[1] - STRENGTH[0])
    };
    html! {
        svg viewBox=(format!("0 0 {WIDTH} {height}")) role="group" aria-label=(title) {
            text.title x=(at(left)) y="14" { (map.column_title) }
            text.title x=(at(left - 10.0)) y=(at(top - 10.0)) text-anchor="end" { (short(&map.row_title)) }
            @for (index, name) in map.columns.iter().enumerate() {
                @let (x, y) = (at(left + width * (index as f64 + 0.5)), at(top - 10.0));
                @if slanted {
                    text.name x=(x) y=(y) transform=(format!("rotate(-45 {x} {y})")) { (short(name)) }
                } @else {
                    text.name x=(x) y=(y) text-anchor="middle" { (short(name)) }
                }
            }
            @for (row, (name, fields)) in map.rows.iter().zip(&map.fields).enumerate() {
                @let y = top + ROW * row as f64;
                text.name x=(at(left - 10.0)) y=(at(y + ROW / 2.0 + 4.5)) text-anchor="end" { (short(name)) }
                @for (column, field) in fields.iter().enumerate() {
                    @let x = left + width * column as f64;
                    @let middle = (at(x + width / 2.0), at(y + ROW / 2.0 + 4.5));
                    @match field {
                        Some(field) => (reachable(&field.label, html! {
                            rect.tile x=(at(x)) y=(at(y)) width=(at(width)) height=(at(ROW))
                                fill-opacity=(format!("{:.2}", strength(field.value))) {}
                            text.figure x=(middle.0) y=(middle.1) text-anchor="middle" { (field.figure) }
                        })),
                        None => text.tick x=(middle.0) y=(middle.1) text-anchor="middle" { (crate::figures::MISSING) },
                    }
                }
            }
        }
    }
}
