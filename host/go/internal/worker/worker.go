package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	guard "github.com/babelqueue/babelqueue-guard/host/go"
)

type request struct {
	Op string `json:"op"`

	Store       string  `json:"store"`
	Prefix      *string `json:"prefix"`
	Name        *string `json:"name"`
	RetentionMs *int64  `json:"retention_ms"`
	Claim       bool    `json:"claim"`
	LeaseMs     *int64  `json:"lease_ms"`

	File    string         `json:"file"`
	Body    *text          `json:"body"`
	ID      *text          `json:"id"`
	Outcome string         `json:"outcome"`
	HoldMs  int64          `json:"hold_ms"`
	Headers map[string]any `json:"headers"`
	Step    string         `json:"step"`
}

type object map[string]any

// worker has the guard that the last open made.
type worker struct {
	guard *guard.Guard
	store guard.Store
	close func()
}

// nothingSeen is a store for verdicts, which ask for the id alone.
type nothingSeen struct{}

func (nothingSeen) Seen(context.Context, string) (bool, error) { return false, nil }
func (nothingSeen) Remember(context.Context, string) error     { return nil }
func (nothingSeen) Forget(context.Context, string) error       { return nil }

var errThrown = errors.New("the handler was told to fail")

func newWorker() (*worker, error) {
	w := &worker{close: func() {}}
	return w, w.open(request{Store: "memory:"})
}

func (w *worker) answer(ctx context.Context, line []byte) object {
	var r request
	if err := json.Unmarshal(line, &r); err != nil {
		return unsupported(err)
	}
	answer, err := w.perform(ctx, r)
	if err == nil {
		return answer
	}
	if kind := errorKind(err); kind != nil {
		return object{"error": kind, "detail": err.Error()}
	}
	return unsupported(err)
}

func (w *worker) perform(ctx context.Context, r request) (object, error) {
	ok := object{"ok": true}
	switch r.Op {
	case "open":
		return ok, w.open(r)
	case "verdict":
		return verdict(ctx, r)
	case "process":
		return w.process(ctx, r)
	}
	if r.ID == nil {
		return nil, fmt.Errorf("%q without an id, or no such op", r.Op)
	}
	id := string(*r.ID)
	switch r.Op {
	case "seen":
		seen, err := w.store.Seen(ctx, id)
		return object{"seen": seen}, err
	case "remember":
		return ok, w.store.Remember(ctx, id)
	case "forget":
		return ok, w.guard.Forget(ctx, id)
	default:
		return nil, fmt.Errorf("no such op: %q", r.Op)
	}
}

func (w *worker) open(r request) error {
	store, closeStore, err := openStore(r)
	if err != nil {
		return err
	}
	var options []guard.Option
	if r.Claim {
		options = append(options, guard.WithClaims())
	}
	g, err := guard.New(store, options...)
	if err != nil {
		closeStore()
		return err
	}
	w.close()
	w.guard, w.store, w.close = g, store, closeStore
	return nil
}

func verdict(ctx context.Context, r request) (object, error) {
	body, err := os.ReadFile(r.File)
	if err != nil {
		return nil, err
	}
	g, err := guard.New(nothingSeen{})
	if err != nil {
		return nil, err
	}
	result, err := g.Process(ctx, guard.Body(body), func(context.Context, *guard.Run) error { return nil })
	return object{"id": orNull(result.ID), "reason": orNull(string(result.FailOpen))}, err
}

func (w *worker) process(ctx context.Context, r request) (object, error) {
	delivery, err := r.delivery()
	if err != nil {
		return nil, err
	}
	answer := object{
		"decision": "error", "id": nil, "reason": nil, "outcome": nil, "marked": false,
		"error": nil, "left_ms": nil, "replay": nil, "step": nil,
	}
	result, err := w.guard.Process(ctx, delivery, func(ctx context.Context, run *guard.Run) error {
		answer["replay"] = run.Replay
		if r.Step != "" {
			runs, err := run.Once(ctx, r.Step)
			if err != nil {
				return err
			}
			answer["step"] = runs
		}
		time.Sleep(time.Duration(r.HoldMs) * time.Millisecond)
		if r.Outcome == "throw" {
			return errThrown
		}
		return nil
	})
	answer["id"], answer["reason"] = orNull(result.ID), orNull(string(result.FailOpen))
	switch result.Decision {
	case guard.Ran:
		answer["decision"] = "run"
		answer["outcome"] = "succeeded"
		if err != nil {
			answer["outcome"] = "failed"
		}
		answer["marked"] = result.Marked
		err = errors.Join(err, result.SettleErr)
	case guard.Skipped:
		answer["decision"] = "skip"
	case guard.Parked:
		answer["decision"] = "park"
		answer["left_ms"] = result.Left.Milliseconds()
	}
	answer["error"] = errorKind(err)
	if err != nil && !errors.Is(err, errThrown) {
		answer["detail"] = err.Error()
	}
	return answer, nil
}

func (r request) delivery() (guard.Delivery, error) {
	var delivery guard.Delivery
	switch {
	case r.Body != nil:
		delivery = guard.Body(*r.Body)
	case r.File != "":
		body, err := os.ReadFile(r.File)
		if err != nil {
			return delivery, err
		}
		delivery = guard.Body(body)
	case r.ID != nil:
		delivery = guard.ID(string(*r.ID))
	default:
		return delivery, errors.New("process without body, file or id")
	}
	return guard.WithHeaders(delivery, r.Headers), nil
}

func errorKind(err error) any {
	switch {
	case errors.Is(err, guard.ErrUnavailable):
		return "unavailable"
	case errors.Is(err, guard.ErrRejected):
		return "rejected"
	case errors.Is(err, guard.ErrGuard):
		return "guard"
	default:
		return nil
	}
}

func orNull(text string) any {
	if text == "" {
		return nil
	}
	return text
}

func unsupported(err error) object {
	return object{"error": "unsupported", "detail": err.Error()}
}
