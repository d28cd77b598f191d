//! Tests that every chart, of one value and of many, is readable: its texts lie inside the picture and apart from one
//! another.

use nuthatch_plot::{
    Axis, Curve, DotChart, DotGroup, DotRow, Estimate, Layer, LineChart, Mark, Panel, PanelChart,
    PanelX, PlotError, Tone,
};
use roxmltree::Document;

/// A text's place, estimated from its length.
#[derive(Debug)]
struct Written {
    words: String,
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
}

/// Width, height and texts of a picture.
fn read(svg: &str) -> (f64, f64, Vec<Written>) {
    let document = Document::parse(svg).unwrap();
    let root = document.root_element();
    let number = |node: roxmltree::Node<'_, '_>, name| -> f64 {
        node.attribute(name).unwrap().parse().unwrap()
    };
    let [_, _, units, _] = root
        .attribute("viewBox")
        .unwrap()
        .split(' ')
        .collect::<Vec<_>>()[..]
    else {
        panic!("a view box has four numbers");
    };
    let unit = number(root, "width") / units.parse::<f64>().unwrap();
    let texts = document
        .descendants()
        .filter(|node| node.has_tag_name("text"));
    let written = texts.map(|text| {
        assert!(text.attribute("transform").is_none(), "turned text");
        let words = text.text().unwrap().trim().to_owned();
        let size = number(text, "font-size") * unit;
        assert!((11.5..17.0).contains(&size), "{words}: {size}");
        let (x, y) = (number(text, "x") * unit, number(text, "y") * unit);
        // 0.54 em a letter: the mean of a wide sans-serif font.
        let width = words.chars().count() as f64 * 0.54 * size;
        let left = match text.attribute("text-anchor").unwrap() {
            "start" => x,
            "middle" => x - width / 2.0,
            "end" => x - width,
            anchor => panic!("{anchor}"),
        };
        let (top, bottom) = (y - 0.45 * size, y + 0.45 * size);
        Written {
            words,
            left,
            right: left + width,
            top,
            bottom,
        }
    });
    let written = written.collect();
    (number(root, "width"), number(root, "height"), written)
}

/// Fails unless all texts lie inside the picture and apart from one another. The texts, joined.
fn readable(svg: &str) -> String {
    let (width, height, texts) = read(svg);
    assert_eq!(width, 700.0);
    assert!(height < 3000.0, "{height}");
    for (number, one) in texts.iter().enumerate() {
        let inside =
            one.left >= 0.0 && one.right <= width && one.top >= 0.0 && one.bottom <= height;
        assert!(inside, "{one:?} outside of {width} x {height}");
        for other in &texts[number + 1..] {
            let beside = one.right <= other.left || other.right <= one.left;
            let above = one.bottom <= other.top || other.bottom <= one.top;
            assert!(beside || above, "{one:?} on {other:?}");
        }
    }
    let words: Vec<String> = texts.into_iter().map(|text| text.words).collect();
    words.join(" ")
}

/// Names as they come: short, with spaces, with what XML escapes, and much too long.
fn name(number: usize) -> String {
    match number % 4 {
        0 => format!("4-way {number}"),
        1 => format!("<blp> & \"{number}\""),
        2 => format!("cuckoo-lite, pblru:second-to-last, 2^20 entries {number}"),
        _ => format!("hashbrown-{}", "very-long-".repeat(8)),
    }
}

const TITLES: [&str; 2] = [
    "Hit rate",
    "Hit rate of every design that was measured, uniform keys, 0.95 keys / entry, 2^20 entries, a warm-up of 100 \
     lookups a key, batches of 32",
];

fn lines(count: usize, title: &str, value: impl Fn(usize, f64) -> f64) -> LineChart {
    let curve = |number| {
        let points = (1..=9).map(|x| (f64::from(x), value(number, f64::from(x))));
        Curve::measured(name(number), points.collect())
    };
    LineChart {
        title: title.into(),
        note: title.into(),
        x: Axis::linear("keys / entry"),
        y: Axis::linear("hit rate"),
        curves: (0..count).map(curve).collect(),
    }
}

fn dots(count: usize, panels: usize, title: &str, value: impl Fn(usize) -> Estimate) -> DotChart {
    let row = |number| DotRow {
        name: name(number),
        estimates: (0..panels).map(|panel| value(number + panel)).collect(),
    };
    let group = |first: usize| DotGroup {
        name: name(first),
        rows: (first..count.min(first + 6)).map(row).collect(),
    };
    DotChart {
        title: title.into(),
        note: title.into(),
        axis: Axis::linear("cycles a lookup"),
        digits: 1,
        panels: (0..panels).map(name).collect(),
        groups: (0..count).step_by(6).map(group).collect(),
    }
}

fn panels(count: usize, title: &str, x: PanelX, layers: &[Layer]) -> PanelChart {
    let panel = |number| Panel {
        name: name(number),
        layers: layers.to_vec(),
    };
    PanelChart {
        title: title.into(),
        note: title.into(),
        x,
        y: Axis::linear("share of the keys, percent"),
        panels: (0..count).map(panel).collect(),
    }
}

fn layer(mark: Mark, points: &[(f64, f64)]) -> Layer {
    Layer {
        mark,
        tone: Tone::Subject,
        points: points.to_vec(),
    }
}

#[test]
fn lines_of_any_number_are_readable() {
    for title in TITLES {
        for count in [1, 2, 7, 30] {
            // Apart, all through one point at the end, and all alike.
            readable(
                &lines(count, title, |number, x| number as f64 + x)
                    .svg()
                    .unwrap(),
            );
            readable(
                &lines(count, title, |number, x| (9.0 - x) * number as f64)
                    .svg()
                    .unwrap(),
            );
            readable(&lines(count, title, |_, _| 0.5).svg().unwrap());
        }
    }
}

#[test]
fn a_line_is_named_once_and_wholly() {
    let text = readable(
        &lines(4, "Lookups", |number, x| number as f64 * x)
            .svg()
            .unwrap(),
    );
    let name = "cuckoo-lite, pblru:second-to-last, 2^20 entries 2";
    assert_eq!(text.matches(name).count(), 1, "{text}");
    assert_eq!(text.matches("<blp> & \"1\"").count(), 1, "{text}");
    assert!(
        text.contains("keys / entry") && text.contains("hit rate"),
        "{text}"
    );
}

#[test]
fn logarithmic_axes_are_readable_and_leave_out_zero() {
    let axes = [Axis::logarithmic("misses"), Axis::binary("misses")];
    for y in axes {
        for ends in [(1.0, 1.5), (1e-9, 1e9), (256.0, 262_144.0), (5.0, 5.0)] {
            let points = vec![(1.0, 0.0), (10.0, ends.0), (100.0, ends.1)];
            let curve = Curve::measured("xxh3", points);
            let chart = LineChart {
                x: Axis::binary("buckets"),
                y: y.clone(),
                curves: vec![curve],
                ..lines(0, "Searches", |_, _| 0.0)
            };
            let svg = chart.svg().unwrap();
            readable(&svg);
            assert_eq!(svg.matches("<circle").count(), 2);
        }
    }
}

#[test]
fn dots_of_any_number_are_readable() {
    for title in TITLES {
        for count in [1, 2, 13, 30] {
            for panels in [1, 2, 3] {
                let spread = |number| {
                    let middle = 20.0 + number as f64;
                    Estimate::spread(middle, middle - 3.0, middle * 2.0)
                };
                readable(&dots(count, panels, title, spread).svg().unwrap());
                readable(
                    &dots(count, panels, title, |_| Estimate::exact(0.5))
                        .svg()
                        .unwrap(),
                );
                readable(
                    &dots(count, panels, title, |_| Estimate::exact(0.0))
                        .svg()
                        .unwrap(),
                );
            }
        }
    }
}

#[test]
fn a_dot_for_each_row_and_panel_and_a_tick_for_what_is_expected() {
    let estimate = |number| Estimate {
        expected: Some(1.25),
        ..Estimate::exact(number as f64)
    };
    let svg = dots(5, 2, "Hit rate", estimate).svg().unwrap();
    assert_eq!(svg.matches("<circle").count(), 10);
    let text = readable(&svg);
    // The values stand in figures: 0.0 to 5.0, of which one is in both panels but for the ends.
    assert!(text.contains("0.0") && text.contains("5.0"), "{text}");
    let without = dots(5, 2, "Hit rate", |number| Estimate::exact(number as f64));
    let lines = |svg: &str| svg.matches("<polyline").count();
    assert_eq!(lines(&svg), lines(&without.svg().unwrap()) + 10);
}

#[test]
fn panels_of_any_number_are_readable() {
    let sizes: Vec<String> = (0..=15)
        .map(|size| size.to_string())
        .chain([">15".into()])
        .collect();
    let ranges: Vec<String> = (0..17)
        .map(|bin| format!("{}-{}", bin * 40, bin * 40 + 39))
        .collect();
    for title in TITLES {
        for count in [1, 2, 3, 4, 5, 6, 30] {
            for names in [&sizes, &ranges] {
                let x = PanelX::Names {
                    label: "keys in a bucket".into(),
                    names: names.clone(),
                };
                let heights: Vec<(f64, f64)> =
                    (0..17).map(|place| (f64::from(place), 3.0)).collect();
                let layers = [layer(Mark::Bars, &heights), layer(Mark::Outline, &heights)];
                readable(&panels(count, title, x, &layers).svg().unwrap());
            }
            for axis in [Axis::linear("keys / entry"), Axis::logarithmic("bytes")] {
                let points = [(0.5, 0.96), (1.0, 0.8), (20_000.0, 0.5)];
                let layers = [layer(Mark::Line, &points), layer(Mark::Dots, &points)];
                let chart = panels(count, title, PanelX::Numbers(axis), &layers);
                readable(&chart.svg().unwrap());
            }
        }
    }
}

#[test]
fn every_bar_that_is_not_zero_is_drawn() {
    let x = PanelX::Names {
        label: "size".into(),
        names: vec!["1".into(), "2".into(), "3".into()],
    };
    let rectangles = |heights: &[(f64, f64)]| {
        let chart = panels(1, "Sizes", x.clone(), &[layer(Mark::Bars, heights)]);
        chart.svg().unwrap().matches("<rect").count()
    };
    let paper = rectangles(&[(0.0, 0.0)]);
    let drawn = rectangles(&[(0.0, 0.0), (1.0, 1e-9), (2.0, 99.0)]);
    assert_eq!(drawn, paper + 2);
}

#[test]
fn nothing_to_draw_is_an_error() {
    let empty = Err(PlotError::Empty);
    assert_eq!(lines(0, "", |_, x| x).svg(), empty);
    assert_eq!(dots(0, 1, "", |_| Estimate::exact(1.0)).svg(), empty);
    assert_eq!(dots(1, 0, "", |_| Estimate::exact(1.0)).svg(), empty);
    let x = PanelX::Numbers(Axis::linear("x"));
    assert_eq!(panels(0, "", x.clone(), &[]).svg(), empty);
    assert_eq!(panels(2, "", x, &[layer(Mark::Line, &[])]).svg(), empty);
    let mut below = lines(1, "", |_, x| -x);
    below.y = Axis::logarithmic("y");
    assert_eq!(below.svg(), empty);
}

#[test]
fn what_cannot_be_drawn_is_an_error_that_names_its_series() {
    for value in [f64::NAN, f64::INFINITY] {
        let error = Err(PlotError::NotFinite("4-way 0".into()));
        assert_eq!(lines(1, "", |_, _| value).svg(), error);
        assert_eq!(dots(1, 1, "", |_| Estimate::exact(value)).svg(), error);
        let x = PanelX::Numbers(Axis::linear("x"));
        assert_eq!(
            panels(1, "", x, &[layer(Mark::Line, &[(0.0, value)])]).svg(),
            error
        );
    }
    let mut chart = dots(1, 1, "", |_| Estimate::exact(0.0));
    chart.axis = Axis::logarithmic("ns");
    assert_eq!(chart.svg(), Err(PlotError::NotPositive("4-way 0".into())));
    let x = PanelX::Numbers(Axis::linear("x"));
    assert_eq!(
        panels(1, "", x, &[layer(Mark::Bars, &[(0.0, -1.0)])]).svg(),
        Err(PlotError::Negative("4-way 0".into()))
    );
    let mut chart = dots(1, 2, "", |_| Estimate::exact(1.0));
    chart.panels.pop();
    assert_eq!(chart.svg(), Err(PlotError::Count("4-way 0".into())));
    let said = PlotError::NotFinite("blp-2-4".into()).to_string();
    assert_eq!(said, "a value of blp-2-4 is not a finite number");
}

/// Class of fault: a value that every check lets through, and that an axis cannot count with.
#[test]
fn values_of_any_size_are_drawn_or_refused() {
    let axes = [Axis::linear, Axis::logarithmic, Axis::binary].map(|axis| axis("l"));
    let values = [
        0.0, 5e-324, 1e-310, 1e-280, 1e-120, 1.0, 1e120, 1e280, 1e300, 1e308,
    ];
    for axis in &axes {
        for one in values {
            for other in values.into_iter().flat_map(|value| [value, -value]) {
                let mut chart = lines(1, "", |_, x| if x < 5.0 { one } else { other });
                chart.y = axis.clone();
                let mut across = lines(1, "", |_, x| x);
                across.curves[0].points = vec![(one, 1.0), (other, 2.0)];
                across.x = axis.clone();
                let mut dots = dots(2, 1, "", |_| Estimate::spread(one, one, other));
                dots.axis = axis.clone();
                let places = [(0.0, one), (1.0, other)];
                let names = vec!["a".to_owned(), "b".to_owned()];
                let x = PanelX::Names {
                    label: String::new(),
                    names,
                };
                let bars = panels(1, "", x, &[layer(Mark::Bars, &places)]);
                for drawn in [chart.svg(), across.svg(), dots.svg(), bars.svg()] {
                    let extreme = [one, other].iter().any(|value| {
                        let value = value.abs();
                        value > 0.0 && !(1e-120..=1e120).contains(&value)
                    });
                    match drawn {
                        Ok(svg) => {
                            assert!(!extreme, "{one} {other}");
                            assert!(!svg.contains("NaN"), "{one} {other}");
                        }
                        Err(PlotError::Extreme(_)) => assert!(extreme, "{one} {other}"),
                        Err(PlotError::NotPositive(_)) => assert!(axis != &axes[0]),
                        Err(PlotError::Empty | PlotError::Negative(_)) => {}
                        Err(error) => panic!("{one} {other}: {error}"),
                    }
                }
            }
        }
    }
}
