// Package settings has what all stores are set with, and its checks.
package settings

import (
	"errors"
	"fmt"
	"time"
)

// Defaults (contract, section 7).
const (
	DefaultRetention = 14 * 24 * time.Hour
	DefaultLease     = time.Minute
)

// Times are how long what a store writes is kept.
type Times struct {
	// Retention of marks and steps; Forever has none, and no steps.
	Retention time.Duration
	Forever   bool
	Lease     time.Duration
}

// Default gives the times of a store that is not told any.
func Default() Times {
	return Times{Retention: DefaultRetention, Lease: DefaultLease}
}

// ErrNoSteps is why a store that keeps its marks for ever rejects steps
// (contract, section 4).
var ErrNoSteps = errors.New("steps need a retention, and this store keeps its marks for ever: give it one to use steps")

// Check refuses what is no whole, positive number of milliseconds.
func (t Times) Check() error {
	if !t.Forever {
		if err := whole("Retention", t.Retention); err != nil {
			return err
		}
	}
	return whole("Lease", t.Lease)
}

func whole(setting string, d time.Duration) error {
	if d <= 0 || d%time.Millisecond != 0 {
		return fmt.Errorf("%s(%v): it must be a positive number of whole milliseconds", setting, d)
	}
	return nil
}
