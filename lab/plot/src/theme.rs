//! Colours: paper and ink that follow the reader's scheme, series that show on both.

use plotters::style::RGBColor;

/// The background.
pub const PAPER: RGBColor = RGBColor(0xff, 0xff, 0xff);
/// Text and axes.
pub const INK: RGBColor = RGBColor(0x24, 0x29, 0x2f);
/// Grid lines.
pub const GRID: RGBColor = RGBColor(0xd8, 0xde, 0xe4);

/// The colours of series, told apart also by those who confuse red and green; each has a contrast of
/// at least 3 to 1 on both papers, what WCAG 2.1 asks of graphics.
pub const SERIES: [RGBColor; 8] = [
    RGBColor(0x2f, 0x81, 0xc7),
    RGBColor(0xd0, 0x6b, 0x0d),
    RGBColor(0x1f, 0x93, 0x6a),
    RGBColor(0x9b, 0x5f, 0xc0),
    RGBColor(0xcc, 0x4b, 0x5b),
    RGBColor(0x7a, 0x82, 0x8a),
    RGBColor(0x8f, 0x7a, 0x14),
    RGBColor(0x1a, 0x8f, 0xa3),
];

/// The colour of series number `index`.
pub fn series(index: usize) -> RGBColor {
    SERIES[index % SERIES.len()]
}

/// Puts a style sheet behind the `<svg …>` tag that exchanges paper and ink in a dark scheme.
pub fn follow_scheme(svg: &str) -> String {
    let dark = [(PAPER, "#0D1117"), (INK, "#E6EDF3"), (GRID, "#30363D")];
    let rules: String = dark
        .iter()
        .map(|(light, dark)| {
            let light = hex(*light);
            format!("[fill=\"{light}\"]{{fill:{dark}}}[stroke=\"{light}\"]{{stroke:{dark}}}")
        })
        .collect();
    let style = format!("<style>@media (prefers-color-scheme: dark){{{rules}}}</style>");
    match svg.find('>') {
        Some(end) => format!("{}\n{style}{}", &svg[..=end], &svg[end + 1..]),
        None => svg.to_owned(),
    }
}

/// A colour as the SVG backend writes it.
fn hex(RGBColor(red, green, blue): RGBColor) -> String {
    format!("#{red:02X}{green:02X}{blue:02X}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// WCAG 2.1's relative luminance.
    fn luminance(RGBColor(red, green, blue): RGBColor) -> f64 {
        let linear = |byte: u8| {
            let share = f64::from(byte) / 255.0;
            match share <= 0.03928 {
                true => share / 12.92,
                false => ((share + 0.055) / 1.055).powf(2.4),
            }
        };
        0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue)
    }

    #[test]
    fn series_show_on_both_papers() {
        for paper in [PAPER, RGBColor(0x0d, 0x11, 0x17)] {
            for colour in SERIES {
                let (one, other) = (luminance(paper), luminance(colour));
                let contrast = (one.max(other) + 0.05) / (one.min(other) + 0.05);
                assert!(contrast >= 3.0, "{colour:?} on {paper:?}: {contrast}");
            }
        }
    }

    #[test]
    fn the_style_sheet_stands_inside() {
        let svg = follow_scheme("<svg width=\"1\"><rect/></svg>");
        assert!(svg.starts_with("<svg width=\"1\">\n<style>"));
        assert!(svg.ends_with("</style><rect/></svg>"));
        assert!(svg.contains("[fill=\"#FFFFFF\"]{fill:#0D1117}"));
    }
}
