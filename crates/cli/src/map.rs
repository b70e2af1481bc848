//! The layout of a file, as text.

use std::io::{self, Write};

use blosc2_format::Region;

use crate::printable;

/// Width of the bars, in characters.
const COLUMNS: u64 = 40;

/// The regions of one file, in order.
#[derive(Debug)]
pub(crate) struct Group {
    /// The path; in a directory, the path of the file inside it.
    pub(crate) name: String,
    pub(crate) regions: Vec<Region>,
}

impl Group {
    /// The end of the last region.
    pub(crate) fn end(&self) -> u64 {
        self.regions.iter().map(end_of).max().unwrap_or(0)
    }
}

/// Groups regions by file.
pub(crate) fn groups(path: &str, mut regions: Vec<Region>) -> Vec<Group> {
    regions.sort_by(|a, b| (&a.file, a.offset, b.len).cmp(&(&b.file, b.offset, a.len)));
    let mut groups: Vec<Group> = Vec::new();
    for region in regions {
        let name = match &region.file {
            // The keys in an embedded store start with a slash.
            Some(file) => format!("{path}/{}", file.trim_start_matches('/')),
            None => path.to_owned(),
        };
        match groups.last_mut().filter(|group| group.name == name) {
            Some(group) => group.regions.push(region),
            None => groups.push(Group { name, regions: vec![region] }),
        }
    }
    groups
}

/// Writes a table for each file: offset, length and share of each region, and its position
/// in a bar that represents the whole file.
pub(crate) fn write(out: &mut dyn Write, groups: &[Group]) -> io::Result<()> {
    for group in groups {
        let end = group.end();
        let width = end.to_string().len().max(6);
        writeln!(out, "{}:", printable(&group.name))?;
        writeln!(out, "  {:>width$} {:>width$}  share", "offset", "bytes")?;
        for region in &group.regions {
            let share = 100.0 * region.len as f64 / (end.max(1)) as f64;
            let part = printable(&region.part.to_string());
            let (offset, len) = (region.offset, region.len);
            let bar = bar(region, end);
            writeln!(out, "  {offset:>width$} {len:>width$} {share:>5.1}% |{bar}| {part}")?;
        }
    }
    Ok(())
}

fn end_of(region: &Region) -> u64 {
    region.offset.saturating_add(region.len)
}

/// A bar that represents the whole file, with the columns of the region filled (at least one).
fn bar(region: &Region, end: u64) -> String {
    let column = |at: u64| {
        let columns = u128::from(at) * u128::from(COLUMNS) / u128::from(end.max(1));
        u64::try_from(columns).unwrap_or(COLUMNS)
    };
    let first = column(region.offset).min(COLUMNS - 1);
    let last = column(end_of(region)).clamp(first + 1, COLUMNS);
    (0..COLUMNS).map(|at| if (first..last).contains(&at) { '#' } else { '.' }).collect()
}

#[cfg(test)]
mod tests {
    use blosc2_format::Part;

    use super::*;

    fn region(file: Option<&str>, part: Part, offset: u64, len: u64) -> Region {
        Region { file: file.map(Into::into), part, offset, len }
    }

    #[test]
    fn regions_are_drawn_where_they_are() {
        let regions = vec![
            region(None, Part::Trailer, 950, 50),
            region(None, Part::Header, 0, 1),
            region(None, Part::Chunk(0), 1, 949),
        ];
        let mut out = Vec::new();
        write(&mut out, &groups("a", regions)).unwrap();
        let full = "#".repeat(38);
        let expected = format!(
            "a:\n  offset  bytes  share\n       0      1   0.1% |#{dots}| header\n       1    949  94.9% \
             |{full}..| chunk 0\n     950     50   5.0% |{most}##| trailer\n",
            dots = ".".repeat(39),
            most = ".".repeat(38),
        );
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }

    #[test]
    fn each_file_of_a_directory_has_a_table() {
        let regions = vec![
            region(Some("b"), Part::Chunk(1), 0, u64::MAX),
            region(Some("a"), Part::Chunk(0), 0, 0),
        ];
        let groups = groups("dir", regions);
        let names: Vec<_> = groups.iter().map(|group| group.name.as_str()).collect();
        assert_eq!(names, ["dir/a", "dir/b"]);
        assert_eq!(groups[1].end(), u64::MAX);
        write(&mut Vec::new(), &groups).unwrap();
    }
}
