package redisstore

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	guard "github.com/babelqueue/babelqueue-guard/host/go"
	"github.com/babelqueue/babelqueue-guard/host/go/internal/settings"
	"github.com/redis/go-redis/v9"
)

// Store is a [guard.ClaimStore] and a [guard.StepStore]. It is safe for use by
// many goroutines.
//
// A cancelled context is heeded between commands; a command that is under way
// ends by the client's timeouts, or by the context's deadline where the client
// has ContextTimeoutEnabled.
type Store struct {
	options
	client redis.UniversalClient
	keys   keys
	// apart: mark and lease may lie on two servers, so that one pipeline does
	// not keep their order.
	apart bool
	owned bool
}

var (
	_ guard.ClaimStore = (*Store)(nil)
	_ guard.StepStore  = (*Store)(nil)
)

// New makes a store over a client that stays the caller's. Nothing is sent.
//
// The client's timeouts bound every call; go-redis has some unless they are
// switched off. A client must not cache replies, nor a cluster's client read
// from replicas: neither may know of a mark yet.
func New(client redis.UniversalClient, settings ...Option) (*Store, error) {
	s := &Store{client: client}
	if err := s.configure(settings); err != nil {
		return nil, err
	}
	return s, nil
}

// The timeouts of a client that Open makes. A response may take as long as a
// server that is busy, but alive, takes.
const (
	connectTimeout  = 2 * time.Second
	responseTimeout = 5 * time.Second
)

// Open makes a store with a client of its own for a URL: redis://, rediss://
// (TLS), valkey://, or unix:// with a socket's path. Nothing is sent. Close it
// at the end.
func Open(address string, settings ...Option) (*Store, error) {
	if rest, found := strings.CutPrefix(address, "valkey://"); found {
		address = "redis://" + rest
	}
	config, err := redis.ParseURL(address)
	if err != nil {
		// The URL, which may hold a password, is no part of the message.
		if parsing := (*url.Error)(nil); errors.As(err, &parsing) {
			err = parsing.Err
		}
		return nil, fmt.Errorf("redisstore: the URL cannot be used: %w", err)
	}
	config.DialTimeout = connectTimeout
	config.ReadTimeout = responseTimeout
	config.WriteTimeout = responseTimeout
	config.ContextTimeoutEnabled = true
	config.MaxRetries = 1
	config.DialerRetries = 1
	client := redis.NewClient(config)
	s, err := New(client, settings...)
	if err != nil {
		return nil, errors.Join(err, client.Close())
	}
	s.owned = true
	return s, nil
}

// Close closes the client that Open has made. A client given to New stays open.
func (s *Store) Close() error {
	if s.owned {
		return s.client.Close()
	}
	return nil
}

func (s *Store) configure(set []Option) error {
	s.options = options{Times: settings.Default(), prefix: defaultPrefix}
	for _, option := range set {
		option(&s.options)
	}
	if err := s.check(); err != nil {
		return err
	}
	s.keys = s.options.keys()
	switch client := s.client.(type) {
	case nil:
		return errors.New("redisstore: the client is nil")
	case *redis.Client:
		if o := client.Options(); o.ClientSideCacheConfig != nil || o.ClientSideCache != nil {
			return errors.New("redisstore: the client caches replies, so that a mark may be answered for that is gone: use one without ClientSideCache and ClientSideCacheConfig")
		}
	case *redis.ClusterClient:
		s.apart = true
		if o := client.Options(); o.ReadOnly || o.RouteByLatency || o.RouteRandomly {
			return errors.New("redisstore: the cluster's client reads from replicas, which may not have a mark yet: switch off ReadOnly, RouteByLatency and RouteRandomly")
		}
	case *redis.Ring:
		s.apart = true
	}
	return nil
}

// Seen implements [guard.Store].
func (s *Store) Seen(ctx context.Context, id string) (bool, error) {
	return s.exists(ctx, s.keys.mark+id)
}

// exists reads a key with GET, since EXISTS takes anything for a mark.
func (s *Store) exists(ctx context.Context, key string) (bool, error) {
	get := redis.NewCmd(ctx, "GET", key)
	_ = s.client.Process(ctx, get) // get has the error
	return found(get, key)
}

// Remember implements [guard.Store].
func (s *Store) Remember(ctx context.Context, id string) error {
	set := s.setMark(ctx, id)
	_ = s.client.Process(ctx, set) // set has the error
	_, err := found(set, s.keys.mark+id)
	return err
}

// setMark is a SET that, by GET, refuses a key of another type instead of
// overwriting it.
func (s *Store) setMark(ctx context.Context, id string) *redis.Cmd {
	arguments := append([]any{"SET", s.keys.mark + id, "1"}, s.retention()...)
	return redis.NewCmd(ctx, append(arguments, "GET")...)
}

// Forget implements [guard.Store].
func (s *Store) Forget(ctx context.Context, id string) error {
	key := s.keys.mark + id
	// Unlike DEL it leaves alone what is no mark.
	drop := redis.NewCmd(ctx, "GETDEL", key)
	_ = s.client.Process(ctx, drop) // drop has the error
	_, err := found(drop, key)
	return err
}

// SetOnce implements [guard.StepStore].
func (s *Store) SetOnce(ctx context.Context, id, step string) (bool, error) {
	key := s.keys.once + step + ":" + id
	if s.Forever {
		return false, &guard.Error{Kind: guard.ErrRejected, Doing: "redis: SET " + strconv.Quote(key), Cause: settings.ErrNoSteps}
	}
	arguments := append([]any{"SET", key, "1", "NX"}, s.retention()...)
	set := redis.NewCmd(ctx, arguments...)
	_ = s.client.Process(ctx, sentOnce{set}) // set has the error
	switch done, err := found(set, key); {
	case err != nil:
		return false, err
	case done:
		return true, nil
	}
	// Something is there. Is it a step's mark?
	_, err := s.exists(ctx, key)
	return false, err
}

// EvictionPolicy asks the server for its maxmemory-policy. With any but
// noeviction it drops marks and leases when memory runs out, and messages run
// again: worth a warning when a consumer starts.
func (s *Store) EvictionPolicy(ctx context.Context) (string, error) {
	info, err := s.client.Info(ctx, "memory").Result()
	if err != nil {
		return "", failure("INFO memory", err)
	}
	for line := range strings.Lines(info) {
		if policy, found := strings.CutPrefix(line, "maxmemory_policy:"); found {
			return strings.TrimSpace(policy), nil
		}
	}
	return "", failure("INFO memory", errors.New("no maxmemory_policy in the answer"))
}

// found says whether a command answered with something rather than nil.
func found(command *redis.Cmd, key string) (bool, error) {
	switch err := command.Err(); {
	case err == nil:
		return true, nil
	case errors.Is(err, redis.Nil):
		return false, nil
	default:
		return false, failure(strings.ToUpper(command.Name())+" "+strconv.Quote(key), err)
	}
}

// sentOnce is a command that the client does not send again by itself.
type sentOnce struct{ *redis.Cmd }

// NoRetry is what the client asks.
func (sentOnce) NoRetry() bool { return true }
