//! Files, compressed or not.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, stdin};
use std::path::Path;

use flate2::bufread::MultiGzDecoder;

/// Bytes read at a time.
const BUFFER: usize = 1 << 18;
/// The first bytes of gzip's and zstd's files.
const GZIP: [u8; 2] = [0x1f, 0x8b];
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// Opens a file, or standard input for `-`, and uncompresses it if its first bytes are those of gzip or zstd.
pub fn open(path: &Path) -> io::Result<Box<dyn BufRead>> {
    let input: Box<dyn Read> = if path == Path::new("-") {
        Box::new(stdin().lock())
    } else {
        Box::new(File::open(path)?)
    };
    uncompressed(input)
}

fn uncompressed(mut input: Box<dyn Read>) -> io::Result<Box<dyn BufRead>> {
    let mut mark = Vec::new();
    input
        .by_ref()
        .take(ZSTD.len() as u64)
        .read_to_end(&mut mark)?;
    let (gzip, zstd) = (mark.starts_with(&GZIP), mark.starts_with(&ZSTD));
    let whole = BufReader::with_capacity(BUFFER, io::Cursor::new(mark).chain(input));
    Ok(if gzip {
        let plain = MultiGzDecoder::new(whole);
        Box::new(BufReader::with_capacity(BUFFER, plain))
    } else if zstd {
        let plain = zstd::Decoder::with_buffer(whole)?;
        Box::new(BufReader::with_capacity(BUFFER, plain))
    } else {
        Box::new(whole)
    })
}

/// Calls `each` with the number of each line, from 1 on, and its bytes without the end, until it says false.
pub fn each_line(
    mut input: Box<dyn BufRead>,
    mut each: impl FnMut(u64, &[u8]) -> io::Result<bool>,
) -> io::Result<()> {
    let mut number = 0;
    let mut line = Vec::new();
    loop {
        line.clear();
        if input.read_until(b'\n', &mut line)? == 0 {
            return Ok(());
        }
        number += 1;
        let text = line.strip_suffix(b"\n").unwrap_or(&line);
        if !each(number, text)? {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn plain(bytes: &[u8]) -> io::Result<Vec<u8>> {
        let mut plain = Vec::new();
        uncompressed(Box::new(io::Cursor::new(bytes.to_vec())))?.read_to_end(&mut plain)?;
        Ok(plain)
    }

    #[test]
    fn compressed_or_not_it_reads_the_same() {
        for text in [&b""[..], b"a", b"a\nb\n", &[7; 1 << 20]] {
            assert_eq!(plain(text).unwrap(), text);
            assert_eq!(plain(&gzip(text)).unwrap(), text);
            let zstd = zstd::encode_all(text, 0).unwrap();
            assert_eq!(plain(&zstd).unwrap(), text);
        }
        // Two files, one behind the other, are one.
        let two = [gzip(b"a\n"), gzip(b"b\n")].concat();
        assert_eq!(plain(&two).unwrap(), b"a\nb\n");
    }

    #[test]
    fn a_file_that_is_cut_off_is_an_error() {
        let text: Vec<u8> = (0..100_000_u32).flat_map(u32::to_le_bytes).collect();
        for whole in [gzip(&text), zstd::encode_all(&text[..], 0).unwrap()] {
            assert!(plain(&whole[..whole.len() / 2]).is_err());
        }
    }

    #[test]
    fn lines_may_lack_their_last_end() {
        let mut lines = Vec::new();
        let text = io::Cursor::new(b"a\n\nb".to_vec());
        each_line(Box::new(text), |number, line| {
            lines.push((number, line.to_vec()));
            Ok(true)
        })
        .unwrap();
        let expected = [(1, b"a".to_vec()), (2, Vec::new()), (3, b"b".to_vec())];
        assert_eq!(lines, expected);
    }
}
