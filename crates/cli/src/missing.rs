//! memcached's flags that Nuthatch does not have. Each is refused with a sentence: to accept them without an
//! effect would be a security fault where they restrict who may connect.

use clap::Args;

/// memcached's flags that are not implemented. Hidden from the help.
#[derive(Args, Clone, Debug, Default)]
pub struct Missing {
    #[arg(short = 'N', long, alias = "napi_ids", value_name = "NUM", hide = true)]
    napi_ids: Option<String>,
    #[arg(short = 'D', value_name = "CHAR", hide = true)]
    delimiter: Option<String>,
}

impl Missing {
    /// An error if something is asked for that is not there.
    pub fn check(&self) -> Result<(), String> {
        let delimiter = self.delimiter.as_deref().is_some_and(|char| char != ":");
        for (is_asked, words) in [
            (
                self.napi_ids.is_some(),
                "-N: connections are not given to threads by NAPI ids",
            ),
            (
                delimiter,
                "-D: prefixes end at a colon, and at nothing else",
            ),
        ] {
            if is_asked {
                return Err(words.to_owned());
            }
        }
        Ok(())
    }
}
