// Package guard makes the effect of a queued message happen once, though every
// queue delivers it at least once.
//
// It reads the id of an envelope, JSON with a member meta.id, asks a store
// whether that was processed, and runs, skips or parks the delivery. The
// decision is made by the WebAssembly module that all of babelqueue-guard's
// languages share; a store is all that has to be given:
//
//	store, err := guard.NewMemory()
//	…
//	consume(guard.Wrap(store, func(ctx context.Context, envelope []byte) error {
//		return charge(ctx, envelope)
//	}))
//
// Stores are [Memory], redisstore.Store of the package beside this one, and
// whatever has the three methods of [Store], as the stores of the BabelQueue
// Go SDK have. What every host and store has to do alike is written down in
// docs/contract.md of the project; the sections mentioned here are its.
package guard
