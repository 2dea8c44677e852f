package wasm

import (
	"context"
	"fmt"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

const (
	guardInterface = "babelqueue:guard/guard@0.1.0"
	stepsInterface = "babelqueue:guard/steps@0.1.0"
)

// imported is a function that a world imports. Its strings, a pointer and a
// length each, come first on the stack; then the place for the result.
type imported struct {
	name     string
	question Question
	strings  int
	answer   func(*instance, uint32) bool
}

// imports are the functions of both worlds, by their interface.
var imports = map[string][]imported{
	"babelqueue:guard/store@0.1.0": {
		{"seen", Seen, 1, (*instance).answerYes},
		{"remember", Remember, 1, (*instance).answerOK},
		{"forget", Forget, 1, (*instance).answerOK},
	},
	"babelqueue:guard/claims@0.1.0": {
		{"claim", Claim, 1, (*instance).answerClaim},
		{"renew", Renew, 2, (*instance).answerHold},
		{"complete", Complete, 2, (*instance).answerHold},
		{"release", Release, 2, (*instance).answerHold},
	},
	"babelqueue:guard/marker@0.1.0": {
		{"set-once", SetOnce, 2, (*instance).answerYes},
	},
}

func instantiateImports(ctx context.Context, runtime wazero.Runtime) error {
	for name, functions := range imports {
		builder := runtime.NewHostModuleBuilder(name)
		for _, function := range functions {
			parameters := make([]api.ValueType, 2*function.strings+1)
			for at := range parameters {
				parameters[at] = api.ValueTypeI32
			}
			builder.NewFunctionBuilder().
				WithGoModuleFunction(function.goFunction(), parameters, nil).
				Export(function.name)
		}
		if _, err := builder.Instantiate(ctx); err != nil {
			return fmt.Errorf("the imports of %s cannot be instantiated: %w", name, err)
		}
	}
	return nil
}

// goFunction notes the question and writes the answer, and does nothing that
// could fail in Go: what escapes from it would leave the guest's memory taken.
func (f imported) goFunction() api.GoModuleFunc {
	place := 2 * f.strings
	return func(ctx context.Context, _ api.Module, stack []uint64) {
		caller := ctx.Value(instanceKey{}).(*instance)
		caller.asked = f.question
		caller.questions++
		if !f.answer(caller, uint32(stack[place])) {
			// Nothing was written, so that whatever the guest makes of it
			// must not count.
			caller.questions++
		}
	}
}

// The results of the imports, each written as the canonical ABI lays it out;
// the first byte says that there is no error.

func (i *instance) answerOK(at uint32) bool {
	return i.memory.WriteByte(at, 0)
}

func (i *instance) answerYes(at uint32) bool {
	return i.memory.WriteByte(at, 0) && i.memory.WriteByte(at+4, flag(i.answer.Yes))
}

// answerHold writes the enumeration of `held` and `lost`.
func (i *instance) answerHold(at uint32) bool {
	return i.memory.WriteByte(at, 0) && i.memory.WriteByte(at+4, flag(!i.answer.Yes))
}

func (i *instance) answerClaim(at uint32) bool {
	claim := &i.answer.Claim
	if !i.memory.WriteByte(at, 0) || !i.memory.WriteByte(at+8, byte(claim.State)) {
		return false
	}
	switch claim.State {
	case Won:
		return i.memory.WriteUint32Le(at+16, i.token) &&
			i.memory.WriteUint32Le(at+20, uint32(len(claim.Token))) &&
			i.memory.WriteUint64Le(at+24, claim.LengthMs)
	case Busy:
		return i.memory.WriteUint64Le(at+16, claim.LeftMs)
	default:
		return true
	}
}

func flag(yes bool) byte {
	if yes {
		return 1
	}
	return 0
}
