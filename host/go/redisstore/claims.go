package redisstore

import (
	"cmp"
	"context"
	"crypto/rand"
	_ "embed"
	"encoding/hex"
	"errors"
	"slices"
	"strconv"
	"time"

	guard "github.com/babelqueue/babelqueue-guard/host/go"
	"github.com/redis/go-redis/v9"
)

//go:embed renew.lua
var renewScript string

//go:embed release.lua
var releaseScript string

var errNoReply = errors.New("no reply")

// giveBackTimeout bounds giving back what a claim may have taken.
const giveBackTimeout = 2 * time.Second

// Claim implements [guard.ClaimStore]. The lease is taken first and the mark
// looked for second, in one round trip where one server has both.
func (s *Store) Claim(ctx context.Context, id string) (guard.Claim, error) {
	token := newToken()
	attempt := s.attemptClaim(ctx, id, token)
	if attempt.unanswered() && ctx.Err() == nil {
		// Sent again with the same token: finding it then means won.
		attempt = s.attemptClaim(ctx, id, token)
	}
	return s.concludeClaim(ctx, id, token, attempt)
}

// attempt are the four commands of a claim.
type attempt struct{ take, owner, left, mark *redis.Cmd }

func (s *Store) attemptClaim(ctx context.Context, id, token string) attempt {
	lease, mark := s.keys.lease+id, s.keys.mark+id
	a := attempt{
		take:  redis.NewCmd(ctx, "SET", lease, token, "NX", "PX", inMs(s.Lease)),
		owner: redis.NewCmd(ctx, "GET", lease),
		left:  redis.NewCmd(ctx, "PTTL", lease),
		mark:  redis.NewCmd(ctx, "GET", mark),
	}
	if s.apart {
		s.pipeline(ctx, a.take, a.owner, a.left)
		s.pipeline(ctx, a.mark)
	} else {
		s.pipeline(ctx, a.take, a.owner, a.left, a.mark)
	}
	return a
}

// unanswered: a reply is missing, rather than being one that we do not like.
func (a attempt) unanswered() bool {
	return unanswered(a.take, a.owner, a.left, a.mark)
}

func unanswered(commands ...*redis.Cmd) bool {
	return slices.ContainsFunc(commands, func(command *redis.Cmd) bool {
		return command.Err() != nil && !fromServer(command.Err())
	})
}

func (s *Store) concludeClaim(ctx context.Context, id, token string, a attempt) (guard.Claim, error) {
	lease, mark := s.keys.lease+id, s.keys.mark+id
	taken, takeErr := found(a.take, lease)
	_, ownerErr := found(a.owner, lease)
	_, leftErr := found(a.left, lease)
	marked, markErr := found(a.mark, mark)
	owner, _ := a.owner.Text()
	won := taken || owner == token
	if err := first(takeErr, ownerErr, leftErr, markErr); err != nil {
		if won || a.unanswered() {
			s.giveBack(ctx, id, token)
		}
		return guard.Claim{}, err
	}
	switch {
	case marked:
		if won {
			s.giveBack(ctx, id, token)
		}
		return guard.Claim{State: guard.Done}, nil
	case won:
		return guard.Claim{State: guard.Won, Token: token, Length: s.Lease}, nil
	default:
		// Below 1 it has just ended, or has no end.
		left, _ := a.left.Int64()
		return guard.Claim{State: guard.Busy, Left: time.Duration(max(1, left)) * time.Millisecond}, nil
	}
}

// giveBack drops a lease that nobody will use, as well as can be: otherwise it
// lapses.
func (s *Store) giveBack(ctx context.Context, id, token string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), giveBackTimeout)
	defer cancel()
	_, _ = s.Release(ctx, id, token)
}

// Renew implements [guard.ClaimStore].
func (s *Store) Renew(ctx context.Context, id, token string) (bool, error) {
	renew := redis.NewCmd(ctx, "EVAL", renewScript, "1", s.keys.lease+id, token, inMs(s.Lease))
	_ = s.client.Process(ctx, renew) // renew has the error
	return s.tokenOwns(renew, id)
}

// Complete implements [guard.ClaimStore]. The mark is written first and the
// lease dropped second. A mark that is set counts, whatever becomes of the
// lease: one that could not be dropped lapses.
func (s *Store) Complete(ctx context.Context, id, token string) (bool, error) {
	mark, release := s.attemptComplete(ctx, id, token)
	if unanswered(mark) && ctx.Err() == nil {
		mark, release = s.attemptComplete(ctx, id, token)
	}
	if _, err := found(mark, s.keys.mark+id); err != nil {
		return false, err
	}
	held, err := s.tokenOwns(release, id)
	return held || err != nil, nil
}

func (s *Store) attemptComplete(ctx context.Context, id, token string) (mark, release *redis.Cmd) {
	mark, release = s.setMark(ctx, id), s.releaseCommand(ctx, id, token)
	if !s.apart {
		s.pipeline(ctx, mark, release)
		return mark, release
	}
	if s.pipeline(ctx, mark); mark.Err() == nil || errors.Is(mark.Err(), redis.Nil) {
		s.pipeline(ctx, release)
	}
	return mark, release
}

// Release implements [guard.ClaimStore].
func (s *Store) Release(ctx context.Context, id, token string) (bool, error) {
	release := s.releaseCommand(ctx, id, token)
	_ = s.client.Process(ctx, release) // release has the error
	return s.tokenOwns(release, id)
}

// releaseCommand uses EVAL rather than EVALSHA: it needs no other permission,
// and a flush of the scripts does not matter.
func (s *Store) releaseCommand(ctx context.Context, id, token string) *redis.Cmd {
	return redis.NewCmd(ctx, "EVAL", releaseScript, "1", s.keys.lease+id, token)
}

// tokenOwns reads the answer of a script: 1 if the token owned the lease.
func (s *Store) tokenOwns(command *redis.Cmd, id string) (bool, error) {
	count, err := command.Int()
	if err != nil {
		return false, failure("EVAL on "+strconv.Quote(s.keys.lease+id), err)
	}
	return count == 1, nil
}

// pipeline sends commands in one round trip, without a transaction, once. Each
// has its own error.
func (s *Store) pipeline(ctx context.Context, commands ...*redis.Cmd) {
	pipe := s.client.Pipeline()
	for _, command := range commands {
		_ = pipe.Process(ctx, sentOnce{command})
	}
	_, err := pipe.Exec(ctx)
	for _, command := range commands {
		// A connection that could not be set up, for a wrong password say,
		// leaves the commands without reply and without error.
		if command.Err() == nil && command.Val() == nil {
			command.SetErr(cmp.Or(err, errNoReply))
		}
	}
}

func newToken() string {
	var random [16]byte
	_, _ = rand.Read(random[:]) // never fails
	return hex.EncodeToString(random[:])
}

func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
