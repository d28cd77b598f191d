//! memcached's flags that Nuthatch does not have. Each is refused with a sentence, because it would have no effect.

use clap::Args;

/// memcached's flags that are not implemented. Hidden from the help.
#[derive(Args, Clone, Debug, Default)]
pub struct Missing {
    #[arg(short = 'N', long, alias = "napi_ids", value_name = "NUM", hide = true)]
    napi_ids: Option<String>,
}

impl Missing {
    /// An error if something is asked for that is not there.
    pub fn check(&self) -> Result<(), String> {
        match self.napi_ids {
            Some(_) => Err("-N: connections are not given to threads by NAPI ids".to_owned()),
            None => Ok(()),
        }
    }
}
