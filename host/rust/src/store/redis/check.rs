//! What is looked at when a store is opened.

use super::RedisStore;
use super::link::Repeat;
use crate::error::StoreError;
use redis::{Value, from_redis_value};
use std::collections::BTreeMap;

impl RedisStore {
    /// Connects if need be, and writes a warning to the log for each of the
    /// [`concerns`](Self::concerns).
    ///
    /// # Errors
    ///
    /// The server does not answer, or refuses.
    pub async fn check(&self) -> Result<(), StoreError> {
        for concern in self.concerns().await? {
            tracing::warn!(server = self.link.name(), "{concern}");
        }
        Ok(())
    }

    /// What an operator should know about how long this server remembers: that
    /// it may evict keys, or keeps nothing on disk. Nothing, if all is well or
    /// the server does not let this user read its configuration.
    ///
    /// # Errors
    ///
    /// The server does not answer, or refuses this user altogether.
    pub async fn concerns(&self) -> Result<Vec<String>, StoreError> {
        let asked = self.asked("read the configuration", None);
        let settings = ["maxmemory-policy", "appendonly", "save"];
        let commands = settings.map(|name| {
            let mut command = redis::cmd("CONFIG");
            command.arg("GET").arg(name);
            command
        });
        let replies = self.send(asked, "", commands, Repeat::Once).await?;
        if let [Value::ServerError(refusal), ..] = &replies {
            if refusal.code() == "NOAUTH" {
                return Err(asked.refused(refusal));
            }
            tracing::debug!(
                server = self.link.name(),
                %refusal,
                "whether the server evicts keys or saves them is not known"
            );
            return Ok(Vec::new());
        }
        let [policy, appendonly, save] = replies.map(setting);
        let mut concerns = Vec::new();
        if let Some(policy) = policy.filter(|policy| policy != "noeviction") {
            concerns.push(format!(
                "maxmemory-policy is {policy}: short of memory, the server forgets which messages \
                 were processed, and they run again; noeviction is right"
            ));
        }
        if appendonly.as_deref() == Some("no") && save.as_deref() == Some("") {
            concerns.push(
                "neither appendonly nor save is set: once restarted, the server has forgotten \
                 which messages were processed, and they run again"
                    .to_owned(),
            );
        }
        Ok(concerns)
    }
}

/// The value in a reply to CONFIG GET of one setting.
fn setting(reply: Value) -> Option<String> {
    let settings: BTreeMap<String, String> = from_redis_value(reply).ok()?;
    settings.into_values().next()
}
