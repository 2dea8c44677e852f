package wasm

import (
	"context"
	"errors"
	"os"
	"strings"
	"sync"
	"testing"
)

func load(t testing.TB, world World, maxBody int, pages uint32) *Module {
	t.Helper()
	name := map[World]string{Plain: "plain", Claiming: "claiming"}[world]
	code, err := os.ReadFile("../../artifacts/" + name + ".core.wasm")
	if err != nil {
		t.Fatal(err)
	}
	module, err := compile(Settings{World: world, MaxBody: maxBody}, code, pages)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = module.runtime.Close(context.Background()) })
	return module
}

const usable = `{"meta":{"id":"a"}}`

func decidesNormally(t *testing.T, module *Module) {
	t.Helper()
	decision, asked, err := module.Decide([]byte(usable), Answer{})
	if err != nil || asked != Seen || decision.Ticket.ID != "a" {
		t.Fatalf("got %+v, %v, %v", decision, asked, err)
	}
}

func TestAModuleIsCompiledOnceForItsSettings(t *testing.T) {
	code, err := os.ReadFile("../../artifacts/plain.core.wasm")
	if err != nil {
		t.Fatal(err)
	}
	settings := Settings{World: Plain, MaxBody: 1000}
	one, err := Load(settings, code)
	if err != nil {
		t.Fatal(err)
	}
	two, _ := Load(settings, code)
	if one != two {
		t.Error("it was compiled twice")
	}
}

func TestACacheFolderIsFilledAndUsed(t *testing.T) {
	code, err := os.ReadFile("../../artifacts/plain.core.wasm")
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	for range 2 {
		module, err := compile(Settings{MaxBody: 1000, CacheDir: folder}, code, 20)
		if err != nil {
			t.Fatal(err)
		}
		decidesNormally(t, module)
		_ = module.runtime.Close(context.Background())
	}
	files, _ := os.ReadDir(folder)
	if len(files) == 0 {
		t.Error("nothing was kept")
	}
	if _, err := compile(Settings{MaxBody: 1000, CacheDir: os.DevNull}, code, 20); err == nil {
		t.Error("a cache folder that is none was accepted")
	}
}

func TestATrapSpoilsItsInstanceAlone(t *testing.T) {
	module := load(t, Plain, 1<<20, 3)
	decidesNormally(t, module)
	used := module.pool.idle[0]
	_, _, err := module.Decide(make([]byte, 1<<20), Answer{})
	if err == nil {
		t.Fatal("a body that the memory cannot hold was decided on")
	}
	if len(module.pool.idle) != 0 || !used.module.IsClosed() {
		t.Error("the instance that trapped is kept")
	}
	decidesNormally(t, module)
}

func TestAnInstanceThatALargeBodyHasGrownIsNotKept(t *testing.T) {
	module := load(t, Plain, 4<<20, pagesFor(4<<20))
	body := `{"data":"` + strings.Repeat("x", 3<<20) + `","meta":{"id":"a"}}`
	decision, _, err := module.Decide([]byte(body), Answer{})
	if err != nil || decision.Ticket.ID != "a" {
		t.Fatal(decision, err)
	}
	if len(module.pool.idle) != 0 {
		t.Error("it is kept")
	}
}

func TestTheDeepestNestingFitsIntoTheMemory(t *testing.T) {
	const size = 16 << 20
	module := load(t, Plain, size, pagesFor(size))
	body := `{"data":` + strings.Repeat("[", size/2-50) + strings.Repeat("]", size/2-50) + `,"meta":{"id":"a"}}`
	decision, _, err := module.Decide([]byte(body), Answer{})
	if err != nil || decision.Ticket.ID != "a" {
		t.Fatal(decision, err)
	}
}

func TestABodyOverTheLimitIsNotLowered(t *testing.T) {
	module := load(t, Plain, len(usable), pagesFor(len(usable)))
	decidesNormally(t, module)
	var large *TooLarge
	if _, _, err := module.Decide([]byte(usable+" "), Answer{}); !errors.As(err, &large) || large.Bytes != len(usable)+1 {
		t.Errorf("got %v", err)
	}
	// An id is the guard's to judge, however low that limit is.
	decision, _, err := module.DecideID(strings.Repeat("x", 2049), Answer{})
	if err != nil || decision.Ticket.Reason != Unusable {
		t.Error(decision, err)
	}
	if _, _, err := module.DecideID(strings.Repeat("x", 1<<24), Answer{}); !errors.As(err, &large) {
		t.Errorf("got %v", err)
	}
}

// heapStart is where a guest with nothing allocated puts the next bytes.
func heapStart(t testing.TB, module *Module) uint64 {
	t.Helper()
	i, err := module.acquire()
	if err != nil {
		t.Fatal(err)
	}
	at, err := i.allocate(8)
	if err != nil {
		t.Fatal(err)
	}
	_ = i.module.Close(context.Background())
	return uint64(at)
}

func TestNothingStaysAllocated(t *testing.T) {
	module := load(t, Claiming, 1000, 20)
	fresh := heapStart(t, module)
	leased := Ticket{Kind: Leased, ID: "a", Token: "t", LengthMs: 9}
	for name, call := range map[string]func() error{
		"decide": func() error {
			_, _, err := module.Decide([]byte(usable), Answer{Claim: ClaimAnswer{State: Busy, LeftMs: 3}})
			return err
		},
		"decide malformed": func() error { _, _, err := module.Decide([]byte("{"), Answer{}); return err },
		"decide empty":     func() error { _, _, err := module.Decide(nil, Answer{}); return err },
		"decide-id won": func() error {
			_, _, err := module.DecideID("a", Answer{Claim: ClaimAnswer{State: Won, Token: "t", LengthMs: 9}})
			return err
		},
		"decide-id no token": func() error { _, _, err := module.DecideID("a", Answer{Claim: ClaimAnswer{State: Won}}); return err },
		"decide-id done":     func() error { _, _, err := module.DecideID("a", Answer{Claim: ClaimAnswer{State: Done}}); return err },
		"decide-id empty":    func() error { _, _, err := module.DecideID("", Answer{}); return err },
		"settle":             func() error { _, _, err := module.Settle(leased, Succeeded, Answer{}); return err },
		"settle open":        func() error { _, _, err := module.Settle(Ticket{}, Failed, Answer{}); return err },
		"renew":              func() error { _, _, err := module.Renew(leased, Answer{}); return err },
		"once":               func() error { _, _, err := module.Once(leased, "s", Answer{}); return err },
		"forget":             func() error { _, err := module.Forget("a"); return err },
	} {
		if err := call(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if now := heapStart(t, module); now != fresh {
			t.Errorf("%s: %d bytes stay allocated", name, now-fresh)
		}
	}
	var rejected *Rejected
	if _, err := module.Forget(""); !errors.As(err, &rejected) {
		t.Errorf("forget of an unusable id: %v", err)
	}
	if _, _, err := module.Once(leased, "S", Answer{}); !errors.As(err, &rejected) {
		t.Errorf("a step's bad name: %v", err)
	}
	if now := heapStart(t, module); now != fresh {
		t.Errorf("an error leaves %d bytes allocated", now-fresh)
	}
}

func TestManyGoroutinesShareAModule(t *testing.T) {
	module := load(t, Plain, 1000, 20)
	var group sync.WaitGroup
	for worker := range 16 {
		group.Go(func() {
			id := strings.Repeat(string(rune('a'+worker)), worker+1)
			body := []byte(`{"meta":{"id":"` + id + `"}}`)
			for range 2000 {
				decision, _, err := module.Decide(body, Answer{})
				if err != nil || decision.Ticket.ID != id {
					t.Errorf("got %+v, %v; want %q", decision, err, id)
					return
				}
			}
		})
	}
	group.Wait()
}

func TestAMillionCallsDoNotGrow(t *testing.T) {
	module := load(t, Plain, 1000, 20)
	calls := 1_000_000
	if testing.Short() {
		calls = 50_000
	}
	var size uint32
	for call := range calls {
		if _, _, err := module.Decide([]byte(usable), Answer{}); err != nil {
			t.Fatal(err)
		}
		if call == 100 {
			size = module.pool.idle[0].memory.Size()
		}
	}
	if len(module.pool.idle) != 1 || module.pool.idle[0].memory.Size() != size {
		t.Errorf("%d instances, memory %d, at first %d", len(module.pool.idle), module.pool.idle[0].memory.Size(), size)
	}
}
