// The worker drives the guard for the programs that compare all languages, as
// tests/README.md of the project describes: a JSON object a line, each answered
// by another.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
)

func main() {
	if err := serve(); err != nil {
		fmt.Fprintln(os.Stderr, "worker:", err)
		os.Exit(1)
	}
}

func serve() error {
	ctx := context.Background()
	w, err := newWorker()
	if err != nil {
		return err
	}
	defer w.close()
	lines := bufio.NewReader(os.Stdin)
	answers := json.NewEncoder(os.Stdout)
	answers.SetEscapeHTML(false)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) == 0 {
			return nil // whatever kept us from reading, there is no more input
		}
		if encodeErr := answers.Encode(w.answer(ctx, line)); encodeErr != nil {
			return encodeErr
		}
		if err != nil {
			return nil
		}
	}
}
