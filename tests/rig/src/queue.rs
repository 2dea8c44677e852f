//! A queue that delivers at least once: what is not acknowledged comes again.

use crate::settings::Settings;
use fastrand::Rng;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};
use std::time::Instant;

/// A message on its way to be acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Copy {
    pub(crate) message: u32,
    /// How often it has been handed out.
    pub(crate) times: u32,
}

pub(crate) struct Queue {
    ready: VecDeque<Copy>,
    /// To be delivered again, and from when on.
    later: BinaryHeap<Reverse<(Instant, Copy)>>,
    /// By the number of the delivery.
    in_hand: HashMap<u64, Copy>,
    /// How many deliveries have been made.
    pub(crate) delivered: u64,
}

impl Queue {
    /// With copies of one message side by side as well as far apart.
    pub(crate) fn new(settings: &Settings, rng: &mut Rng) -> Self {
        let mut places: Vec<(u32, Copy)> = (0..settings.messages)
            .flat_map(|message| (0..settings.copies).map(move |_| message))
            .map(|message| {
                let place = if rng.bool() {
                    message.saturating_add(rng.u32(0..8))
                } else {
                    rng.u32(0..settings.messages)
                };
                (place, Copy { message, times: 0 })
            })
            .collect();
        rng.shuffle(&mut places);
        places.sort_by_key(|(place, _)| *place);
        Self {
            ready: places.into_iter().map(|(_, copy)| copy).collect(),
            later: BinaryHeap::new(),
            in_hand: HashMap::new(),
            delivered: 0,
        }
    }

    /// The next delivery's number, and what is delivered.
    pub(crate) fn deliver(&mut self, now: Instant) -> Option<(u64, Copy)> {
        while let Some(Reverse((at, copy))) = self.later.peek().copied()
            && at <= now
        {
            self.later.pop();
            self.ready.push_front(copy);
        }
        let mut copy = self.ready.pop_front()?;
        copy.times += 1;
        self.delivered += 1;
        self.in_hand.insert(self.delivered, copy);
        Some((self.delivered, copy))
    }

    /// Forgets a delivery, and says of what.
    pub(crate) fn acknowledge(&mut self, number: u64) -> Option<Copy> {
        self.in_hand.remove(&number)
    }

    /// Delivers it again later.
    pub(crate) fn give_back(&mut self, number: u64, at: Instant) -> Option<Copy> {
        let copy = self.in_hand.remove(&number)?;
        self.later.push(Reverse((at, copy)));
        Some(copy)
    }

    /// When something is ready to be delivered again.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.later.peek().map(|Reverse((at, _))| *at)
    }

    /// Whether everything has been acknowledged.
    pub(crate) fn is_empty(&self) -> bool {
        self.ready.is_empty() && self.later.is_empty() && self.in_hand.is_empty()
    }
}
