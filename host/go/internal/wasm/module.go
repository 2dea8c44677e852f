package wasm

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/tetratelabs/wazero"
)

const pageSize = 65_536

// Settings tell two loaded modules apart.
type Settings struct {
	World World
	// MaxBody is the largest body in bytes that Decide takes.
	MaxBody int
	// CacheDir keeps the compiled code between processes; empty: nowhere.
	CacheDir string
}

// Module is a world, compiled, with its pool of instances. It is safe for use
// by many goroutines.
type Module struct {
	maxBody  int
	runtime  wazero.Runtime
	compiled wazero.CompiledModule
	pool     pool
}

var loaded = struct {
	sync.Mutex
	modules map[Settings]*Module
}{modules: map[Settings]*Module{}}

// Load compiles a world, once in a process for each distinct settings. What it
// returns stays until the process ends.
func Load(settings Settings, code []byte) (*Module, error) {
	loaded.Lock()
	defer loaded.Unlock()
	if module, found := loaded.modules[settings]; found {
		return module, nil
	}
	module, err := compile(settings, code, pagesFor(settings.MaxBody))
	if err != nil {
		return nil, err
	}
	loaded.modules[settings] = module
	return module, nil
}

// pagesFor caps the memory of a guest that holds a body: the body, a bit for
// each of its levels of nesting, stack, data and results.
func pagesFor(maxBody int) uint32 {
	pages := uint64(maxBody)/pageSize*5/4 + 16
	return uint32(min(pages, 65_536))
}

func compile(settings Settings, code []byte, pages uint32) (*Module, error) {
	ctx := context.Background()
	// No WithCloseOnContextDone: it makes each loop of the guest look at the
	// context, which takes eight times as long. A call is over in time linear
	// in the body.
	config := wazero.NewRuntimeConfig().WithMemoryLimitPages(pages)
	if settings.CacheDir != "" {
		cache, err := wazero.NewCompilationCacheWithDir(settings.CacheDir)
		if err != nil {
			return nil, fmt.Errorf("the compilation cache folder %q cannot be used: %w", settings.CacheDir, err)
		}
		config = config.WithCompilationCache(cache)
	}
	runtime := wazero.NewRuntimeWithConfig(ctx, config)
	module, err := prepare(ctx, runtime, settings, code)
	if err != nil {
		return nil, errors.Join(err, runtime.Close(ctx))
	}
	return module, nil
}

func prepare(ctx context.Context, runtime wazero.Runtime, settings Settings, code []byte) (*Module, error) {
	if err := instantiateImports(ctx, runtime); err != nil {
		return nil, err
	}
	compiled, err := runtime.CompileModule(ctx, code)
	if err != nil {
		return nil, fmt.Errorf("the guard's module cannot be compiled: %w", err)
	}
	return &Module{maxBody: settings.MaxBody, runtime: runtime, compiled: compiled}, nil
}
