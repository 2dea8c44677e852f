package guard_test

import (
	"context"
	"fmt"
	"testing"

	guard "github.com/babelqueue/babelqueue-guard/host/go"
)

func TestSmoke(t *testing.T) {
	for _, claims := range []bool{false, true} {
		store, _ := guard.NewMemory()
		var opts []guard.Option
		if claims {
			opts = append(opts, guard.WithClaims())
		}
		g, err := guard.New(store, opts...)
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range []string{`{"meta":{"id":"a"}}`, `{"meta":{"id":"a"}}`, `{"meta":{"id":1}}`, `x`, `{}`} {
			for _, f := range []error{nil} {
				r, err := g.Process(context.Background(), guard.Body(b), func(ctx context.Context, run *guard.Run) error {
					fmt.Println(run.Once(ctx, "a"))
					return f
				})
				fmt.Printf("%+v %v\n", r, err)
			}
		}
		fmt.Println(g.Forget(context.Background(), ""), g.Forget(context.Background(), "a"))
	}
}
