package redisstore

import (
	"errors"
	"slices"
	"strings"

	guard "github.com/babelqueue/babelqueue-guard/host/go"
	"github.com/redis/go-redis/v9"
)

// transient are the codes of errors that time, or a failover, mends.
var transient = []string{
	"LOADING", "READONLY", "MOVED", "ASK", "CLUSTERDOWN", "TRYAGAIN", "BUSY",
	"MASTERDOWN", "OOM", "NOREPLICAS", "MISCONF",
}

// failure gives an error of the client its kind (contract, section 7). What
// the server refuses for another reason an operator has to look at; where no
// answer came, time may help.
func failure(doing string, err error) error {
	kind := guard.ErrUnavailable
	if message, answered := serverMessage(err); answered && !isTransient(message) {
		kind = guard.ErrRejected
	}
	return &guard.Error{Kind: kind, Doing: "redis: " + doing, Cause: err}
}

// fromServer: the server has answered, be it with an error.
func fromServer(err error) bool {
	_, answered := serverMessage(err)
	return answered
}

func serverMessage(err error) (string, bool) {
	var answer redis.Error
	if !errors.As(err, &answer) {
		return "", false
	}
	return answer.Error(), true
}

func isTransient(message string) bool {
	code, _, _ := strings.Cut(message, " ")
	return slices.Contains(transient, code) ||
		strings.HasPrefix(message, "ERR max number of clients reached") ||
		// Redis 6 wraps the error of a command in a script.
		slices.ContainsFunc(transient, func(code string) bool {
			return strings.Contains(message, "-"+code+" ")
		})
}
