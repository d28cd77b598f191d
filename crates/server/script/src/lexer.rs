//! The tokens of a text in Lua.

use crate::number;

/// A token.
#[derive(Clone, Debug, PartialEq)]
pub enum Token<'a> {
    /// A name or a keyword.
    Name(&'a [u8]),
    /// A number.
    Number(f64),
    /// A text, in quotes or in long brackets.
    Text(Vec<u8>),
    /// An operator or another mark.
    Mark(&'static str),
}

/// Marks: those of more bytes come before those that they begin with.
const MARKS: [&str; 23] = [
    "..", "==", "~=", "<=", ">=", "<", ">", "=", "+", "-", "*", "/", "%", "#", "(", ")", "{", "}",
    "[", "]", ",", ".", ":",
];

/// All tokens of `text`. `None` if a byte begins no token, or a token does not end.
pub fn tokens(text: &[u8]) -> Option<Vec<Token<'_>>> {
    let mut lexer = Lexer { left: text };
    let mut tokens = Vec::new();
    while let Some(&first) = lexer.left.first() {
        match first {
            b' ' | b'\t' | b'\r' | b'\n' | 0x0b | 0x0c => lexer.left = &lexer.left[1..],
            // It ends a statement, and nothing needs it to.
            b';' => lexer.left = &lexer.left[1..],
            b'-' if lexer.left.starts_with(b"--") => lexer.comment()?,
            b'a'..=b'z' | b'A'..=b'Z' | b'_' => tokens.push(Token::Name(lexer.name())),
            b'0'..=b'9' => tokens.push(Token::Number(lexer.number()?)),
            b'"' | b'\'' => tokens.push(Token::Text(lexer.quoted(first)?)),
            b'[' if long_bracket(lexer.left).is_some() => {
                tokens.push(Token::Text(lexer.long()?.to_vec()));
            }
            _ => {
                let is_it = |mark: &&&str| lexer.left.starts_with(mark.as_bytes());
                let mark = MARKS.iter().find(is_it)?;
                lexer.left = &lexer.left[mark.len()..];
                tokens.push(Token::Mark(mark));
            }
        }
    }
    Some(tokens)
}

/// The number of `=` in the long bracket that `text` begins with, if it begins with one: `[[`, `[=[`...
fn long_bracket(text: &[u8]) -> Option<usize> {
    let behind = text.strip_prefix(b"[")?;
    let level = behind.iter().take_while(|&&byte| byte == b'=').count();
    (behind.get(level) == Some(&b'[')).then_some(level)
}

/// The text that is not read yet.
struct Lexer<'a> {
    left: &'a [u8],
}

impl<'a> Lexer<'a> {
    fn take(&mut self, len: usize) -> &'a [u8] {
        let (taken, left) = self.left.split_at(len);
        self.left = left;
        taken
    }

    fn take_while(&mut self, is_in: impl Fn(u8) -> bool) -> &'a [u8] {
        let end = self.left.iter().position(|&byte| !is_in(byte));
        self.take(end.unwrap_or(self.left.len()))
    }

    fn name(&mut self) -> &'a [u8] {
        self.take_while(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    }

    /// A number, and nothing behind it that would belong to it or to a name. Lua takes what looks like one so far, and then
    /// asks whether it is one.
    fn number(&mut self) -> Option<f64> {
        let from = self.left;
        self.take_while(|byte| byte.is_ascii_digit() || byte == b'.');
        if let [b'e' | b'E', b'+' | b'-', ..] = self.left {
            self.take(2);
        }
        self.name();
        number::parse(&from[..from.len() - self.left.len()])
    }

    fn comment(&mut self) -> Option<()> {
        self.take(2);
        if long_bracket(self.left).is_some() {
            self.long()?;
        } else {
            self.take_while(|byte| byte != b'\n');
        }
        Some(())
    }

    /// The text in long brackets. A line end right behind the first one does not belong to it.
    fn long(&mut self) -> Option<&'a [u8]> {
        let level = long_bracket(self.left)?;
        self.take(level + 2);
        let end = [b"]", &b"=".repeat(level)[..], b"]"].concat();
        let at = self.left.windows(end.len()).position(|here| here == end)?;
        let text = self.take(at);
        self.take(end.len());
        let text = text.strip_prefix(b"\r").unwrap_or(text);
        Some(text.strip_prefix(b"\n").unwrap_or(text))
    }

    fn quoted(&mut self, quote: u8) -> Option<Vec<u8>> {
        self.take(1);
        let mut text = Vec::new();
        loop {
            match *self.take_one()? {
                byte if byte == quote => return Some(text),
                b'\n' => return None,
                b'\\' => text.push(self.escaped()?),
                byte => text.push(byte),
            }
        }
    }

    fn take_one(&mut self) -> Option<&'a u8> {
        let (first, left) = self.left.split_first()?;
        self.left = left;
        Some(first)
    }

    fn escaped(&mut self) -> Option<u8> {
        Some(match *self.take_one()? {
            b'a' => 0x07,
            b'b' => 0x08,
            b'f' => 0x0c,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'v' => 0x0b,
            digit @ b'0'..=b'9' => {
                let mut number = u32::from(digit - b'0');
                for _ in 0..2 {
                    let Some(digit @ b'0'..=b'9') = self.left.first() else {
                        break;
                    };
                    number = number * 10 + u32::from(digit - b'0');
                    self.take(1);
                }
                u8::try_from(number).ok()?
            }
            other => other,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spelling_ends_here() {
        let expected = tokens(b"return redis . call ( 'get' , KEYS [ 1 ] )").unwrap();
        assert_eq!(expected.len(), 12);
        for text in [
            &b"return redis.call(\"get\",KEYS[1])"[..],
            b"-- why\nreturn redis.call('get', KEYS[1]);",
            b"--[[ why\n ]] return redis.call([[get]],KEYS[1])\n\n",
            b"--[==[ ]] ]==]return\tredis.call('\\103\\101t',KEYS[0x1])\r\n--",
            b"return redis.call([=[\nget]=],KEYS[1.0])",
        ] {
            assert_eq!(
                tokens(text).as_ref(),
                Some(&expected),
                "{}",
                text.escape_ascii()
            );
        }
    }

    #[test]
    fn what_is_no_token_is_none() {
        for text in [
            &b"'get"[..],
            b"'ge\nt'",
            b"[[get]",
            b"--[[ x",
            b"'\\256'",
            b"1x",
            b"1_0",
            b"1..2",
            b"1e+",
            b"a $ b",
            b"\xff",
            b"a != b",
            b"'\\",
        ] {
            assert_eq!(tokens(text), None, "{}", text.escape_ascii());
        }
        assert_eq!(tokens(b"a~=b").unwrap()[1], Token::Mark("~="));
        assert_eq!(tokens(b"a..'b'").unwrap()[1], Token::Mark(".."));
        assert_eq!(tokens(b"1E+3 1e-3 15e2").unwrap()[0], Token::Number(1000.0));
        assert_eq!(tokens(b"0x1.8").unwrap()[0], Token::Number(1.0));
    }
}
