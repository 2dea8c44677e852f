//! One hand-over of a message to a consumer.

/// The header that says that a delivery is a deliberate replay
/// (contract, section 6).
pub const REPLAY_HEADER: &str = "bq-replay-bypass";

/// A delivery: the message's body, or its id if the transport has told it
/// already, and what the headers beside it say.
///
/// The body is the envelope's JSON, as bytes. It need not be valid UTF-8.
#[derive(Clone, Copy, Debug)]
pub struct Delivery<'a> {
    pub(crate) identity: Identity<'a>,
    pub(crate) replay: bool,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Identity<'a> {
    Body(&'a [u8]),
    Id(&'a str),
}

impl<'a> Delivery<'a> {
    /// A delivery whose id is to be read from its body.
    #[must_use]
    pub fn from_body(body: &'a (impl AsRef<[u8]> + ?Sized)) -> Self {
        Self {
            identity: Identity::Body(body.as_ref()),
            replay: false,
        }
    }

    /// A delivery whose id is known: an AMQP `message_id`, a `bq-message-id`
    /// attribute, the `meta.id` of an envelope that has been parsed. The
    /// rules for a usable id apply to it (contract, section 1).
    #[must_use]
    pub fn from_id(id: &'a str) -> Self {
        Self {
            identity: Identity::Id(id),
            replay: false,
        }
    }

    /// Looks at the transport's headers, by name. Only one matters here:
    /// [`REPLAY_HEADER`], whatever its value, makes the delivery a replay. It
    /// never turns a skip into a run.
    #[must_use]
    pub fn with_headers<N: AsRef<str>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.replay |= names.into_iter().any(|name| name.as_ref() == REPLAY_HEADER);
        self
    }
}

impl<'a> From<&'a [u8]> for Delivery<'a> {
    fn from(body: &'a [u8]) -> Self {
        Self::from_body(body)
    }
}

impl<'a> From<&'a str> for Delivery<'a> {
    fn from(body: &'a str) -> Self {
        Self::from_body(body)
    }
}

impl<'a> From<&'a Vec<u8>> for Delivery<'a> {
    fn from(body: &'a Vec<u8>) -> Self {
        Self::from_body(body)
    }
}

impl<'a> From<&'a String> for Delivery<'a> {
    fn from(body: &'a String) -> Self {
        Self::from_body(body)
    }
}
