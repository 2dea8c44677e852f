//! One consumer with its marks in memory, and what can become of a delivery.

use babelqueue_guard::{Delivery, Guard, MemoryStore, Processed, REPLAY_HEADER};
use std::cell::Cell;
use std::error::Error;

const ORDER: &str =
    r#"{"job":"urn:babel:orders:created","data":{"order":1042},"meta":{"id":"order-1042"}}"#;
const REFUND: &str =
    r#"{"job":"urn:babel:orders:refunded","data":{"order":7},"meta":{"id":"refund-7"}}"#;
const WITHOUT_ID: &str = r#"{"job":"urn:babel:orders:created","data":{"order":8},"meta":{}}"#;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let shop = Shop {
        guard: Guard::new(MemoryStore::default())?,
        charges: Cell::new(0),
    };

    println!("A message that is delivered three times has one effect:");
    for _ in 0..3 {
        shop.deliver(ORDER, Card::Accepted).await?;
    }

    println!("A failure leaves no mark, so that the next delivery tries again:");
    shop.deliver(REFUND, Card::Declined).await?;
    shop.deliver(REFUND, Card::Accepted).await?;
    shop.deliver(REFUND, Card::Accepted).await?;

    println!("Without a usable id every delivery runs, and the result says why:");
    shop.deliver(WITHOUT_ID, Card::Accepted).await?;
    shop.deliver(WITHOUT_ID, Card::Accepted).await?;

    println!("A replay runs once its id is forgotten, not before:");
    let replay = Delivery::from_body(ORDER).with_headers([REPLAY_HEADER]);
    shop.deliver(replay, Card::Accepted).await?;
    shop.guard.forget("order-1042").await?;
    shop.deliver(replay, Card::Accepted).await?;

    println!("Of two copies at once, a guard that claims runs one and parks the other:");
    let shop = Shop {
        guard: Guard::claiming(MemoryStore::default())?,
        ..shop
    };
    let (first, second) = tokio::join!(
        shop.deliver(ORDER, Card::Accepted),
        shop.deliver(ORDER, Card::Accepted),
    );
    first.and(second)?;
    shop.deliver(ORDER, Card::Accepted).await?;
    Ok(())
}

struct Shop {
    guard: Guard,
    charges: Cell<u32>,
}

enum Card {
    Accepted,
    Declined,
}

impl Shop {
    async fn deliver<'a>(
        &self,
        delivery: impl Into<Delivery<'a>>,
        card: Card,
    ) -> Result<(), babelqueue_guard::Error> {
        let processed = self
            .guard
            .process(delivery, async |context| {
                tokio::task::yield_now().await;
                match card {
                    Card::Accepted => {
                        self.charges.set(self.charges.get() + 1);
                        Ok(if context.is_replay() {
                            " as a replay"
                        } else {
                            ""
                        })
                    }
                    Card::Declined => Err("card declined"),
                }
            })
            .await?;
        let id = processed.id().unwrap_or("(no id)");
        let became = match &processed {
            Processed::Ran {
                value: how,
                id: Ok(_),
                ..
            } => format!("ran{how}"),
            Processed::Ran { id: Err(why), .. } => format!("ran, for its id is {why}"),
            Processed::Failed { error, .. } => format!("failed: {error}"),
            Processed::Skipped { .. } => "skipped".into(),
            Processed::Parked(_) => "parked, for another is at it".into(),
        };
        let queue = if processed.acknowledge() {
            "acknowledge"
        } else {
            "deliver again"
        };
        let charges = self.charges.get();
        println!("  {id:<12}{became:<30}{queue:<15}charges so far: {charges}");
        Ok(())
    }
}
