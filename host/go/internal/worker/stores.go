package main

import (
	"fmt"
	"strings"
	"time"

	guard "github.com/babelqueue/babelqueue-guard/host/go"
	"github.com/babelqueue/babelqueue-guard/host/go/redisstore"
)

// openStore makes the store that a request names, and says how to close it.
func openStore(r request) (guard.Store, func(), error) {
	switch {
	case r.Store == "memory:":
		store, err := openMemory(r)
		return store, func() {}, err
	case strings.HasPrefix(r.Store, "redis://"):
		store, err := openRedis(r)
		return store, func() { _ = store.Close() }, err
	default:
		return nil, nil, fmt.Errorf("no such store: %q", r.Store)
	}
}

func openMemory(r request) (*guard.Memory, error) {
	var options []guard.MemoryOption
	if r.RetentionMs != nil {
		options = append(options, guard.Retention(inMs(*r.RetentionMs)))
	}
	if r.LeaseMs != nil {
		options = append(options, guard.Lease(inMs(*r.LeaseMs)))
	}
	return guard.NewMemory(options...)
}

func openRedis(r request) (*redisstore.Store, error) {
	var options []redisstore.Option
	if r.Prefix != nil {
		options = append(options, redisstore.Prefix(*r.Prefix))
	}
	if r.Name != nil {
		options = append(options, redisstore.Consumer(*r.Name))
	}
	if r.RetentionMs != nil {
		options = append(options, redisstore.Retention(inMs(*r.RetentionMs)))
	}
	if r.LeaseMs != nil {
		options = append(options, redisstore.Lease(inMs(*r.LeaseMs)))
	}
	return redisstore.Open(r.Store, options...)
}

func inMs(count int64) time.Duration { return time.Duration(count) * time.Millisecond }
