//! An estimate of the width of text: an SVG is laid out before any font is known.
//!
//! Widths are those of a wide sans-serif font (DejaVu Sans), so that narrower ones leave room instead of overlapping.

/// Pixels from one line of text to the next, for text of this size.
pub fn line_height(size: f64) -> f64 {
    (size * 1.3).ceil()
}

/// Pixels that a line of text takes at this size.
pub fn width(text: &str, size: f64) -> f64 {
    text.chars().map(em).sum::<f64>() * size
}

/// A character's width as a share of the font's size.
fn em(letter: char) -> f64 {
    match letter {
        'i' | 'j' | 'l' | '\'' | '|' => 0.30,
        'f' | 't' | 'r' | ' ' | '.' | ',' | ':' | ';' | '-' | '(' | ')' | '[' | ']' | '/' | '!' => {
            0.42
        }
        'm' | 'w' | 'M' | 'W' | '%' | '@' => 1.0,
        '<' | '>' | '=' | '+' | '^' | '~' | '&' | '#' => 0.84,
        'A'..='Z' => 0.75,
        letter if letter.is_ascii() => 0.64,
        _ => 1.0,
    }
}

/// Lines of at most `room` pixels: broken between words, and inside a word that is longer than a line.
pub fn wrap(text: &str, size: f64, room: f64) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::new();
    for word in text.split_whitespace() {
        let joined = match line.is_empty() {
            true => word.to_owned(),
            false => format!("{line} {word}"),
        };
        if width(&joined, size) <= room {
            line = joined;
            continue;
        }
        if !line.is_empty() {
            lines.push(std::mem::take(&mut line));
        }
        for letter in word.chars() {
            if !line.is_empty() && width(&line, size) + em(letter) * size > room {
                lines.push(std::mem::take(&mut line));
            }
            line.push(letter);
        }
    }
    if !line.is_empty() {
        lines.push(line);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn widest(lines: &[String], size: f64) -> f64 {
        let widths = lines.iter().map(|line| width(line, size));
        widths.fold(0.0, f64::max)
    }

    #[test]
    fn lines_are_broken_between_words_and_nothing_is_lost() {
        let text = "cycles a packet in each stage of the pipeline";
        let lines = wrap(text, 13.0, 120.0);
        assert!(lines.len() > 2);
        assert!(widest(&lines, 13.0) <= 120.0);
        assert_eq!(lines.join(" "), text);
    }

    #[test]
    fn a_word_longer_than_a_line_is_broken() {
        let word = "pblru:second-to-last".repeat(5);
        let lines = wrap(&word, 13.0, 120.0);
        assert!(widest(&lines, 13.0) <= 120.0);
        assert_eq!(lines.concat(), word);
        // A line that is too narrow for a letter has one letter all the same.
        assert_eq!(wrap("mm", 13.0, 1.0), ["m", "m"]);
        assert_eq!(wrap("", 13.0, 120.0), Vec::<String>::new());
    }
}
