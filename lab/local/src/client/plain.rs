//! A plain loop of write and read on a socket: what any client at least does.

use super::calls::{MISSING, one_by_one, right};
use super::{Job, Operation};
use crate::found::Found;
use crate::items::{self, KEY_SIZE};
use crate::socket;

/// Gets and sets of memcached's meta protocol.
pub fn calls(job: &Job) -> Result<impl FnOnce() -> Result<Found, String>, String> {
    let mut socket = socket::connect(&job.target)?;
    let job = job.clone();
    Ok(move || {
        let (mut request, mut reply) = (Vec::new(), Vec::new());
        let size = job.value_size;
        let head = format!("VA {size}\r\n");
        let length = match job.operation {
            Operation::Get => head.len() + size + 2,
            Operation::Set => b"HD\r\n".len(),
        };
        one_by_one(&job, 1, |key| {
            request.clear();
            match job.operation {
                Operation::Get => {
                    request.extend_from_slice(b"mg ");
                    request.extend_from_slice(key);
                    request.extend_from_slice(b" v\r\n");
                }
                Operation::Set => socket::set(&mut request, key, &items::value(key, size), ""),
            }
            socket
                .write_all(&request)
                .map_err(|error| error.to_string())?;
            reply.resize(length, 0);
            // One read in all but rare cases; an answer that is shorter is an error's or a miss.
            let mut got = 0;
            while got < length {
                match socket.read(&mut reply[got..]) {
                    Ok(0) => return Err("the server closed the connection".to_owned()),
                    Ok(read) => got += read,
                    Err(error) => return Err(error.to_string()),
                }
                if got >= 2 && matches!(&reply[..2], b"EN" | b"ER" | b"CL" | b"SE" | b"NS") {
                    return Err(format!("{MISSING}, or refused"));
                }
            }
            match job.operation {
                Operation::Get if !reply.starts_with(head.as_bytes()) => {
                    Err("no value in the reply".to_owned())
                }
                Operation::Get => right(&reply[head.len()..head.len() + size], key, size),
                Operation::Set if reply == b"HD\r\n" => Ok(()),
                Operation::Set => Err("not stored".to_owned()),
            }
        })
    })
}

const _: () = assert!(KEY_SIZE <= 250);
