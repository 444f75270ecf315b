//! A heat map: a field for each row and column, the stronger its colour the higher its value, which is printed in it.

use super::layout::{Layout, columns_in, widest};
use super::rows::NAME_COLUMNS;
use super::{at, reachable};
use crate::blocks::drawing::Heat;
use crate::wording::wrap::cut;
use maud::{Markup, html};

/// Height of a row, and width of the widest column.
const ROW: f64 = 30.0;
const WIDEST: f64 = 120.0;
/// Room above for the title of the columns.
const TITLE: f64 = 20.0;
/// Opacity of the lowest and of the highest field. Text on it has to be readable in light and in dark.
const STRENGTH: [f64; 2] = [0.06, 0.55];
/// Height of a name above its row, and width of the narrowest column.
const NAME: f64 = 18.0;
const NARROWEST: f64 = 44.0;
/// Space between blocks of columns.
const BETWEEN: f64 = 14.0;
/// A name at a slant reaches so far up and to the side, for its length.
const SLANT: f64 = 0.707;

/// Draws fields under the names of their columns. Columns without room go below the first ones.
pub(super) fn heat(title: &str, layout: Layout, map: &Heat) -> Markup {
    let grid = Grid::of(layout, map);
    let all: Vec<usize> = (0..map.columns.len()).collect();
    let blocks: Vec<Block<'_>> = all.chunks(grid.columns).map(|columns| Block::of(&grid, map, columns)).collect();
    let tops = blocks.iter().scan(0.0, |next, block| {
        let left = *next;
        *next += block.height + BETWEEN;
        Some(left)
    });
    let height = blocks.iter().map(|block| block.height).sum::<f64>() + BETWEEN * blocks.len().saturating_sub(1) as f64;
    let width = layout.width();
    html! {
        svg viewBox=(format!("0 0 {width} {}", at(height))) role="group" aria-label=(title) {
            @for (block, top) in blocks.iter().zip(tops) { (block.drawn(&grid, map, top)) }
        }
    }
}

/// Measures that all blocks of columns share.
struct Grid {
    /// Left and right edge of the fields.
    left: f64,
    right: f64,
    /// Number of columns next to each other.
    columns: usize,
    /// Height of a row, and of the line with its name where that stands above its fields.
    row: f64,
    name: f64,
}

impl Grid {
    fn of(layout: Layout, map: &Heat) -> Self {
        let right = layout.right();
        match layout {
            Layout::Wide => {
                let names = map.rows.iter().chain([&map.row_title]).map(|name| short(name)).collect::<Vec<_>>();
                let left = 18.0 + widest(names.iter().map(String::as_str));
                Self { left, right, columns: map.columns.len().max(1), row: ROW, name: 0.0 }
            }
            Layout::Narrow => {
                let figures = map.fields.iter().flatten().flatten().map(|field| field.figure.as_str());
                let columns = ((right - 2.0) / (widest(figures) + 8.0).max(NARROWEST)) as usize;
                Self { left: 2.0, right, columns: columns.max(1), row: ROW + NAME, name: NAME }
            }
        }
    }
}

/// Columns next to each other.
struct Block<'a> {
    columns: &'a [usize],
    /// Width of a column, and top of the first row.
    width: f64,
    top: f64,
    is_slanted: bool,
    height: f64,
}

impl<'a> Block<'a> {
    fn of(grid: &Grid, map: &Heat, columns: &'a [usize]) -> Self {
        let names: Vec<String> = columns.iter().map(|column| short(&map.columns[*column])).collect();
        let head = widest(names.iter().map(String::as_str));
        let room = |reach: f64| ((grid.right - grid.left - reach) / columns.len() as f64).min(WIDEST);
        // Names that are wider than their column stand at a slant.
        let is_slanted = head + 8.0 > room(0.0);
        let reach = if is_slanted { SLANT * head } else { 0.0 };
        let top = TITLE + if is_slanted { reach + 20.0 } else { 26.0 };
        let height = top + grid.row * map.rows.len() as f64 + 6.0;
        Self { columns, width: room(reach), top, is_slanted, height }
    }

    fn drawn(&self, grid: &Grid, map: &Heat, above: f64) -> Markup {
        let left = grid.left;
        let top = above + self.top;
        let (low, high) = map.extremes().unwrap_or((0.0, 0.0));
        let strength = |value: f64| {
            let place = if high > low { (value - low) / (high - low) } else { 0.5 };
            STRENGTH[0] + place.clamp(0.0, 1.0) * (STRENGTH[1] - STRENGTH[0])
        };
        html! {
            text.title x=(at(left)) y=(at(above + 14.0)) { (map.column_title) }
            @if grid.name == 0.0 {
                text.title x=(at(left - 10.0)) y=(at(top - 10.0)) text-anchor="end" { (short(&map.row_title)) }
            }
            @for (index, column) in self.columns.iter().enumerate() {
                @let (x, y) = (at(left + self.width * (index as f64 + 0.5)), at(top - 10.0));
                @let name = short(&map.columns[*column]);
                @if self.is_slanted {
                    text.name x=(x) y=(y) transform=(format!("rotate(-45 {x} {y})")) { (name) }
                } @else {
                    text.name x=(x) y=(y) text-anchor="middle" { (name) }
                }
            }
            @for (row, (name, fields)) in map.rows.iter().zip(&map.fields).enumerate() {
                @let head = top + grid.row * row as f64;
                @let y = head + grid.name;
                @if grid.name == 0.0 {
                    text.name x=(at(left - 10.0)) y=(at(y + ROW / 2.0 + 4.5)) text-anchor="end" { (short(name)) }
                } @else {
                    text.name x=(at(left)) y=(at(head + 13.0)) { (cut(name, columns_in(grid.right))) }
                }
                @for (index, column) in self.columns.iter().enumerate() {
                    @let x = left + self.width * index as f64;
                    @let middle = (at(x + self.width / 2.0), at(y + ROW / 2.0 + 4.5));
                    @match fields.get(*column).and_then(Option::as_ref) {
                        Some(field) => (reachable(&field.label, html! {
                            rect.tile x=(at(x)) y=(at(y)) width=(at(self.width)) height=(at(ROW))
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

/// Cuts a name to the room next to a row.
fn short(name: &str) -> String {
    cut(name, NAME_COLUMNS)
}
