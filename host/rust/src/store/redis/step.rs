//! Single steps (contract, section 4).

use super::link::Repeat;
use super::{RedisStore, get};
use crate::error::StoreError;
use crate::store::Marker;
use async_trait::async_trait;
use redis::Value;

#[async_trait]
impl Marker for RedisStore {
    async fn set_once(&self, id: &str, step: &str) -> Result<bool, StoreError> {
        let retention = self.retention.of_steps(self.link.name())?;
        let key = self.keys.once(id, step);
        let mut command = redis::cmd("SET");
        command.arg(&key).arg(1);
        command.arg("NX").arg("PX").arg(retention.get());
        let to = "set the step's mark";
        match self.ask(to, &key, command, Repeat::Never).await? {
            Value::Nil => {
                // NX is as content with a value of another type as with a mark.
                let to = "look at the step's mark";
                self.ask(to, &key, get(&key), Repeat::Once).await?;
                Ok(false)
            }
            _ => Ok(true),
        }
    }
}
