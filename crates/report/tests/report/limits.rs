//! What media can carry, as it is shown.

use linerate_model::{Encapsulation, Medium, Stack};
use linerate_report::Language;
use linerate_report::Style;
use linerate_report::limits::{self, LimitCell, Limits};
use linerate_units::BitRate;

/// Every medium, and one of them with a tunnel, in the usual sizes.
pub(crate) fn overview() -> Limits {
    let tunnel = Stack::on(Medium::Ethernet(BitRate::per_second(1_000_000_000))).over(&[Encapsulation::Vxlan]);
    let cells = |stack: Stack| {
        let mut cells: Vec<LimitCell> =
            Limits::SIZES.iter().map(|size| LimitCell::udp(&stack, *size).expect("it stands")).collect();
        cells.push(LimitCell::tcp(&stack).expect("it stands"));
        cells
    };
    let cells = Medium::named().map(Stack::on).chain([tunnel]).flat_map(cells).collect();
    Limits { cells, overview: true, explain: false, claim: None, left_out: None }
}

#[test]
fn an_overview_fits_its_terminal() {
    for width in [60, 80, 100, 160] {
        let text =
            limits::text(&overview(), &Style { width, colour: false, unicode: false, language: Language::English });
        assert!(text.is_ascii());
        for medium in ["10BASE-T", "800GBASE-R", "FDDI", "ATM-OC12-CIP"] {
            assert!(text.lines().any(|line| line.starts_with(medium)), "{medium} is missing in {text}");
        }
        assert!(text.lines().all(|line| line.chars().count() <= width), "{width}: {text}");
    }
}

/// Rates of Ethernet differ in nothing but their rate: one line for all of them.
#[test]
fn lines_that_lie_on_each_other_are_drawn_once() {
    let svg = limits::svg(Language::English, &overview());
    assert_eq!(svg.matches("<polyline").count(), 5);
    for legend in [
        "10BASE-T to 800GBASE-R; TCP 94.1 %",
        "FDDI; TCP 98.0 %",
        "ATM-OC3-LANE and ATM-OC12-LANE; TCP 82.2 %",
        "1000BASE-T + vxlan; TCP 90.9 %",
    ] {
        assert!(svg.contains(legend), "{legend}");
    }
    // A picture stands alone: no variables, nothing from elsewhere but the name of its form.
    assert!(!svg.contains("var(") && !svg.replace("http://www.w3.org/2000/svg", "").contains("http"));
}

/// No more lines than colours; the table has all.
#[test]
fn more_lines_than_colours_are_said_to_be_missing() {
    let stacks = (0..9u32).map(|index| Stack::on(Medium::Fddi).mtu(1_000 + 100 * index));
    let cells = stacks.map(|stack| LimitCell::udp(&stack, 4_000).expect("it stands")).collect();
    let asked = Limits { cells, overview: false, explain: false, claim: None, left_out: None };
    let svg = limits::svg(Language::English, &asked);
    assert!(svg.contains("8 of 9 lines") && svg.matches("<polyline").count() == 8);
}
