package guard_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	guard "github.com/babelqueue/babelqueue-guard/host/go"
)

var background = context.Background()

func TestASecondDeliveryIsSkipped(t *testing.T) {
	both(t, func(t *testing.T, options ...guard.Option) {
		store, h := newSpy(t), &handler{}
		g := newGuard(t, store, options...)
		first, err := g.Process(background, body("a"), h.handle)
		if err != nil || first != (guard.Result{Decision: guard.Ran, ID: "a", Marked: true}) {
			t.Errorf("first: %+v, %v", first, err)
		}
		second, err := g.Process(background, body("a"), h.handle)
		if err != nil || second != (guard.Result{Decision: guard.Skipped, ID: "a"}) {
			t.Errorf("second: %+v, %v", second, err)
		}
		want := "seen a, remember a, seen a"
		if claiming(options) {
			want = "claim a, complete a, claim a"
		}
		if h.calls != 1 || store.asked() != want {
			t.Errorf("%d calls; asked %s", h.calls, store.asked())
		}
	})
}

func TestWithoutAUsableIDItRunsAndTheStoreIsNotAsked(t *testing.T) {
	both(t, func(t *testing.T, options ...guard.Option) {
		for _, c := range []struct {
			delivery guard.Delivery
			reason   guard.FailOpen
		}{
			{guard.Body("[1]"), guard.Malformed},
			{guard.Body[[]byte](nil), guard.Malformed},
			{guard.Body("{}"), guard.Absent},
			{guard.Body(`{"meta":{"id":7}}`), guard.Unusable},
			{guard.ID(""), guard.Unusable},
			{guard.ID("a\x00"), guard.Unusable},
			{guard.ID("a\xed\xa0\x80"), guard.Unusable},
			{guard.ID("a\xff"), guard.Unusable},
			{guard.ID(strings.Repeat("x", 2049)), guard.Unusable},
		} {
			store, h := newSpy(t), &handler{}
			g := newGuard(t, store, options...)
			for _, h.ends = range []error{nil, errHandler} {
				result, err := g.Process(background, c.delivery, h.handle)
				if err != h.ends || result != (guard.Result{Decision: guard.Ran, FailOpen: c.reason}) {
					t.Errorf("%+v: got %+v, %v", c, result, err)
				}
			}
			if h.calls != 2 || store.asked() != "" {
				t.Errorf("%+v: %d calls; asked %s", c, h.calls, store.asked())
			}
		}
	})
}

func TestTheHandlersErrorIsReturnedUnchangedAndNothingIsMarked(t *testing.T) {
	both(t, func(t *testing.T, options ...guard.Option) {
		store, h := newSpy(t), &handler{ends: errHandler}
		g := newGuard(t, store, options...)
		for range 2 {
			result, err := g.Process(background, body("a"), h.handle)
			if err != errHandler || result != (guard.Result{Decision: guard.Ran, ID: "a"}) {
				t.Errorf("got %+v, %v", result, err)
			}
		}
		h.ends = nil
		if result, err := g.Process(background, body("a"), h.handle); err != nil || !result.Marked {
			t.Errorf("got %+v, %v", result, err)
		}
		if h.calls != 3 {
			t.Errorf("%d calls", h.calls)
		}
	})
}

func TestAStoreThatFailsIsNeverARunOrASkip(t *testing.T) {
	rejected := &guard.Error{Kind: guard.ErrRejected, Doing: "GET a"}
	both(t, func(t *testing.T, options ...guard.Option) {
		for _, c := range []struct{ fails, kind error }{
			{io.ErrUnexpectedEOF, guard.ErrUnavailable},
			{rejected, guard.ErrRejected},
			{context.DeadlineExceeded, guard.ErrUnavailable},
		} {
			store, h := newSpy(t), &handler{}
			store.fails["seen"], store.fails["claim"] = c.fails, c.fails
			g := newGuard(t, store, options...)
			result, err := g.Process(background, body("a"), h.handle)
			if !errors.Is(err, c.kind) || !errors.Is(err, c.fails) || result != (guard.Result{}) || h.calls != 0 {
				t.Errorf("got %+v, %v, %d calls", result, err, h.calls)
			}
			store.fails = nil
			if result, err := g.Process(background, body("a"), h.handle); err != nil || !result.Marked {
				t.Errorf("after it: %+v, %v", result, err)
			}
		}
	})
}

func TestAMarkThatFailsIsReportedBesideTheSuccess(t *testing.T) {
	both(t, func(t *testing.T, options ...guard.Option) {
		store, h := newSpy(t), &handler{}
		store.fails["remember"], store.fails["complete"] = io.ErrUnexpectedEOF, io.ErrUnexpectedEOF
		result, err := newGuard(t, store, options...).Process(background, body("a"), h.handle)
		if err != nil || result.Decision != guard.Ran || result.Marked ||
			!errors.Is(result.SettleErr, guard.ErrUnavailable) || !errors.Is(result.SettleErr, io.ErrUnexpectedEOF) {
			t.Errorf("got %+v, %v", result, err)
		}
	})
}

func TestForgetMakesTheNextDeliveryRun(t *testing.T) {
	both(t, func(t *testing.T, options ...guard.Option) {
		store, h := newSpy(t), &handler{}
		g := newGuard(t, store, options...)
		for _, want := range []guard.Decision{guard.Ran, guard.Ran} {
			if result, err := g.Process(background, body("a"), h.handle); err != nil || result.Decision != want {
				t.Errorf("got %+v, %v", result, err)
			}
			if err := g.Forget(background, "a"); err != nil {
				t.Error(err)
			}
		}
		if err := g.Forget(background, "\xff"); !errors.Is(err, guard.ErrRejected) {
			t.Errorf("an id that no mark can have: %v", err)
		}
		store.fails["forget"] = io.EOF
		if err := g.Forget(background, "a"); !errors.Is(err, guard.ErrUnavailable) {
			t.Errorf("got %v", err)
		}
	})
}

func TestAReplayIsToldAndTurnsNoSkipIntoARun(t *testing.T) {
	g := newGuard(t, newSpy(t))
	replay := func(headers map[string]any) (told bool, result guard.Result) {
		result, err := g.Process(background, guard.WithHeaders(body("a"), headers), func(_ context.Context, run *guard.Run) error {
			told = run.Replay
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return told, result
	}
	if told, _ := replay(map[string]any{"other": 1}); told {
		t.Error("told of a replay that is none")
	}
	bypass := map[string]any{guard.ReplayHeader: false}
	if _, result := replay(bypass); result.Decision != guard.Skipped {
		t.Errorf("got %+v", result)
	}
	if err := g.Forget(background, "a"); err != nil {
		t.Fatal(err)
	}
	if told, result := replay(bypass); !told || result.Decision != guard.Ran {
		t.Errorf("told %t, %+v", told, result)
	}
}

func TestABodyOverTheLimitIsAGuardError(t *testing.T) {
	both(t, func(t *testing.T, options ...guard.Option) {
		store, h := newSpy(t), &handler{}
		g := newGuard(t, store, append(options, guard.WithMaxBody(100))...)
		large := guard.Body(`{"data":"` + strings.Repeat("x", 100) + `","meta":{"id":"a"}}`)
		result, err := g.Process(background, large, h.handle)
		if !errors.Is(err, guard.ErrGuard) || result != (guard.Result{}) || h.calls != 0 || store.asked() != "" {
			t.Errorf("got %+v, %v", result, err)
		}
		if result, err := g.Process(background, body("a"), h.handle); err != nil || !result.Marked {
			t.Errorf("after it: %+v, %v", result, err)
		}
	})
}

func TestTextThatIsNotWellFormedElsewhereThanInTheIDDoesNotMatter(t *testing.T) {
	h := &handler{}
	result, err := newGuard(t, newSpy(t)).Process(background, guard.Body("{\"x\":\"\xff\xed\xa0\x80\",\"meta\":{\"id\":\"a\"}}"), h.handle)
	if err != nil || result.ID != "a" {
		t.Errorf("got %+v, %v", result, err)
	}
}

func TestSettingsThatCannotBeAreRefusedByName(t *testing.T) {
	memory, _ := guard.NewMemory()
	for _, c := range []struct {
		make func() error
		name string
	}{
		{func() error { _, err := guard.New(memory, guard.WithMaxBody(0)); return err }, "WithMaxBody(0)"},
		{func() error { _, err := guard.New(memory, guard.WithSettleTimeout(0)); return err }, "WithSettleTimeout(0s)"},
		{func() error { _, err := guard.New(nil); return err }, "store is nil"},
		{func() error { _, err := guard.New(threeMethods{memory}, guard.WithClaims()); return err }, "ClaimStore"},
		{func() error { _, err := guard.NewMemory(guard.Retention(0)); return err }, "Retention(0s)"},
		{func() error { _, err := guard.NewMemory(guard.Retention(time.Millisecond / 2)); return err }, "Retention(500µs)"},
		{func() error { _, err := guard.NewMemory(guard.Lease(-time.Second)); return err }, "Lease(-1s)"},
		{func() error { _, err := guard.NewMemory(guard.RetainForever(), guard.Lease(0)); return err }, "Lease(0s)"},
		{func() error { _, err := guard.NewMemory(guard.MaxEntries(0)); return err }, "MaxEntries(0)"},
	} {
		if err := c.make(); err == nil || !strings.Contains(err.Error(), c.name) {
			t.Errorf("got %v, want it to name %s", err, c.name)
		}
	}
}

// threeMethods hides what else a store can do.
type threeMethods struct{ guard.Store }

func TestAStoreOfThreeMethodsIsEnough(t *testing.T) {
	memory, _ := guard.NewMemory()
	g, h := newGuard(t, threeMethods{memory}), &handler{}
	for range 2 {
		if _, err := g.Process(background, guard.ID("a"), h.handle); err != nil {
			t.Error(err)
		}
	}
	if h.calls != 1 {
		t.Errorf("%d calls", h.calls)
	}
	_, err := g.Process(background, guard.ID("b"), func(ctx context.Context, run *guard.Run) error {
		_, err := run.Once(ctx, "count")
		return err
	})
	if !errors.Is(err, guard.ErrRejected) {
		t.Errorf("a step without a StepStore: %v", err)
	}
}

func TestAWrappedHandlerReturnsWhatTheConsumerIsToDo(t *testing.T) {
	store := newSpy(t)
	var handled [][]byte
	var ends error
	wrapped := guard.Wrap(store, func(ctx context.Context, envelope []byte) error {
		if guard.FromContext(ctx).ID != "a" {
			t.Error("the context does not know the id")
		}
		handled = append(handled, envelope)
		return ends
	}, guard.WithClaims())
	envelope := []byte(`{"meta":{"id":"a"}}`)

	ends = errHandler
	if err := wrapped(background, envelope); err != errHandler {
		t.Errorf("failing: %v", err)
	}
	claim, _ := store.Memory.Claim(background, "a")
	var parked *guard.ParkedError
	if err := wrapped(background, envelope); !errors.As(err, &parked) || parked.ID != "a" || parked.Left <= 0 {
		t.Errorf("parked: %v", err)
	}
	_, _ = store.Memory.Release(background, "a", claim.Token)
	ends = nil
	for range 2 {
		if err := wrapped(background, envelope); err != nil {
			t.Error(err)
		}
	}
	if len(handled) != 2 || !bytes.Equal(handled[1], envelope) {
		t.Errorf("handled %q", handled)
	}
	store.fails["claim"] = io.EOF
	if err := wrapped(background, envelope); !errors.Is(err, guard.ErrUnavailable) {
		t.Errorf("got %v", err)
	}
	defer func() {
		if recover() == nil {
			t.Error("settings that cannot be were accepted")
		}
	}()
	guard.Wrap(nil, func(context.Context, []byte) error { return nil })
}

func TestAMissingMarkIsLoggedOrObserved(t *testing.T) {
	var log bytes.Buffer
	previous := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	defer slog.SetDefault(previous)
	store := newSpy(t)
	store.fails["remember"] = io.EOF
	succeeds := func(context.Context, []byte) error { return nil }

	if err := guard.Wrap(store, succeeds)(background, []byte(`{"meta":{"id":"a"}}`)); err != nil {
		t.Error(err)
	}
	if !strings.Contains(log.String(), "id=a") || !strings.Contains(log.String(), "EOF") {
		t.Errorf("logged %q", log.String())
	}
	log.Reset()
	var seen []guard.Result
	observe := guard.WithObserver(func(_ context.Context, result guard.Result, _ error) { seen = append(seen, result) })
	if err := guard.Wrap(store, succeeds, observe)(background, []byte(`{"meta":{"id":"a"}}`)); err != nil {
		t.Error(err)
	}
	if len(seen) != 1 || !errors.Is(seen[0].SettleErr, io.EOF) || log.Len() != 0 {
		t.Errorf("observed %+v, logged %q", seen, log.String())
	}
}

func TestMiddlewareTakesAnyTypeOfMessage(t *testing.T) {
	type message struct {
		Key     string
		Headers map[string][]byte
	}
	var replays int
	handle := guard.Middleware(newGuard(t, newSpy(t)),
		func(m message) guard.Delivery { return guard.WithHeaders(guard.ID(m.Key), m.Headers) },
		func(ctx context.Context, m message) error {
			if guard.FromContext(ctx).Replay {
				replays++
			}
			return nil
		})
	m := message{"a", map[string][]byte{guard.ReplayHeader: nil}}
	for range 2 {
		if err := handle(background, m); err != nil {
			t.Error(err)
		}
	}
	if replays != 1 || guard.FromContext(background) != nil {
		t.Errorf("%d replays", replays)
	}
}
