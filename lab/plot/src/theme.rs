//! Colours: paper and ink follow the reader's scheme; the colours of series show on both papers.

use plotters::style::RGBColor;

/// The background.
pub const PAPER: RGBColor = RGBColor(0xff, 0xff, 0xff);
/// Text, axes and references.
pub const INK: RGBColor = RGBColor(0x24, 0x29, 0x2f);
/// Notes and the numbers of axes.
pub const MUTED: RGBColor = RGBColor(0x57, 0x60, 0x6a);
/// Values for comparison only.
pub const CONTEXT: RGBColor = RGBColor(0xaf, 0xb8, 0xc1);
/// Grid lines.
pub const GRID: RGBColor = RGBColor(0xdf, 0xe4, 0xe9);

/// The paper of a dark page: GitHub's.
const DARK_PAPER: RGBColor = RGBColor(0x0d, 0x11, 0x17);

/// What each colour that follows the scheme is in a dark one.
const DARK: [(RGBColor, RGBColor); 5] = [
    (PAPER, DARK_PAPER),
    (INK, RGBColor(0xe6, 0xed, 0xf3)),
    (MUTED, RGBColor(0x9d, 0xa7, 0xb1)),
    (CONTEXT, RGBColor(0x55, 0x5d, 0x66)),
    (GRID, RGBColor(0x27, 0x2d, 0x35)),
];

/// The colours of series. Each has a contrast of at least 3 to 1 on both papers, which WCAG 2.1 asks of graphics.
/// Any two differ to readers with normal sight, protanopia, deuteranopia and tritanopia: chosen by a search for the
/// greatest least distance, which the tests compute anew.
pub const SERIES: [RGBColor; 7] = [
    RGBColor(0x24, 0x68, 0xd3),
    RGBColor(0xaa, 0x8b, 0x18),
    RGBColor(0xba, 0x3c, 0x6a),
    RGBColor(0x58, 0x69, 0x14),
    RGBColor(0x60, 0x94, 0xdc),
    RGBColor(0x95, 0x40, 0x9e),
    RGBColor(0xe6, 0x64, 0x88),
];

/// Puts a style sheet behind the `<svg …>` tag that gives paper and ink their dark colours in a dark scheme.
pub fn follow_scheme(svg: &str) -> String {
    let rule = |(light, dark): &(RGBColor, RGBColor)| {
        let (light, dark) = (hex(*light), hex(*dark));
        format!("[fill=\"{light}\"]{{fill:{dark}}}[stroke=\"{light}\"]{{stroke:{dark}}}")
    };
    let rules: String = DARK.iter().map(rule).collect();
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

    /// Red, green and blue as amounts of light.
    fn light(RGBColor(red, green, blue): RGBColor) -> [f64; 3] {
        [red, green, blue].map(|byte| {
            let share = f64::from(byte) / 255.0;
            match share <= 0.04045 {
                true => share / 12.92,
                false => ((share + 0.055) / 1.055).powf(2.4),
            }
        })
    }

    fn multiply(matrix: [[f64; 3]; 3], vector: [f64; 3]) -> [f64; 3] {
        matrix.map(|row| row.iter().zip(vector).map(|(one, other)| one * other).sum())
    }

    /// WCAG 2.1's contrast.
    fn contrast(one: RGBColor, other: RGBColor) -> f64 {
        let luminance = |colour| {
            let [red, green, blue] = light(colour);
            0.2126 * red + 0.7152 * green + 0.0722 * blue + 0.05
        };
        let (one, other) = (luminance(one), luminance(other));
        one.max(other) / one.min(other)
    }

    /// The Oklab colour space, in which distances are about as large as they look.
    fn oklab(light: [f64; 3]) -> [f64; 3] {
        let cones = [
            [0.412_221_5, 0.536_332_5, 0.051_446_0],
            [0.211_903_5, 0.680_699_5, 0.107_397_0],
            [0.088_302_5, 0.281_718_8, 0.629_978_7],
        ];
        let lab = [
            [0.210_454_3, 0.793_617_8, -0.004_072_0],
            [1.977_998_5, -2.428_592_2, 0.450_593_7],
            [0.025_904_0, 0.782_771_8, -0.808_675_8],
        ];
        multiply(lab, multiply(cones, light).map(f64::cbrt))
    }

    /// Sight, by Machado, Oliveira and Fernandes (2009): normal, without the long, the middle, the short cones.
    const SIGHT: [[[f64; 3]; 3]; 4] = [
        [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]],
        [
            [0.152_286, 1.052_583, -0.204_868],
            [0.114_503, 0.786_281, 0.099_216],
            [-0.003_882, -0.048_116, 1.051_998],
        ],
        [
            [0.367_322, 0.860_646, -0.227_968],
            [0.280_085, 0.672_501, 0.047_413],
            [-0.011_820, 0.042_940, 0.968_881],
        ],
        [
            [1.255_528, -0.076_749, -0.178_779],
            [-0.078_411, 0.930_809, 0.147_602],
            [0.004_733, 0.691_367, 0.303_900],
        ],
    ];

    #[test]
    fn series_show_on_both_papers() {
        for paper in [PAPER, DARK_PAPER] {
            for colour in SERIES {
                let contrast = contrast(paper, colour);
                assert!(contrast >= 3.0, "{colour:?} on {paper:?}: {contrast}");
            }
        }
    }

    #[test]
    fn text_can_be_read_on_both_papers() {
        for (light, dark) in &DARK[1..3] {
            assert!(contrast(PAPER, *light) >= 4.5, "{light:?}");
            assert!(contrast(DARK_PAPER, *dark) >= 4.5, "{dark:?}");
        }
    }

    #[test]
    fn series_can_be_told_apart_with_any_sight() {
        for sight in SIGHT {
            let seen = SERIES
                .map(|colour| oklab(multiply(sight, light(colour)).map(|amount| amount.max(0.0))));
            for (number, one) in seen.iter().enumerate() {
                for (other_number, other) in seen.iter().enumerate().skip(number + 1) {
                    let squares = one
                        .iter()
                        .zip(other)
                        .map(|(one, other)| (one - other).powi(2));
                    let distance = squares.sum::<f64>().sqrt();
                    assert!(distance > 0.07, "{number} and {other_number}: {distance}");
                }
            }
        }
    }

    #[test]
    fn the_style_sheet_is_inside_the_picture() {
        let svg = follow_scheme("<svg width=\"1\"><rect/></svg>");
        assert!(svg.starts_with("<svg width=\"1\">\n<style>"));
        assert!(svg.ends_with("</style><rect/></svg>"));
        assert!(svg.contains("[fill=\"#FFFFFF\"]{fill:#0D1117}"));
    }
}
