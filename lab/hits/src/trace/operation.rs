//! The operations of a trace that names them: those of memcached's protocol and of CacheLib's traces.

/// What reads an item.
const READS: [&str; 3] = ["get", "gets", "get_lease"];

/// What writes one without reading it.
const WRITES: [&str; 5] = ["set", "set_lease", "add", "replace", "cas"];

/// True if the operation writes, false if it reads. Errors: any other, since a request of a trace is one of these two.
pub(super) fn writes(name: &[u8]) -> Result<bool, String> {
    let is_one_of = |names: &[&str]| {
        let mut names = names.iter();
        names.any(|known| name.eq_ignore_ascii_case(known.as_bytes()))
    };
    if is_one_of(&READS) {
        return Ok(false);
    }
    if is_one_of(&WRITES) {
        return Ok(true);
    }
    let name = String::from_utf8_lossy(name);
    Err(format!(
        "`{name}` is an operation that is neither get nor set"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operation_reads_or_writes_or_is_neither() {
        for name in ["get", "GET", "Gets", "GET_LEASE"] {
            assert_eq!(writes(name.as_bytes()), Ok(false), "{name}");
        }
        for name in ["set", "SET", "add", "Replace", "cas", "SET_LEASE"] {
            assert_eq!(writes(name.as_bytes()), Ok(true), "{name}");
        }
        for name in ["", "delete", "DELETE", "incr", "append", "touch", "getx"] {
            assert!(writes(name.as_bytes()).is_err(), "{name}");
        }
    }
}
