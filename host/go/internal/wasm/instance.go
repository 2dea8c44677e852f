package wasm

import (
	"context"
	"errors"
	"fmt"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

// instance is one instance of the core module. One call at a time uses it;
// nothing in it would notice a second one.
type instance struct {
	module  api.Module
	memory  api.Memory
	realloc api.Function
	// Looking a function up costs several times what calling it does.
	decide, decideID, settle, renew, forget, once export
	// ctx leads the imports, which get nothing but the calling module, back
	// to their instance. It is never cancelled.
	ctx context.Context
	// stack passes parameters and results, without an allocation a call.
	stack [8]uint64

	// broken is set while a call is under way. A call that trapped leaves it
	// set: after an overflow of the guest's stack nothing else tells.
	broken bool

	answer    Answer
	token     uint32 // where the answer's token lies in the guest
	asked     Question
	questions int
}

// export is a function and what frees its result.
type export struct{ call, post api.Function }

type instanceKey struct{}

func (m *Module) instantiate() (*instance, error) {
	// Without a name, so that there can be any number of them.
	config := wazero.NewModuleConfig().WithName("").WithStartFunctions()
	module, err := m.runtime.InstantiateModule(context.Background(), m.compiled, config)
	if err != nil {
		return nil, fmt.Errorf("the guard's module cannot be instantiated: %w", err)
	}
	of := func(name string) export {
		return export{module.ExportedFunction(name), module.ExportedFunction("cabi_post_" + name)}
	}
	made := &instance{
		module:   module,
		memory:   module.Memory(),
		realloc:  module.ExportedFunction("cabi_realloc"),
		decide:   of(guardInterface + "#decide"),
		decideID: of(guardInterface + "#decide-id"),
		settle:   of(guardInterface + "#settle"),
		renew:    of(guardInterface + "#renew"),
		forget:   of(guardInterface + "#forget"),
		once:     of(stepsInterface + "#once"),
		broken:   true,
	}
	made.ctx = context.WithValue(context.Background(), instanceKey{}, made)
	return made, nil
}

// begin runs an export with the parameters that lie on the stack. Its result
// is to be read, and then freed by end.
func (i *instance) begin(function export, answer Answer) (result, error) {
	i.answer, i.asked, i.questions = answer, Nothing, 0
	if err := function.call.CallWithStack(i.ctx, i.stack[:]); err != nil {
		return result{}, fmt.Errorf("the guard trapped: %w", err)
	}
	return result{memory: i.memory, at: uint32(i.stack[0]), valid: true}, nil
}

// end frees a result and says what the call asked. Only after it the instance
// is fit for another call.
func (i *instance) end(function export, read *result) (Question, error) {
	i.stack[0] = uint64(read.at)
	if err := function.post.CallWithStack(i.ctx, i.stack[:]); err != nil {
		return Nothing, fmt.Errorf("the guard trapped: %w", err)
	}
	if !read.valid || i.questions > 1 {
		return Nothing, fmt.Errorf("the guard's module broke its contract: result valid: %t, questions: %d", read.valid, i.questions)
	}
	i.broken = false
	return i.asked, nil
}

// allocate takes memory in the guest, which owns what is placed there from
// then on, and frees it.
func (i *instance) allocate(length int) (uint32, error) {
	i.stack[0], i.stack[1], i.stack[2], i.stack[3] = 0, 0, 1, uint64(length)
	if err := i.realloc.CallWithStack(i.ctx, i.stack[:]); err != nil {
		return 0, fmt.Errorf("the guard has no memory for %d bytes: %w", length, err)
	}
	return uint32(i.stack[0]), nil
}

func (i *instance) placeBytes(bytes []byte) (uint32, error) {
	at, err := i.allocate(len(bytes))
	if err == nil && !i.memory.Write(at, bytes) {
		err = errors.New("the guard's module broke its contract: memory that is not its own")
	}
	return at, err
}

// placeString copies a string as it is, whether or not it is UTF-8: the guard
// looks for itself.
func (i *instance) placeString(text string) (uint32, error) {
	at, err := i.allocate(len(text))
	if err == nil && !i.memory.WriteString(at, text) {
		err = errors.New("the guard's module broke its contract: memory that is not its own")
	}
	return at, err
}
