//! Cases: the points of the grids. Each is a bench, a test and the verdicts that are right.

use super::BadInput;
use super::findings::Findings;
use super::grid::{CANNOT_TELL, Class, Grid};
use super::split::{Side, hash, rank, side};
use super::template::Bindings;
use super::verdict::Verdict;
use std::path::Path;

/// One planted case.
#[derive(Debug, Clone)]
pub(super) struct Case {
    /// The name of its grid's file.
    pub(super) class: String,
    /// Unique name: the class, the grid and the values of the axes.
    pub(super) name: String,
    pub(super) side: Side,
    /// The planted limits, or the planted findings in words.
    limits: Vec<String>,
    /// The planted findings. Empty if the verdict is judged.
    findings: Findings,
    places: Vec<String>,
    /// Hops before and after the link where the limit is planted, counted from the sender. `None` if the section is not judged.
    hops: Option<[u64; 2]>,
    steadiness: Option<String>,
    /// This test cannot distinguish the planted limits from each other, or from no limit.
    pub(super) undecidable: bool,
    /// The result may be compared with that of iperf3.
    pub(super) witness: bool,
    /// The arguments of linerate.
    pub(super) test: String,
    /// The bench, as in a bench file.
    pub(super) bench: toml::Table,
    /// Position among the cases of its class and side.
    index: usize,
}

/// Grade of a verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Judgement {
    Right,
    Wrong,
    /// Wrong with high confidence.
    SurelyWrong,
}

impl Case {
    /// Reads all cases of a folder of grid files. The first case of every class comes before the second of any.
    ///
    /// # Errors
    ///
    /// [`BadInput`] that names the file, the grid and the mistake.
    pub(super) fn read_all(folder: &Path) -> Result<Vec<Self>, BadInput> {
        let mut cases = Vec::new();
        for class in Class::read_all(folder)? {
            let file = folder.join(&class.name).with_extension("toml");
            cases.extend(of_class(&class).map_err(|problem| BadInput(format!("{}: {problem}", file.display())))?);
        }
        cases.sort_by_key(|case| (case.index, rank(&case.class), case.side));
        Ok(cases)
    }

    fn new(class: &str, grid: &Grid, values: &str, bindings: &Bindings) -> Result<Self, String> {
        let mut name = format!("{class}/{}", grid.name);
        if !values.is_empty() {
            name = format!("{name}/{values}");
        }
        let mut bench = bindings.fill_table(&grid.bench)?;
        bench.insert("name".to_owned(), class.into());
        let findings = Findings::parse(bindings.fill_table(&grid.findings)?)?;
        let limits = if findings.is_empty() { grid.limits.clone() } else { vec![findings.planted()] };
        Ok(Self {
            class: class.to_owned(),
            side: if grid.tune_only { Side::Tune } else { side(&name) },
            name,
            limits,
            findings,
            places: grid.places.clone(),
            hops: grid.link.as_ref().map(|link| hops(&bindings.fill_text(link)?, &bench, grid.reverse)).transpose()?,
            steadiness: grid.steadiness.clone(),
            undecidable: grid.undecidable,
            witness: grid.witness,
            test: bindings.fill_text(&grid.test)?,
            bench,
            index: 0,
        })
    }

    /// Returns a hash of everything that is measured, and of the answers that are read.
    pub(super) fn digest(&self) -> String {
        format!("{:016x}", hash(&[&self.test, &self.bench.to_string(), &format!("{:?}", self.findings)]))
    }

    /// Reads what is judged from the record. Returns `None` if the record has no verdict.
    pub(super) fn verdict(&self, record: &serde_json::Value) -> Option<Verdict> {
        if self.findings.is_empty() { Verdict::first_of(record) } else { Some(self.findings.verdict(record)) }
    }

    /// Judges a verdict.
    ///
    /// In an undecidable case `cannot-tell` is right, and so is a planted limit named with low confidence. In other
    /// cases a planted limit at a right place is right.
    pub(super) fn judge(&self, verdict: &Verdict) -> Judgement {
        let planted = |limit: &String| self.limits.contains(limit);
        let right = if self.undecidable {
            verdict.limit == CANNOT_TELL
                || verdict.confidence == "low" && (planted(&verdict.limit) || verdict.also.iter().any(planted))
        } else {
            planted(&verdict.limit)
                && self.place_matches(verdict)
                && self.section_matches(verdict)
                && self.steadiness_matches(verdict)
        };
        if right {
            Judgement::Right
        } else if planted(&verdict.limit) && self.place_matches(verdict) && !self.section_matches(verdict) {
            // The section has a confidence of its own.
            let is_sure = verdict.section.as_ref().is_some_and(|section| section.confidence == "high");
            if is_sure { Judgement::SurelyWrong } else { Judgement::Wrong }
        } else if verdict.confidence == "high" && verdict.limit != CANNOT_TELL {
            Judgement::SurelyWrong
        } else {
            Judgement::Wrong
        }
    }

    /// Returns the limit that the verdict names, with the place or the steadiness if only that is wrong.
    pub(super) fn label(&self, verdict: &Verdict) -> String {
        let limit = &verdict.limit;
        if self.undecidable {
            format!("{limit} {}", verdict.confidence)
        } else if !self.limits.contains(limit)
            || self.place_matches(verdict) && self.section_matches(verdict) && self.steadiness_matches(verdict)
        {
            limit.clone()
        } else if !self.place_matches(verdict) {
            format!("{limit} at {}", verdict.place.as_deref().unwrap_or("no place"))
        } else if !self.section_matches(verdict) {
            match &verdict.section {
                Some(section) => format!("{limit} between {section}"),
                None => format!("{limit}, not located"),
            }
        } else {
            format!("{limit}, {}", verdict.steadiness.as_deref().unwrap_or("no course"))
        }
    }

    /// Describes the planted limits for a reader.
    pub(super) fn planted(&self) -> String {
        let limits = self.limits.join(" or ");
        let places = if self.places.is_empty() { String::new() } else { format!(" at {}", self.places.join(" or ")) };
        let steadiness = self.steadiness.as_ref().map_or(String::new(), |steadiness| format!(", {steadiness}"));
        let link = self.hops.map_or(String::new(), |[after, before]| format!(", between hops {after} and {before}"));
        format!("{limits}{places}{link}{steadiness}{}", if self.undecidable { ", undecidable" } else { "" })
    }

    fn place_matches(&self, verdict: &Verdict) -> bool {
        self.places.is_empty() || verdict.place.as_ref().is_some_and(|place| self.places.contains(place))
    }

    /// Returns whether the section holds the link where the limit is planted.
    fn section_matches(&self, verdict: &Verdict) -> bool {
        self.hops.is_none_or(|hops| verdict.section.as_ref().is_some_and(|section| section.holds(hops)))
    }

    /// Returns whether the section must be judged, and is a single link.
    pub(super) fn is_one_link(&self, verdict: &Verdict) -> Option<bool> {
        self.hops?;
        Some(verdict.section.as_ref().is_some_and(|section| section.before == section.after + 1))
    }

    fn steadiness_matches(&self, verdict: &Verdict) -> bool {
        self.steadiness.is_none() || self.steadiness == verdict.steadiness
    }
}

/// Returns the hops before and after a link of the bench's chain of routers, as in `2-3` or `1-2b`, counted from the sender.
fn hops(link: &str, bench: &toml::Table, reverse: bool) -> Result<[u64; 2], String> {
    let routers = bench.get("device").and_then(|device| device.get("routers")).and_then(toml::Value::as_integer);
    let routers = routers.and_then(|routers| u64::try_from(routers).ok());
    let routers = routers.ok_or("`link` needs a bench with a chain of routers")?;
    let node = |text: &str| text.trim_end_matches('b').parse::<u64>().ok().filter(|node| *node <= routers + 1);
    let nodes = link.split_once('-').and_then(|(first, second)| Some([node(first)?, node(second)?]));
    let [first, second] = nodes.ok_or_else(|| format!("`link` has `{link}`; write it like 2-3"))?;
    Ok(if reverse { [routers + 1 - second, routers + 1 - first] } else { [first, second] })
}

/// Returns the cases of a class in the order of their rank: for each grid and side the number that the grid asks for.
fn of_class(class: &Class) -> Result<Vec<Case>, String> {
    let mut cases: Vec<Case> = Vec::new();
    for grid in &class.grids {
        let mut points = points(class, grid).map_err(|problem| format!("grid `{}`: {problem}", grid.name))?;
        points.sort_by_key(|case| rank(&case.name));
        for side in [Side::Tune, Side::Hold] {
            let selected = points.iter().filter(|case| case.side == side).take(grid.cases.unwrap_or(usize::MAX));
            cases.extend(selected.enumerate().map(|(index, case)| Case { index, ..case.clone() }));
        }
    }
    // The first case of each grid comes before the second of any.
    cases.sort_by_key(|case| (case.index, rank(&case.name)));
    for side in [Side::Tune, Side::Hold] {
        for (index, case) in cases.iter_mut().filter(|case| case.side == side).enumerate() {
            case.index = index;
        }
    }
    Ok(cases)
}

/// Returns a case for every combination of the values of a grid's axes.
fn points(class: &Class, grid: &Grid) -> Result<Vec<Case>, String> {
    let mut points = vec![(String::new(), Bindings::default())];
    for (axis, values) in &grid.axes {
        let mut extended = Vec::new();
        for (name, bindings) in &points {
            for value in values {
                let mut bindings = bindings.clone();
                bindings.bind(axis, value)?;
                let name = if name.is_empty() { value.to_string() } else { format!("{name},{value}") };
                extended.push((name, bindings));
            }
        }
        points = extended;
    }
    let bench = grid.bench.to_string();
    let mut cases: Vec<Case> = Vec::new();
    for (values, bindings) in &points {
        let uses = format!("{} {} {}", grid.test, grid.link.as_deref().unwrap_or_default(), grid.findings);
        if let Some(axis) = bindings.unused(&uses, &bench) {
            return Err(format!("nothing uses `{axis}`; write {{{axis}}} in `test` or `bench`"));
        }
        let case = Case::new(&class.name, grid, values, bindings)?;
        if cases.iter().any(|other| other.name == case.name) {
            return Err(format!("two cases are called `{}`", case.name));
        }
        cases.push(case);
    }
    Ok(cases)
}

#[cfg(test)]
mod tests {
    use super::super::grid::LIMITS;
    use super::super::verdict::Section;
    use super::*;
    use std::collections::{BTreeMap, BTreeSet};

    fn shipped() -> Vec<Case> {
        Case::read_all(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../scenarios")).unwrap()
    }

    fn cases(grid: &str) -> Result<Vec<Case>, String> {
        of_class(&Class::parse("shaper", &format!("[[grid]]\nname = 'tcp'\nlimits = ['shaper']\n{grid}")).unwrap())
    }

    fn verdict(limit: &str, confidence: &str) -> Verdict {
        Verdict { limit: limit.to_owned(), confidence: confidence.to_owned(), ..Verdict::default() }
    }

    #[test]
    fn enough_cases_are_held_out_in_every_class() {
        let mut held_out = BTreeMap::<String, u32>::new();
        for case in shipped() {
            *held_out.entry(case.class).or_default() += u32::from(case.side == Side::Hold);
        }
        assert!(held_out.values().sum::<u32>() >= 150, "{held_out:?}");
        assert!(held_out.values().all(|&cases| cases >= 4), "{held_out:?}");
    }

    #[test]
    fn every_limit_is_planted_on_both_sides() {
        let shipped = shipped();
        for side in [Side::Tune, Side::Hold] {
            let planted: BTreeSet<&str> = shipped
                .iter()
                .filter(|case| case.side == side)
                .flat_map(|case| &case.limits)
                .map(String::as_str)
                .collect();
            let missing: Vec<&&str> =
                LIMITS.iter().filter(|limit| **limit != CANNOT_TELL && !planted.contains(*limit)).collect();
            assert!(missing.is_empty(), "{side:?}: {missing:?}");
        }
        assert!(shipped.iter().filter(|case| case.undecidable && case.side == Side::Hold).count() >= 8);
    }

    /// A bench that the lab refuses would end a run of all cases early.
    #[test]
    fn lab_can_build_every_bench() {
        for case in shipped() {
            let bench = toml::to_string(&case.bench).unwrap();
            linerate_lab::Bench::parse(&bench, &case.name).unwrap_or_else(|error| panic!("{error}\n{bench}"));
        }
    }

    #[test]
    fn every_combination_of_axis_values_is_a_case() {
        let all = cases("test = 'stream a b -P {flows} -b {rate}'\n[grid.axes]\nflows = [1, 4]\nrate = ['1M', '2M', '3M']\n[grid.bench]").unwrap();
        let names: BTreeSet<&str> = all.iter().map(|case| case.name.as_str()).collect();
        assert_eq!(names.len(), 6);
        assert!(names.contains("shaper/tcp/4,2M"), "{names:?}");
        let case = all.iter().find(|case| case.name.ends_with("4,2M")).unwrap();
        assert_eq!((case.test.as_str(), case.bench["name"].as_str()), ("stream a b -P 4 -b 2M", Some("shaper")));
    }

    #[test]
    fn grid_limits_the_cases_of_each_side() {
        let grid = |cases: u32| {
            let values: Vec<String> = (1..100).map(|number| number.to_string()).collect();
            let values = values.join(", ");
            format!("cases = {cases}\ntest = 'stream a b -P {{flows}}'\n[grid.axes]\nflows = [{values}]\n[grid.bench]")
        };
        let few = cases(&grid(3)).unwrap();
        let count = |side| few.iter().filter(|case| case.side == side).count();
        assert_eq!((count(Side::Tune), count(Side::Hold)), (3, 3));
        let more = cases(&grid(4)).unwrap();
        assert!(few.iter().all(|case| more.iter().any(|other| (&other.name, other.side) == (&case.name, case.side))));
        assert!(cases(&format!("tune-only = true\n{}", grid(9))).unwrap().iter().all(|case| case.side == Side::Tune));
    }

    #[test]
    fn contradictory_grid_is_refused() {
        let wrong = |grid: &str| cases(grid).unwrap_err();
        let axes = "[grid.axes]\nflows = [1]\n[grid.bench]";
        assert!(wrong(&format!("test = 'stream a b'\n{axes}")).contains("nothing uses `flows`; write {flows}"));
        assert!(
            wrong(&format!("test = 'stream {{flow}}{{flows}}'\n{axes}"))
                .contains("grid `tcp`: `stream {flow}{flows}`: no axis")
        );
        let twice = "test = '{flows}'\n[grid.axes]\nflows = [1, '1']\n[grid.bench]";
        assert!(wrong(twice).contains("two cases are called `shaper/tcp/1`"));
    }

    #[test]
    fn planted_limit_at_a_right_place_is_right() {
        let case = &cases("places = ['forward-path']\ntest = 'stream a b'\n[grid.bench]").unwrap()[0];
        let at = |place: &str| Verdict { place: Some(place.to_owned()), ..verdict("shaper", "high") };
        assert_eq!(case.judge(&at("forward-path")), Judgement::Right);
        assert_eq!(case.judge(&at("sender-queue")), Judgement::SurelyWrong);
        assert_eq!(case.label(&at("sender-queue")), "shaper at sender-queue");
        assert_eq!(case.judge(&verdict("shaper", "medium")), Judgement::Wrong, "no place is not the place");
        assert_eq!(case.judge(&verdict("window", "medium")), Judgement::Wrong);
        assert_eq!(case.judge(&verdict("window", "high")), Judgement::SurelyWrong);
        assert_eq!(case.judge(&verdict(CANNOT_TELL, "high")), Judgement::Wrong);
        let case = &cases("steadiness = 'varying'\ntest = 'stream a b'\n[grid.bench]").unwrap()[0];
        let varying = Verdict { steadiness: Some("varying".to_owned()), ..verdict("shaper", "high") };
        assert_eq!(
            (case.judge(&varying), case.judge(&verdict("shaper", "high"))),
            (Judgement::Right, Judgement::SurelyWrong)
        );
    }

    #[test]
    fn section_must_hold_the_planted_link() {
        let grid = "link = '2-3'\ntest = 'stream a b'\n[grid.bench]\ndevice = { kind = 'chain', routers = 4 }";
        let case = &cases(grid).unwrap()[0];
        let between = |after, before, confidence: &str| {
            let section = Some(Section { after, before, confidence: confidence.to_owned() });
            Verdict { section, ..verdict("shaper", "high") }
        };
        for (verdict, judgement, is_one_link) in [
            (between(2, 3, "high"), Judgement::Right, true),
            (between(1, 4, "medium"), Judgement::Right, false),
            (between(3, 4, "medium"), Judgement::Wrong, true),
            (between(0, 2, "high"), Judgement::SurelyWrong, false),
            (verdict("shaper", "high"), Judgement::Wrong, false),
        ] {
            assert_eq!((case.judge(&verdict), case.is_one_link(&verdict)), (judgement, Some(is_one_link)), "{verdict}");
        }
        assert_eq!(case.label(&between(0, 2, "high")), "shaper between 0-2 (high)");
        let reversed = &cases(&format!("reverse = true\n{grid}")).unwrap()[0];
        assert_eq!(reversed.judge(&between(2, 3, "high")), Judgement::Right);
        assert_eq!(hops("0-1", &reversed.bench, true), Ok([4, 5]));
        assert!(cases(&grid.replace("2-3", "5-6")).unwrap_err().contains("`link` has `5-6`"));
    }

    #[test]
    fn undecidable_case_accepts_only_low_confidence() {
        let case = &cases("undecidable = true\ntest = 'stream a b'\n[grid.bench]").unwrap()[0];
        assert_eq!(case.judge(&verdict(CANNOT_TELL, "low")), Judgement::Right);
        assert_eq!(case.judge(&verdict("shaper", "low")), Judgement::Right);
        assert_eq!(case.judge(&verdict("shaper", "medium")), Judgement::Wrong);
        assert_eq!(case.judge(&verdict("shaper", "high")), Judgement::SurelyWrong);
        assert_eq!(case.judge(&verdict("window", "low")), Judgement::Wrong);
        let also = Verdict { also: vec!["shaper".to_owned()], ..verdict("window", "low") };
        assert_eq!(case.judge(&also), Judgement::Right);
    }

    #[test]
    fn digest_covers_the_test() {
        let digest = |test: &str| cases(&format!("test = '{test}'\n[grid.bench]")).unwrap()[0].digest();
        assert_eq!(digest("stream a b"), digest("stream a b"));
        assert_ne!(digest("stream a b"), digest("stream b a"));
    }
}
