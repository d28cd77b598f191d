//! `nuthatch-lab serve`: the server of `nuthatch` on any engine, with the switches that the papers need.
//!
//! With the engine cphash and `--cpserver` it is the CPHash paper's CPServer, with lockhash its LockServer.

use clap::Args;
use nuthatch_cli::engine::{ChosenEngine, EngineFlags};
use nuthatch_cli::file::File;
use nuthatch_cli::flags::{either, one_or_many};
use nuthatch_engine::{CommonSettings, ConfigError};
use nuthatch_engines::{EngineName, EngineSettings, Tuning};
use serde::{Deserialize, Serialize};

/// `nuthatch-lab serve`.
pub type Serve = nuthatch_cli::serve::Serve<Papers>;

/// The flags that `nuthatch` has not.
#[derive(Args, Clone, Debug, Default, PartialEq, Serialize)]
pub struct Papers {
    /// Which server it is.
    #[command(flatten)]
    #[serde(flatten)]
    server: PaperServer,
    /// The settings that only some engines have.
    #[command(flatten)]
    #[serde(flatten)]
    tuning: Tuning,
}

/// Which of the papers' servers it is.
#[derive(Args, Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, rename_all = "kebab-case")]
struct PaperServer {
    /// The engine [default: cuckoo]
    #[arg(long, value_enum)]
    engine: Option<EngineName>,

    /// Also listen for clients of CPServer's protocol at these addresses, with or without a port [default port: 2117].
    /// With these clients, or the engine cphash, the default of --batch is 1000
    #[arg(long, value_name = "ADDR", value_delimiter = ',')]
    #[serde(
        deserialize_with = "one_or_many",
        skip_serializing_if = "Vec::is_empty"
    )]
    cpserver: Vec<String>,
}

impl EngineFlags for Papers {
    fn take_from(file: &mut File) -> Result<Self, String> {
        Ok(Self {
            server: file.take()?,
            tuning: file.take()?,
        })
    }

    fn over(self, file: Self) -> Self {
        Self {
            server: PaperServer {
                engine: self.server.engine.or(file.server.engine),
                cpserver: either(self.server.cpserver, file.server.cpserver),
            },
            tuning: self.tuning.over(file.tuning),
        }
    }

    fn engine(&self, common: CommonSettings) -> Result<ChosenEngine, String> {
        let name = self.server.engine.unwrap_or_default();
        let checked = self.tuning.check(&[name]);
        checked.map_err(|error| error.to_string())?;
        let settings = EngineSettings {
            name,
            common,
            tuning: self.tuning.clone(),
        };
        Ok(ChosenEngine {
            memory_limit: settings.common.memory_limit,
            item_size_max: settings.item_size_max(),
            has_size_classes: name.has_size_classes(),
            gains_by_large_batches: name.has_server_threads(),
            lines: settings.lines(),
            holds_copies: false,
            build: Box::new(move || EngineName::build(&settings)),
            flag,
        })
    }

    fn cpserver(&self) -> Option<Vec<String>> {
        // An empty one unsets those of the file.
        let typed = self.server.cpserver.iter();
        Some(typed.filter(|typed| !typed.is_empty()).cloned().collect())
    }
}

/// The flag by which a setting is changed that a paper's engine refuses.
fn flag(error: &ConfigError) -> Option<&'static str> {
    Some(match error {
        ConfigError::PartitionBlocks { .. } | ConfigError::PartitionCount { .. } => "--partitions",
        ConfigError::Window { .. } => "--window",
        ConfigError::ServerThreads | ConfigError::ServerThreadsOverPartitions { .. } => {
            "--server-threads"
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use clap::{Command, FromArgMatches};

    use super::*;

    fn typed(line: &str) -> Result<Papers, clap::Error> {
        let command = Papers::augment_args(Command::new("serve"));
        let words = std::iter::once("serve").chain(line.split_whitespace());
        Papers::from_arg_matches(&command.try_get_matches_from(words)?)
    }

    fn file(text: &str) -> Result<Papers, String> {
        nuthatch_cli::file::parse(text).map(|(_, papers)| papers)
    }

    const LINE: &str = "--engine cphash --partitions 8 --server-threads 1-4 --pin 2 --eviction random \
                        --cpserver d,e:3";

    #[test]
    fn line_and_file_say_the_same() {
        let text = r#"
            engine = "cphash"
            partitions = 8
            server-threads = "1-4"
            pin = 2
            eviction = "random"
            cpserver = ["d", "e:3"]
            "#;
        let line = typed(LINE).unwrap();
        assert_eq!(file(text), Ok(line.clone()));
        assert_eq!(line.clone().over(Papers::default()), line);
        assert_eq!(Papers::default().over(line.clone()), line);
        let other = typed("--engine lockhash --partitions 3")
            .unwrap()
            .over(line);
        let said = "--engine lockhash --partitions 3 --server-threads 1-4 --pin 2 --eviction random \
                    --cpserver d --cpserver e:3";
        assert_eq!(other, typed(said).unwrap());
        assert_eq!(
            file("server-threads = 2"),
            Ok(typed("--server-threads 2").unwrap())
        );
    }

    #[test]
    fn an_empty_address_unsets_the_files() {
        let line = typed("--cpserver=").unwrap();
        let both = line.over(file("cpserver = \"a\"").unwrap());
        assert_eq!(both.cpserver(), Some(Vec::new()));
    }

    #[test]
    fn what_has_no_form_is_refused() {
        for line in [
            "--engine chain",
            "--server-threads 4-1",
            "--eviction fifo",
            "--pin x",
        ] {
            assert!(typed(line).is_err(), "{line}");
        }
        for text in [
            "port = 1\nengine = \"chain\"",
            "port = 1\nserver-threads = \"4-1\"",
            "port = 1\npartitions = \"many\"",
            "port = 1\nprot = 1",
        ] {
            let error = file(text).unwrap_err();
            assert!(error.starts_with(":2: "), "{text}: {error}");
        }
    }
}
