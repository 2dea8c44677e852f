// Package settings has what all stores are set with, and its checks.
package settings

import (
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
	// Retention of marks and steps; Forever has none.
	Retention time.Duration
	Forever   bool
	Lease     time.Duration
}

// Default gives the times of a store that is not told any.
func Default() Times {
	return Times{Retention: DefaultRetention, Lease: DefaultLease}
}

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
