package redisstore

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"

	guard "github.com/babelqueue/babelqueue-guard/host/go"
	"github.com/babelqueue/babelqueue-guard/host/go/internal/redistest"
)

func TestErrorsOfTheServerHaveTheirKind(t *testing.T) {
	client := redistest.Start(t).Client(t)
	for message, kind := range map[string]error{
		"LOADING Redis is loading the dataset in memory":                                   guard.ErrUnavailable,
		"READONLY You can't write against a read only replica.":                            guard.ErrUnavailable,
		"MOVED 3999 127.0.0.1:6381":                                                        guard.ErrUnavailable,
		"ASK 3999 127.0.0.1:6381":                                                          guard.ErrUnavailable,
		"CLUSTERDOWN Hash slot not served":                                                 guard.ErrUnavailable,
		"TRYAGAIN Multiple keys request during rehashing of slot":                          guard.ErrUnavailable,
		"BUSY Redis is busy running a script.":                                             guard.ErrUnavailable,
		"MASTERDOWN Link with MASTER is down":                                              guard.ErrUnavailable,
		"OOM command not allowed when used memory > 'maxmemory'.":                          guard.ErrUnavailable,
		"NOREPLICAS Not enough good replicas to write.":                                    guard.ErrUnavailable,
		"MISCONF Errors writing to the AOF file":                                           guard.ErrUnavailable,
		"ERR max number of clients reached":                                                guard.ErrUnavailable,
		"ERR Error running script (call to f_0): @user_script:3: -OOM command not allowed": guard.ErrUnavailable,
		"NOAUTH Authentication required.":                                                  guard.ErrRejected,
		"WRONGPASS invalid username-password pair or user is disabled.":                    guard.ErrRejected,
		"NOPERM this user has no permissions to run the 'set' command":                     guard.ErrRejected,
		"WRONGTYPE Operation against a key holding the wrong kind of value":                guard.ErrRejected,
		"ERR syntax error": guard.ErrRejected,
		"CROSSSLOT Keys in request don't hash to the same slot": guard.ErrRejected,
	} {
		err := client.Eval(context.Background(), "return redis.error_reply(ARGV[1])", nil, message).Err()
		if err == nil {
			t.Fatalf("no error for %q", message)
		}
		if got := failure("EVAL", fmt.Errorf("wrapped: %w", err)); !errors.Is(got, kind) || !errors.Is(got, err) {
			t.Errorf("%q: %v", message, got)
		}
	}
	if got := failure("GET", context.Canceled); !errors.Is(got, guard.ErrUnavailable) {
		t.Error(got)
	}
}

func TestTheScriptsAreThoseOfEveryOtherLanguage(t *testing.T) {
	for name, script := range map[string]string{"renew.lua": renewScript, "release.lua": releaseScript} {
		bytes, err := os.ReadFile("../../../stores/redis/" + name)
		if errors.Is(err, os.ErrNotExist) && os.Getenv("CI") != "true" {
			t.Skip("the project's scripts are not there")
		}
		if err != nil || string(bytes) != script {
			t.Errorf("%s differs, or: %v", name, err)
		}
	}
}
