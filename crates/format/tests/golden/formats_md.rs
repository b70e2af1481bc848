//! `FORMATS.md` describes all rules and sections that the findings of a check refer to.

const FORMATS: &str = include_str!("../../FORMATS.md");

#[test]
fn every_rule_is_described_and_its_heading_is_there() {
    let headings: Vec<&str> = FORMATS.lines().filter_map(|line| line.strip_prefix('#')).collect();
    for rule in blosc2_format::rules() {
        // `FORMATS.md` describes the rules of frame version 1 together with those of early frames.
        let (id, section) = (rule.id.replace("frame1.", "early."), rule.section);
        assert!(FORMATS.contains(&format!("`{id}`")), "`{id}` is not in FORMATS.md");
        let is_there = headings.iter().any(|line| line.trim_start_matches('#').trim() == section);
        assert!(is_there, "`{id}` refers to \"{section}\", which is no heading");
    }
}

/// Every text that looks like the name of a rule is one.
#[test]
fn no_rule_is_described_that_is_not_there() {
    let formats = [
        "file",
        "chunk",
        "codec",
        "filter",
        "frame",
        "directory",
        "early",
        "frame1",
        "packed",
        "b2nd",
    ];
    let mut found = 0;
    for word in FORMATS.split('`').skip(1).step_by(2) {
        let Some((format, name)) = word.split_once('.') else { continue };
        let is_name = !name.is_empty()
            && name.chars().all(|each| each.is_ascii_lowercase() || "_.".contains(each));
        if formats.contains(&format) && is_name {
            assert!(blosc2_format::rules().any(|rule| rule.id == word), "`{word}` is no rule");
            found += 1;
        }
    }
    assert!(found > 100, "only {found}");
}
