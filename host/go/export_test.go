package guard

import "context"

// Decide is the decision alone, for benchmarks.
func (g *Guard) Decide(ctx context.Context, delivery Delivery) error {
	_, err := g.decide(ctx, delivery)
	return err
}
