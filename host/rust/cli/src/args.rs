//! The command line that several commands share.

use crate::exit::Failure;
use babelqueue_guard::settings::{Consumer, LeaseLength, Retention};
use babelqueue_guard::store::Inventory;
use babelqueue_guard::store::url::{UrlSettings, connect};
use std::sync::Arc;
use std::time::Duration;

/// Where marks are kept, and under which names.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Store")]
pub struct StoreArgs {
    /// The store: memory:, sqlite:PATH, postgres://…, redis://…, rediss://…,
    /// redis+cluster://… or valkey://…
    ///
    /// Without one, `run`, `demo` and `conformance` use memory:, which is gone
    /// when they end.
    ///
    /// A URL with a password is better given in the environment, since other
    /// users of the machine can see the arguments of a program.
    #[arg(
        long,
        value_name = "URL",
        env = "BQ_GUARD_STORE",
        hide_env_values = true
    )]
    store: Option<String>,

    /// The consumer's name, [a-z0-9_]{1,24}, where several different
    /// consumers of the same messages share a store
    #[arg(long, value_name = "NAME")]
    consumer: Option<String>,

    /// What keys begin with instead of "bq:", tables instead of
    /// "babelqueue_"
    #[arg(long, value_name = "TEXT")]
    prefix: Option<String>,

    /// How long a mark is kept, such as 36h or 14d, or "forever"
    #[arg(long, value_name = "TIME", default_value = "14d", value_parser = retention)]
    retention: Retention,
}

impl StoreArgs {
    /// The store, or one in memory.
    pub async fn open(&self) -> Result<Arc<dyn Inventory>, Failure> {
        self.open_with(LeaseLength::default()).await
    }

    /// The store, or one in memory, with leases of this length.
    pub async fn open_with(&self, lease: LeaseLength) -> Result<Arc<dyn Inventory>, Failure> {
        let mut settings = UrlSettings::default();
        settings.consumer = self.consumer.clone().map(Consumer::named).transpose()?;
        settings.retention = self.retention;
        settings.lease = lease;
        settings.prefix.clone_from(&self.prefix);
        let url = self.store.as_deref().unwrap_or("memory:");
        Ok(connect(url, &settings).await?)
    }

    /// The store, for a command that makes no sense on an empty one.
    pub async fn open_existing(&self) -> Result<Arc<dyn Inventory>, Failure> {
        if self.store.is_none() {
            return Err(Failure::usage(
                "no store: name one by --store URL or in BQ_GUARD_STORE, for instance \
                 --store redis://localhost:6379",
            ));
        }
        self.open().await
    }

    /// The same arguments, with this consumer unless they name one.
    pub fn for_consumer(&self, name: &str) -> Self {
        Self {
            consumer: self.consumer.clone().or_else(|| Some(name.to_owned())),
            ..self.clone()
        }
    }

    /// Whether a store was asked for.
    pub fn is_named(&self) -> bool {
        self.store.is_some()
    }

    /// The kind of store, without anything of its URL that may be secret.
    pub fn kind(&self) -> &str {
        let url = self.store.as_deref().unwrap_or("memory:");
        url.split_once(':').map_or("", |(scheme, _)| scheme)
    }
}

fn retention(text: &str) -> Result<Retention, String> {
    if text == "forever" {
        return Ok(Retention::Forever);
    }
    Retention::of(duration(text)?).map_err(|error| error.to_string())
}

/// For `--lease`.
pub fn lease(text: &str) -> Result<LeaseLength, String> {
    LeaseLength::of(duration(text)?).map_err(|error| error.to_string())
}

fn duration(text: &str) -> Result<Duration, String> {
    humantime::parse_duration(text)
        .map_err(|error| format!("{error}; write it like 500ms, 60s, 36h or 14d"))
}

/// For a size in bytes: `16777216`, `512KiB`, `16MiB`.
pub fn size(text: &str) -> Result<usize, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit: usize = match &text[digits.len()..] {
        "" | "B" => 1,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        other => return Err(format!("{other:?} is no unit: use B, KiB, MiB or GiB")),
    };
    digits
        .parse::<usize>()
        .ok()
        .and_then(|number| number.checked_mul(unit))
        .filter(|bytes| (1..=1 << 30).contains(bytes))
        .ok_or_else(|| "write a number from 1 to 1GiB, like 512KiB or 16MiB".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_that_cannot_be_used_say_why() {
        for bad in [
            "0s",
            "0",
            "-1s",
            "60",
            "1.5us",
            "900us",
            "s",
            "",
            "NaN",
            "99999999999999999d",
        ] {
            let retention = retention(bad).unwrap_err();
            let lease = lease(bad).unwrap_err();
            assert!(!retention.is_empty() && !lease.is_empty(), "{bad}");
        }
        assert_eq!(retention("forever").unwrap(), Retention::Forever);
        assert_eq!(retention("14d").unwrap(), Retention::default());
        assert_eq!(lease("60s").unwrap(), LeaseLength::default());
        assert_eq!(lease("1500ms").unwrap().millis().get(), 1_500);
    }

    #[test]
    fn sizes_have_binary_units() {
        assert_eq!(size("1").unwrap(), 1);
        assert_eq!(size("512KiB").unwrap(), 524_288);
        assert_eq!(size("16MiB").unwrap(), 16 << 20);
        for bad in [
            "",
            "0",
            "KiB",
            "1MB",
            "1 KiB",
            "-1",
            "2GiB",
            "99999999999999999999",
            "é",
        ] {
            assert!(size(bad).is_err(), "{bad}");
        }
    }
}
