//! `view`: statistics, and the pixels of its pictures.

use blosc2::{NDArray, RawItems};
use serde_json::{Value, json};

use crate::common::{Folder, native, old_files};

type Colour = [u8; 3];

const WHITE: Colour = [255, 255, 255];
const CURVE: Colour = [31, 90, 160];
const NAN: Colour = [200, 200, 200];
/// The lowest, middle and highest colour of viridis.
const LOW: Colour = [68, 1, 84];
const MIDDLE: Colour = [32, 144, 140];
const HIGH: Colour = [253, 231, 37];

/// Top of the data area.
const TOP: u32 = 34;

struct Picture {
    width: u32,
    height: u32,
    bytes: Vec<u8>,
}

impl Picture {
    fn read(folder: &Folder, name: &str) -> Self {
        let bytes = folder.read(name);
        let mut reader = png::Decoder::new(std::io::Cursor::new(&bytes[..])).read_info().unwrap();
        let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
        let info = reader.next_frame(&mut pixels).unwrap();
        assert_eq!((info.color_type, info.bit_depth), (png::ColorType::Rgb, png::BitDepth::Eight));
        assert_eq!(pixels.len() as u32, info.width * info.height * 3);
        Self { width: info.width, height: info.height, bytes: pixels }
    }

    fn at(&self, x: u32, y: u32) -> Colour {
        assert!(x < self.width && y < self.height, "{x} {y}");
        let at = ((y * self.width + x) * 3) as usize;
        self.bytes[at..at + 3].try_into().unwrap()
    }

    fn count(&self, colour: Colour) -> usize {
        self.bytes.chunks(3).filter(|pixel| **pixel == colour).count()
    }

    /// The rows and columns that have pixels of a colour: first and last of both.
    fn extent(&self, colour: Colour) -> [u32; 4] {
        let mut extent = [u32::MAX, 0, u32::MAX, 0];
        for y in 0..self.height {
            for x in (0..self.width).filter(|&x| self.at(x, y) == colour) {
                extent[0] = extent[0].min(y);
                extent[1] = extent[1].max(y);
                extent[2] = extent[2].min(x);
                extent[3] = extent[3].max(x);
            }
        }
        extent
    }
}

fn view(folder: &Folder, args: &[&str]) -> Picture {
    let _ = std::fs::remove_file(folder.path("a.png"));
    folder.good(&[&["view"], args, &["-o", "a.png"]].concat());
    Picture::read(folder, "a.png")
}

fn facts(folder: &Folder, args: &[&str]) -> Value {
    serde_json::from_slice(&folder.good(&[&["view"], args, &["--json"]].concat())).unwrap()
}

fn array<T: blosc2::Element>(folder: &Folder, name: &str, items: &[T], shape: &[u64]) {
    NDArray::builder().target(folder.path(name)).from_slice(items, shape).unwrap();
}

/// Left end and side of the squares of a 3 x 4 array, and left end of the scale.
const SQUARES: (u32, u32, u32) = (23, 163, 23 + 4 * 163 + 18);

#[test]
fn pictures_show_items_as_squares_with_a_scale() {
    let folder = Folder::new();
    let items: Vec<f64> = (0..12).map(f64::from).collect();
    array(&folder, "f8", &items, &[3, 4]);
    array(&folder, "u1", &items.iter().map(|&item| item as u8).collect::<Vec<_>>(), &[3, 4]);
    let big: Vec<u8> = items.iter().flat_map(|&item| (item as i16).to_be_bytes()).collect();
    NDArray::builder()
        .target(folder.path("i2"))
        .dtype(">i2", 2)
        .from_slice(RawItems(&big), &[3, 4])
        .unwrap();
    for name in ["f8", "u1", "i2"] {
        let picture = view(&folder, &[name]);
        let (left, side, bar) = SQUARES;
        let (right, bottom) = (left + 4 * side - 1, TOP + 3 * side - 1);
        assert_eq!(picture.at(left, TOP), LOW);
        assert_eq!(picture.at(left + side - 1, TOP + side - 1), LOW);
        assert_eq!(picture.at(right, bottom), HIGH);
        assert_eq!(picture.at(right - side + 1, bottom - side + 1), HIGH);
        // The frame is outside of the items.
        let frame = picture.at(left - 1, TOP);
        assert_ne!(frame, LOW);
        assert_eq!(picture.at(right + 1, bottom), frame);
        assert_eq!(picture.at(left - 2, TOP + side), WHITE);
        // Each item has another colour.
        let colours = (0..12).map(|k| picture.at(left + k % 4 * side, TOP + k / 4 * side));
        let mut colours: Vec<Colour> = colours.collect();
        colours.dedup();
        assert_eq!(colours.len(), 12);
        // The scale, from high to low.
        assert_eq!(picture.at(bar, TOP), HIGH);
        assert_eq!(picture.at(bar + 15, TOP), HIGH);
        assert_eq!(picture.at(bar, bottom), LOW);
        assert_eq!(picture.at(bar, TOP + 3 * side / 2), MIDDLE);
        // The title, and the numbers of the scale.
        assert!((10..200).any(|x| picture.at(x, 17) != WHITE));
        assert!((bar + 20..picture.width).any(|x| picture.at(x, TOP) != WHITE));
        assert!((bar + 20..picture.width).any(|x| picture.at(x, bottom) != WHITE));
        assert!((0..picture.height).all(|y| picture.at(picture.width - 1, y) == WHITE));
    }
    let picture = view(&folder, &["f8", "--range", "-11,11", "--colormap", "gray"]);
    let (left, side, bar) = SQUARES;
    assert!(picture.at(left, TOP).iter().all(|part| part.abs_diff(128) < 30));
    assert_eq!(picture.at(left + 4 * side - 1, TOP + 3 * side - 1), [255; 3]);
    assert_eq!(picture.at(bar, TOP + 3 * side - 1), [0; 3]);
    let picture = view(&folder, &["f8", "--width", "300"]);
    assert!(picture.width <= 300);
}

/// The pixel of a point on the axes of a 1-d slice: position 0 to 1 on both.
fn point(x: f64, y: f64) -> (u32, u32) {
    let (left, top, width, height) = (94 + 6, TOP + 6, 690 - 13, 400 - 13);
    (
        left + (x * f64::from(width)).round() as u32,
        top + ((1.0 - y) * f64::from(height)).round() as u32,
    )
}

#[test]
fn curves_go_through_their_items() {
    let folder = Folder::new();
    array(&folder, "a", &[0.0f32, 4.0, 1.0, 2.0, 3.0], &[5]);
    let picture = view(&folder, &["a"]);
    assert_eq!(picture.width, 800);
    for (index, value) in [0.0, 4.0, 1.0, 2.0, 3.0].into_iter().enumerate() {
        let (x, y) = point(index as f64 / 4.0, value / 4.0);
        assert_eq!(picture.at(x, y), CURVE, "{index}");
    }
    // Half way up to the second item.
    let (x, y) = point(0.125, 0.5);
    assert!((y - 2..=y + 2).any(|y| picture.at(x, y) == CURVE));
    let (x, y) = point(0.5, 0.9);
    assert_ne!(picture.at(x, y), CURVE);
    // The curve is clipped at the ends of the range.
    let picture = view(&folder, &["a", "--range", "0,2"]);
    for index in [1, 4] {
        let (x, y) = point(f64::from(index) / 4.0, 1.0);
        assert_eq!(picture.at(x, y), CURVE, "{index}");
    }
    // Backwards.
    let picture = view(&folder, &["a", "--slice", "::-1"]);
    let (x, y) = point(0.0, 0.75);
    assert_eq!(picture.at(x, y), CURVE);
}

#[test]
fn columns_of_long_curves_have_minimum_and_maximum() {
    let folder = Folder::new();
    // 678 columns of 10 items each.
    let items: Vec<u16> = (0..6780).map(|k| if k % 10 == 7 { k } else { 0 }).collect();
    array(&folder, "a", &items, &[6780]);
    let picture = view(&folder, &["a"]);
    for column in [0, 100, 677] {
        let x = f64::from(column) / 677.0;
        for y in [0.0, f64::from(column * 10 + 7) / 6777.0] {
            let (x, y) = point(x, y);
            assert_eq!(picture.at(x, y), CURVE, "{column}");
        }
    }
    let facts = facts(&folder, &["a"]);
    assert_eq!((&facts["max"], &facts["min"]), (&json!(6777.0), &json!(0.0)));
}

#[test]
fn constant_data_has_one_colour() {
    let folder = Folder::new();
    array(&folder, "a", &[7.25f64; 12], &[3, 4]);
    let picture = view(&folder, &["a"]);
    let (left, side, bar) = SQUARES;
    for (x, y) in [(left, TOP), (left + 4 * side - 1, TOP + 3 * side - 1), (bar, TOP)] {
        assert_eq!(picture.at(x, y), MIDDLE);
    }
    // One number, in the middle of the scale.
    let number = |y: u32| (bar + 20..picture.width).any(|x| picture.at(x, y) != WHITE);
    assert!(number(TOP + 3 * side / 2) && !number(TOP + 2) && !number(TOP + 3 * side - 3));

    let picture = view(&folder, &["a", "--slice", "0"]);
    let (_, y) = point(0.0, 0.5);
    let extent = picture.extent(CURVE);
    assert!(extent[0] >= y - 3 && extent[1] <= y + 3, "{extent:?}");
    assert_eq!(facts(&folder, &["a"])["mean"], json!(7.25));
}

#[test]
fn nan_and_infinities_are_drawn() {
    let folder = Folder::new();
    let (nan, inf) = (f32::NAN, f32::INFINITY);
    array(&folder, "a", &[0.0, 1.0, 2.0, 3.0, nan, inf, -inf, 4.0, 5.0, 6.0, 7.0, 8.0], &[3, 4]);
    let picture = view(&folder, &["a"]);
    let (left, side, bar) = SQUARES;
    let cell = |column: u32| picture.at(left + column * side + side / 2, TOP + side + side / 2);
    assert_eq!([cell(0), cell(1), cell(2)], [NAN, HIGH, LOW]);
    assert_eq!(picture.at(left, TOP), LOW);
    assert_eq!(picture.at(left + 4 * side - 1, TOP + 3 * side - 1), HIGH);
    // A sample of the colour of NaN below the scale.
    assert_eq!(picture.at(bar + 8, TOP + 3 * side + 14), NAN);
    let found = facts(&folder, &["a"]);
    for (key, expected) in [
        ("count", json!(12)),
        ("nan", json!(1)),
        ("infinite", json!(2)),
        ("min", json!(0.0)),
        ("max", json!(8.0)),
        ("mean", json!(4.0)),
    ] {
        assert_eq!(found[key], expected, "{key}");
    }

    // The curve has a gap, and goes to both ends.
    array(&folder, "line", &[1.0, nan, 1.0, inf, 0.0, -inf, 2.0], &[7]);
    let picture = view(&folder, &["line"]);
    for (index, at) in [(0, 0.5), (2, 0.5), (3, 1.0), (5, 0.0), (6, 1.0)] {
        let (x, y) = point(f64::from(index) / 6.0, at);
        assert_eq!(picture.at(x, y), CURVE, "{index}");
    }
    let gap = point(0.5 / 6.0, 0.0).0..point(1.5 / 6.0, 0.0).0;
    assert!(gap.into_iter().all(|x| (0..picture.height).all(|y| picture.at(x, y) != CURVE)));

    // Only NaN: one colour, and no statistics.
    array(&folder, "nan", &[nan; 12], &[3, 4]);
    let picture = view(&folder, &["nan"]);
    assert_eq!(picture.at(left + 4 * side - 1, TOP), NAN);
    assert!(picture.count(NAN) >= (12 * side * side) as usize);
    let picture = view(&folder, &["nan", "--slice", "0"]);
    assert_eq!(picture.count(CURVE), 0);
    assert_eq!(facts(&folder, &["nan"])["mean"], Value::Null);
}

#[test]
fn large_pictures_are_reduced_to_means() {
    let folder = Folder::new();
    // Squares of 2 x 2 items with the mean 5 become one pixel.
    let side = 1264;
    let items: Vec<u8> = (0..side * side).map(|k| [0, 10][(k + k / side) % 2]).collect();
    array(&folder, "a", &items, &[side as u64; 2]);
    let picture = view(&folder, &["a", "--range", "0,10"]);
    assert!(picture.count(MIDDLE) >= 632 * 632, "{}", picture.count(MIDDLE));
    assert_eq!(facts(&folder, &["a"])["mean"], json!(5.0));

    let items: Vec<i32> = (0..15_000).collect();
    array(&folder, "tall", &items, &[5000, 3]);
    array(&folder, "wide", &items, &[3, 5000]);
    for (name, is_tall) in [("tall", true), ("wide", false)] {
        let picture = view(&folder, &[name]);
        assert!(picture.width <= 800 && picture.height <= 800);
        let [top, bottom, left, right] = picture.extent(LOW);
        assert!(top == TOP && bottom < picture.height && right > left, "{name}");
        // The narrow side is stretched, so that an item has more than 20 pixels.
        let along = |k: u32| if is_tall { (left + k, TOP) } else { (left, TOP + k) };
        let (x, y) = along(20);
        assert_eq!(picture.at(x, y), LOW, "{name}");
        let (x, y) = along(70);
        assert!(![LOW, WHITE].contains(&picture.at(x, y)) || is_tall, "{name}");
        assert_eq!(facts(&folder, &[name])["mean"], json!(7499.5));
    }
}

#[test]
fn empty_arrays_and_single_items() {
    let folder = Folder::new();
    for (name, shape) in [("a", &[0][..]), ("b", &[0, 5]), ("c", &[3, 0])] {
        array::<f32>(&folder, name, &[], shape);
        let picture = view(&folder, &[name]);
        assert_eq!(picture.count(CURVE) + picture.count(NAN), 0, "{name}");
        let facts = facts(&folder, &[name]);
        assert_eq!((&facts["count"], &facts["min"]), (&json!(0), &Value::Null));
        assert_eq!(facts["shape"], json!(shape));
    }
    for (name, shape) in [("d", &[][..]), ("e", &[1]), ("f", &[1, 1]), ("g", &[1, 1, 1])] {
        array(&folder, name, &[-2.5f64], shape);
        let picture = view(&folder, &[name]);
        let (x, y) = point(0.5, 0.5);
        assert_eq!(picture.at(x, y), CURVE, "{name}");
        let expected = json!({
            "path": name, "shape": shape, "dtype": native("<f8"), "count": 1, "nan": 0, "infinite": 0,
            "min": -2.5, "max": -2.5, "mean": -2.5,
        });
        assert_eq!(facts(&folder, &[name]), expected);
    }
    // An axis with one item is dropped.
    array(&folder, "h", &[0.0f32, 1.0, 2.0], &[1, 3, 1]);
    let (x, y) = point(0.5, 0.5);
    assert_eq!(view(&folder, &["h"]).at(x, y), CURVE);
}

#[test]
fn statistics_of_slices_and_fields() {
    let folder = Folder::new();
    folder.array("a.b2nd", &[4, 5, 6], &[2, 5, 6], &[1, 5, 6]);
    let text = String::from_utf8(folder.good(&["view", "a.b2nd", "--slice", "1,::-2"])).unwrap();
    let dtype = native("<u4");
    let expected = format!(
        "shape          3, 6\ndtype          {dtype}\ncount          18\nnan            0\n\
         infinite       0\nmin            30\nmax            59\nmean           44.5\n"
    );
    assert_eq!(text, expected);
    for (slice, shape) in [
        ("1:2,::-2", json!([1, 3, 6])),
        ("3", json!([5, 6])),
        ("...,2", json!([4, 5])),
        ("1,2,3", json!([])),
        ("1,4:4,0", json!([0])),
    ] {
        assert_eq!(facts(&folder, &["a.b2nd", "--slice", slice])["shape"], shape, "{slice}");
    }
    array(&folder, "0-d", &[2.5f32], &[]);
    for args in [&["0-d"][..], &["a.b2nd", "--slice=0,0,0"]] {
        let text = String::from_utf8(folder.good(&[&["view"], args].concat())).unwrap();
        assert!(text.starts_with("shape          -\n"), "{text}");
    }
    let shape = [1; 14].into_iter().chain([2, 3]).collect::<Vec<u64>>();
    array(&folder, "16", &[1i8, 2, 3, 4, 5, 6], &shape);
    assert_eq!(facts(&folder, &["16"])["mean"], json!(3.5));

    let dtype = "[('t', '<M8[s]'), ('v', '>f4'), ('n', 'S2')]";
    let item =
        |time: i64, value: f32| [&time.to_le_bytes()[..], &value.to_be_bytes(), b"ab"].concat();
    let items = [item(5, 1.5), item(i64::MIN, 2.5), item(9, f32::NAN)].concat();
    NDArray::builder()
        .target(folder.path("s"))
        .dtype(dtype, 14)
        .from_slice(RawItems(&items), &[3])
        .unwrap();
    let time = facts(&folder, &["s", "--field", "t"]);
    assert_eq!((&time["nan"], &time["min"], &time["max"]), (&json!(1), &json!(5.0), &json!(9.0)));
    let value = facts(&folder, &["s", "--field", "v"]);
    assert_eq!((&value["nan"], &value["mean"]), (&json!(1), &json!(2.0)));
    let line = folder.bad(1, &["view", "s"]);
    assert_eq!(
        line,
        "blosc2: cannot view (s): its dtype has fields; select one with --field: t, v, n\n"
    );
    let line = folder.bad(1, &["view", "s", "--field", "n"]);
    assert!(line.contains("items of dtype `|S2` are not numbers"), "{line}");
}

#[test]
fn dates_and_durations_are_printed_as_text() {
    let folder = Folder::new();
    let time = 1_704_067_200_123_456_789;
    for (dtype, times, expected) in [
        (
            "<M8[ns]",
            [time, i64::MIN, time + 3],
            [
                "2024-01-01T00:00:00.123456789",
                "2024-01-01T00:00:00.123456792",
                // The nearest `f8` is lower than both.
                "2024-01-01T00:00:00.123456789",
            ],
        ),
        ("<M8[D]", [0, 1, 4], ["1970-01-01", "1970-01-05", "1970-01-03"]),
        ("<m8[25s]", [-1, 2, 2], ["-25 seconds", "50 seconds", "25 seconds"]),
    ] {
        let bytes = times.map(i64::to_le_bytes).concat();
        let _ = std::fs::remove_file(folder.path("a"));
        NDArray::builder()
            .target(folder.path("a"))
            .dtype(dtype, 8)
            .from_slice(RawItems(&bytes), &[3])
            .unwrap();
        let text = String::from_utf8(folder.good(&["view", "a"])).unwrap();
        let lines: Vec<&str> = text.lines().skip(5).collect();
        let [min, max, mean] = expected;
        let expected = [("min", min), ("max", max), ("mean", mean)]
            .map(|(name, text)| format!("{name:<14} {text}"));
        assert_eq!(lines, expected, "{dtype}");
        assert!(facts(&folder, &["a"])["min"].is_f64(), "{dtype}");
    }
    let bytes = i64::MIN.to_le_bytes();
    NDArray::builder()
        .target(folder.path("nat"))
        .dtype("<M8[s]", 8)
        .from_slice(RawItems(&bytes), &[1])
        .unwrap();
    let text = String::from_utf8(folder.good(&["view", "nat"])).unwrap();
    assert!(text.contains("nan            1\n") && text.ends_with("mean           -\n"), "{text}");
}

#[test]
fn means_of_large_numbers_are_shown() {
    let folder = Folder::new();
    array(&folder, "a", &[1e308; 4], &[2, 2]);
    assert_eq!(facts(&folder, &["a"])["mean"], json!(1e308));
    // Each cell of a picture is the mean of many items.
    let items: Vec<f64> = (0..1500 * 1500).map(|k| [1e308, -1e308][k / 1500 / 750]).collect();
    array(&folder, "b", &items, &[1500, 1500]);
    let picture = view(&folder, &["b"]);
    let (top, bottom) = (picture.at(100, TOP + 10), picture.at(100, TOP + 500));
    assert_eq!((top, bottom), (HIGH, LOW));
    assert_eq!(picture.count(NAN), 0);
}

#[test]
fn files_without_a_dtype_need_one() {
    let folder = Folder::new();
    folder.schunk("s.b2frame", &blosc2::CParams::default());
    let line = folder.bad(1, &["view", "s.b2frame"]);
    assert!(
        line.starts_with("blosc2: cannot view (s.b2frame): it has no dtype; --dtype"),
        "{line}"
    );
    let line = folder.bad(1, &["view", "s.b2frame", "--dtype", "f4"]);
    assert!(line.contains(&native("the dtype `<f4` has 4 bytes, but its typesize is 2")), "{line}");
    // Dtypes that are stored and not usable are named, with the reason.
    let builder = || NDArray::builder();
    builder()
        .target(folder.path("b"))
        .dtype("bfloat16", 2)
        .from_slice(RawItems(&[0; 4]), &[2])
        .unwrap();
    let line = folder.bad(1, &["view", "b"]);
    let start = "blosc2: cannot view (b): its dtype `bfloat16` is not supported: ";
    assert!(line.starts_with(start) && line.ends_with("; --dtype sets another one\n"), "{line}");
    assert!(line.len() > start.len() + 40, "{line}");
    assert_eq!(facts(&folder, &["b", "--dtype", "u2"])["count"], json!(2));
    builder().target(folder.path("c")).dtype("<f8", 2).from_slice(RawItems(&[0; 4]), &[2]).unwrap();
    let line = folder.bad(1, &["view", "c"]);
    assert!(line.contains("its dtype `<f8` has 8 bytes, and its items have 2; --dtype"), "{line}");
    let found = facts(&folder, &["s.b2frame", "--dtype", "u2", "--slice", "10:"]);
    assert_eq!((&found["count"], &found["mean"]), (&json!(340), &json!(179.5)));
    let mut count = 0;
    for (path, raw) in old_files() {
        let info = folder.info(&path);
        let typesize = info["typesize"].as_u64().unwrap();
        if !raw.is_empty() && [1, 2, 4, 8].contains(&typesize) {
            let output = folder.run(&["view", &path, "--dtype", &format!("u{typesize}"), "--json"]);
            let found: Value = serde_json::from_slice(&output.stdout).unwrap();
            assert_eq!(found["count"], json!(raw.len() as u64 / typesize), "{path}");
            count += 1;
        }
    }
    assert!(count > 5, "{count}");
}

#[test]
fn what_cannot_be_viewed_is_refused() {
    let folder = Folder::new();
    folder.array("a.b2nd", &[4, 5, 6], &[2, 5, 6], &[1, 5, 6]);
    let line = folder.bad(1, &["view", "a.b2nd"]);
    assert_eq!(
        line,
        "blosc2: cannot view (a.b2nd): the slice has 3 dimensions, expected 1 or 2; select fewer, such as --slice 0\n"
    );
    let line = folder.bad(1, &["view", "a.b2nd", "--slice", "9"]);
    assert!(line.contains("--slice of a.b2nd"), "{line}");
    for args in [
        &["--range", "1"][..],
        &["--range", "2,1"],
        &["--range", "0,inf"],
        &["--range", "a,b"],
        &["--width", "10"],
        &["--width", "99999"],
        &["--colormap", "rainbow"],
        &["--dtype", "q9"],
    ] {
        folder.bad(2, &[&["view", "a.b2nd"], args].concat());
    }
    folder.bad(1, &["view", "missing"]);
    folder.write("a.png", b"kept");
    let args = ["view", "a.b2nd", "--slice", "0", "-o", "a.png"];
    let line = folder.bad(1, &args);
    assert!(line.contains("(a.png): it already exists"), "{line}");
    folder.good(&[&args[..], &["--force"]].concat());
    assert!(folder.read("a.png").starts_with(b"\x89PNG"));
    folder.bad(1, &["view", "a.b2nd", "--slice", "0", "-o", "no/a.png"]);
}

#[test]
fn pipes_have_their_picture_without_statistics() {
    let folder = Folder::new();
    array(&folder, "a", &[0u8, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11], &[3, 4]);
    let picture = folder.good(&["view", "a", "-o", "-"]);
    folder.good(&["view", "a", "-o", "a.png"]);
    assert!(picture == folder.read("a.png"));
    let output = folder.piped(&["view", "-", "--json"], &folder.read("a"));
    assert!(output.status.success(), "{output:?}");
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&found["path"], &found["mean"]), (&json!("-"), &json!(5.5)));
}

#[test]
#[cfg(unix)]
fn terminals_show_pictures() {
    use crate::terminal::displayed;

    let folder = Folder::new();
    let items: Vec<u16> = (0..400).collect();
    array(&folder, "image", &items, &[20, 20]);
    array(&folder, "line", &items, &[400]);
    let statistics = String::from_utf8(folder.good(&["view", "image"])).unwrap();
    let show = |args: &[&str], variables: &[(&str, &str)]| {
        let (status, text) = displayed(&folder, &[&["view"], args].concat(), variables);
        assert_eq!(status, Some(0), "{text}");
        text.replace("\r\n", "\n")
    };
    let text = show(&["image"], &[("COLORTERM", "truecolor")]);
    assert!(text.starts_with(&native("image  20 x 20  <u2\n\u{1b}")), "{text:?}");
    assert!(text.ends_with(&statistics), "{text:?}");
    for colour in [LOW, HIGH] {
        let [r, g, b] = colour;
        assert!(text.contains(&format!("38;2;{r};{g};{b}m")), "{colour:?} {text:?}");
    }
    // 20 rows in 10 lines of half blocks, and the scale.
    assert_eq!(text.lines().filter(|line| line.contains('▀')).count(), 11, "{text}");
    let text = show(&["image"], &[]);
    assert!(text.contains("\u{1b}[38;5;") && !text.contains("38;2;"), "{text:?}");
    let text = show(&["image"], &[("NO_COLOR", "1")]);
    assert!(!text.contains('\u{1b}') && text.contains("\n0 ...:::"), "{text:?}");
    assert!(show(&["image", "--json"], &[]).starts_with('{'));

    let text = show(&["line"], &[]);
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines.iter().all(|line| line.chars().count() <= 80), "{text}");
    assert!(lines[1].starts_with("        399 ") && lines[1].ends_with('⠉'), "{text}");
    let last = lines.iter().position(|line| line.ends_with("399") && line.contains(" 0 ")).unwrap();
    assert!(lines[last - 1].starts_with("          0 ⣠"), "{text}");
}
