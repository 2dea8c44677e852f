package guard_test

import (
	"archive/zip"
	"bytes"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/babelqueue/babelqueue-guard/host/go/internal/redistest"
)

const (
	modulePath = "github.com/babelqueue/babelqueue-guard/host/go"
	version    = "v0.1.0"
)

func command(t *testing.T, folder string, environment []string, line ...string) string {
	t.Helper()
	cmd := exec.Command(line[0], line[1:]...)
	cmd.Dir, cmd.Env = folder, append(os.Environ(), environment...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v: %v\n%s%s", line, err, stdout.String(), stderr.String())
	}
	return stdout.String()
}

// write makes a file with its folders.
func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

// publish puts this module into a folder that serves as a proxy, packed as a
// proxy has it: without what belongs to other modules.
func publish(t *testing.T, proxy string) {
	t.Helper()
	versions := filepath.Join(proxy, filepath.FromSlash(modulePath), "@v")
	mod, err := os.ReadFile("go.mod")
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(versions, "list"), version+"\n")
	write(t, filepath.Join(versions, version+".info"), `{"Version":"`+version+`"}`)
	write(t, filepath.Join(versions, version+".mod"), string(mod))
	var packed bytes.Buffer
	archive := zip.NewWriter(&packed)
	err = filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (entry.Name() == "tools" || entry.Name() == ".build"):
			return fs.SkipDir
		case entry.IsDir():
			return nil
		}
		file, err := archive.Create(modulePath + "@" + version + "/" + filepath.ToSlash(path))
		if err != nil {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		_, err = file.Write(content)
		return err
	})
	if err := errors.Join(err, archive.Close()); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(versions, version+".zip"), packed.String())
}

// examples are the programs of the README, each with its output.
func examples(t *testing.T) [][]string {
	t.Helper()
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile("(?s)```go\n(package main.*?)```\n\n```\n(.*?)```").FindAllStringSubmatch(string(readme), -1)
	if len(found) != 2 {
		t.Fatalf("%d examples", len(found))
	}
	return found
}

func TestThePackageWorksFromAnEmptyPlace(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds everything once more")
	}
	proxy, modules := t.TempDir(), t.TempDir()
	publish(t, proxy)
	here := func(name string) string { return strings.TrimSpace(command(t, ".", nil, "go", "env", name)) }
	environment := []string{
		// What is in the cache already need not be fetched again.
		"GOPROXY=file://" + proxy + ",file://" + here("GOMODCACHE") + "/cache/download," + here("GOPROXY"),
		"GONOSUMDB=" + modulePath, "GOFLAGS=-mod=mod -modcacherw -trimpath", "GOMODCACHE=" + modules, "GOWORK=off",
	}
	for at, example := range examples(t) {
		place := t.TempDir()
		program, output := example[1], example[2]
		if strings.Contains(program, "REDIS_URL") {
			environment = append(environment, "REDIS_URL="+redistest.Start(t).URL())
		}
		write(t, filepath.Join(place, "main.go"), program)
		write(t, filepath.Join(place, "go.mod"), "module example\n\ngo 1.25.0\n")
		command(t, place, environment, "go", "get", modulePath+"@"+version)
		if got := command(t, place, environment, "go", "run", "."); got != output {
			t.Errorf("example %d says\n%s", at+1, got)
		}
		linked := command(t, place, environment, "go", "list", "-deps", ".")
		if strings.Contains(linked, "go-redis") != strings.Contains(program, "redisstore") {
			t.Errorf("example %d: go-redis among its packages: %t", at+1, strings.Contains(linked, "go-redis"))
		}
	}
}

func TestTheModulesAreThoseOfEveryOtherLanguage(t *testing.T) {
	for _, name := range []string{"plain.core.wasm", "claiming.core.wasm"} {
		theirs, err := os.ReadFile("../../guest/artifacts/" + name)
		if errors.Is(err, fs.ErrNotExist) && os.Getenv("CI") != "true" {
			t.Skip("the project's artifacts are not there")
		}
		ours, _ := os.ReadFile("artifacts/" + name)
		if err != nil || !bytes.Equal(theirs, ours) {
			t.Errorf("%s differs, or: %v", name, err)
		}
	}
}
