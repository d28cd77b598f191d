//! The lines that valgrind's tool lackey prints, one for each instruction and each access.
//!
//! ```text
//! I  0401de90,3        an instruction: address, bytes
//!  L 1ffeffe7e0,8      a load
//!  S 1ffeffe7d8,8      a store
//!  M 0421c7f0,4        a load and a store of the same bytes by one instruction
//! ==1234== ...         valgrind's own words
//! ```

/// What an instruction does to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It loads.
    Load,
    /// It stores.
    Store,
    /// It loads and stores: an exchange, or a sum.
    Modify,
}

/// A line of lackey's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Line {
    /// An instruction.
    Instruction,
    /// An access of the last instruction.
    Access {
        /// What it does.
        kind: Kind,
        /// The first byte.
        address: u64,
        /// How many bytes.
        size: u32,
    },
    /// Words of valgrind or of the program.
    Words,
}

/// Reads a line, without its end. `None`: it is none of lackey's.
pub fn parse(line: &[u8]) -> Option<Line> {
    let (mark, rest) = line.split_at_checked(3)?;
    let kind = match mark {
        b"I  " => return access(rest).map(|_| Line::Instruction),
        b" L " => Kind::Load,
        b" S " => Kind::Store,
        b" M " => Kind::Modify,
        [b'=', b'=', _] => return Some(Line::Words),
        _ => return None,
    };
    let (address, size) = access(rest)?;
    Some(Line::Access {
        kind,
        address,
        size,
    })
}

/// `ADDRESS,SIZE`: hexadecimal, decimal.
fn access(text: &[u8]) -> Option<(u64, u32)> {
    let comma = text.iter().position(|&byte| byte == b',')?;
    let (address, size) = (&text[..comma], &text[comma + 1..]);
    if address.is_empty() || address.len() > 16 || size.is_empty() || size.len() > 4 {
        return None;
    }
    let mut number = 0;
    for &byte in address {
        number = number << 4 | u64::from(char::from(byte).to_digit(16)?);
    }
    let mut bytes = 0;
    for &byte in size {
        bytes = bytes * 10 + char::from(byte).to_digit(10)?;
    }
    (bytes > 0).then_some((number, bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_all_kinds() {
        assert_eq!(parse(b"I  0401de90,3"), Some(Line::Instruction));
        let access = |kind, address, size| {
            Some(Line::Access {
                kind,
                address,
                size,
            })
        };
        assert_eq!(
            parse(b" L 1ffeffe7e0,8"),
            access(Kind::Load, 0x1f_feff_e7e0, 8)
        );
        assert_eq!(parse(b" S 00000010,16"), access(Kind::Store, 16, 16));
        assert_eq!(
            parse(b" M ffffffffffffffff,4"),
            access(Kind::Modify, u64::MAX, 4)
        );
        assert_eq!(parse(b"==12== Lackey, an example"), Some(Line::Words));
    }

    #[test]
    fn other_lines_are_none() {
        for line in [
            "",
            "I",
            " L ",
            " L 12",
            " L ,8",
            " L 12,",
            " L 12,0",
            " L 1g,8",
            " L 12,8x",
            " X 12,8",
            "L 12,8",
            " S 11112222333344445,8",
            " S 12,88888",
            "thread 'main' panicked",
        ] {
            assert_eq!(parse(line.as_bytes()), None, "{line}");
        }
    }
}
