//! The cores of servers under load, and of the load.

use nuthatch_program::Failure;

use crate::os;

/// Which cores each side runs on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cores {
    /// The servers'.
    pub servers: Vec<usize>,
    /// The load's.
    pub load: Vec<usize>,
}

impl Cores {
    /// The cores of one of so many servers: one, if there are as many.
    pub fn of_shard(&self, number: usize, shards: usize) -> &[usize] {
        match shards > 1 && shards <= self.servers.len() {
            true => &self.servers[number..=number],
            false => &self.servers,
        }
    }

    /// As typed: by default servers have the first core, and the load the others.
    pub fn choose(servers: &[usize], load: &[usize]) -> Result<Self, Failure> {
        let all = os::cores();
        for (flag, cores) in [("--server-cores", servers), ("--load-cores", load)] {
            if let Some(core) = cores.iter().find(|core| !all.contains(core)) {
                let words = format!("{flag}: {core} is none of this machine's cores: {all:?}");
                return Err(Failure::Usage(words));
            }
        }
        let servers = match servers {
            [] => vec![all[0]],
            typed => typed.to_vec(),
        };
        let others = all.iter().copied().filter(|core| !servers.contains(core));
        let others: Vec<usize> = others.collect();
        let load = match (load, others.is_empty()) {
            ([], false) => others,
            // One core for everything.
            ([], true) => servers.clone(),
            (typed, _) => typed.to_vec(),
        };
        Ok(Self { servers, load })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_shard_has_a_core_if_there_are_enough() {
        let cores = Cores {
            servers: vec![3, 5],
            load: vec![0],
        };
        assert_eq!(cores.of_shard(0, 1), [3, 5]);
        assert_eq!(cores.of_shard(1, 2), [5]);
        assert_eq!(cores.of_shard(2, 3), [3, 5]);
    }
}
