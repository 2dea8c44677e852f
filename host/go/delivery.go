package guard

// ReplayHeader among the transport headers of a delivery makes it a deliberate
// replay (contract, section 6).
const ReplayHeader = "bq-replay-bypass"

// Delivery is one hand-over of a message: an envelope's bytes, or an id that is
// known already. Make one with [Body] or [ID].
type Delivery struct {
	body   []byte
	id     string
	known  bool
	replay bool
}

// Body is a delivery whose id the guard reads from the envelope, JSON bytes. A
// string is taken as the bytes it is made of, UTF-8 or not.
func Body[B ~[]byte | ~string](envelope B) Delivery {
	return Delivery{body: []byte(envelope)}
}

// ID is a delivery whose id is known: an AMQP message_id, an attribute, a
// parsed envelope. The rules for a usable id apply to it (contract, section 1).
func ID(id string) Delivery {
	return Delivery{id: id, known: true}
}

// WithHeaders adds the transport headers that came beside the body. They tell
// the handler of a replay, and never turn a skip into a run.
func WithHeaders[H ~map[string]V, V any](delivery Delivery, headers H) Delivery {
	_, delivery.replay = headers[ReplayHeader]
	return delivery
}
