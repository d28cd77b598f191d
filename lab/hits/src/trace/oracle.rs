//! libCacheSim's oracleGeneral: records of 24 bytes, numbers with their least byte first.
//!
//! ```text
//!  0        4                 12       16                24
//! +--------+-----------------+--------+-----------------+
//! |  time  |    object id    |  size  | next access     |
//! +--------+-----------------+--------+-----------------+
//! ```
//!
//! Time and next access are not used: the optimum computes its own.

use std::io::{self, BufRead, Read};

use super::Reader;

/// Bytes of a record.
const RECORD: usize = 24;

pub(super) fn read(mut input: Box<dyn BufRead>, reader: &mut Reader) -> io::Result<()> {
    let mut record = Vec::with_capacity(RECORD);
    let mut number = 0;
    while !reader.is_full() {
        record.clear();
        input
            .by_ref()
            .take(RECORD as u64)
            .read_to_end(&mut record)?;
        number += 1;
        match record.len() {
            0 => return Ok(()),
            RECORD => {}
            cut => {
                reader.broken(number, format!("{cut} bytes instead of {RECORD}"));
                return Ok(());
            }
        }
        let mut id = [0; 8];
        id.copy_from_slice(&record[4..12]);
        let mut size = [0; 4];
        size.copy_from_slice(&record[12..16]);
        reader.number(u64::from_le_bytes(id), Some(u32::from_le_bytes(size)))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::trace::ReadOptions;
    use crate::trace::tests::{options, read, requests};

    fn record(id: u64, size: u32) -> Vec<u8> {
        let (time, next) = (17_u32.to_le_bytes(), (-2_i64).to_le_bytes());
        [&time[..], &id.to_le_bytes(), &size.to_le_bytes(), &next].concat()
    }

    #[test]
    fn records_have_ids_and_sizes() {
        let whole = [record(5, 10), record(u64::MAX, 20), record(5, 10)].concat();
        let trace = read("t.oracleGeneral.bin", &whole, &options()).unwrap();
        let expected = [("5", 10), ("18446744073709551615", 20), ("5", 10)];
        let expected = expected.map(|(key, size)| (key.to_owned(), size));
        assert_eq!(requests(&trace), expected);

        let zstd = zstd::encode_all(&whole[..], 0).unwrap();
        let trace = read("t.oracleGeneral.zst", &zstd, &options()).unwrap();
        assert_eq!(requests(&trace), expected);

        let limited = ReadOptions {
            limit: Some(1),
            ..options()
        };
        let trace = read("t.oracleGeneral", &whole, &limited).unwrap();
        assert_eq!(requests(&trace), expected[..1]);
    }

    #[test]
    fn a_record_that_is_cut_off_is_broken() {
        let cut = [record(5, 10), record(6, 10)[..23].to_vec()].concat();
        let trace = read("t.oracleGeneral", &cut, &options()).unwrap();
        assert_eq!(trace.requests.len(), 1);
        let reason = "23 bytes instead of 24".to_owned();
        assert_eq!(trace.broken.first, [(2, reason)]);
    }
}
