//! The first line of a script, which may say what the script does: `#!lua flags=no-writes`.

/// What a script says of itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags {
    /// It does not write.
    pub no_writes: bool,
}

/// What is known of a script by its first line, and the script's text without it. Errors: Redis' words.
pub fn read(text: &[u8]) -> Result<(Flags, &[u8]), String> {
    let mut flags = Flags::default();
    if !text.starts_with(b"#!") {
        return Ok((flags, text));
    }
    let Some(end) = text.iter().position(|byte| *byte == b'\n') else {
        return Err("ERR Invalid script shebang".into());
    };
    let line = String::from_utf8_lossy(&text[..end]).into_owned();
    let mut words = line.split_ascii_whitespace();
    let engine = words.next().unwrap_or_default();
    if engine != "#!lua" {
        return Err(format!("ERR Unexpected engine in script shebang: {engine}"));
    }
    for word in words {
        let Some(names) = word.strip_prefix("flags=") else {
            return Err(format!("ERR Unknown lua shebang option: {word}"));
        };
        for name in names.split(',').filter(|name| !name.is_empty()) {
            match name {
                "no-writes" => flags.no_writes = true,
                "allow-oom" | "allow-stale" | "no-cluster" | "allow-cross-slot-keys" => {}
                _ => return Err(format!("ERR Unexpected flag in script shebang: {name}")),
            }
        }
    }
    // The end of the line stays: messages count lines.
    Ok((flags, &text[end..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_first_line_says_what_a_script_does() {
        let no_writes = Flags { no_writes: true };
        assert_eq!(read(b"return 1"), Ok((Flags::default(), &b"return 1"[..])));
        let text = b"#!lua flags=no-writes,allow-oom\nreturn 1";
        assert_eq!(read(text), Ok((no_writes, &b"\nreturn 1"[..])));
        for (text, words) in [
            ("#!lua", "ERR Invalid script shebang"),
            ("#!py\n", "ERR Unexpected engine in script shebang: #!py"),
            (
                "#!lua flags=x\n",
                "ERR Unexpected flag in script shebang: x",
            ),
            ("#!lua name=x\n", "ERR Unknown lua shebang option: name=x"),
        ] {
            assert_eq!(read(text.as_bytes()), Err(words.into()), "{text}");
        }
    }
}
