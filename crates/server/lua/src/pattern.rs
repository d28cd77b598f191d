//! Lua's patterns. Lua's own matcher calls no hook, and takes hours for some patterns of a hundred bytes, so this one
//! counts its steps.

/// Captures of a pattern.
const CAPTURES_MAX: usize = 32;

/// How deep parts of a pattern may wait for what is behind them.
const DEPTH_MAX: usize = 200;

const ESCAPE: u8 = b'%';

/// Why nothing was looked for, or why the search ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The pattern is none: Lua's words for it.
    Malformed(&'static str),
    /// The steps are used up.
    TooLong,
}

/// What a capture is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Capture {
    /// Bytes of the subject, from here to there.
    Text(usize, usize),
    /// A position in the subject, from 0.
    Position(usize),
    /// Its end was not named.
    Open,
}

/// Where a pattern was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Match {
    /// The first byte.
    pub start: usize,
    /// Behind the last byte.
    pub end: usize,
    /// The captures that the pattern names.
    pub captures: Vec<Capture>,
}

/// What is known of a capture while the pattern is matched.
#[derive(Clone, Copy)]
enum Len {
    Open,
    Position,
    Bytes(usize),
}

struct Matcher<'a> {
    subject: &'a [u8],
    pattern: &'a [u8],
    captures: [(usize, Len); CAPTURES_MAX],
    level: usize,
    depth: usize,
    steps: &'a mut u64,
}

/// True if a pattern has no special bytes, as Lua looks for them: a bracket that closes is none.
pub fn is_plain(pattern: &[u8]) -> bool {
    let mut bytes = pattern.iter().take_while(|byte| **byte != 0);
    !bytes.any(|byte| b"^$*+?.([%-".contains(byte))
}

/// Looks for a pattern from `init` on. With `anchors` a `^` in front means the start. `steps` are taken off.
pub fn search(
    subject: &[u8],
    pattern: &[u8],
    init: usize,
    anchors: bool,
    steps: &mut u64,
) -> Result<Option<Match>, Fault> {
    // As in Lua, a pattern ends at its first zero byte.
    let pattern = pattern.split(|byte| *byte == 0).next().unwrap_or_default();
    let (is_anchored, from) = match pattern.first() {
        Some(b'^') if anchors => (true, 1),
        _ => (false, 0),
    };
    let mut matcher = Matcher {
        subject,
        pattern,
        captures: [(0, Len::Open); CAPTURES_MAX],
        level: 0,
        depth: 0,
        steps,
    };
    for start in init..=subject.len() {
        matcher.level = 0;
        if let Some(end) = matcher.matches(start, from)? {
            let captures = matcher.found();
            return Ok(Some(Match {
                start,
                end,
                captures,
            }));
        }
        if is_anchored {
            break;
        }
    }
    Ok(None)
}

type Found = Result<Option<usize>, Fault>;

impl Matcher<'_> {
    fn step(&mut self) -> Result<(), Fault> {
        *self.steps = self.steps.checked_sub(1).ok_or(Fault::TooLong)?;
        Ok(())
    }

    fn found(&self) -> Vec<Capture> {
        let captures = self.captures[..self.level].iter();
        let captures = captures.map(|&(start, len)| match len {
            Len::Bytes(len) => Capture::Text(start, start + len),
            Len::Position => Capture::Position(start),
            Len::Open => Capture::Open,
        });
        captures.collect()
    }

    /// Where the part of the pattern from `p` on ends in the subject, if it begins at `s`.
    fn matches(&mut self, s: usize, p: usize) -> Found {
        if self.depth >= DEPTH_MAX {
            return Err(Fault::Malformed("pattern too complex"));
        }
        self.depth += 1;
        let found = self.matches_here(s, p);
        self.depth -= 1;
        found
    }

    fn matches_here(&mut self, mut s: usize, mut p: usize) -> Found {
        loop {
            self.step()?;
            let Some(&first) = self.pattern.get(p) else {
                return Ok(Some(s));
            };
            let next = self.pattern.get(p + 1).copied();
            match (first, next) {
                (b'(', Some(b')')) => return self.open(s, p + 2, Len::Position),
                (b'(', _) => return self.open(s, p + 1, Len::Open),
                (b')', _) => return self.close(s, p + 1),
                (b'$', None) => return Ok((s == self.subject.len()).then_some(s)),
                (ESCAPE, Some(b'b')) => match self.balance(s, p + 2)? {
                    Some(end) => (s, p) = (end, p + 4),
                    None => return Ok(None),
                },
                (ESCAPE, Some(b'f')) => match self.frontier(s, p + 2)? {
                    Some(behind) => p = behind,
                    None => return Ok(None),
                },
                (ESCAPE, Some(digit @ b'0'..=b'9')) => match self.repeated(s, digit)? {
                    Some(end) => (s, p) = (end, p + 2),
                    None => return Ok(None),
                },
                _ => {
                    let behind = self.class_end(p)?;
                    let fits = self.fits(s, p, behind)?;
                    match self.pattern.get(behind) {
                        Some(b'?') => {
                            if fits && let Some(end) = self.matches(s + 1, behind + 1)? {
                                return Ok(Some(end));
                            }
                            p = behind + 1;
                        }
                        Some(b'*') => return self.most(s, p, behind),
                        Some(b'+') if fits => return self.most(s + 1, p, behind),
                        Some(b'+') => return Ok(None),
                        Some(b'-') => return self.fewest(s, p, behind),
                        _ if fits => (s, p) = (s + 1, behind),
                        _ => return Ok(None),
                    }
                }
            }
        }
    }

    fn open(&mut self, s: usize, p: usize, len: Len) -> Found {
        let level = self.level;
        if level >= CAPTURES_MAX {
            return Err(Fault::Malformed("too many captures"));
        }
        self.captures[level] = (s, len);
        self.level = level + 1;
        let found = self.matches(s, p)?;
        if found.is_none() {
            self.level -= 1;
        }
        Ok(found)
    }

    fn close(&mut self, s: usize, p: usize) -> Found {
        let open = (0..self.level).rev();
        let mut open = open.filter(|&at| matches!(self.captures[at].1, Len::Open));
        let Some(at) = open.next() else {
            return Err(Fault::Malformed("invalid pattern capture"));
        };
        self.captures[at].1 = Len::Bytes(s - self.captures[at].0);
        let found = self.matches(s, p)?;
        if found.is_none() {
            self.captures[at].1 = Len::Open;
        }
        Ok(found)
    }

    /// `%bxy`
    fn balance(&mut self, s: usize, p: usize) -> Found {
        let (Some(&open), Some(&close)) = (self.pattern.get(p), self.pattern.get(p + 1)) else {
            return Err(Fault::Malformed("unbalanced pattern"));
        };
        if self.subject.get(s) != Some(&open) {
            return Ok(None);
        }
        let mut depth = 1;
        for at in s + 1..self.subject.len() {
            self.step()?;
            let byte = self.subject[at];
            if byte == close {
                depth -= 1;
                if depth == 0 {
                    return Ok(Some(at + 1));
                }
            } else if byte == open {
                depth += 1;
            }
        }
        Ok(None)
    }

    /// `%f[set]`: what is behind it in the pattern, if the border is at `s`.
    fn frontier(&mut self, s: usize, p: usize) -> Found {
        if self.pattern.get(p) != Some(&b'[') {
            return Err(Fault::Malformed("missing '[' after '%f' in pattern"));
        }
        let behind = self.class_end(p)?;
        let before = match s {
            0 => 0,
            _ => self.subject[s - 1],
        };
        let here = self.subject.get(s).copied().unwrap_or(0);
        let is_border = !self.in_set(before, p, behind - 1)? && self.in_set(here, p, behind - 1)?;
        Ok(is_border.then_some(behind))
    }

    /// `%1`
    fn repeated(&mut self, s: usize, digit: u8) -> Found {
        let at = usize::from(digit).wrapping_sub(usize::from(b'1'));
        let capture = self.captures[..self.level].get(at);
        let Some(&(start, Len::Bytes(len))) = capture else {
            // Lua compares a position's length, too, which no subject has.
            return match capture {
                Some((_, Len::Position)) => Ok(None),
                _ => Err(Fault::Malformed("invalid capture index")),
            };
        };
        *self.steps = (self.steps.checked_sub(len as u64)).ok_or(Fault::TooLong)?;
        let is_there = self.subject[s..].starts_with(&self.subject[start..start + len]);
        Ok(is_there.then_some(s + len))
    }

    fn most(&mut self, s: usize, p: usize, behind: usize) -> Found {
        let mut end = s;
        while self.fits(end, p, behind)? {
            end += 1;
        }
        for at in (s..=end).rev() {
            if let Some(found) = self.matches(at, behind + 1)? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    fn fewest(&mut self, mut s: usize, p: usize, behind: usize) -> Found {
        loop {
            if let Some(found) = self.matches(s, behind + 1)? {
                return Ok(Some(found));
            }
            if !self.fits(s, p, behind)? {
                return Ok(None);
            }
            s += 1;
        }
    }

    /// Behind the class of bytes that begins at `p`.
    fn class_end(&mut self, p: usize) -> Result<usize, Fault> {
        match self.pattern[p] {
            ESCAPE if p + 1 >= self.pattern.len() => {
                Err(Fault::Malformed("malformed pattern (ends with '%')"))
            }
            ESCAPE => Ok(p + 2),
            b'[' => {
                let mut at = p + 1 + usize::from(self.pattern.get(p + 1) == Some(&b'^'));
                // The first byte is of the set, also a bracket.
                loop {
                    self.step()?;
                    let missing = Fault::Malformed("malformed pattern (missing ']')");
                    let byte = *self.pattern.get(at).ok_or(missing)?;
                    at += 1;
                    if byte == ESCAPE {
                        at += 1;
                    }
                    if self.pattern.get(at) == Some(&b']') {
                        return Ok(at + 1);
                    }
                }
            }
            _ => Ok(p + 1),
        }
    }

    /// True if the byte at `s` is of the class from `p` to `behind`.
    fn fits(&mut self, s: usize, p: usize, behind: usize) -> Result<bool, Fault> {
        self.step()?;
        let Some(&byte) = self.subject.get(s) else {
            return Ok(false);
        };
        match self.pattern[p] {
            b'.' => Ok(true),
            ESCAPE => Ok(is_of_class(byte, self.pattern[p + 1])),
            b'[' => self.in_set(byte, p, behind - 1),
            other => Ok(other == byte),
        }
    }

    /// True if a byte is of the set whose brackets are at `p` and `last`.
    fn in_set(&mut self, byte: u8, p: usize, last: usize) -> Result<bool, Fault> {
        *self.steps = (self.steps.checked_sub((last - p) as u64)).ok_or(Fault::TooLong)?;
        let is_not = self.pattern.get(p + 1) == Some(&b'^');
        let mut at = p + 1 + usize::from(is_not);
        while at < last {
            let first = self.pattern[at];
            if first == ESCAPE {
                at += 1;
                if is_of_class(byte, self.pattern[at]) {
                    return Ok(!is_not);
                }
                at += 1;
            } else if self.pattern.get(at + 1) == Some(&b'-') && at + 2 < last {
                if (first..=self.pattern[at + 2]).contains(&byte) {
                    return Ok(!is_not);
                }
                at += 3;
            } else {
                if first == byte {
                    return Ok(!is_not);
                }
                at += 1;
            }
        }
        Ok(is_not)
    }
}

/// True if a byte is of the class that a letter behind `%` names. A capital names all other bytes.
fn is_of_class(byte: u8, class: u8) -> bool {
    let is_of = match class.to_ascii_lowercase() {
        b'a' => byte.is_ascii_alphabetic(),
        b'c' => byte.is_ascii_control(),
        b'd' => byte.is_ascii_digit(),
        b'l' => byte.is_ascii_lowercase(),
        b'p' => byte.is_ascii_punctuation(),
        b's' => matches!(byte, b' ' | b'\t'..=b'\r'),
        b'u' => byte.is_ascii_uppercase(),
        b'w' => byte.is_ascii_alphanumeric(),
        b'x' => byte.is_ascii_hexdigit(),
        b'z' => byte == 0,
        _ => return class == byte,
    };
    is_of != class.is_ascii_uppercase()
}
