//! The lines of text replies, as a log reads them.

/// The first line without its line end, and its length with the line end.
pub fn first(text: &[u8]) -> (&[u8], usize) {
    match text.iter().position(|&byte| byte == b'\n') {
        Some(end) => {
            let line = &text[..end];
            (line.strip_suffix(b"\r").unwrap_or(line), end + 1)
        }
        None => (text, text.len()),
    }
}

/// The length of the data block behind a reply's line, if there is one.
pub fn value_len(line: &[u8]) -> Option<usize> {
    let mut words = line.split(|&byte| byte == b' ');
    let len = match words.next()? {
        b"VALUE" => words.nth(2)?,
        b"VA" => words.next()?,
        _ => return None,
    };
    std::str::from_utf8(len).ok()?.parse().ok()
}

/// True for a line of statistics or of a dump: memcached does not show those either.
pub fn is_one_of_many(line: &[u8]) -> bool {
    [&b"STAT "[..], b"ITEM ", b"PREFIX ", b"key=", b"mg "]
        .iter()
        .any(|start| line.starts_with(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_tell_what_data_follows() {
        assert_eq!(value_len(b"VALUE key 0 12"), Some(12));
        assert_eq!(value_len(b"VALUE key 0 12 7"), Some(12));
        assert_eq!(value_len(b"VA 3 f0"), Some(3));
        for line in [&b"STORED"[..], b"END", b"HD", b"VALUE", b"12"] {
            assert_eq!(value_len(line), None);
        }
    }
}
