package redisstore

import (
	"fmt"
	"regexp"
	"strconv"
	"time"

	"github.com/babelqueue/babelqueue-guard/host/go/internal/settings"
)

// Option is a setting of a store.
type Option func(*options)

type options struct {
	settings.Times
	prefix   string
	consumer *string
}

const defaultPrefix = "bq:"

// Prefix sets what all keys begin with; `bq:` unless set.
func Prefix(prefix string) Option {
	return func(o *options) { o.prefix = prefix }
}

// Consumer names the consumer, `[a-z0-9_]{1,24}`. Two different consumers of
// one message on one Redis need two names, or the first one's mark makes the
// second skip.
func Consumer(name string) Option {
	return func(o *options) { o.consumer = &name }
}

// Retention sets how long marks and steps are kept; 14 days unless set.
func Retention(d time.Duration) Option {
	return func(o *options) { o.Retention, o.Forever = d, false }
}

// RetainForever keeps marks until they are removed. Steps, which need a
// retention, are then [guard.ErrRejected].
func RetainForever() Option {
	return func(o *options) { o.Forever = true }
}

// Lease sets how long a claim lasts unless it is renewed; 60 s unless set.
func Lease(d time.Duration) Option {
	return func(o *options) { o.Lease = d }
}

var consumerName = regexp.MustCompile(`\A[a-z0-9_]{1,24}\z`)

func (o *options) check() error {
	if o.consumer != nil && !consumerName.MatchString(*o.consumer) {
		return fmt.Errorf("redisstore: Consumer(%q): it must be 1 to 24 of a-z, 0-9 and _", *o.consumer)
	}
	if err := o.Check(); err != nil {
		return fmt.Errorf("redisstore: %w", err)
	}
	return nil
}

// keys are what the ids are appended to, byte for byte.
type keys struct{ mark, lease, once string }

func (o *options) keys() keys {
	name := ""
	if o.consumer != nil {
		name = "@" + *o.consumer
	}
	return keys{
		mark:  o.prefix + "idemp" + name + ":",
		lease: o.prefix + "lease" + name + ":",
		once:  o.prefix + "once" + name + ":",
	}
}

// retention gives the arguments that end a mark's life.
func (o *options) retention() []any {
	if o.Forever {
		return nil
	}
	return []any{"PX", inMs(o.Retention)}
}

func inMs(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }
